"""How a data file is to be understood, beyond what it says itself."""

from dataclasses import dataclass, fields
from typing import Any, final

from genorder.data.readers.tokens import SPLITTERS, shortened
from genorder.errors import InputError

_SAMPLE_COLUMNS = (("input", "problem"), ("target", "answer"))


@final
@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    format: str | None = None  # by the file's extension where it is not given
    input_column: str | None = None  # `input` or `problem` where it is not given
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

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The names that the column of inputs may have."""
        return _SAMPLE_COLUMNS[0] if self.input_column is None else (self.input_column,)

    def columns_among(self, names: Any, where: str, kind: str) -> tuple[str, str]:
        """The columns of input and target. Raises InputError where `names`, the `kind` at `where`, lack one."""
        found = []
        for given, usual in zip((self.input_column, self.target_column), _SAMPLE_COLUMNS, strict=True):
            wanted = usual if given is None else (given,)
            name = next((name for name in wanted if name in names), None)
            if name is None:
                raise InputError(
                    f"{where}: no {wanted[0]!r} among the {kind} {shortened(sorted(map(str, names)))}; "
                    f"expected {self.input_column or 'input'} and {self.target_column or 'target'}; "
                    "name others by --input-column and --target-column"
                )
            found.append(name)
        return found[0], found[1]
