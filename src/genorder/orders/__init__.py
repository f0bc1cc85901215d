"""Orders of target tokens: the value type, sets of candidates, constraints, and the cost on a dependency graph."""

from genorder.orders.candidates import (
    BLOCK,
    CandidateSource,
    block_orders,
    deduplicated,
    distinct_orders,
    parse_candidates,
    random_orders,
    relative_to,
    sort_orders,
    topological_sorts,
    within_time_orders,
)
from genorder.orders.constraints import Constraints, Units, parse_before
from genorder.orders.graph import DependencyGraph, best_cost, cost_ratio, order_cost, topological_sort
from genorder.orders.order import Order
from genorder.orders.parse import parse_order, read_orders

__all__ = [
    "BLOCK",
    "CandidateSource",
    "Constraints",
    "DependencyGraph",
    "Order",
    "Units",
    "best_cost",
    "block_orders",
    "cost_ratio",
    "deduplicated",
    "distinct_orders",
    "order_cost",
    "parse_before",
    "parse_candidates",
    "parse_order",
    "random_orders",
    "read_orders",
    "relative_to",
    "sort_orders",
    "topological_sort",
    "topological_sorts",
    "within_time_orders",
]
