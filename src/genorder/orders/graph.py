"""What each target of a task is computed from."""

import heapq
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import final

from genorder.errors import InputError
from genorder.orders.order import Order


@final
@dataclass(frozen=True)
class DependencyGraph:
    """A directed acyclic graph over targets and latents.

    Nodes 0..targets-1 are the target tokens; nodes from `targets` on are latents, which take part in the
    computation but are never emitted. `parents[n]` are the nodes that node n is computed from;
    `input_parents[n]` the positions of X it reads directly. `input_copies` are targets that merely repeat an
    input token (y_1 = x_1): whoever needs their value can read it from X. Raises InputError for a graph that
    breaks any of this.
    """

    targets: int
    parents: tuple[tuple[int, ...], ...]
    input_parents: tuple[tuple[int, ...], ...]
    input_copies: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        nodes = len(self.parents)
        if self.targets < 1:
            raise InputError(f"a dependency graph needs at least one target, received {self.targets}")
        if nodes < self.targets or len(self.input_parents) != nodes:
            raise InputError(
                f"a graph of {self.targets} targets needs parents and input parents for each node, "
                f"received {nodes} and {len(self.input_parents)}"
            )
        for node in range(nodes):
            self._check_node(node)
        for copy in self.input_copies:
            if not 0 <= copy < self.targets:
                raise InputError(f"input copy {copy} is not one of the targets 0..{self.targets - 1}")
            if self.parents[copy] or len(self.input_parents[copy]) != 1:
                raise InputError(f"target {copy} is said to repeat one input token, but reads something else")
        try:
            TopologicalSorter(dict(enumerate(self.parents))).prepare()
        except CycleError as error:
            cycle = " -> ".join(str(node) for node in error.args[1])
            raise InputError(f"a dependency graph must have no cycle, found {cycle}") from error

    def _check_node(self, node: int) -> None:
        strangers = [parent for parent in self.parents[node] if not 0 <= parent < len(self.parents)]
        if strangers:
            raise InputError(f"node {node} names parent {strangers[0]}, but nodes are 0..{len(self.parents) - 1}")
        if any(position < 0 for position in self.input_parents[node]):
            raise InputError(f"node {node} reads a negative position of X")
        for ids in (self.parents[node], self.input_parents[node]):
            if len(set(ids)) != len(ids):
                raise InputError(f"node {node} names a parent twice: {ids}")

    def target_parents(self, target: int) -> frozenset[int]:
        """The targets that `target` is computed from, directly or through latents only."""
        if not 0 <= target < self.targets:
            raise InputError(f"target {target} is not one of 0..{self.targets - 1}")
        found: set[int] = set()
        seen: set[int] = set()
        waiting = list(self.parents[target])
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node < self.targets:
                found.add(node)
            else:
                waiting.extend(self.parents[node])
        return frozenset(found)

    def topological_order(self) -> Order:
        """The topological sort of the targets that emits the smallest available index at every step."""
        unmet = [self.target_parents(target) for target in range(self.targets)]
        missing = [len(parents) for parents in unmet]
        children: list[list[int]] = [[] for _ in range(self.targets)]
        for target, parents in enumerate(unmet):
            for parent in parents:
                children[parent].append(target)
        ready = [target for target, count in enumerate(missing) if count == 0]
        emitted: list[int] = []
        while ready:
            target = heapq.heappop(ready)
            emitted.append(target)
            for child in children[target]:
                missing[child] -= 1
                if missing[child] == 0:
                    heapq.heappush(ready, child)
        return Order(tuple(emitted))

    def relabelled(self, true_of_column: Order) -> "DependencyGraph":
        """The same graph over stored columns, where column c holds the target `true_of_column[c]`.

        Latents keep their ids.
        """
        if len(true_of_column) != self.targets:
            raise InputError(f"an order of length {len(true_of_column)} cannot relabel {self.targets} targets")
        latents = range(self.targets, len(self.parents))
        true_of_node = [*true_of_column, *latents]
        node_of_true = [*true_of_column.inverse(), *latents]
        return DependencyGraph(
            targets=self.targets,
            parents=tuple(tuple(node_of_true[p] for p in self.parents[true]) for true in true_of_node),
            input_parents=tuple(self.input_parents[true] for true in true_of_node),
            input_copies=frozenset(node_of_true[copy] for copy in self.input_copies),
        )
