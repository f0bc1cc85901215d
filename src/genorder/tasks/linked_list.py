"""Walking a linked list: each target is the successor of the one before it."""

from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.orders import DependencyGraph
from genorder.tasks.base import DrawnInputs, Lengths, Task
from genorder.tasks.partition import IntArray, Split, within
from genorder.tasks.registry import register_task


@final
@dataclass(frozen=True)
class LinkedListTask(Task):
    """X = successors of the nodes 0..n, then the start node; y_1 = next[start], y_k = next[y_(k-1)].

    A sample of n targets has n + 1 nodes on one random cycle, so the walk visits each node but the start once.
    """

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        rows = np.arange(samples)
        nodes = self.longest + 1
        # Nodes beyond a sample's own come last and are not linked.
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
        """Any successor may be the one that is read; the first target also reads the start node."""
        table = tuple(range(self.longest + 1))
        return DependencyGraph(
            targets=self.longest,
            parents=((), *((step - 1,) for step in range(1, self.longest))),
            input_parents=((*table, self.longest + 1), *(table for _ in range(1, self.longest))),
        )


@register_task("linked-list", default_length=12, summary="nodes of a linked list, each the successor of the last")
def linked_list(lengths: Lengths) -> LinkedListTask:
    return LinkedListTask("linked-list", lengths)
