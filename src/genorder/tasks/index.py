"""Following pointers: each target is the input token that the last targets point to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph
from genorder.tasks.base import DrawnInputs, Lengths, Task
from genorder.tasks.partition import IntArray, Split, within
from genorder.tasks.registry import register_task


@final
@dataclass(frozen=True)
class IndexTask(Task):
    """y_i = x_p with p = (sum of the last d targets) mod n, 0-based; x_i uniform in 0..n-1.

    n is the sample's own length. Targets before the first count as 0, so y_1 is x_1.
    """

    d: int = 2

    def __post_init__(self) -> None:
        if self.d < 1:
            raise InputError(f"task {self.name}: d must be 1 or more, received {self.d}")

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {"d": self.d}

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        limits = self.longest if self.lengths.shortest == self.longest else lengths[:, np.newaxis]
        inputs = rng.integers(0, limits, size=(samples, self.longest))
        return DrawnInputs(np.where(within(lengths, self.longest), inputs, 0), lengths, lengths)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        rows = np.arange(len(inputs))
        y_LN = np.empty((self.longest, len(inputs)), dtype=np.int64)
        recent = np.zeros(len(inputs), dtype=np.int64)
        for position in range(self.longest):
            y_LN[position] = inputs[rows, recent % target_lengths]
            recent += y_LN[position]
            if position >= self.d:
                recent -= y_LN[position - self.d]
        return np.where(within(target_lengths, self.longest), y_LN.T, 0)

    def dependencies(self) -> DependencyGraph:
        every_input = tuple(range(self.longest))
        return DependencyGraph(
            targets=self.longest,
            parents=tuple(tuple(range(max(i - self.d, 0), i)) for i in range(self.longest)),
            input_parents=((0,), *(every_input for _ in range(1, self.longest))),
            input_copies=frozenset({0}),
        )


@register_task("index", default_length=13, summary="y_i = x_p, p = sum of the last d targets mod L")
def index(lengths: Lengths, d: int = 2) -> IndexTask:
    return IndexTask("index", lengths, d=d)
