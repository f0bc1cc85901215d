"""How numbers, times and tokens are written, on the screen and in reports."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it imports torch, which takes seconds
    from genorder.orders import Order

_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # control, format, surrogate, private use, line separators

NAME_WIDTH = 24  # signs of a column's name in a line of text
_NAMES = 20  # of an order in a line of text


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
    """Four digits that count: `0.001567`, `3.172`, `12,345`."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-4 else f"{value:.2e}"


def visible(text: str, most: int = 60) -> str:
    """A token or name as one line of text that shows what it holds: escapes for what cannot be seen, cut if long."""
    shown = "".join(_escape(character) if unicodedata.category(character) in _INVISIBLE else character for character in
                    text[: most + 1])  # fmt: skip
    return shown if len(text) <= most else f"{shown[: most - 1]}…"


def _escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or f"\\u{ord(character):04x}"


def listed(names: Sequence[str]) -> str:
    """One after the other, told apart also where a name holds spaces."""
    return (", " if any(" " in name for name in names) else " ").join(names)


def by_name(order: Iterable[int], names: Sequence[str] | None) -> str:
    """The user's own names of the targets in the sequence of the order, to stand behind its indices; may be empty."""
    if not names:
        return ""
    shown = [visible(names[column], NAME_WIDTH) for column in order]
    return f", by name: {listed(shown[:_NAMES])}{' ...' if len(shown) > _NAMES else ''}"


def target_name(result: Mapping[str, Any], column: int) -> str:
    """The user's own name; else `y3`, of a built-in task by its true index."""
    if names := result.get("target_names"):
        return visible(names[column], NAME_WIDTH)
    true = result.get("order_in_true_indices", result["order"])
    return f"y{true[result['order'].index(column)]}"


def count_of(amount: int, thing: str) -> str:
    """`1 order`, `1,000 orders`."""
    return f"{amount:,} {thing}{'' if amount == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def abbreviated(order: "Order", most: int = 80) -> str:
    """`0-4 7 5 6`, cut if long."""
    return shortened(order.short(), most)


def told(progress: Mapping[str, Any]) -> str:
    """How far a run is, as it last told; empty where that cannot be read: nothing depends on it."""
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
