"""How a data file is read: its format, the columns of input and target, and how strings are split into tokens."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

from genorder.data.names import Names
from genorder.data.readers.tokens import SPLITTERS, short_repr
from genorder.errors import InputError

_INPUT_COLUMNS, _TARGET_COLUMNS = ("input", "problem"), ("target", "answer")  # looked for if no column is named
_RANGE = ".."


class Columns(NamedTuple):
    """The columns of input and target. A side with one column contains sequences; with several, one token in each."""

    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    fields: tuple[str, str]  # the names of the sides in messages

    @property
    def all(self) -> list[str]:
        return list(dict.fromkeys((*self.inputs, *self.targets)))

    @property
    def names(self) -> Names:
        return Names(*(side if len(side) > 1 else () for side in (self.inputs, self.targets)))

    def sides(self, column: Callable[[str], list[Any]]) -> tuple[list[Any], list[Any]]:
        """The inputs and the targets of some samples; `column` gives the values of a column for these samples."""
        return join_columns(self.inputs, column), join_columns(self.targets, column)


@final
@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    format: str | None = None  # None: by the file's extension
    input_column: str | None = None  # None: `input` or `problem`; several: `a,b` or, in a table, `x0..x9`
    target_column: str | None = None  # None: `target` or `answer`
    separator: str = "#"  # between input and target, in the format text
    split: str = "whitespace"  # how a string is split into tokens: a name in SPLITTERS

    def __post_init__(self) -> None:
        if self.split not in SPLITTERS:
            raise InputError(f"--split {self.split!r}: expected one of {', '.join(SPLITTERS)}")
        if not self.separator or (not self.separator.isprintable() and self.separator != "\t"):
            raise InputError(f"--separator {self.separator!r}: expected one or more printable characters, or a tab")

    def changed(self) -> dict[str, str]:
        """The options that are not at their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def find_input_columns(self, names: Collection[str], where: str, kind: str) -> tuple[str, ...] | None:
        """The columns of the input, as in `find_columns`; None if `names` lack them."""
        return _find_side(self.input_column, _INPUT_COLUMNS, names, where, kind)

    def find_columns(self, names: Collection[str], where: str, kind: str) -> Columns:
        """The columns of input and target among `names`, which are the `kind` (columns or keys) at `where`.

        An option is one name, or several separated by commas, or for a table a range. Raises InputError for a column
        that is not there.
        """
        sides = []
        for option, defaults in ((self.input_column, _INPUT_COLUMNS), (self.target_column, _TARGET_COLUMNS)):
            side = _find_side(option, defaults, names, where, kind)
            if side is None:
                raise InputError(
                    f"{where}: no {option or defaults[0]!r} among the {kind} {short_repr(sorted(map(str, names)))}; "
                    f"expected {self.input_column or 'input'} and {self.target_column or 'target'}; "
                    "name others by --input-column and --target-column"
                )
            sides.append((side, option or side[0]))
        (inputs, input_field), (targets, target_field) = sides
        return Columns(inputs, targets, (input_field, target_field))


def _find_side(
    option: str | None, defaults: tuple[str, ...], names: Collection[str], where: str, kind: str
) -> tuple[str, ...] | None:
    """The columns of one side; None if `names` lack them."""
    if option is None:
        return next(((name,) for name in defaults if name in names), None)
    if option in names:
        return (option,)
    return _parse_columns(option, list(names), where, ranges=kind == "columns")


def _parse_columns(text: str, known: Sequence[str], where: str, *, ranges: bool) -> tuple[str, ...] | None:
    """The columns that `a,b,c` or `FIRST..LAST` names, in this order; None if one of them is not known.

    Raises InputError for a range if `ranges` is False, for a range in reverse order and for a column named twice.
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
            raise InputError(f"{where}: {short_repr(part)} is a range, which only tables have; list all names")
        if ends[0] > ends[1]:
            raise InputError(f"{where}: {short_repr(part)} is a range in reverse column order; swap its ends")
        found += known[ends[0] : ends[1] + 1]
    if len(set(found)) < len(found):
        raise InputError(f"{where}: {short_repr(text)} names a column twice; expected each once")
    return tuple(found)


def _range(text: str, known: Sequence[str]) -> tuple[int, int] | None:
    """The indices of the first and the last column of `FIRST..LAST`; None if the text is no such range."""
    first, _, last = (piece.strip() for piece in text.partition(_RANGE))
    return (known.index(first), known.index(last)) if first in known and last in known else None


def join_columns(side: tuple[str, ...], column: Callable[[str], list[Any]]) -> list[Any]:
    """The inputs, or the targets, of some samples; `column` gives the values of a column for these samples."""
    return column(side[0]) if len(side) == 1 else [_tokens(cells) for cells in zip(*map(column, side), strict=True)]


def _tokens(cells: Sequence[Any]) -> list[Any]:
    """One token per cell. Empty cells at the end shorten the sequence; any other empty cell becomes None, an error."""
    tokens: list[Any] = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in cells]
    while tokens and tokens[-1] is None:
        tokens.pop()
    return tokens
