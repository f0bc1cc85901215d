"""What a task is: it draws inputs, solves them, and knows what each target is computed from."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple, cast, final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph, Order
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks.partition import IntArray, Split, owned_by

# Axes: N samples, W input positions, L target positions (the longest length).

# Rows drawn per round. Fixed, so that the first samples do not depend on how many are asked for.
_ROUND = 8192
# With a tenth of a large input space, the first round leaves a split empty once in 10^374 times.
_ROUNDS_WITHOUT_A_HIT = 4


@final
@dataclass(frozen=True)
class Lengths:
    """The target lengths that occur: shortest, shortest + step, ..., longest. Equal ends: fixed length."""

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


class Drawn(NamedTuple):
    """Samples: rows of `inputs` and `targets` hold 0 beyond their lengths."""

    inputs: IntArray  # (N, W)
    input_lengths: IntArray  # (N,)
    targets: IntArray  # (N, L)
    target_lengths: IntArray  # (N,)


class DrawnInputs(NamedTuple):
    """Inputs, and how many targets each asks for; not solved yet."""

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
        """What tells this task from others of the same name and lengths."""
        return {}

    @property
    def identity(self) -> str:
        """Name, parameters and lengths as text: equal for equal tasks, in every process."""
        settings = ",".join(f"{key}={value}" for key, value in sorted(self.parameters.items()))
        return f"{self.name}:{settings}:{self.lengths}/{self.lengths.step}"

    @abstractmethod
    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        """Inputs as this split distributes them, whichever split owns them."""

    @abstractmethod
    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        """The targets (N, longest) of inputs (N, W), 0 beyond each row's length."""

    @abstractmethod
    def dependencies(self) -> DependencyGraph:
        """What each target of a longest sample is computed from."""

    def draw(self, samples: int, split: Split, rng: np.random.Generator) -> Drawn:
        """Samples in the true order, whichever split owns them."""
        return self._solved(self.draw_inputs(samples, split, rng))

    def friendly_order(self) -> Order:
        """The order known to be good: the first topological one."""
        return self.dependencies().topological_order()

    @property
    def variables_per_step(self) -> int | None:
        """How many variables a time step has, where the targets are a time series."""
        return None

    def hand_designed_orders(self) -> Mapping[str, Order]:
        """Orders that people thought of, by name."""
        return {}

    def generate(self, samples: int, split: Split, *, seed: int = 0) -> Drawn:
        """`samples` samples of this split, in the true order; `seed` varies them.

        No input occurs in two splits: a hash of each input names the one split that owns it, and what others
        own is drawn again. This holds for any input space, a tiny one too, where independent draws would
        collide; so a model tested here was neither trained nor chosen on any test input. The first n samples
        are the same whatever `samples` is. Raises InputError if this split owns no input that occurs.
        """
        if samples < 1:
            raise InputError(f"the number of samples must be 1 or more, received {samples}")
        rng = numpy_generator(derive_seed(self.split_seeds[split], "task", self.identity, seed))
        kept: list[Drawn] = []
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
                kept.append(Drawn(*map(_narrow, solved)))
            found += int(owned.sum())
            rounds += 1
        return Drawn(*(np.concatenate(parts)[:samples] for parts in zip(*kept, strict=True)))

    def _solved(self, drawn: DrawnInputs) -> Drawn:
        targets = self.solve(drawn.inputs, drawn.target_lengths)
        return Drawn(drawn.inputs, drawn.input_lengths, targets, drawn.target_lengths)


def _narrow(values: IntArray) -> IntArray:
    """In 32 bits, if these suffice: long sequences take much memory."""
    narrow = values.astype(np.int32)
    return values if (narrow != values).any() else cast(IntArray, narrow)
