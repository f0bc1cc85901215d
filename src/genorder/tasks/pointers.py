"""Following pointers into the input: an index computed from earlier targets, or the links of a list."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph
from genorder.tasks.base import DrawnInputs, IntArray, Lengths, Split, Task, within
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


@final
@dataclass(frozen=True)
class LinkedListTask(Task):
    """X = successors of the nodes 0..n, then the start node; y_1 = next[start], y_k = next[y_(k-1)].

    A sample of n targets has n + 1 nodes on one random cycle, so the walk visits each node except the start once.
    """

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        rows = np.arange(samples)
        nodes = self.longest + 1
        # Nodes beyond the length of a sample are sorted last and are not linked.
        keys = np.where(within(lengths + 1, nodes), rng.random((samples, nodes)), 2.0)
        cycle_NP = np.argsort(keys, axis=1, kind="stable")
        inputs = np.zeros((samples, nodes + 1), dtype=np.int64)
        for step in range(nodes):
            successor = cycle_NP[rows, np.where(step < lengths, step + 1, 0) % nodes]
            inputs[rows, cycle_NP[:, step]] = np.where(step <= lengths, successor, 0)
        inputs[rows, lengths + 1] = rng.integers(0, lengths + 1)
        return DrawnInputs(inputs, lengths + 2, lengths)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        rows = np.arange(len(inputs))
        node = inputs[rows, target_lengths + 1]
        y_LN = np.empty((self.longest, len(inputs)), dtype=np.int64)
        for step in range(self.longest):
            node = y_LN[step] = inputs[rows, node]
        return np.where(within(target_lengths, self.longest), y_LN.T, 0)

    def dependencies(self) -> DependencyGraph:
        """Each target may read any successor; the first target also reads the start node."""
        table = tuple(range(self.longest + 1))
        return DependencyGraph(
            targets=self.longest,
            parents=((), *((step - 1,) for step in range(1, self.longest))),
            input_parents=((*table, self.longest + 1), *(table for _ in range(1, self.longest))),
        )


@register_task("linked-list", default_length=12, summary="nodes of a linked list, each the successor of the last")
def linked_list(lengths: Lengths) -> LinkedListTask:
    return LinkedListTask("linked-list", lengths)
