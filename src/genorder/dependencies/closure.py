"""The closure of the inputs: forward chaining over the determinants that were found.

A position is known if it is an input or a target that known positions determine. The closure chooses one determinant
for each target; read in sequence they are a program that computes the targets from the inputs. Of several programs, the
one of fewest positions in all is chosen; of these, the one of fewest functions.
"""

from collections import Counter
from collections.abc import Iterable, Set
from itertools import permutations
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from genorder.dependencies.relations import Determinant
from genorder.dependencies.samples import Positions, SampleTable

_SMALL = 3  # positions: larger sets determine a target only once no smaller one is found
_FEWEST_KEYS = 8  # that two functions must have in common to be compared
_NO_TABLE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


@final
class Closure:
    def __init__(self, inputs: int, targets: int) -> None:
        self.inputs = inputs
        self.determinants: dict[int, set[Determinant]] = {target: set() for target in range(targets)}
        self.known: dict[int, Determinant] = {}  # in the sequence in which they became known

    @property
    def known_positions(self) -> set[int]:
        return {*range(self.inputs), *(self.inputs + target for target in self.known)}

    def add(self, found: Iterable[Determinant]) -> bool:
        """Keep them; is a small one among them that is new?"""
        fresh = [one for one in found if one not in self.determinants[one.target]]
        for one in fresh:
            self.determinants[one.target].add(one)
        return any(len(one.positions) <= _SMALL for one in fresh)

    def close(self) -> bool:
        """Forward chaining: what a small set of known positions determines becomes known; did any target?"""
        any_new = False
        while self.accept_next(_SMALL):
            any_new = True
        return any_new

    def accept_next(self, most: int | None = None) -> bool:
        """Let the next target become known, if at most so many positions determine it."""
        chosen = self._next(self.known, frozenset())
        if chosen is None or (most is not None and len(chosen.positions) > most):
            return False
        self.known[chosen.target] = chosen
        return True

    def _next(self, known: dict[int, Determinant], forbidden: Set[Determinant]) -> Determinant | None:
        """The smallest determinant of known positions; of several, first those of targets that no smaller set
        determines, even one of unknown positions.
        """
        positions = {*range(self.inputs), *(self.inputs + target for target in known)}
        ready = [
            one
            for target, found in self.determinants.items()
            if target not in known
            for one in found
            if one not in forbidden and positions.issuperset(one.positions)
        ]

        def preference(one: Determinant) -> tuple[Any, ...]:
            size = len(one.positions)
            return size, size > self._smallest_size(one.target), one.complexity, one.target

        return min(ready, key=preference, default=None)

    def _smallest_size(self, target: int) -> int:
        return min(len(one.positions) for one in self.determinants[target])

    def simplify(self, functions: "Functions") -> list[int]:
        """A target that became known by a large set, though a smaller one determines it, may have come too early: do
        without the large set if the closure reaches as much by fewer positions in all. Returns the targets whose large
        set is as good as another closure without it: the samples do not tell which of them is right.
        """
        forbidden: set[Determinant] = set()
        undecided: list[int] = []
        for target in list(self.known):
            size = len(self.known[target].positions)
            if size > self._smallest_size(target):
                trial = forbidden | {one for one in self.determinants[target] if len(one.positions) >= size}
                other: dict[int, Determinant] = {}
                while chosen := self._next(other, trial):
                    other[chosen.target] = chosen
                if other.keys() >= self.known.keys():
                    size, other_size = _total(self.known), _total(other)
                    if other_size == size:
                        undecided.append(target)
                    if other_size < size or (
                        other_size == size and _length(other, functions) < _length(self.known, functions)
                    ):
                        forbidden, self.known = trial, other
        return undecided

    def nearest(self, functions: "Functions") -> dict[int, Determinant]:
        """A target may have other determinants as small as the one by which it became known: shortcuts around those
        that lie between. It comes after all of them, unless they are computed from it, and gets the last one.

        Where two targets may each come after the other, a determinant is preferred whose function computes more of the
        other targets (a program repeats its operations, a shortcut has a table of its own), then the one that agrees
        most with the closure.
        """
        inputs = self.inputs
        reads = {one: [p - inputs for p in one.positions if p >= inputs] for one in self.known.values()}
        before = {target: set(reads[one]) for target, one in self.known.items()}
        depth: dict[int, int] = {}
        for target in self.known:
            depth[target] = 1 + max((depth[other] for other in before[target]), default=0)
        others: list[Determinant] = []
        for target, chosen in self.known.items():
            for one in self.determinants[target] - {chosen}:
                reads[one] = [p - inputs for p in one.positions if p >= inputs]
                if len(one.positions) == len(chosen.positions) and all(other in depth for other in reads[one]):
                    others.append(one)
        uses = Counter(map(functions.of, self.known.values())) if others else Counter()

        def preference(one: Determinant) -> tuple[Any, ...]:
            gain = uses[functions.of(one)] - uses[functions.of(self.known[one.target])]
            excess = max((depth[other] for other in reads[one]), default=0) - depth[one.target]
            return -gain, excess, one.complexity, one.target

        def ancestors(targets: Iterable[int]) -> set[int]:
            found: set[int] = set()
            waiting = list(targets)
            while waiting:
                target = waiting.pop()
                if target not in found:
                    found.add(target)
                    waiting += before[target]
            return found

        usable = {target: [one] for target, one in self.known.items()}
        for one in sorted(others, key=preference):
            if one.target not in ancestors(reads[one]):
                before[one.target].update(reads[one])
                usable[one.target].append(one)
        rank: dict[int, int] = {}
        while len(rank) < len(before):
            target = next(target for target in before if target not in rank and before[target] <= rank.keys())
            rank[target] = len(rank)

        def lateness(one: Determinant) -> list[int]:
            return sorted((rank[p - inputs] if p >= inputs else -1 for p in one.positions), reverse=True)

        return {target: max(usable[target], key=lateness) for target in rank}


@final
class Functions:
    """The functions that determinants stand for. Two have the same one if, with the positions in some sequence, the
    same tokens give the same token of the target."""

    def __init__(self, table: SampleTable, noise: float) -> None:
        self._table = table.first
        self._agreement = (1 - noise) ** 4  # share of the common keys: noise may change a target and a position of each
        self._tables: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # keys, tokens
        self._numbers: dict[Determinant, int] = {}

    def of(self, one: Determinant) -> int:
        """A number for each function; large sets and pointers have one of their own."""
        if one not in self._numbers:
            self._numbers[one] = self._find(one)
        return self._numbers[one]

    def _find(self, one: Determinant) -> int:
        comparable = len(one.positions) <= _SMALL and not one.pointer
        for sequence in permutations(one.positions) if comparable else ():
            keys, tokens = self._tabulated(sequence, one.target)
            for function, (other_keys, other_tokens) in enumerate(self._tables):
                _, here, there = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
                same = int((tokens[here] == other_tokens[there]).sum())
                if len(here) >= _FEWEST_KEYS and same >= self._agreement * len(here):
                    return function
        self._tables.append(self._tabulated(one.positions, one.target) if comparable else _NO_TABLE)
        return len(self._tables) - 1

    def _tabulated(self, positions: Positions, target: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table = self._table
        rows_N = np.flatnonzero(table.has(target))
        key_N = np.full(len(rows_N), len(positions), dtype=np.int64)
        for position in positions:
            key_N = key_N * (1 << 16) + table.tokens[position][table.codes_PN[position][rows_N]]
        keys, first = np.unique(key_N, return_index=True)
        own = table.inputs + target
        return keys, table.tokens[own][table.codes_PN[own][rows_N[first]]]


def _total(known: dict[int, Determinant]) -> int:
    return sum(len(one.positions) for one in known.values())


def _length(known: dict[int, Determinant], functions: Functions) -> tuple[int, float]:
    """The length of a program with these determinants: how many functions, and how large their tables."""
    return len(set(map(functions.of, known.values()))), sum(one.bits for one in known.values())
