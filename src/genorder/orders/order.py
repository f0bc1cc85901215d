"""The order in which target tokens are emitted.

The convention, stated once for the whole library: `order[k]` is the original target index that is emitted
at step k, both 0-based. Emitting Y in that order gives the sequence `[Y[i] for i in order]`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from genorder.errors import InputError

Item = TypeVar("Item")

_SHORTEST_RUN = 3  # "3 4" reads better than "3-4"; from three on the range is the shorter text
_NAMED_INDICES = 5  # the most offending indices that an error names


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A permutation of 0..L-1, L >= 1. Raises InputError, naming what is wrong, for anything else."""

    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        indices = tuple(_as_index(value) for value in self.indices)
        _check_permutation(indices)
        object.__setattr__(self, "indices", indices)

    @classmethod
    def of(cls, indices: Iterable[SupportsIndex]) -> "Order":
        """From any iterable of integers: a list, a generator, a one-dimensional numpy array."""
        return cls(tuple(_as_index(value) for value in indices))

    @classmethod
    def forward(cls, length: int) -> "Order":
        return cls(tuple(range(length)))

    @classmethod
    def reverse(cls, length: int) -> "Order":
        return cls(tuple(range(length - 1, -1, -1)))

    @classmethod
    def random(cls, length: int, rng: np.random.Generator) -> "Order":
        """Uniform over all `length`! orders."""
        return cls.of(rng.permutation(max(length, 0)))

    @classmethod
    def from_json(cls, source: str | list[Any]) -> "Order":
        """From a JSON list, as text or already read."""
        indices: Any = source
        if isinstance(source, str):
            try:
                indices = json.loads(source)
            except (ValueError, RecursionError) as error:
                raise InputError(f"an order must be a JSON list such as [0, 2, 1]: {error}") from error
        if not isinstance(indices, list):
            raise InputError(f"an order must be a JSON list such as [0, 2, 1], received {_kind(indices)}")
        return cls(tuple(indices))

    def to_json(self) -> str:
        return json.dumps(list(self.indices))

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, step: int) -> int:
        return self.indices[step]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    @overload
    def apply(self, sequence: NDArray[Any]) -> NDArray[Any]: ...

    @overload
    def apply(self, sequence: Sequence[Item]) -> list[Item]: ...

    def apply(self, sequence: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | list[Any]:
        """The targets in the order of emission: result[k] = sequence[order[k]].

        A numpy array is reordered along its last axis; any other sequence becomes a list.
        """
        if isinstance(sequence, np.ndarray):
            self._check_applies_to(sequence.shape[-1] if sequence.ndim else 0)
            reordered: NDArray[Any] = sequence[..., list(self.indices)]
            return reordered
        self._check_applies_to(len(sequence))
        return [sequence[index] for index in self.indices]

    def inverse(self) -> "Order":
        """The order that undoes this one: `order.inverse().apply(order.apply(s)) == s`.

        Its entry i is the step at which target i is emitted.
        """
        steps = [0] * len(self)
        for step, index in enumerate(self.indices):
            steps[index] = step
        return Order(tuple(steps))

    def compose(self, other: "Order") -> "Order":
        """Apply self, then other: `self.compose(other).apply(s) == other.apply(self.apply(s))`."""
        return Order(tuple(other.apply(self.indices)))

    def restrict(self, length: int) -> "Order":
        """The order for a sample of `length` targets: later indices dropped, the others in sequence."""
        if not 1 <= length <= len(self):
            raise InputError(f"an order of length {len(self)} can be restricted to 1..{len(self)}, not {length}")
        return Order(tuple(index for index in self.indices if index < length))

    def short(self) -> str:
        """Compact text for tables: runs of consecutive indices as ranges, such as `0-4 9-5 12`."""
        words: list[str] = []
        start = 0
        while start < len(self):
            end = self._run_end(start)
            if end - start >= _SHORTEST_RUN:
                words.append(f"{self.indices[start]}-{self.indices[end - 1]}")
                start = end
            else:
                words.append(str(self.indices[start]))
                start += 1
        return " ".join(words)

    def _run_end(self, start: int) -> int:
        """One past the last step of the ascending or descending run that begins at step `start`."""
        if start + 1 == len(self):
            return start + 1
        stride = self.indices[start + 1] - self.indices[start]
        if abs(stride) != 1:
            return start + 1
        end = start + 2
        while end < len(self) and self.indices[end] - self.indices[end - 1] == stride:
            end += 1
        return end

    def _check_applies_to(self, length: int) -> None:
        if length != len(self):
            raise InputError(f"an order of length {len(self)} cannot reorder a sequence of length {length}")


def _as_index(value: object) -> int:
    # bool is a subclass of int, but True in an order is a mistake of the caller, not the index 1.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InputError(f"an order holds integers only, received {_kind(value)}")
    return int(value)


def _kind(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def _check_permutation(indices: tuple[int, ...]) -> None:
    length = len(indices)
    if length == 0:
        raise InputError("an order needs at least one index, received none")
    unknown = [index for index in indices if not 0 <= index < length]
    if unknown:
        raise InputError(
            f"not an order: holds {_listed(unknown)}, but a length-{length} order has only 0..{length - 1}"
        )
    repeated = [(index, count) for index, count in Counter(indices).items() if count > 1]
    if repeated:
        times = [f"index {index} appears {'twice' if n == 2 else f'{n} times'}" for index, n in repeated]
        missing = sorted(set(range(length)) - set(indices))
        verb = "is" if len(missing) == 1 else "are"
        raise InputError(f"not an order: {_listed(times)}, {_listed(missing)} {verb} missing")


def _listed(items: Sequence[object]) -> str:
    named = ", ".join(str(item) for item in items[:_NAMED_INDICES])
    return named if len(items) <= _NAMED_INDICES else f"{named} and {len(items) - _NAMED_INDICES} more"
