"""Sorts of a dependency graph that differ in what they keep together: one can be learnt much better than another.

All of them keep to the constraints. Where they leave a choice, the order that the graph was found with decides, so that
renaming the columns renames the sorts.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import final

from genorder.orders import Constraints, Order
from genorder.training import ProgressReporter

Edge = tuple[int, int]  # a target, and one that is computed from it

_MOST_LOOKS = 4_000_000  # at a target that might come next, in all sorts that are tried for a regular one
_PATIENCE = 300  # times the number of targets, that sorts are tried without finding a better one
_TEMPERATURES = (0.0, 0.3, 0.6, 1.0, 1.5)  # of the random choices
_PRICE_OF_A_KIND = 3  # in targets next to a parent: one kind fewer is worth so many of them
_KNOWN_KIND, _NEXT_TO_PARENT, _FAR = 2.0, 1.0, -0.1  # what makes a target likely to be chosen


def topological_sorts(order: Order, edges: Iterable[Edge], constraints: Constraints) -> list[Order]:
    """Level by level, and each target next to its parents."""
    graph = _UnitGraph(order, edges, constraints)
    return [graph.by_levels(), graph.by_parents()]


def regular_sort(
    order: Order, edges: Iterable[Edge], constraints: Constraints, watch: ProgressReporter | None = None
) -> Order:
    """With as few kinds of distances from a target to its parents as can be found, and many next to one.

    A Transformer learns to look so many tokens back; the fewer kinds of that there are, the sooner.
    """
    return _UnitGraph(order, edges, constraints).regular(watch or ProgressReporter())


@final
class _UnitGraph:
    """Of the blocks that move as one, which are named by their places in the order."""

    def __init__(self, order: Order, edges: Iterable[Edge], constraints: Constraints) -> None:
        self._units = constraints.units(len(order))
        free, step_of = self._units.free, order.inverse()
        self._unit_at = sorted(range(len(free)), key=lambda unit: step_of[free[unit][0]])
        place_of = {target: place for place, unit in enumerate(self._unit_at) for target in free[unit]}
        pairs = {(place_of[one], place_of[other]) for one, other in edges if one in place_of and other in place_of}
        pairs |= {(place_of[free[one][0]], place_of[free[other][0]]) for one, other in self._units.edges}
        self._parents: list[list[int]] = [[] for _ in free]
        self._children: list[list[int]] = [[] for _ in free]
        for one, other in sorted(pairs):
            if one != other:
                self._parents[other].append(one)
                self._children[one].append(other)

    def _sorted(self, choose: Callable[[int, dict[int, int], list[int]], int]) -> list[int]:
        """Places, one after the other; `choose` is given the step, the steps of those emitted, and those free to go."""
        missing = [len(parents) for parents in self._parents]
        available = [place for place, count in enumerate(missing) if not count]
        step_of: dict[int, int] = {}
        while available:
            chosen = choose(len(step_of), step_of, available)
            available.remove(chosen)
            step_of[chosen] = len(step_of)
            for child in self._children[chosen]:
                missing[child] -= 1
                if not missing[child]:
                    available.append(child)
        return list(step_of)

    def _to_order(self, places: Iterable[int]) -> Order:
        units = self._units
        emitted = [target for place in places for target in units.free[self._unit_at[place]]]
        return Order.of([*units.first, *emitted, *units.last])

    def by_levels(self) -> Order:
        """What has no edge at all comes first."""
        level_of: dict[int, int] = {}
        for place, parents in enumerate(self._parents):
            level_of[place] = max((level_of[parent] + 1 for parent in parents), default=0)
        return self._to_order(sorted(level_of, key=lambda place: (level_of[place], place)))

    def by_parents(self) -> Order:
        """What has no edge at all keeps its step."""
        apart = {place for place, parents in enumerate(self._parents) if not parents and not self._children[place]}

        def choose(step: int, step_of: dict[int, int], available: list[int]) -> int:
            if step in apart:
                return step
            joined = [place for place in available if place not in apart]
            return min(joined, key=lambda p: (-max((step_of[q] for q in self._parents[p]), default=-1), p))

        return self._to_order(self._sorted(choose))

    def regular(self, watch: ProgressReporter) -> Order:
        """The best of many that are sorted with some chance, and of the order itself."""
        places = range(len(self._parents))
        rng = random.Random(0)
        best, least = list(places), self._irregularity(places)
        looks, waited = 0, 0
        for temperature in cycle(_TEMPERATURES):
            watch("sorting the graph", looks, _MOST_LOOKS)
            tried, looked = self._regular(rng, temperature)
            looks, waited = looks + looked, waited + 1
            if (irregularity := self._irregularity(tried)) < least:
                best, least, waited = tried, irregularity, 0
            if looked <= len(places) or looks > _MOST_LOOKS or waited > _PATIENCE * len(places):
                break  # the first where there is no choice
        return self._to_order(best)

    def _regular(self, rng: random.Random, temperature: float) -> tuple[list[int], int]:
        """One of them, and how many times a target was looked at."""
        seen: Counter[tuple[int, ...]] = Counter()
        looks = 0

        def choose(step: int, step_of: dict[int, int], available: list[int]) -> int:
            nonlocal looks
            looks += len(available)
            found = [self._distances(place, step, step_of) for place in available]
            likings = [_liking(distances, seen[distances]) + temperature * _gumbel(rng) for distances in found]
            index = max(range(len(available)), key=likings.__getitem__)
            seen[found[index]] += 1
            return available[index]

        return self._sorted(choose), looks

    def _distances(self, place: int, step: int, step_of: dict[int, int]) -> tuple[int, ...]:
        return tuple(sorted(step - step_of[parent] for parent in self._parents[place]))

    def _irregularity(self, places: Sequence[int]) -> int:
        step_of = {place: step for step, place in enumerate(places)}
        kinds = [self._distances(place, step, step_of) for step, place in enumerate(places) if self._parents[place]]
        return _PRICE_OF_A_KIND * len(set(kinds)) - sum(1 in kind for kind in kinds)


def _liking(distances: tuple[int, ...], times: int) -> float:
    """Of a target at such distances from its parents, which have been seen so many times."""
    far = sum(distances) / max(1, len(distances))
    return _KNOWN_KIND * math.log1p(times) + _NEXT_TO_PARENT * (1 in distances) + _FAR * far


def _gumbel(rng: random.Random) -> float:
    """Added to the logarithms of weights, the greatest is drawn by weight."""
    return -math.log(-math.log(max(rng.random(), 1e-300)))
