"""Names of the input and target positions, for display only: no result depends on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from genorder.errors import InputError

_FILE_MARK = "@"
INPUT_NAMES, TARGET_NAMES = "input_names", "target_names"  # in a configuration and in a result


@final
@dataclass(frozen=True)
class Names:
    """A name for each position; a side without names is empty."""

    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inputs or self.targets)

    def __str__(self) -> str:
        """`the inputs a, b and the targets c, d`."""
        sides = (("inputs", self.inputs), ("targets", self.targets))
        return " and ".join(f"the {kind} {', '.join(names)[:60]}" for kind, names in sides if names)

    def check(self, inputs: int, targets: int) -> None:
        """Raises InputError unless each side has no names, or a distinct name for each of its positions."""
        for kind, names, positions in (("input", self.inputs, inputs), ("target", self.targets, targets)):
            if not names:
                continue
            if len(names) != positions:
                raise InputError(
                    f"received {len(names)} {kind} names; the data has {positions} {kind}s: give one name for each"
                )
            empty = next((index for index, name in enumerate(names) if not name.strip()), None)
            if empty is not None:
                raise InputError(f"{kind} name {empty} is empty; expected text")
            twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
            if twice is not None:
                raise InputError(f"the {kind} name {twice[:60]!r} occurs twice; expected distinct names")

    def cut(self, inputs: int, targets: int) -> "Names":
        """The names of the first positions: a table may have columns that are empty in all rows."""
        return Names(self.inputs[:inputs], self.targets[:targets])

    def to_dict(self) -> dict[str, list[str]]:
        """Without the sides that have no names."""
        both = {INPUT_NAMES: list(self.inputs), TARGET_NAMES: list(self.targets)}
        return {key: names for key, names in both.items() if names}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Names":
        return cls(tuple(saved.get(INPUT_NAMES, ())), tuple(saved.get(TARGET_NAMES, ())))


def parse_names(text: str | None) -> tuple[str, ...]:
    """The names in `a,b,c`, or in `@FILE` with one name per line. Raises InputError for a file that cannot be read."""
    if text is None:
        return ()
    if not text.startswith(_FILE_MARK):
        return tuple(name.strip() for name in text.split(","))
    file = Path(text.removeprefix(_FILE_MARK))
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except ValueError:  # no UTF-8, or a null character in the file's name
        raise InputError(f"cannot read {str(file)!r} as text; expected one name per line, in UTF-8") from None
    return tuple(line.strip() for line in (lines[:-1] if lines[-1] == "" else lines))


def names_from_lists(inputs: Sequence[str] | None, targets: Sequence[str] | None) -> Names:
    """The names in two lists from a Python program. Raises InputError for anything but lists of strings."""
    for kind, names in ((INPUT_NAMES, inputs), (TARGET_NAMES, targets)):
        valid = names is None or (isinstance(names, list | tuple) and all(isinstance(name, str) for name in names))
        if not valid:
            raise InputError(f"{kind} are {str(names)[:60]!r}; expected a list of strings, one for each position")
    return Names(tuple(inputs or ()), tuple(targets or ()))
