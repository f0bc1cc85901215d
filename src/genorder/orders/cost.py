"""How much computation an order asks for, on a task whose dependency graph is known.

At each step the model may read X and the targets already emitted, and remembers nothing else. Computing
y_j then costs one evaluation for y_j itself and one for each target or latent that lies between y_j and
what can be read: every node at most once per step, and nothing for an input copy, which stands in X.
On a chain y_i = f(x_i, y_(i-1)) of length L with y_1 = x_1, the forward order costs L and the reverse
order 1 + (1 + 2 + ... + (L - 1)).
"""

from genorder.errors import InputError
from genorder.orders.graph import DependencyGraph
from genorder.orders.order import Order


def order_cost(order: Order, graph: DependencyGraph) -> int:
    """Evaluations needed to emit all targets in this order."""
    if len(order) != graph.targets:
        raise InputError(f"the order has length {len(order)}, but the graph has {graph.targets} targets")
    readable = set(graph.input_copies)
    total = 0
    for target in order:
        total += _evaluations(target, graph, readable)
        readable.add(target)
    return total


def best_cost(graph: DependencyGraph) -> int:
    """The least cost of any order: each target computed once everything it depends on is readable.

    Every topological order attains it, so it is the minimum and not merely a bound.
    """
    everything = set(range(graph.targets))
    return sum(_evaluations(target, graph, everything) for target in range(graph.targets))


def cost_ratio(order: Order, graph: DependencyGraph) -> float:
    """Cost over best cost: exactly 1.0 for an optimal order, above 1.0 for any other."""
    return order_cost(order, graph) / best_cost(graph)


def _evaluations(target: int, graph: DependencyGraph, readable: set[int]) -> int:
    evaluated = {target}
    waiting = [target]
    while waiting:
        for parent in graph.parents[waiting.pop()]:
            if parent not in readable and parent not in evaluated:
                evaluated.add(parent)
                waiting.append(parent)
    return len(evaluated)
