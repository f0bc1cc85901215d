"""How numbers, times, tokens and progress are written, on the screen and in reports."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it imports torch, which takes seconds
    from genorder.orders import Order

_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # control, format, surrogate, private use, line separators

NAME_WIDTH = 24  # characters of a column's name in a line of text
_MOST_NAMES = 20  # of an order in a line of text


def percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def percent_range(interval: Sequence[float]) -> str:
    """`99.3 to 99.9 %`."""
    low, high = interval
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def duration(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `5 h 12 min`, `3 days 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{whole} s"
    for unit, size, smaller, part in (("days", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole // 60} min {whole % 60} s"


def number(value: float) -> str:
    """Four significant digits: `0.001567`, `3.172`, `12,345`."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-4 else f"{value:.2e}"


def count_of(amount: int, thing: str) -> str:
    """`1 order`, `1,000 orders`."""
    return f"{amount:,} {thing}{'' if amount == 1 else 's'}"


def visible(text: str, most: int = 60) -> str:
    """A token or name as one line of text: escapes for invisible characters, and cut if it is long."""
    characters = text[: most + 1]
    shown = "".join(_escape(one) if unicodedata.category(one) in _INVISIBLE else one for one in characters)
    return shown if len(text) <= most else f"{shown[: most - 1]}…"


def _escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or f"\\u{ord(character):04x}"


def cut_short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def abbreviated(order: "Order", most: int = 80) -> str:
    """`0-4 7 5 6`, cut if it is long."""
    return cut_short(order.short(), most)


def joined(names: Sequence[str]) -> str:
    """The names separated by spaces, or by commas if a name holds a space."""
    return (", " if any(" " in name for name in names) else " ").join(names)


def by_name(order: Iterable[int], names: Sequence[str] | None) -> str:
    """`, by name: mass speed`, to follow the indices of an order; empty without names."""
    if not names:
        return ""
    shown = [visible(names[column], NAME_WIDTH) for column in order]
    return f", by name: {joined(shown[:_MOST_NAMES])}{' ...' if len(shown) > _MOST_NAMES else ''}"


def progress_text(progress: Mapping[str, Any]) -> str:
    """The last progress report of a run; empty if it cannot be read, since nothing depends on it."""
    try:
        stage = visible(str(progress["stage"]))
        if "jobs" in progress:
            part = f"{stage}, rung {progress['rung']}" if progress["rung"] else "final training"
            return f"{part}, step {progress['step']:,}: {progress['jobs']} of {progress['of']} done"
        spent = duration(progress.get("seconds", 0.0))
        if progress["loss"] is None:
            return f"{stage}: {progress['step']} of {progress['steps']} done, {spent}"
        return f"{stage}: step {progress['step']} of {progress['steps']}, loss {progress['loss']:.4f}, {spent}"
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""
