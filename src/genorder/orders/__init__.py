"""Orders of target tokens: the value type, how to write one down, what it costs on a known graph."""

from genorder.orders.cost import cost_ratio, order_cost
from genorder.orders.graph import DependencyGraph
from genorder.orders.order import Order
from genorder.orders.parse import parse_order

__all__ = ["DependencyGraph", "Order", "cost_ratio", "order_cost", "parse_order"]
