"""From a dependency graph to a few topological sorts that are worth a race.

All of them have the same cost, but a Transformer learns some sooner. Their **learnability score** is

    (targets that stand next to a parent) - 3 x (different patterns of offsets to the parents)

The token right before needs no search. A pattern of offsets, such as "1 and 4 steps back", is learnt once for all
targets that have it. The sorts that are scored: the order at hand; generation by generation; each target next to its
latest parent; and random ones that prefer offsets which they have used before.

Constraints are kept. An edge that they forbid is left out.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import cycle
from typing import final

import networkx
import numpy as np

from genorder.orders import Constraints, Order, deduplicated
from genorder.training import ProgressReporter

_PATTERN_PRICE = 3  # targets next to a parent that one pattern less is worth
_MOST_CHOICES = 300_000  # between targets that may come next, in all random sorts together: about a second
_MOST_REPEATS = 50  # random sorts, one after the other, that have come before: few are left
_TEMPERATURES = (0.0, 0.3, 0.6, 1.0, 1.5)  # of the random choices
_KNOWN_PATTERN, _ADJACENT, _DISTANCE = 2.0, 1.0, -0.1  # what makes a target likely to be chosen next


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
    """At most so many sorts, of the highest learnability score first. The `parents` of each target, and others that it
    comes `after`, come before it in the order, as far as the constraints allow.
    """
    before = [{*read, *others} for read, others in zip(parents, after, strict=True)] if after else parents
    graph = _UnitGraph(before, order, constraints)
    sorts = [graph.given(), graph.by_generations(), graph.by_parents(), *graph.random_sorts(rng, report)]
    scored = sorted(deduplicated(map(graph.to_order, sorts)), key=lambda sort: -learnability(sort, parents))
    return scored[:most]


def learnability(order: Order, parents: Sequence[Collection[int]]) -> int:
    """The score; see the module."""
    step = order.inverse()
    offsets = [tuple(sorted(step[t] - step[p] for p in parents[t])) for t in order if parents[t]]
    return sum(1 in pattern for pattern in offsets) - _PATTERN_PRICE * len(set(offsets))


@final
class _UnitGraph:
    """The graph of the blocks that move as one, numbered by where the order at hand emits them, if it may."""

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

    def to_order(self, numbers: Sequence[int]) -> Order:
        emitted = [target for number in numbers for target in self._units.free[self._unit_at[number]]]
        return Order.of([*self._units.first, *emitted, *self._units.last])

    def given(self) -> list[int]:
        return list(range(len(self._parents)))

    def by_generations(self) -> list[int]:
        return [number for each in networkx.topological_generations(self._graph) for number in sorted(each)]

    def by_parents(self) -> list[int]:
        """Each next to its latest parent, if that is possible."""
        step_of: dict[int, int] = {}

        def choose(ready: list[int]) -> int:
            chosen = min(ready, key=lambda n: (-max((step_of[p] for p in self._parents[n]), default=-1), n))
            step_of[chosen] = len(step_of)
            return chosen

        return self._sorted(choose)

    def random_sorts(self, rng: np.random.Generator, report: ProgressReporter | None) -> list[list[int]]:
        """Until there were many choices, or for long no sort was new."""
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
        """One sort, and how many targets were chosen from."""
        seen: Counter[tuple[int, ...]] = Counter()
        step_of: dict[int, int] = {}
        choices = 0

        def choose(ready: list[int]) -> int:
            nonlocal choices
            choices += len(ready)
            step = len(step_of)
            patterns = [tuple(sorted(step - step_of[p] for p in self._parents[n])) for n in ready]
            chance = rng.gumbel(size=len(ready)) * temperature
            likings = [_liking(pattern, seen[pattern]) + chance[i] for i, pattern in enumerate(patterns)]
            index = max(range(len(ready)), key=likings.__getitem__)
            seen[patterns[index]] += 1
            step_of[ready[index]] = step
            return ready[index]

        return self._sorted(choose), choices

    def _sorted(self, choose: Callable[[list[int]], int]) -> list[int]:
        missing = [len(parents) for parents in self._parents]
        ready = [number for number, count in enumerate(missing) if not count]
        emitted: list[int] = []
        while ready:
            chosen = choose(ready)
            ready.remove(chosen)
            emitted.append(chosen)
            for child in self._graph.successors(chosen):
                missing[child] -= 1
                if not missing[child]:
                    ready.append(child)
        return emitted


def _liking(pattern: tuple[int, ...], times: int) -> float:
    """Of a target with such offsets to its parents, which have been seen so many times."""
    distance = sum(pattern) / max(1, len(pattern))
    return _KNOWN_PATTERN * math.log1p(times) + _ADJACENT * (1 in pattern) + _DISTANCE * distance
