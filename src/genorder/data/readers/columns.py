"""Which columns of a table hold inputs and targets: one with whole sequences, or one for each token."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from genorder.data.names import Names
from genorder.data.readers.tokens import shortened
from genorder.errors import InputError

_RANGE = ".."


class Columns(NamedTuple):
    """One name on a side: the column holds sequences. Several: each holds one token."""

    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    fields: tuple[str, str]  # what the sides are called in messages

    @property
    def all(self) -> list[str]:
        return list(dict.fromkeys((*self.inputs, *self.targets)))

    @property
    def names(self) -> Names:
        return Names(*(side if len(side) > 1 else () for side in (self.inputs, self.targets)))

    def sides(self, column: Callable[[str], list[Any]]) -> tuple[list[Any], list[Any]]:
        """The inputs and the targets of some samples, given the values of each column for all of them."""
        return sequences(self.inputs, column), sequences(self.targets, column)


def sequences(side: tuple[str, ...], column: Callable[[str], list[Any]]) -> list[Any]:
    """The inputs, or the targets, of some samples, given the values of each column for all of them."""
    return column(side[0]) if len(side) == 1 else [_tokens(cells) for cells in zip(*map(column, side), strict=True)]


def _tokens(cells: Sequence[Any]) -> list[Any]:
    """One token a cell. Empty cells at the end make a shorter sequence; one before it is None, which is no token."""
    tokens: list[Any] = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in cells]
    while tokens and tokens[-1] is None:
        tokens.pop()
    return tokens


def several_columns(text: str, known: Sequence[str], where: str, *, ranges: bool) -> tuple[str, ...] | None:
    """Those that `a,b,c` or `FIRST..LAST` name among the known, in this sequence; nothing where it names others.

    Raises InputError for a range without `ranges` or against the sequence of the columns, and for one named twice.
    """
    parts = [text] if _range(text, known) else [part.strip() for part in text.split(",")]
    found: list[str] = []
    for part in parts:
        ends = _range(part, known)
        if part not in known and ends is None:
            return None
        if part in known or ends is None:
            found.append(part)
            continue
        if not ranges:
            raise InputError(f"{where}: {shortened(part)} is a range, which only tables have; name all by commas")
        if ends[0] > ends[1]:
            raise InputError(f"{where}: {shortened(part)} runs against the sequence of the columns; turn it round")
        found += known[ends[0] : ends[1] + 1]
    if len(set(found)) < len(found):
        raise InputError(f"{where}: {shortened(text)} names a column twice; expected each once")
    return tuple(found)


def _range(text: str, known: Sequence[str]) -> tuple[int, int] | None:
    """The places of the first and the last column of `FIRST..LAST`."""
    first, _, last = (piece.strip() for piece in text.partition(_RANGE))
    return (known.index(first), known.index(last)) if first in known and last in known else None
