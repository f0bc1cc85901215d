"""Sets of candidate orders, without duplicates, also by name, such as `random:128,forward`.

Sort and block sets are priors: they are built around a reference order (the true one of a built-in task, the given
one of a user's data). Every function returns orders over the columns of the data: as many as requested, or all that
exist if those are fewer.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from genorder.errors import InputError
from genorder.orders.graph import DependencyGraph, topological_sort
from genorder.orders.order import Order

BLOCK = 5  # the paper's block size
_FRUITLESS_DRAWS = 1000  # draws without a new order after which a set is taken to be complete
_SIZED = ("random", "sort", "sort-reverse", "block", "topo")
_PLAIN = ("forward", "reverse", "given", "vars", "hand")
_SIZE = re.compile("0*[1-9][0-9]{0,6}")
FORMS = ", ".join([*(f"{name}:N" for name in _SIZED), *_PLAIN])


@final
@dataclass(frozen=True)
class CandidateSource:
    """What candidate sets are built from.

    `reference` is the order that `forward`, `reverse`, `sort` and `block` refer to: the true one of a built-in task,
    the given one of a user's data. All orders are over stored columns.
    """

    reference: Order
    graph: DependencyGraph | None = None
    variables: int | None = None  # per time step, where the targets are a time series
    hand_designed: Mapping[str, Order] = field(default_factory=dict)


def parse_candidates(text: str, source: CandidateSource, rng: np.random.Generator) -> list[Order]:
    """The orders of a list of named sets, such as `random:127,forward`, in its sequence."""
    found: list[Order] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, size = part.partition(":")
        if name in _SIZED:
            if not _SIZE.fullmatch(size):
                raise InputError(f"candidates {part!r}: expected {name}:N with a number of orders, such as {name}:64")
            found += _sized(name, int(size), source, rng)
        elif name in _PLAIN and not colon:
            found += _plain(name, source)
        else:
            raise InputError(f"candidates {part!r}: expected one of {FORMS}")
    if not found:
        raise InputError(f"no candidates were named; expected a list of {FORMS}")
    return deduplicated(found)


def _sized(name: str, count: int, source: CandidateSource, rng: np.random.Generator) -> list[Order]:
    if name == "random":
        return random_orders(len(source.reference), count, rng)
    if name == "block":
        return block_orders(source.reference, count, rng)
    if name == "topo":
        if source.graph is None:
            raise InputError("candidates topo need a dependency graph, which only built-in tasks have")
        return topological_sorts(source.graph, count, rng)
    return sort_orders(source.reference, count, rng, towards_reverse=name == "sort-reverse")


def _plain(name: str, source: CandidateSource) -> list[Order]:
    length = len(source.reference)
    if name == "forward":
        return [source.reference]
    if name == "reverse":
        return [relative_to(source.reference, Order.reverse(length))]
    if name == "given":
        return [Order.forward(length)]
    if name == "vars":
        if source.variables is None:
            raise InputError("candidates vars need a time series of several variables, such as a delay network")
        return within_time_orders(source.reference, source.variables)
    if not source.hand_designed:
        raise InputError("there are no hand-designed orders for this data; the delay networks have five each")
    return list(source.hand_designed.values())


def relative_to(reference: Order, order: Order) -> Order:
    """An order given in steps of the reference, over the columns: result[k] = reference[order[k]]."""
    return reference.compose(order)


def deduplicated(orders: Iterable[Order]) -> list[Order]:
    """The first of each, in their sequence."""
    return list(dict.fromkeys(orders))


def distinct_orders(draw: Callable[[], list[Order]], count: int, first: Iterable[Order] = ()) -> list[Order]:
    """`first`, then draws until `count` different orders are found or many draws have brought no new one."""
    found = dict.fromkeys(first)
    fruitless = 0
    while len(found) < count and fruitless < _FRUITLESS_DRAWS:
        before = len(found)
        for order in draw():
            if len(found) < count:
                found.setdefault(order)
        fruitless = 0 if len(found) > before else fruitless + 1
    return list(found)


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

    One sort passes through as many orders as its start has inversions, plus one; if those are fewer than `count`,
    further random starts are sorted. The goal itself is always among them.
    """
    goal = relative_to(reference, Order.reverse(len(reference))) if towards_reverse else reference

    def snapshots() -> list[Order]:
        path = list(_bubble_sort(rng.permutation(len(reference)).tolist()))
        picked = np.linspace(len(path) - 1, 0, min(count, len(path))).round().astype(int)
        return [relative_to(goal, Order.of(path[index])) for index in picked.tolist()]

    return distinct_orders(snapshots, count)


def _bubble_sort(values: list[int]) -> Iterator[list[int]]:
    """Every state on the way, including the start and the sorted end."""
    yield list(values)
    for end in range(len(values) - 1, 0, -1):
        for place in range(end):
            if values[place] > values[place + 1]:
                values[place], values[place + 1] = values[place + 1], values[place]
                yield list(values)


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
    children: list[list[int]] = [[] for _ in range(graph.targets)]
    for target in range(graph.targets):
        for parent in graph.target_parents(target):
            children[parent].append(target)

    def draw() -> list[Order]:
        return [Order.of(topological_sort(children, lambda available: int(rng.integers(len(available)))))]

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
