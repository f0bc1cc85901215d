"""What a user calls the places of inputs and targets. Names are for people: no result depends on them."""

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
    """A name for each place; none at all where they are not known."""

    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inputs or self.targets)

    def __str__(self) -> str:
        """`the inputs a, b and the targets c, d`."""
        sides = (("inputs", self.inputs), ("targets", self.targets))
        return " and ".join(f"the {kind} {', '.join(names)[:60]}" for kind, names in sides if names)

    def check(self, inputs: int, targets: int) -> None:
        """Raises InputError unless there is a name of its own for each of so many places."""
        for kind, names, places in (("input", self.inputs, inputs), ("target", self.targets, targets)):
            if not names:
                continue
            if len(names) != places:
                raise InputError(
                    f"{len(names)} {kind} names were given; the data has {places} {kind}s: give one for each"
                )
            empty = next((place for place, name in enumerate(names) if not name.strip()), None)
            if empty is not None:
                raise InputError(f"{kind} name {empty} is empty; expected a text")
            twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
            if twice is not None:
                raise InputError(f"the {kind} name {twice[:60]!r} is given twice; expected a name of its own for each")

    def cut(self, inputs: int, targets: int) -> "Names":
        """Those of the first places: a table may have columns that all its rows leave empty."""
        return Names(self.inputs[:inputs], self.targets[:targets])

    def to_dict(self) -> dict[str, list[str]]:
        """Only what is known."""
        both = {INPUT_NAMES: list(self.inputs), TARGET_NAMES: list(self.targets)}
        return {key: names for key, names in both.items() if names}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Names":
        return cls(tuple(saved.get(INPUT_NAMES, ())), tuple(saved.get(TARGET_NAMES, ())))


def parse_names(text: str | None) -> tuple[str, ...]:
    """`a,b,c`, or `@FILE` with a name on each line. Raises InputError for a file that cannot be read."""
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
        raise InputError(f"cannot read {str(file)!r} as text; expected a name on each line, in UTF-8") from None
    return tuple(line.strip() for line in (lines[:-1] if lines[-1] == "" else lines))


def given_names(inputs: Sequence[str] | None, targets: Sequence[str] | None) -> Names:
    """Of lists that a program hands over. Raises InputError for anything else."""
    for kind, names in ((INPUT_NAMES, inputs), (TARGET_NAMES, targets)):
        texts = names is None or (isinstance(names, list | tuple) and all(isinstance(name, str) for name in names))
        if not texts:
            raise InputError(f"{kind} are {str(names)[:60]!r}; expected a list of texts, one for each place")
    return Names(tuple(inputs or ()), tuple(targets or ()))
