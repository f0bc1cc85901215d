"""Constraints of the user on every order: columns kept first or last, columns in blocks, columns before others.

Columns are the stored target columns, 0-based. Where samples have several lengths, they are the columns of the longest
sample. A shorter sample is emitted in the same sequence without the columns that it lacks, so the constraints still
hold for the columns that it has. Its own last columns are not kept last unless they are among the last of the longest.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise
from typing import Any, final

import numpy as np

from genorder.errors import InputError
from genorder.orders.candidates import distinct_orders, random_orders
from genorder.orders.graph import topological_sort
from genorder.orders.order import Order

Pair = tuple[int, int]
Choice = Callable[[Sequence[int], Sequence[int]], int]

_BEFORE = re.compile(r"\s*([0-9]{1,9})\s*<\s*([0-9]{1,9})\s*")


@final
@dataclass(frozen=True)
class Units:
    """The columns of one length, split into those that stay first or last and blocks that move as one (`free`)."""

    first: tuple[int, ...]
    free: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    edges: tuple[Pair, ...]  # (one, other): block `one` is emitted before block `other`, both by their place in `free`

    def sort(self, choose: Choice) -> Order:
        """An allowed order. At every step `choose` receives the columns emitted so far and the numbers of the blocks
        that may come next, and returns the place of the chosen one among these blocks.
        """
        followers: list[list[int]] = [[] for _ in self.free]
        for one, other in self.edges:
            followers[one].append(other)
        emitted = list(self.first)
        for unit in topological_sort(followers, lambda available: choose(emitted, available)):
            emitted.extend(self.free[unit])
        return Order.of([*emitted, *self.last])


@final
@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Which orders are allowed. Without arguments, every order is.

    Raises InputError for values that no data can have; `check` tests whether any order of a length is allowed.
    """

    keep_first: int = 0  # this number of first columns are emitted first, in their sequence
    keep_last: int = 0  # this number of last columns are emitted last, in their sequence
    groups: int = 1  # the other columns move in blocks of this size, in their sequence within a block
    before: tuple[Pair, ...] = ()  # pairs (i, j): column i is emitted before column j

    def __post_init__(self) -> None:
        for name, least in (("keep_first", 0), ("keep_last", 0), ("groups", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(f"{_option(name)} {value!r}: expected a number of columns, at least {least}")
        try:
            pairs = sorted({_pair(pair) for pair in self.before})
        except TypeError:
            raise InputError(f"--before {self.before!r}: expected pairs of columns, such as (3, 7)") from None
        object.__setattr__(self, "before", tuple(pairs))

    def __bool__(self) -> bool:
        """Whether any order is forbidden."""
        return self != Constraints()

    def __str__(self) -> str:
        """The constraints as options of the command line."""
        counts = [f"{_option(name)} {getattr(self, name)}" for name in ("keep_first", "keep_last") if vars(self)[name]]
        groups = [f"--groups {self.groups}"] if self.groups > 1 else []
        return " ".join([*counts, *groups, *(f"--before {_named(pair)}" for pair in self.before)])

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "before": [list(pair) for pair in self.before]}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Constraints":
        return cls(**saved)

    def check(self, length: int) -> None:
        """Raise InputError, with the reason, if no order of this length is allowed."""
        self.units(length)

    def units(self, length: int) -> Units:
        return _units(self, length)

    def allows(self, order: Order) -> bool:
        units, places = self.units(len(order)), order.inverse()
        kept = all(order[column] == column for column in (*units.first, *units.last))
        together = all(places[column + 1] == places[column] + 1 for unit in units.free for column in unit[:-1])
        return kept and together and all(places[one] < places[other] for one, other in self.before)

    def repaired(self, order: Order) -> Order:
        """The order itself if it is allowed, else an allowed order close to it.

        Blocks are emitted by the mean place of their columns in the given order; a block that must wait for another
        one follows as soon as it may. Renaming the columns of order and constraints renames the result.
        """
        if not self or self.allows(order):
            return order
        units, places = self.units(len(order)), order.inverse()
        ranks = [(sum(own := [places[column] for column in unit]), min(own)) for unit in units.free]
        return units.sort(lambda _, available: min(range(len(available)), key=lambda place: ranks[available[place]]))

    def all_orders(self, length: int) -> Iterator[Order]:
        """Yields every allowed order."""
        units = self.units(length)
        earlier: list[set[int]] = [set() for _ in units.free]
        for one, other in units.edges:
            earlier[other].add(one)

        def arrangements(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if len(done) == len(units.free):
                yield done
            for unit in range(len(units.free)):
                if unit not in done and earlier[unit] <= set(done):
                    yield from arrangements((*done, unit))

        for arranged in arrangements(()):
            middle = [column for unit in arranged for column in units.free[unit]]
            yield Order.of([*units.first, *middle, *units.last])

    def count(self, length: int, most: int) -> int:
        """The number of allowed orders, or `most` if there are more."""
        units = self.units(length)
        if units.edges:
            return sum(1 for _ in islice(self.all_orders(length), most))
        return min(most, math.factorial(len(units.free)))

    def random(self, length: int, rng: np.random.Generator) -> Order:
        """A uniform random order, repaired. Not uniform over the allowed orders if there are pairs or groups."""
        return self.repaired(Order.random(length, rng))

    def random_orders(self, length: int, count: int, rng: np.random.Generator) -> list[Order]:
        """`count` different allowed orders, or all if there are fewer."""
        if not self:
            return random_orders(length, count, rng)
        if self.count(length, 2 * count) < 2 * count:
            everything = list(self.all_orders(length))
            return [everything[index] for index in rng.permutation(len(everything))[:count]]
        return distinct_orders(lambda: [self.random(length, rng)], count)


def parse_before(texts: Iterable[str]) -> tuple[Pair, ...]:
    """The pairs in texts such as `3<7` and `3<7,2<5`."""
    pairs = []
    for text in texts:
        for part in text.split(","):
            match = _BEFORE.fullmatch(part)
            if match is None:
                raise InputError(f"--before {text!r}: expected two columns such as 3<7, or several pairs: 3<7,2<5")
            pairs.append((int(match[1]), int(match[2])))
    return tuple(pairs)


def _pair(pair: Any) -> Pair:
    one, other = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (None, None)
    if type(one) is not int or type(other) is not int:
        raise InputError(f"--before {pair!r}: expected a pair of columns, such as (3, 7)")
    if one == other:
        raise InputError(f"--before {one}<{other}: a column cannot come before itself")
    return one, other


@lru_cache(maxsize=256)
def _units(constraints: Constraints, length: int) -> Units:
    free = length - constraints.keep_first - constraints.keep_last
    if free < 0:
        raise InputError(
            f"--keep-first {constraints.keep_first} and --keep-last {constraints.keep_last} keep more columns than the "
            f"{length} there are; keep fewer"
        )
    if free % constraints.groups:
        raise InputError(
            f"--groups {constraints.groups}: the {free} free columns (of {length}, without those kept first or last) "
            f"are not a whole number of blocks of {constraints.groups}; keep other columns, or give a divisor of {free}"
        )
    columns = range(length)
    start, end = constraints.keep_first, length - constraints.keep_last
    blocks = tuple(tuple(columns[at : at + constraints.groups]) for at in range(start, end, constraints.groups))
    edges = _edges(constraints, length)
    _check_no_cycle(edges)
    return Units(tuple(columns[:start]), blocks, tuple(columns[end:]), tuple(edges))


def _edges(constraints: Constraints, length: int) -> dict[Pair, Pair]:
    """The pairs of columns in different blocks, by the blocks' numbers. Raises InputError for a broken pair."""
    start, end = constraints.keep_first, length - constraints.keep_last
    found: dict[Pair, Pair] = {}
    for pair in constraints.before:
        unknown = [column for column in pair if not 0 <= column < length]
        if unknown:
            raise InputError(
                f"--before {_named(pair)}: there is no column {unknown[0]}; the targets have 0 to {length - 1}"
            )
        one, other = ((column - start) // constraints.groups for column in pair)
        kept_first, kept_last = min(pair) < start, max(pair) >= end
        if kept_first or kept_last or one == other:
            if pair[0] > pair[1]:
                option = "keep_first" if kept_first else "keep_last" if kept_last else "groups"
                raise InputError(
                    f"--before {_named(pair)} contradicts {_option(option)} {getattr(constraints, option)}, by which "
                    f"column {pair[1]} comes before column {pair[0]}; leave one of them out"
                )
        else:
            found.setdefault((one, other), pair)
    return found


def _check_no_cycle(edges: dict[Pair, Pair]) -> None:
    earlier: dict[int, set[int]] = {}
    for one, other in edges:
        earlier.setdefault(other, set()).add(one)
    try:
        TopologicalSorter(earlier).prepare()
    except CycleError as error:
        cycle = error.args[1]
        pairs = ", ".join(_named(edges[step]) for step in pairwise(cycle))
        raise InputError(
            f"--before {pairs}: they form a cycle, so that a column would come before itself; leave one of them out"
        ) from None


def _named(pair: Pair) -> str:
    return f"{pair[0]}<{pair[1]}"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
