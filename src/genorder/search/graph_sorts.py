"""Sorts of a dependency graph that differ in what they keep together: one can be learnt much better than another."""

from collections.abc import Sequence

from genorder.orders import Constraints, Order
from genorder.profiling.dependencies import Dependency


def topological_sorts(order: Order, graph: Sequence[Dependency], constraints: Constraints) -> list[Order]:
    """Two sorts of the graph that was found with this order: level by level, and each target next to its parents.

    Where they leave a choice, the order decides, so that renaming the columns renames the sorts.
    """
    units = constraints.units(len(order))
    unit_of = {target: number for number, unit in enumerate(units.free) for target in unit}
    pairs = [(parent, dependency.target) for dependency in graph for parent in dependency.targets]
    edges = {(unit_of[one], unit_of[other]) for one, other in pairs if one in unit_of and other in unit_of}
    edges = {(one, other) for one, other in {*edges, *units.edges} if one != other}
    parents = [[one for one, other in edges if other == unit] for unit in range(len(units.free))]
    step_of = order.inverse()
    place_of = [step_of[unit[0]] for unit in units.free]
    level_of = [0] * len(units.free)
    for unit in sorted(range(len(units.free)), key=place_of.__getitem__):
        level_of[unit] = max((level_of[parent] + 1 for parent in parents[unit]), default=0)

    def by_level(emitted: Sequence[int], available: Sequence[int]) -> int:
        keys = [(level_of[unit], place_of[unit]) for unit in available]
        return keys.index(min(keys))

    def by_parents(emitted: Sequence[int], available: Sequence[int]) -> int:
        step_of = {target: step for step, target in enumerate(emitted)}
        latest = [max((step_of[units.free[one][-1]] for one in parents[unit]), default=-1) for unit in available]
        keys = [(-step, place_of[unit]) for step, unit in zip(latest, available, strict=True)]
        return keys.index(min(keys))

    return [units.sort(choose, sorted(edges)) for choose in (by_level, by_parents)]
