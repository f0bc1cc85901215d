"""From a dependency graph to a few topological sorts that are worth a race.

All of them have the same cost, but a Transformer learns some of them sooner. Their **learnability score** is

    (targets adjacent to a parent) - 3 x (different patterns of offsets to the parents)

A token right before the target is easy to find. A pattern of offsets, such as "1 and 4 steps back", is learned once for
all targets that have it. The scored sorts are: the given order; generation by generation; each target next to its
latest parent; and random sorts that prefer offsets which they have used before.

Constraints are kept. An edge that they forbid is left out.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import cycle
from typing import final

import networkx
import numpy as np

from genorder.orders import Constraints, Order, deduplicated, topological_sort
from genorder.training import ProgressReporter

_PATTERN_PRICE = 3  # adjacent targets that one pattern less is worth
_MOST_CHOICES = 300_000  # choices between available targets, in all random sorts together: about a second
_MOST_REPEATS = 50  # successive random sorts without a new one, after which few are left
_TEMPERATURES = (0.0, 0.3, 0.6, 1.0, 1.5)  # of the random choices
_KNOWN_PATTERN, _ADJACENT, _DISTANCE = 2.0, 1.0, -0.1  # weights in the preference for the next target


def linearise(
    parents: Sequence[Collection[int]],
    order: Order,
    constraints: Constraints,
    rng: np.random.Generator,
    *,
    most: int,
    after: Sequence[Collection[int]] | None = None,
    report: ProgressReporter | None = None,
) -> list[Order]:
    """At most `most` sorts, the highest learnability score first.

    In the given order, the `parents` of each target and the targets in its `after` precede it. So they do in the
    sorts, as far as the constraints allow it.
    """
    before = [{*read, *others} for read, others in zip(parents, after, strict=True)] if after else parents
    graph = _UnitGraph(before, order, constraints)
    sorts = [graph.given(), graph.by_generations(), graph.by_parents(), *graph.random_sorts(rng, report)]
    scored = sorted(deduplicated(map(graph.to_order, sorts)), key=lambda sort: -learnability(sort, parents))
    return scored[:most]


def learnability(order: Order, parents: Sequence[Collection[int]]) -> int:
    """The learnability score; see the module."""
    step = order.inverse()
    offsets = [tuple(sorted(step[t] - step[p] for p in parents[t])) for t in order if parents[t]]
    return sum(1 in pattern for pattern in offsets) - _PATTERN_PRICE * len(set(offsets))


@final
class _UnitGraph:
    """The graph of the blocks that move as one, numbered by their place in the given order as far as it is allowed."""

    def __init__(self, before: Sequence[Collection[int]], order: Order, constraints: Constraints) -> None:
        self._units = constraints.units(len(order))
        free, step = self._units.free, order.inverse()
        unit_of = {target: number for number, unit in enumerate(free) for target in unit}
        graph: networkx.DiGraph[int] = networkx.DiGraph(self._units.edges)
        graph.add_nodes_from(range(len(free)))
        for target in order:
            for parent in sorted(before[target], key=step.__getitem__):
                if step[parent] < step[target] and parent in unit_of and target in unit_of:
                    edge = unit_of[parent], unit_of[target]
                    if edge[0] != edge[1] and not (constraints and networkx.has_path(graph, *edge[::-1])):
                        graph.add_edge(*edge)
        self._unit_at = list(networkx.lexicographical_topological_sort(graph, key=lambda unit: step[free[unit][0]]))
        self._graph = networkx.relabel_nodes(graph, {unit: number for number, unit in enumerate(self._unit_at)})
        self._parents = [sorted(self._graph.predecessors(number)) for number in range(len(free))]
        self._children = [list(self._graph.successors(number)) for number in range(len(free))]

    def to_order(self, numbers: Sequence[int]) -> Order:
        emitted = [target for number in numbers for target in self._units.free[self._unit_at[number]]]
        return Order.of([*self._units.first, *emitted, *self._units.last])

    def given(self) -> list[int]:
        return list(range(len(self._parents)))

    def by_generations(self) -> list[int]:
        return [number for each in networkx.topological_generations(self._graph) for number in sorted(each)]

    def by_parents(self) -> list[int]:
        """Each block next to its latest parent, if that is possible."""
        step_of: dict[int, int] = {}

        def distance(number: int) -> tuple[int, int]:
            return -max((step_of[parent] for parent in self._parents[number]), default=-1), number

        def choose(available: list[int]) -> int:
            chosen = min(available, key=distance)
            step_of[chosen] = len(step_of)
            return available.index(chosen)

        return list(topological_sort(self._children, choose))

    def random_sorts(self, rng: np.random.Generator, report: ProgressReporter | None) -> list[list[int]]:
        """Random sorts without duplicates, until many choices were made or no new sort has come up for long."""
        sorts: dict[tuple[int, ...], None] = {}
        temperatures, choices, repeats = cycle(_TEMPERATURES), 0, 0
        while choices < _MOST_CHOICES and repeats < _MOST_REPEATS:
            sort, made = self._random_sort(rng, next(temperatures))
            repeats = repeats + 1 if tuple(sort) in sorts else 0
            sorts[tuple(sort)] = None
            choices += made
            if report:
                report("sorting the graph", min(choices, _MOST_CHOICES), _MOST_CHOICES)
        return [list(sort) for sort in sorts]

    def _random_sort(self, rng: np.random.Generator, temperature: float) -> tuple[list[int], int]:
        """One sort, and the number of blocks that its choices were made from."""
        seen: Counter[tuple[int, ...]] = Counter()
        step_of: dict[int, int] = {}
        choices = 0

        def choose(available: list[int]) -> int:
            nonlocal choices
            choices += len(available)
            step = len(step_of)
            patterns = [tuple(sorted(step - step_of[p] for p in self._parents[n])) for n in available]
            chance = rng.gumbel(size=len(available)) * temperature
            preferences = [_preference(pattern, seen[pattern]) + chance[i] for i, pattern in enumerate(patterns)]
            index = max(range(len(available)), key=preferences.__getitem__)
            seen[patterns[index]] += 1
            step_of[available[index]] = step
            return index

        return list(topological_sort(self._children, choose)), choices


def _preference(pattern: tuple[int, ...], times: int) -> float:
    """The preference for a target with these offsets to its parents, which the sort has used `times` times before."""
    distance = sum(pattern) / max(1, len(pattern))
    return _KNOWN_PATTERN * math.log1p(times) + _ADJACENT * (1 in pattern) + _DISTANCE * distance
