"""The tokens of a dataset and their ids. Tokens are strings; an integer is its decimal string."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from genorder.errors import InputError

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,599}")  # Python may refuse to convert more than 640 digits


def _canonical_key(token: str) -> tuple[int, int, str]:
    """Integers by value, then all other tokens by text: ids do not depend on the order of the samples."""
    return (0, int(token), "") if _INTEGER.fullmatch(token) else (1, 0, token)


@final
@dataclass(frozen=True)
class Vocabulary:
    tokens: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {token: position for position, token in enumerate(self.tokens)}
        if len(ids) != len(self.tokens):
            raise InputError("a vocabulary lists the same token twice")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Vocabulary":
        """The distinct tokens, in canonical order."""
        return cls(tuple(sorted(set(tokens), key=_canonical_key)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    @property
    def is_integers(self) -> bool:
        return all(_INTEGER.fullmatch(token) for token in self.tokens)

    def id_of(self, token: str) -> int:
        """Raises InputError for a token that the vocabulary lacks."""
        try:
            return self._ids[token]
        except KeyError:
            raise InputError(
                f"token {token!r} is not in the vocabulary of {len(self.tokens)} tokens "
                f"({_preview(self.tokens)}); the model cannot read it"
            ) from None

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return [self.id_of(token) for token in tokens]

    def ids_from(self, other: "Vocabulary") -> NDArray[np.int32]:
        """`result[i]` is this vocabulary's id of `other`'s token i."""
        return np.array([self.id_of(token) for token in other.tokens], dtype=np.int32)


def _preview(tokens: Sequence[str], shown: int = 4) -> str:
    if len(tokens) <= 2 * shown:
        return " ".join(tokens)
    return " ".join([*tokens[:shown], "...", *tokens[-shown:]])
