"""How a data file is to be understood, beyond what it says itself."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, final

from genorder.data.readers.columns import Columns, several_columns
from genorder.data.readers.tokens import SPLITTERS, shortened
from genorder.errors import InputError

_SAMPLE_COLUMNS = (("input", "problem"), ("target", "answer"))


@final
@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    format: str | None = None  # by the file's extension where it is not given
    input_column: str | None = None  # `input` or `problem` where it is not given; `a,b` or `x0..x9` for several
    target_column: str | None = None  # `target` or `answer` where it is not given
    separator: str = "#"  # between input and target, in the format text
    split: str = "whitespace"  # what cuts a string into tokens: a name in SPLITTERS

    def __post_init__(self) -> None:
        if self.split not in SPLITTERS:
            raise InputError(f"--split {self.split!r}: expected one of {', '.join(SPLITTERS)}")
        if not self.separator or (not self.separator.isprintable() and self.separator != "\t"):
            raise InputError(f"--separator {self.separator!r}: expected one or more printable characters, or a tab")

    def changed(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def input_among(self, names: Collection[str], where: str, kind: str) -> tuple[str, ...] | None:
        """The columns of the input, as `columns_among` finds them; None where `names` lack it."""
        return _side(self.input_column, _SAMPLE_COLUMNS[0], names, where, kind)

    def columns_among(self, names: Collection[str], where: str, kind: str) -> Columns:
        """The columns of input and target. Raises InputError where `names`, the `kind` at `where`, lack one.

        What is given is one name, or else several by commas; of the columns of a table, also a range.
        """
        sides = []
        for given, usual in zip((self.input_column, self.target_column), _SAMPLE_COLUMNS, strict=True):
            side = _side(given, usual, names, where, kind)
            if side is None:
                wanted = usual[0] if given is None else given
                raise InputError(
                    f"{where}: no {wanted!r} among the {kind} {shortened(sorted(map(str, names)))}; "
                    f"expected {self.input_column or 'input'} and {self.target_column or 'target'}; "
                    "name others by --input-column and --target-column"
                )
            sides.append((side, given or side[0]))
        (inputs, input_field), (targets, target_field) = sides
        return Columns(inputs, targets, (input_field, target_field))


def _side(
    given: str | None, usual: tuple[str, ...], names: Collection[str], where: str, kind: str
) -> tuple[str, ...] | None:
    """The columns of the input, or of the target; None where `names` lack them."""
    wanted = usual if given is None else (given,)
    one = next(((name,) for name in wanted if name in names), None)
    if one is not None or given is None:
        return one
    return several_columns(given, list(names), where, ranges=kind == "columns")
