"""What cannot be used in a file, gathered, so that the user hears of all of it at once."""

from typing import NoReturn, final

from genorder.errors import InputError

SHOWN = 20


@final
class Problems:
    def __init__(self, name: str) -> None:
        self.name = name
        self.blank_lines = 0
        self.count = 0
        self._shown: list[str] = []

    def add(self, message: str, *, hopeless: bool = False) -> None:
        """Note one; raise at once if it is hopeless to read on, as in a file that is no text at all."""
        self.count += 1
        if self.count <= SHOWN:
            self._shown.append(message)
        if hopeless:
            self.refuse()

    def check(self) -> None:
        if self.count:
            self.refuse()

    def refuse(self) -> NoReturn:
        """One problem is told in one line, several in a line each."""
        if self.count == 1:
            raise InputError(self._shown[0])
        lines = [f"{self.name}: {self.count} lines cannot be used; correct or remove them", *self._shown]
        if self.count > SHOWN:
            lines.append(f"and {self.count - SHOWN} more")
        raise InputError("\n  ".join(lines))
