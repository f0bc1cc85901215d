"""The closure of the inputs: forward chaining over the mined determinants.

A position is known if it is an input, or a target that known positions determine. The closure chooses one determinant
for each target; in sequence they are a program that computes the targets from the inputs. Of several programs, the one
with the fewest positions in total is chosen; of these, the one with the fewest functions.
"""

from collections import Counter
from collections.abc import Iterable, Set
from itertools import permutations
from typing import Any, final

import networkx
import numpy as np
from numpy.typing import NDArray

from genorder.dependencies.graph import Determinant, Positions
from genorder.dependencies.samples import SampleTable

_SMALL = 3  # positions; larger sets are accepted only if no smaller one determines any further target
_FEWEST_KEYS = 8  # keys that two functions must share to be compared
_NO_TABLE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


@final
class Closure:
    """All mined determinants, and the known targets with the determinant that was chosen for each."""

    def __init__(self, inputs: int, targets: int) -> None:
        self.inputs = inputs
        self.determinants: dict[int, set[Determinant]] = {target: set() for target in range(targets)}
        self.known: dict[int, Determinant] = {}  # targets in the sequence of chaining

    @property
    def known_positions(self) -> set[int]:
        return {*range(self.inputs), *(self.inputs + target for target in self.known)}

    def add(self, found: Iterable[Determinant]) -> bool:
        """Add determinants. Returns whether a new one of few positions is among them."""
        fresh = [one for one in found if one not in self.determinants[one.target]]
        for one in fresh:
            self.determinants[one.target].add(one)
        return any(len(one.positions) <= _SMALL for one in fresh)

    def close(self) -> bool:
        """Accept all targets that a small set of known positions determines. Returns whether there was one."""
        any_new = False
        while self.accept_next(_SMALL):
            any_new = True
        return any_new

    def accept_next(self, most: int | None = None) -> bool:
        """Accept one more target, if at most `most` known positions determine it. Returns whether there was one."""
        chosen = self._next(self.known, frozenset())
        if chosen is None or (most is not None and len(chosen.positions) > most):
            return False
        self.known[chosen.target] = chosen
        return True

    def _next(self, known: dict[int, Determinant], forbidden: Set[Determinant]) -> Determinant | None:
        """The smallest determinant that consists of known positions.

        Of several, those come first whose target has no smaller determinant, not even one of unknown positions.
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
        """Drop large determinants where the closure reaches as much with fewer positions in total.

        A target that was accepted by a large set, though a smaller set determines it, may have been accepted too early.
        Returns the targets whose large set is as good as another closure without it: the samples do not decide between
        the two.
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

    def without_shortcuts(self, functions: "Functions") -> dict[int, Determinant]:
        """The determinant of each target that reads the latest targets, in a sequence that allows it.

        A target may have several determinants of the same size: all but one are shortcuts around the targets between.
        So it comes after all of its determinants, unless they are computed from it, and gets the latest one.

        Where two targets may each come after the other, the determinant is preferred whose function computes more of
        the other targets: a program repeats its operations, a shortcut has a table of its own. The next criterion is
        agreement with the sequence of the closure.
        """
        inputs = self.inputs
        reads = {one: [p - inputs for p in one.positions if p >= inputs] for one in self.known.values()}
        before = networkx.DiGraph()
        before.add_nodes_from(self.known)
        before.add_edges_from((other, target) for target, one in self.known.items() for other in reads[one])
        generations = enumerate(networkx.topological_generations(before))
        depth = {target: generation for generation, targets in generations for target in targets}
        others: list[Determinant] = []
        for target, chosen in self.known.items():
            for one in self.determinants[target] - {chosen}:
                reads[one] = [p - inputs for p in one.positions if p >= inputs]
                if len(one.positions) == len(chosen.positions) and all(other in depth for other in reads[one]):
                    others.append(one)
        uses = Counter(map(functions.of, self.known.values())) if others else Counter()

        def preference(one: Determinant) -> tuple[Any, ...]:
            gain = uses[functions.of(one)] - uses[functions.of(self.known[one.target])]
            excess = max((depth[other] for other in reads[one]), default=-1) - depth[one.target]
            return -gain, excess, one.complexity, one.target

        usable = {target: [one] for target, one in self.known.items()}
        for one in sorted(others, key=preference):
            if {one.target, *networkx.descendants(before, one.target)}.isdisjoint(reads[one]):
                before.add_edges_from((other, one.target) for other in reads[one])
                usable[one.target].append(one)
        place = {target: number for number, target in enumerate(self.known)}
        sequence = list(networkx.lexicographical_topological_sort(before, key=place.__getitem__))
        rank = {target: number for number, target in enumerate(sequence)}

        def lateness(one: Determinant) -> list[int]:
            return sorted((rank[p - inputs] if p >= inputs else -1 for p in one.positions), reverse=True)

        return {target: max(usable[target], key=lateness) for target in sequence}


@final
class Functions:
    """Numbers the functions of determinants.

    Two determinants have the same function if, with the positions in some sequence, equal tokens give equal targets.
    """

    def __init__(self, table: SampleTable, noise: float) -> None:
        self._table = table.first
        self._agreement = (1 - noise) ** 4  # of the shared keys: noise may change a target and a position of each
        self._tables: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # keys, tokens
        self._numbers: dict[Determinant, int] = {}

    def of(self, one: Determinant) -> int:
        """The number of the determinant's function; large sets and pointers each have a function of their own."""
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
    """The length of a program of these determinants: the number of functions, and the size of their tables."""
    return len(set(map(functions.of, known.values()))), sum(one.bits for one in known.values())
