"""Sets of candidate orders, without duplicates, of the size asked for or all there are.

Sort and block sets are priors: they are built around a reference order (the true one of a built-in task, the given
one of a user's data). Every function returns orders over the columns of the data.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from genorder.orders.graph import DependencyGraph
from genorder.orders.order import Order

BLOCK = 5  # the paper's block size
_FRUITLESS_DRAWS = 1000  # draws without a new order after which a set is taken to be complete


def relative_to(reference: Order, order: Order) -> Order:
    """An order given in steps of the reference, over the columns: result[k] = reference[order[k]]."""
    return reference.compose(order)


def random_orders(length: int, count: int, rng: np.random.Generator) -> list[Order]:
    """Uniform random orders."""
    if length <= 8 and count * 2 >= math.factorial(length):
        everything = [Order(indices) for indices in itertools.permutations(range(length))]
        return [everything[index] for index in rng.permutation(len(everything))[:count]]
    return distinct_orders(lambda: [Order.random(length, rng)], count)


def sort_orders(
    reference: Order, count: int, rng: np.random.Generator, *, towards_reverse: bool = False
) -> list[Order]:
    """Evenly spaced snapshots of bubble sorts of random orders towards the reference (or its reverse).

    One sort passes through as many orders as its start has inversions, plus one; where that is fewer than asked
    for, further random starts are sorted. The goal itself is always among them.
    """
    goal = relative_to(reference, Order.reverse(len(reference))) if towards_reverse else reference

    def snapshots() -> list[Order]:
        path = list(_bubble_sort(rng.permutation(len(reference)).tolist()))
        picked = np.linspace(len(path) - 1, 0, min(count, len(path))).round().astype(int)
        return [relative_to(goal, Order.of(path[index])) for index in picked.tolist()]

    return distinct_orders(snapshots, count)


def block_orders(
    reference: Order, count: int, rng: np.random.Generator, *, block: int = BLOCK, with_reference: bool = True
) -> list[Order]:
    """Blocks of consecutive steps of the reference, the blocks shuffled; the last may be shorter."""
    length = len(reference)
    blocks = [list(range(start, min(start + block, length))) for start in range(0, length, block)]

    def draw() -> list[Order]:
        shuffled = [index for number in rng.permutation(len(blocks)).tolist() for index in blocks[number]]
        order = relative_to(reference, Order.of(shuffled))
        return [] if order == reference else [order]

    found = distinct_orders(draw, count - with_reference)
    return [reference, *found] if with_reference else found


def topological_sorts(graph: DependencyGraph, count: int, rng: np.random.Generator) -> list[Order]:
    """Random topological sorts of the targets: at every step one of those available, each with equal chance."""
    parents = [graph.target_parents(target) for target in range(graph.targets)]

    def draw() -> list[Order]:
        waiting = {target: len(above) for target, above in enumerate(parents)}
        children: list[list[int]] = [[] for _ in parents]
        for target, above in enumerate(parents):
            for parent in above:
                children[parent].append(target)
        available = [target for target, missing in waiting.items() if not missing]
        emitted: list[int] = []
        while available:
            target = available.pop(int(rng.integers(len(available))))
            emitted.append(target)
            for child in children[target]:
                waiting[child] -= 1
                if not waiting[child]:
                    available.append(child)
        return [Order.of(emitted)]

    return distinct_orders(draw, count)


def within_time_orders(reference: Order, variables: int) -> list[Order]:
    """Every order of the variables within a time step, the same at all steps; time stays as in the reference."""
    steps, rest = divmod(len(reference), variables)
    if rest:
        raise ValueError(f"{len(reference)} targets are not a whole number of time steps of {variables} variables")
    return [
        relative_to(reference, Order.of(variables * step + variable for step in range(steps) for variable in inner))
        for inner in itertools.permutations(range(variables))
    ]


def deduplicated(orders: Iterable[Order]) -> list[Order]:
    """The first of each, in their sequence."""
    return list(dict.fromkeys(orders))


def _bubble_sort(values: list[int]) -> Iterator[list[int]]:
    """Every state on the way, the start and the sorted end included."""
    yield list(values)
    for end in range(len(values) - 1, 0, -1):
        for place in range(end):
            if values[place] > values[place + 1]:
                values[place], values[place + 1] = values[place + 1], values[place]
                yield list(values)


def distinct_orders(draw: Callable[[], list[Order]], count: int, first: Iterable[Order] = ()) -> list[Order]:
    """`first`, then draws until `count` different orders are found, or nothing new turns up any more."""
    found = dict.fromkeys(first)
    fruitless = 0
    while len(found) < count and fruitless < _FRUITLESS_DRAWS:
        before = len(found)
        for order in draw():
            if len(found) < count:
                found.setdefault(order)
        fruitless = 0 if len(found) > before else fruitless + 1
    return list(found)
