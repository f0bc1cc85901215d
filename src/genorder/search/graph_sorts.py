"""Sorts of a dependency graph that differ in what they keep together: one can be learnt much better than another."""

from collections.abc import Callable, Sequence

from genorder.orders import Constraints, Order
from genorder.profiling.dependencies import Dependency


def topological_sorts(order: Order, graph: Sequence[Dependency], constraints: Constraints) -> list[Order]:
    """Two sorts of the graph that was found with this order: level by level, and each target next to its parents.

    Where they leave a choice, the order decides, so that renaming the columns renames the sorts. What has no edge at
    all comes first in the one, and keeps its step in the other.
    """
    units = constraints.units(len(order))
    unit_of = {target: number for number, unit in enumerate(units.free) for target in unit}
    pairs = [(parent, dependency.target) for dependency in graph for parent in dependency.targets]
    edges = {(unit_of[one], unit_of[other]) for one, other in pairs if one in unit_of and other in unit_of}
    edges = {(one, other) for one, other in {*edges, *units.edges} if one != other}
    parents = [[one for one, other in edges if other == unit] for unit in range(len(units.free))]
    step_of = order.inverse()
    in_order = sorted(range(len(units.free)), key=lambda unit: step_of[units.free[unit][0]])
    place_of = {unit: place for place, unit in enumerate(in_order)}
    level_of: dict[int, int] = {}
    for unit in in_order:
        level_of[unit] = max((level_of[parent] + 1 for parent in parents[unit]), default=0)
    joined = {unit for edge in edges for unit in edge}

    def sort(key: Callable[[int, dict[int, int]], int], moving: set[int]) -> Order:
        def choose(emitted: Sequence[int], available: Sequence[int]) -> int:
            steps = {unit_of[target]: step for step, target in enumerate(emitted) if target in unit_of}
            due = in_order[len(steps)]
            if due not in moving:
                return available.index(due)
            chosen = min(moving.intersection(available), key=lambda unit: (key(unit, steps), place_of[unit]))
            return available.index(chosen)

        return units.sort(choose, sorted(edges))

    return [
        sort(lambda unit, steps: level_of[unit], set(in_order)),
        sort(lambda unit, steps: -max((steps[parent] for parent in parents[unit]), default=-1), joined),
    ]
