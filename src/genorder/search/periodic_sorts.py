"""Sorts of a graph of some variables over time (see profiling/lines.py), in which the variables take turns.

For a Transformer the token right before needs no looking for, and the rest is looked for alike at every turn if it
always stands as far back. In their turns the variables need not be at the same time: each may be some levels ahead of
or behind the others, as long as no target comes before what it is computed from. Of all these ways, those are proposed
that have most targets right behind one of their parents, one for each choice of the variables that are: which of them
is hard to learn otherwise, only training tells.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, permutations, product
from typing import final

from genorder.orders import Constraints, Order
from genorder.profiling.lines import Lines, places

_MOST_TURNS = 60_000  # ways to take turns that are tried
_AHEAD = 3  # levels, at most
_MOST_SORTS = 3


def periodic_sorts(lines: Lines, constraints: Constraints) -> list[Order]:
    """The best ones; none where no line can have its targets right behind a parent."""
    found = (Order.of(sequence) for sequence in _Turns(lines).sorts())
    return list(islice((sort for sort in found if constraints.allows(sort)), _MOST_SORTS))


@final
class _Turns:
    """A way to take turns is, for each line, the step at which it begins, if each level has one step for each line."""

    def __init__(self, lines: Lines) -> None:
        self._width, self._parents = lines.width, [reads.targets for reads in lines.reads]
        self._place_of = places(lines.rows)
        self._seen = {target: lines.seen_by(target) for target in self._place_of}
        usual = [Counter(self._seen[row[line]] for row in lines.rows).most_common(1) for line in range(self._width)]
        self._usual = [seen for ((seen, _),) in usual]

    def sorts(self) -> Iterator[list[int]]:
        """Those with most targets right behind a parent first; of those with the same lines there, the one that looks
        least far back.
        """
        edges = {(own, back, line) for target, (_, own) in self._place_of.items() for back, line in self._seen[target]}
        best: dict[frozenset[int], tuple[int, int, tuple[int, ...]]] = {}
        for begins in self._ways():
            if any(self._distance(begins, *edge) < 1 for edge in edges):
                continue
            far = [[self._distance(begins, own, *place) for place in seen] for own, seen in enumerate(self._usual)]
            behind = frozenset(own for own, distances in enumerate(far) if 1 in distances)
            if not behind:  # as with lines that do not read each other: to take turns only tears them apart
                continue
            found = -self._right_behind(begins), sum(d * d for distances in far for d in distances), begins
            best[behind] = min(found, best.get(behind, found))
        for _, _, begins in sorted(best.values()):
            yield self._sequence(begins)

    def _ways(self) -> Iterator[tuple[int, ...]]:
        width, ahead = self._width, _AHEAD
        while ahead and math.factorial(width - 1) * (2 * ahead + 1) ** (width - 1) > _MOST_TURNS:
            ahead -= 1
        for turns in permutations(range(1, width)):
            for levels in product(range(-ahead, ahead + 1), repeat=width - 1):
                yield (0, *(turn + width * level for turn, level in zip(turns, levels, strict=True)))

    def _distance(self, begins: Sequence[int], own: int, back: int, line: int) -> int:
        """In steps, from a target so many levels back in another line."""
        return begins[own] - begins[line] + self._width * back

    def _sequence(self, begins: Sequence[int]) -> list[int]:
        def step(target: int) -> int:
            level, line = self._place_of[target]
            return level * self._width + begins[line]

        return sorted(self._place_of, key=step)

    def _right_behind(self, begins: Sequence[int]) -> int:
        """How many targets stand right behind a parent."""
        return sum(one in self._parents[other] for one, other in pairwise(self._sequence(begins)))
