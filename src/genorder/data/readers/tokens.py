"""The tokens of one field of a data file, and back to text."""

from collections.abc import Callable, Sequence
from typing import Any

from genorder.errors import InputError

LONGEST = 100_000  # tokens of one sequence: no model fits longer ones into memory


def _by_comma(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if "" not in parts:
        return parts
    if parts == [""]:
        return []
    raise InputError("there is no token between two commas or after the last one; expected a token")


def _by_character(text: str) -> list[str]:
    return list("".join(text.split()))


# A token that was split out of a string never contains white space.
SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "comma": _by_comma,
    "character": _by_character,
}
_JOINED_BY = {"whitespace": " ", "comma": ",", "character": ""}


def parse_tokens(value: Any, where: str, field: str, split: Callable[[str], list[str]] = str.split) -> list[Any]:
    """The tokens of one field: a list of strings and integers, or a string to split. Raises InputError."""
    if isinstance(value, str):
        try:
            row: list[Any] = split(value)
        except InputError as error:
            raise InputError(f"{where}: {field!r} is {short_repr(value)}: {error}") from None
    elif isinstance(value, list):
        row = value
    else:
        raise InputError(f"{where}: {field!r} is {short_repr(value)}; expected a list of tokens or a string")
    if not set(map(type, row)) <= {int, str}:
        wrong = next(token for token in row if type(token) not in (int, str))
        raise InputError(f"{where}: {field!r} holds {short_repr(wrong)}; expected tokens that are strings or integers")
    if len(row) > LONGEST:
        raise InputError(f"{where}: {field!r} holds {len(row)} tokens; expected at most {LONGEST}")
    return row


def joined(tokens: Sequence[str], split: str) -> str:
    return _JOINED_BY[split].join(tokens)


def check_joinable(tokens: Sequence[str], split: str, kind: str, forbidden: str = "\0") -> None:
    """Raises InputError for a token that a text file of this kind cannot represent."""
    for token in tokens:
        try:
            kept = SPLITTERS[split](token) == [token] and not any(mark in token for mark in forbidden)
            token.encode()
        except (InputError, UnicodeEncodeError):
            kept = False
        if not kept:
            raise InputError(
                f"the token {short_repr(token)} cannot be written as {kind} with tokens split by {split}; "
                "write .jsonl, which represents every token"
            )


def short_repr(value: object, limit: int = 60) -> str:
    """The `repr` of the value, cut to `limit`; unprintable characters appear as escapes."""
    try:
        text = repr(value[: 4 * limit] if isinstance(value, str | bytes | list) else value)
    except (RecursionError, ValueError):  # deeply nested, or a number of several thousand digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= limit else f"{text[:limit]}..."
