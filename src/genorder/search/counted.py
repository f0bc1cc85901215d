"""What counting says before anything is trained: what determines each target, and the orders that follow."""

from dataclasses import dataclass
from typing import final

from genorder.orders import Order
from genorder.profiling.determination import Determination, determine
from genorder.profiling.part_watch import PartWatch
from genorder.search.base import SearchProblem
from genorder.search.graph_sorts import regular_sort
from genorder.search.periodic_sorts import periodic_sorts


@final
@dataclass(frozen=True)
class Counted:
    determination: Determination | None
    orders: list[Order]  # in which each target is determined by what comes before it


def count_sources(problem: SearchProblem) -> Counted:
    """By comparing training samples. Raises Interrupted when the problem's stop is requested."""
    watch = PartWatch(problem.on_progress, problem.stop)
    found = determine(problem.train, problem.any_order.agreement, watch)
    return Counted(found, _orders(found, problem, watch) if found else [])


def _orders(found: Determination, problem: SearchProblem, watch: PartWatch) -> list[Order]:
    """Variables that take turns, then a regular one; none where constraints forbid it."""
    constraints = problem.constraints
    order = found.order(constraints)
    if order is None:
        return []
    in_turns = periodic_sorts(found.lines, constraints, watch) if found.lines else []
    edges = [(parent, t) for t, source in enumerate(found.along(order) or []) for parent in found.parents(source)]
    return [*in_turns, regular_sort(order, edges, constraints, watch)]
