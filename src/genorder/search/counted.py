"""What counting says before anything is trained: what determines each target, and the orders that follow."""

from dataclasses import dataclass
from typing import final

from genorder.orders import Order
from genorder.profiling.determination import Determination, determine
from genorder.search.base import SearchProblem
from genorder.search.graph_sorts import regular_sort
from genorder.search.periodic_sorts import periodic_sorts
from genorder.training import ProgressReporter


@final
@dataclass(frozen=True)
class Counted:
    determination: Determination | None
    orders: list[Order]  # in which each target is determined by what comes before it
    in_turns: bool  # in these orders, variables over time take turns


def count_sources(problem: SearchProblem) -> Counted:
    """By comparing training samples. Raises Interrupted when the problem's stop is requested."""
    watch = ProgressReporter(problem.on_progress, problem.stop)
    found, constraints = determine(problem.train, problem.any_order.agreement, watch), problem.constraints
    order = found.order(constraints) if found else None
    if found is None or order is None:
        return Counted(found, [], in_turns=False)
    if found.lines and (sorts := periodic_sorts(found.lines, constraints, watch)):
        return Counted(found, sorts, in_turns=True)
    edges = [(parent, t) for t, source in enumerate(found.along(order) or []) for parent in found.parents(source)]
    return Counted(found, [regular_sort(order, edges, constraints, watch)], in_turns=False)
