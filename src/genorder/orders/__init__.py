"""Orders of target tokens: the value type, how to write one down, what it costs on a known graph."""

from genorder.orders.candidate_spec import CandidateSource, parse_candidates, read_orders
from genorder.orders.candidates import (
    BLOCK,
    block_orders,
    deduplicated,
    distinct_orders,
    random_orders,
    relative_to,
    sort_orders,
    topological_sorts,
    within_time_orders,
)
from genorder.orders.constraints import Constraints, Units, parse_before
from genorder.orders.cost import cost_ratio, order_cost
from genorder.orders.graph import DependencyGraph
from genorder.orders.order import Order
from genorder.orders.parse import parse_order

__all__ = [
    "BLOCK",
    "CandidateSource",
    "Constraints",
    "DependencyGraph",
    "Order",
    "Units",
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
    "topological_sorts",
    "within_time_orders",
]
