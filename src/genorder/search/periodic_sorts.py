"""Sorts of a graph of some variables over time (see profiling/lines.py), in which the variables take turns.

For a Transformer the token right before needs no looking for, and the rest is looked for alike at every turn if it
always stands as far back. In their turns the variables need not be at the same time: each may be some levels ahead of
or behind the others, as long as no target comes before what it is computed from. Of all these ways, those are proposed
that have most targets right behind one of their parents, one for each choice of the variables that are: which of them
is hard to learn otherwise, only training tells. The best of those that emit one level after the other goes with them:
on some delay networks it is learnt best (benchmarks/RESULTS.md).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations, product
from typing import final

from genorder.orders import Constraints, Order, deduplicated
from genorder.profiling.lines import Lines, places
from genorder.training import ProgressReporter

_MOST_WAYS = 60_000  # to take turns that are tried, for each kind of lines
_AHEAD = 5  # levels that one may be ahead of another, at most
_MOST_SORTS = 3


@final
@dataclass(frozen=True, order=True)
class _Sort:
    """Those with most targets right behind a parent come first, of these the one that looks least far back."""

    not_right_behind: int  # targets
    squares: int  # of all distances
    distances: tuple[tuple[int, ...], ...]  # of each line from what it reads, in steps
    lines: int  # that take turns, by their number among those that are as good
    begins: tuple[int, ...]
    order: Order = field(compare=False)


def periodic_sorts(lines: Lines, constraints: Constraints, watch: ProgressReporter | None = None) -> list[Order]:
    """The best ones, then the best level by level. None where no line can have its targets right behind a parent, or
    where lines that are as good do not read each other.
    """
    as_good = lines.as_good()
    if any(each.apart for each in as_good):
        return []  # to take turns would only tear them apart
    turns = [_Turns(each, number) for number, each in enumerate(as_good)]
    sorts: list[_Sort] = []
    for done, each in enumerate(turns):
        (watch or ProgressReporter())("letting variables take turns", done, len(turns))
        sorts += each.sorts(constraints)
    found = _ranked(sorts)[:_MOST_SORTS]
    by_level = _ranked(sort for each in turns for sort in each.sorts(constraints, by_level=True))[:1]
    return deduplicated([*found, *by_level]) if found else []


def _ranked(sorts: Iterable[_Sort]) -> list[Order]:
    """Best first. Of those with the same distances, as in a ring, all but one come last."""
    ranked = sorted(sorts)
    unlike: dict[tuple[tuple[int, ...], ...], Order] = {}
    for each in ranked:
        unlike.setdefault(each.distances, each.order)
    return deduplicated([*unlike.values(), *(each.order for each in ranked)])


@final
class _Turns:
    """A way to take turns is, for each line, the step at which it begins, if each level has one step for each line."""

    def __init__(self, lines: Lines, number: int) -> None:
        self._width, self._parents = lines.width, [reads.targets for reads in lines.reads]
        self._place_of, self._number = places(lines.rows), number
        self._usual = [usual.places for usual in lines.usual()]
        seen = lines.seen()
        self._edges = {(own, *place) for target, (_, own) in self._place_of.items() for place in seen[target]}

    def sorts(self, constraints: Constraints, by_level: bool = False) -> list[_Sort]:
        """The best for each choice of the lines that have their targets right behind a parent. `by_level`: of those
        alone that emit one level after the other.
        """
        best: dict[frozenset[int], _Sort] = {}
        for begins in permutations(range(self._width)) if by_level else self._ways():
            if any(self._distance(begins, *edge) < 1 for edge in self._edges):
                continue
            far = [
                sorted(self._distance(begins, own, *place) for place in seen) for own, seen in enumerate(self._usual)
            ]
            behind = frozenset(own for own, distances in enumerate(far) if 1 in distances)
            if not behind and not by_level:
                continue
            order = Order.of(self._sequence(begins))
            if constraints.allows(order):
                squares = sum(d * d for distances in far for d in distances)
                apart = len(order) - self._right_behind(order)
                found = _Sort(apart, squares, tuple(sorted(map(tuple, far))), self._number, begins, order)
                best[behind] = min(found, best.get(behind, found))
        return list(best.values())

    def _ways(self) -> Iterator[tuple[int, ...]]:
        """The first to begin does so at step 0."""
        width, ahead = self._width, _AHEAD
        while ahead and math.factorial(width) * (ahead + 1) ** width > _MOST_WAYS:
            ahead -= 1
        for turns in permutations(range(width)):
            for levels in product(range(ahead + 1), repeat=width):
                begins = tuple(turn + width * level for turn, level in zip(turns, levels, strict=True))
                if min(begins) == 0:
                    yield begins

    def _distance(self, begins: Sequence[int], own: int, back: int, line: int) -> int:
        """In steps, from a target so many levels back in another line."""
        return begins[own] - begins[line] + self._width * back

    def _sequence(self, begins: Sequence[int]) -> list[int]:
        def step(target: int) -> int:
            level, line = self._place_of[target]
            return level * self._width + begins[line]

        return sorted(self._place_of, key=step)

    def _right_behind(self, order: Order) -> int:
        """How many targets stand right behind a parent."""
        return sum(one in self._parents[other] for one, other in pairwise(order))
