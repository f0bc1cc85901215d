"""Sorts of a dependency graph that differ in what they keep together: one can be learnt much better than another.

All of them keep to the constraints. Where they leave a choice, the order that the graph was found with decides, so that
renaming the columns renames the sorts.
"""

from collections.abc import Callable, Iterable
from typing import final

from genorder.orders import Constraints, Order
from genorder.profiling.part_watch import PartWatch
from genorder.search.regular_sort import regular_sequence

Edge = tuple[int, int]  # a target, and one that is computed from it


def topological_sorts(order: Order, edges: Iterable[Edge], constraints: Constraints) -> list[Order]:
    """Level by level, and each target next to its parents."""
    graph = _UnitGraph(order, edges, constraints)
    return [graph.by_levels(), graph.by_parents()]


def regular_sort(
    order: Order, edges: Iterable[Edge], constraints: Constraints, watch: PartWatch | None = None
) -> Order:
    """With few kinds of distances from a target to its parents, and many next to one: see regular_sort.py."""
    return _UnitGraph(order, edges, constraints).regular(watch)


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

    def regular(self, watch: PartWatch | None) -> Order:
        return self._to_order(regular_sequence(self._parents, watch))
