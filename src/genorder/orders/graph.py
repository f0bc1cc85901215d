"""What each target of a task is computed from, and how much computation an order takes on that graph.

At each step the model may read X and the targets emitted so far; it keeps nothing else from earlier steps. Computing
y_j then costs one evaluation for y_j and one for each target or latent between y_j and what can be read: each node at
most once per step, and nothing for an input copy, whose value is in X. On a chain y_i = f(x_i, y_(i-1)) of length L
with y_1 = x_1, the forward order costs L and the reverse order 1 + (1 + 2 + ... + (L - 1)).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import final

import networkx

from genorder.errors import InputError
from genorder.orders.order import Order


@final
@dataclass(frozen=True)
class DependencyGraph:
    """A directed acyclic graph over targets and latents.

    Nodes 0..targets-1 are the target tokens; nodes from `targets` on are latents, which take part in the
    computation but are never emitted. `parents[n]` are the nodes that node n is computed from;
    `input_parents[n]` the positions of X it reads directly. `input_copies` are targets that merely repeat an
    input token (y_1 = x_1): their value can be read from X. Raises InputError for a graph that breaks any of this.
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
        unknown = [parent for parent in self.parents[node] if not 0 <= parent < len(self.parents)]
        if unknown:
            raise InputError(f"node {node} names parent {unknown[0]}, but nodes are 0..{len(self.parents) - 1}")
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
        targets = range(self.targets)
        graph = networkx.DiGraph((parent, target) for target in targets for parent in self.target_parents(target))
        graph.add_nodes_from(targets)
        return Order(tuple(networkx.lexicographical_topological_sort(graph)))

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


def topological_sort(children: Sequence[Sequence[int]], choose: Callable[[list[int]], int]) -> Iterator[int]:
    """Yields the nodes of an acyclic graph, each after its parents.

    Where several nodes are available, `choose` receives them and returns the place in that list of the next one. It
    may depend on the nodes that were yielded so far, which the sorts of networkx cannot do.
    """
    missing = [0] * len(children)
    for own in children:
        for child in own:
            missing[child] += 1
    available = [node for node, count in enumerate(missing) if not count]
    while available:
        node = available.pop(choose(available))
        yield node
        for child in children[node]:
            missing[child] -= 1
            if not missing[child]:
                available.append(child)


def order_cost(order: Order, graph: DependencyGraph) -> int:
    """The number of evaluations needed to emit all targets in this order."""
    if len(order) != graph.targets:
        raise InputError(f"the order has length {len(order)}, but the graph has {graph.targets} targets")
    readable = set(graph.input_copies)
    total = 0
    for target in order:
        total += _evaluations(target, graph, readable)
        readable.add(target)
    return total


def best_cost(graph: DependencyGraph) -> int:
    """The least cost of any order, which every topological order attains."""
    everything = set(range(graph.targets))
    return sum(_evaluations(target, graph, everything) for target in range(graph.targets))


def cost_ratio(order: Order, graph: DependencyGraph) -> float:
    """Cost over best cost: exactly 1.0 for an optimal order, above 1.0 for any other."""
    return order_cost(order, graph) / best_cost(graph)


def _evaluations(target: int, graph: DependencyGraph, readable: set[int]) -> int:
    evaluated = {target}
    waiting = [target]
    while waiting:
        for parent in graph.parents[waiting.pop()]:
            if parent not in readable and parent not in evaluated:
                evaluated.add(parent)
                waiting.append(parent)
    return len(evaluated)
