"""The interface of a task: it draws inputs, solves them, and declares the dependencies of each target.

Axes: N samples, W input positions, L target positions (the longest length).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from genorder.errors import InputError
from genorder.orders import DependencyGraph, Order
from genorder.seeding import derive_seed, mix64, numpy_generator

IntArray = NDArray[np.int64]

# Rows drawn per round. Fixed, so that the first samples do not depend on the number of samples.
_ROUND = 8192
# A split that owns a tenth of a large input space finds no row in one round once in 10^374 times.
_ROUNDS_WITHOUT_A_HIT = 4
# The salt is chosen such that each split owns an input of every recurrence at L = 1, 2, 3 (see the tests).
_SALT = 8
_MULTIPLIER = 0x9E3779B97F4A7C15
_WORD = 2**64
_TENTH = _WORD // 10


class Split(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@final
@dataclass(frozen=True)
class Lengths:
    """The possible target lengths: shortest, shortest + step, ..., longest; one fixed length if both ends are equal."""

    shortest: int
    longest: int
    step: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.longest:
            raise InputError(f"target lengths must be 1 or more, shortest first, received {self}")
        if self.step < 1 or (self.longest - self.shortest) % self.step:
            raise InputError(f"lengths {self} cannot be reached in steps of {self.step}")

    @property
    def possible(self) -> range:
        return range(self.shortest, self.longest + 1, self.step)

    def draw(self, samples: int, rng: np.random.Generator) -> IntArray:
        """A length for each sample, uniform over the possible ones."""
        if self.shortest == self.longest:
            return np.full(samples, self.longest, dtype=np.int64)
        return self.shortest + self.step * rng.integers(0, len(self.possible), size=samples)

    def __str__(self) -> str:
        return str(self.longest) if self.shortest == self.longest else f"{self.shortest}-{self.longest}"


class DrawnSamples(NamedTuple):
    """Samples; rows of `inputs` and `targets` are 0 beyond their lengths."""

    inputs: IntArray  # (N, W)
    input_lengths: IntArray  # (N,)
    targets: IntArray  # (N, L)
    target_lengths: IntArray  # (N,)


class DrawnInputs(NamedTuple):
    """Inputs of samples, with the number of targets of each."""

    inputs: IntArray  # (N, W)
    input_lengths: IntArray  # (N,)
    target_lengths: IntArray  # (N,)


@dataclass(frozen=True)
class Task(ABC):
    """A source of samples (X, Y) with Y in its true order."""

    name: str
    lengths: Lengths

    split_seeds: ClassVar[Mapping[Split, int]] = MappingProxyType(
        {Split.TRAIN: 42, Split.VALIDATION: 84, Split.TEST: 123}
    )

    @property
    def longest(self) -> int:
        return self.lengths.longest

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        """What distinguishes this task from others with the same name and lengths."""
        return {}

    @property
    def identity(self) -> str:
        """Name, parameters and lengths as text: equal for equal tasks, in every process."""
        settings = ",".join(f"{key}={value}" for key, value in sorted(self.parameters.items()))
        return f"{self.name}:{settings}:{self.lengths}/{self.lengths.step}"

    @abstractmethod
    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        """Inputs from the distribution of this split; any split may own them."""

    @abstractmethod
    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        """The targets (N, longest) of inputs (N, W), 0 beyond each row's length."""

    @abstractmethod
    def dependencies(self) -> DependencyGraph:
        """The parents of each target of a longest sample: the targets and inputs that it is computed from."""

    def draw(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnSamples:
        """Samples in the true order; any split may own them."""
        return self._solved(self.draw_inputs(samples, split, rng))

    def friendly_order(self) -> Order:
        """A good order: the first topological order of the dependencies."""
        return self.dependencies().topological_order()

    @property
    def variables_per_step(self) -> int | None:
        """The number of variables per time step, if the targets are a time series."""
        return None

    def hand_designed_orders(self) -> Mapping[str, Order]:
        """Orders designed by hand, by name."""
        return {}

    def generate(self, samples: int, split: Split, *, seed: int = 0) -> DrawnSamples:
        """`samples` samples of this split, in the true order; `seed` varies them.

        No input occurs in two splits: a hash of the input decides which split owns it, and inputs of other splits are
        drawn again. This holds for small input spaces too, where independent draws would collide, so a model is never
        trained or chosen on a test input. The first n samples do not depend on `samples`. Raises InputError if this
        split owns no input that the task draws.
        """
        if samples < 1:
            raise InputError(f"the number of samples must be 1 or more, received {samples}")
        rng = numpy_generator(derive_seed(self.split_seeds[split], "task", self.identity, seed))
        kept: list[DrawnSamples] = []
        found = rounds = 0
        while found < samples:
            if found == 0 and rounds == _ROUNDS_WITHOUT_A_HIT:
                raise InputError(
                    f"task {self.name} of length {self.lengths} has too few inputs to fill a {split} "
                    f"split (none in {rounds * _ROUND} draws): use a longer length"
                )
            drawn = self.draw_inputs(_ROUND, split, rng)
            owned = owned_by(split, drawn.inputs, drawn.input_lengths)
            if owned.any():
                solved = self._solved(DrawnInputs(*(field[owned] for field in drawn)))
                kept.append(DrawnSamples(*map(_narrow, solved)))
            found += int(owned.sum())
            rounds += 1
        return DrawnSamples(*(np.concatenate(parts)[:samples] for parts in zip(*kept, strict=True)))

    def _solved(self, drawn: DrawnInputs) -> DrawnSamples:
        targets = self.solve(drawn.inputs, drawn.target_lengths)
        return DrawnSamples(drawn.inputs, drawn.input_lengths, targets, drawn.target_lengths)


def _narrow(values: IntArray) -> IntArray:
    """As 32-bit integers if they fit, because long sequences take much memory."""
    narrow = values.astype(np.int32)
    return values if (narrow != values).any() else cast(IntArray, narrow)


def owned_by(split: Split, inputs: IntArray, input_lengths: IntArray) -> NDArray[np.bool_]:
    """Which rows the split owns: test a tenth of all inputs, validation a tenth, training the rest.

    The owner depends only on the length of the row and on its content within that length.
    """
    hashes = row_hashes(inputs, input_lengths)
    if split == Split.TEST:
        return hashes < _TENTH
    if split == Split.VALIDATION:
        return (hashes >= _TENTH) & (hashes < 2 * _TENTH)
    return hashes >= 2 * _TENTH


def row_hashes(inputs: IntArray, input_lengths: IntArray) -> NDArray[np.uint64]:
    """A 64-bit hash of each row: a polynomial in the tokens, then `mix64`."""
    width = inputs.shape[1]
    powers = [pow(_MULTIPLIER, column + 2, _WORD) for column in range(width)]
    hashes = np.where(within(input_lengths, width), inputs, 0).astype(np.int64).view(np.uint64) @ np.array(
        powers, np.uint64
    )
    hashes += input_lengths.astype(np.uint64) * np.uint64(_MULTIPLIER) + np.uint64(_SALT)
    return mix64(hashes)


def within(lengths: IntArray, width: int) -> NDArray[np.bool_]:
    """(N, width): which positions are inside the length of their row."""
    mask: NDArray[np.bool_] = np.arange(width) < lengths[:, np.newaxis]
    return mask
