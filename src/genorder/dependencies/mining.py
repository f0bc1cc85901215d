"""Functional dependency mining: which positions determine each target, by counting samples; nothing is trained.

Database theory calls this the discovery of functional dependencies (TANE, HyFD), and of approximate ones in the case of
noise. Here only targets are explained, and sets are *grown* instead of enumerated:

1. Screen. Random pairs of samples: for each target, one matrix product gives the violation rate of all pairs of
   positions.
2. Grow. From the best pairs, add the position that lowers the violation rate most, until no violation is left; then
   drop every position that is not needed.
3. Close. Forward chaining from the inputs, smallest determinants first: a relation that can be solved for any of its
   terms (a sum, an xor) gets the one direction that leads back to the inputs.
4. If the closure stops early: screen and grow again among the known positions only, also for pointers (y = x[p], where
   a few tokens determine p); then from sets without an informative pair, as in sums of three or four terms.
5. Remove shortcuts. A target comes after all of its smallest determinants, not only after the first one that was known.

Axes: see samples.py; K known positions.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from genorder.data import EncodedDataset
from genorder.dependencies.closure import Closure, Functions
from genorder.dependencies.graph import Determinant, FunctionalDependencies, Positions
from genorder.dependencies.noise import ERRORS, MORE_NOISE, PurestGroup, expected_violations, pooled_noise
from genorder.dependencies.relations import DOUBT, Relation, SamePointer, SameToken, Screen, judged
from genorder.dependencies.samples import Count, SampleTable
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import ProgressReporter

_ERRORS = 3.0  # standard errors by which an added position must lower the violation rate
_MISSED_RATE = 0.3  # violation rate, relative to the base rate, that must not be missed
_EXCESS = 0.02  # of the base rate: violations in groups of samples beyond those that noise explains
_DENOISED = 0.15  # share by which a position must lower the violation rate that noise leaves, to be kept
_NOISY_RATE = 0.6  # the highest violation rate, relative to the base rate, that noise may leave
_ENOUGH = 500.0  # informative pairs that the measurement of noise needs
_TELLING = 0.1  # share by which a set must lower the violation rate to be grown
_BASE_PAIRS = 20_000  # pairs of samples that agree at a base of one position; a quarter of that for two positions
_MOST_BASES = 2_000
_MOST_POINTED = 200  # inputs; with more, pointers are not searched
_POINTED_SHARE = 0.5  # of the base rate: the highest rate of a pair of positions that is grown into a pointer
_GROWTH_ENTRIES = 500_000  # of the matrix that selects the next position


class MiningConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    enabled: bool = True
    samples: int = Field(default=100_000, ge=2)  # training samples that are used, at most
    pairs: int = Field(default=400_000, ge=1)  # pairs of samples for the screen
    starts: int = Field(default=6, ge=1)  # sets that are grown for each target
    tries: int = Field(default=3, ge=1)  # positions whose rate is counted exactly at each step of growth
    gain: float = Field(default=0.02, gt=0, lt=1)  # share by which a position must lower the violation rate
    surety: float = Field(default=3.0, gt=0)  # logarithm of the odds that no set is a determinant by chance
    representative: float = Field(default=0.2, ge=0, le=1)  # see Count


@final
class Miner:
    """One mining of one table of samples; see the module for its steps."""

    def __init__(
        self,
        table: SampleTable,
        config: MiningConfig,
        rng: np.random.Generator,
        report: ProgressReporter | None = None,
    ) -> None:
        self.table, self.config, self._report = table, config, report or ProgressReporter()
        self.noise = 0.0  # see FunctionalDependencies
        self.screen = Screen(table, config.pairs, rng)
        self.closure = Closure(table.inputs, table.targets)
        self._searched: dict[tuple[int, Relation], set[int]] = {}  # positions known at the last search
        self._same = [SameToken(table, target) for target in range(table.targets)]
        self._pointer_of: dict[int, SamePointer] = {}
        self._grown: set[tuple[Relation, Positions]] = set()  # since the current starts

    # -- growing

    def starts(
        self, relation: Relation, rate_RK: NDArray[np.float32], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> list[Positions]:
        """The screened positions and pairs of the lowest violation rates, no position in more than three of them."""
        aim = (_POINTED_SHARE if relation.pointer else 1 - self.config.gain) * relation.base_rate
        most = min(rate_RK.size, 100 * self.config.starts)
        best = np.argpartition(rate_RK, most - 1, axis=None)[:most]
        found: dict[Positions, None] = {}
        used: dict[int, int] = {}
        for flat in best[np.lexsort((best, rate_RK.flat[best]))].tolist():
            if rate_RK.flat[flat] > aim or len(found) == self.config.starts:
                break
            row, column = divmod(flat, len(columns))
            positions = tuple(sorted({int(rows[row]), int(columns[column])}))
            if positions not in found and max(used.get(p, 0) for p in positions) < 3:
                found[positions] = None
                used |= {p: used.get(p, 0) + 1 for p in positions}
        return list(found)

    def confirmed(self, relation: Relation, positions: Positions) -> Determinant | None:
        """The determinant, if there is enough evidence for it."""
        count = relation.count(positions)
        enough = (
            count.informative >= self._support(len(positions)) and count.representative >= self.config.representative
        )
        return (
            relation.determinant(positions, count) if enough and self._explained(relation, count, positions) else None
        )

    def _explained(self, relation: Relation, count: Count, positions: Positions) -> bool:
        """Whether there is no violation, or none beyond what noise explains."""
        if not self.noise:
            return count.exact
        if not count.pairs or count.violation_rate > _NOISY_RATE * relation.base_rate:
            return False
        if isinstance(relation, SamePointer):
            noisy = (*(p for p in positions if p >= self.table.inputs), self.table.inputs + relation.target)
            wrong = 1 - math.prod(1 - self.noise * (1 - 1 / int(self.table.kinds_P[p])) for p in noisy)
            return relation.wrong_share(positions) <= MORE_NOISE * wrong
        rate, excess = expected_violations(self.table, positions, relation.target, self.noise)
        rate += ERRORS * math.sqrt(rate * (1 - rate) / max(count.informative, 1.0))
        return count.violation_rate <= MORE_NOISE * rate and excess <= _EXCESS * relation.base_rate

    def _support(self, size: int) -> float:
        """The informative pairs that a determinant of this size needs.

        With this support it is unlikely that any set of this size shows no violation by chance, though its violation
        rate is a third of the base rate.
        """
        sets = (
            math.lgamma(self.table.positions + 1) - math.lgamma(size + 1) - math.lgamma(self.table.positions - size + 1)
        )
        return (sets + self.config.surety) / _MISSED_RATE

    def grown(self, relation: Relation, positions: Positions, allowed_P: NDArray[np.bool_]) -> Determinant | None:
        """The determinant that growth from the set leads to: add the position that lowers the violation rate most."""
        while True:
            if (relation, positions) in self._grown:
                return None  # growth from another start has visited this set
            self._grown.add((relation, positions))
            count = relation.rough_count(positions)
            if count.informative < self._support(len(positions)):
                return None
            if self._explained(relation, count, positions) and self._explained(
                relation, relation.count(positions), positions
            ):
                return self.pruned(relation, positions)
            larger = self._with_best(relation, positions, count.violation_rate, allowed_P)
            if larger is None:
                return None
            positions = larger

    def _with_best(
        self, relation: Relation, positions: Positions, rate: float, allowed_P: NDArray[np.bool_]
    ) -> Positions | None:
        """The set plus the position that lowers the violation rate most, if it lowers it enough and significantly."""
        table, config = self.table, self.config
        most = max(1_000, _GROWTH_ENTRIES // table.positions)
        pairs_2M = table.first.agreeing_pairs(positions, most, relation.target)
        if 2 * pairs_2M.shape[1] < most:
            pairs_2M = table.agreeing_pairs(positions, most, relation.target)
        rate_P = judged(*table.violation_rates(pairs_2M, relation.violated(pairs_2M)), rate, _ERRORS)
        rate_P[~allowed_P] = rate_P[[*positions, table.inputs + relation.target]] = 2.0
        aim = rate * (1 - config.gain)
        tried = [int(p) for p in np.argsort(rate_P, kind="stable")[: config.tries] if rate_P[p] < aim]
        larger_sets = (_with(positions, p) for p in tried)
        rates = [(relation.rough_count(larger).violation_rate, larger) for larger in larger_sets]
        least, larger = min(rates, default=(rate, positions))
        return larger if least <= aim else None

    def pruned(self, relation: Relation, positions: Positions) -> Determinant | None:
        """The determinant without unneeded positions; those with the most tokens are dropped first."""
        for position in sorted(positions, key=lambda p: -self.table.kinds_P[p]):
            smaller = tuple(p for p in positions if p != position)
            if relation.count(smaller).violation_rate * (1 - _DENOISED) > relation.count(positions).violation_rate:
                continue
            if self.confirmed(relation, smaller):
                return self.pruned(relation, smaller)
        return self.confirmed(relation, positions)

    # -- the closure of the inputs

    def mine(self) -> FunctionalDependencies:
        table = self.table
        everything = np.arange(table.positions)
        starts: dict[SameToken, list[Positions]] = {}
        for relation in self._same:
            self._report("screening targets", relation.target, table.targets)
            rate_PP, times_PP = self.screen.rates(relation, everything, everything)
            smallest = self._smallest(relation, rate_PP, times_PP)
            self.closure.add(smallest)
            if not any(one.positions for one in smallest):
                starts[relation] = self.starts(relation, rate_PP, everything, everything)
        exact = any(one.positions for sets in self.closure.determinants.values() for one in sets)
        if not exact and starts:
            self.noise = self._noise_level(starts)
        pointers = {relation.target for relation in self._pointers([relation.target for relation in starts])}
        for relation, sets in starts.items():
            self._report("growing sets", relation.target, table.targets)
            if not self.closure.determinants[relation.target] and relation.target not in pointers:
                self.closure.add(self._grown_from(relation, sets, everything >= 0))
        while len(self.closure.known) < table.targets:
            steps = (
                self.closure.close,
                partial(self._search, 0),
                partial(self._search, 1),
                self.closure.accept_next,
                partial(self._search, 2),
                self.closure.accept_next,
            )
            if not any(step() for step in steps):
                break
        functions = Functions(table, self.noise)
        ambiguous = tuple(self.closure.simplify(functions))
        self._add_nearer()
        chosen, found = self.closure.without_shortcuts(functions), self.closure.determinants
        ranked = {target: tuple(sorted(sets, key=lambda one: one.complexity)) for target, sets in found.items()}
        return FunctionalDependencies(table.inputs, table.targets, chosen, ranked, ambiguous, self.noise)

    def _add_nearer(self) -> None:
        """If S determines both j and k, j may be computed from k, which then replaces a position that k reads."""
        inputs = self.table.inputs
        waiting = list(self.closure.known.values())
        while waiting:
            one = waiting.pop()
            for other in self.closure.known.values():
                if other.target == one.target or other.pointer or not set(other.positions) <= set(one.positions):
                    continue
                for left_out in other.positions:
                    rest = (p for p in one.positions if p != left_out)
                    found = self.confirmed(self._same[one.target], _with(tuple(rest), inputs + other.target))
                    if found and not one.pointer and self.closure.add([found]):
                        waiting.append(found)

    def _noise_level(self, starts: dict[SameToken, list[Positions]]) -> float:
        """The noise by the purest groups of samples met during growth; 0 if growth meets a set without violations."""
        everywhere = np.ones(self.table.positions, dtype=np.bool_)
        purest: list[PurestGroup] = []
        for relation, sets in starts.items():
            self._report("measuring noise", relation.target, self.table.targets)
            kinds = int(self.table.kinds_P[self.table.inputs + relation.target])
            groups: list[PurestGroup] = []
            for start in sets:
                positions: Positions | None = start
                while positions:
                    count = relation.count(positions)
                    if count.exact:
                        return 0.0
                    if count.informative < _ENOUGH:
                        break
                    groups.append(PurestGroup.all_groups(count.violation_rate, count.informative, kinds))
                    groups.append(PurestGroup.among(self.table, positions, relation.target))
                    positions = self._with_best(relation, positions, count.violation_rate, everywhere)
            if groups:
                purest.append(min(groups))
        return pooled_noise(purest) if purest else 0.0

    def _smallest(
        self, relation: SameToken, rate_PP: NDArray[np.float32], times_PP: NDArray[np.float32]
    ) -> list[Determinant]:
        """All determinants of at most two positions that the screen shows."""
        if self.table.kinds_P[self.table.inputs + relation.target] == 1:
            return [relation.determinant((), relation.count(()))]
        clean_PP = self.screen.clean(relation, rate_PP, times_PP)
        single = [
            found for p in np.flatnonzero(np.diag(clean_PP)).tolist() if (found := self.confirmed(relation, (p,)))
        ]
        explained = [position for one in single for position in one.positions]
        clean_PP[explained] = clean_PP[:, explained] = False
        pairs = [(p, q) for p, q in np.argwhere(np.triu(clean_PP, 1)).tolist()]
        pairs.sort(key=lambda pair: (self.table.kinds_P[pair[0]] * self.table.kinds_P[pair[1]], pair))
        double = [found for pair in pairs[:50] if (found := self.confirmed(relation, pair))]
        return single + double

    def _grown_from(
        self, relation: Relation, starts: Sequence[Positions], allowed_P: NDArray[np.bool_]
    ) -> list[Determinant]:
        self._grown.clear()
        found = (self.grown(relation, start, allowed_P) for start in starts)
        return [determinant for determinant in found if determinant]

    def _search(self, base: int) -> bool:
        """Search the known positions for determinants with a position that was not yet known at the last such search.

        Growth starts from the pairs of the lowest rates (`base` 0), or from bases of one or two positions. Returns
        whether a small determinant was found.
        """
        table = self.table
        known = np.array(sorted(self.closure.known_positions))
        allowed_P = np.isin(np.arange(table.positions), known)
        left = [target for target in range(table.targets) if target not in self.closure.known]
        for relations in (self._pointers(left), [self._same[target] for target in left]):
            by_new: dict[tuple[int, ...], list[Relation]] = {}
            for relation in relations:
                searched = self._searched.setdefault((base, relation), set())
                new = tuple(p for p in known.tolist() if p not in searched)
                searched.update(new)
                if new:
                    by_new.setdefault(new, []).append(relation)
            small = False
            for new, alike in by_new.items():
                if base == 0:
                    for relation in alike:
                        self._report("closing from the inputs", len(self.closure.known), table.targets)
                        rate_RK, _ = self.screen.rates(relation, np.array(new), known)
                        starts = self.starts(relation, rate_RK, np.array(new), known)
                        small |= self.closure.add(self._grown_from(relation, starts, allowed_P))
                    continue
                bases = [(p,) for p in new] if base == 1 else _pairs_with(new, known.tolist())
                if len(bases) <= _MOST_BASES:
                    small |= self.closure.add(self._grown_from_bases(alike, bases, known, allowed_P))
            if small:
                return True
        return False

    def _pointers(self, targets: Sequence[int]) -> list[Relation]:
        if not 0 < self.table.inputs <= _MOST_POINTED:
            return []
        for target in targets:
            if target not in self._pointer_of:
                self._pointer_of[target] = SamePointer(self.table, target, self.screen.pairs_2M[:, :20_000], self.noise)
        return [self._pointer_of[target] for target in targets if self._pointer_of[target].possible]

    def _grown_from_bases(
        self,
        relations: Sequence[Relation],
        bases: Sequence[Positions],
        known: NDArray[np.int64],
        allowed_P: NDArray[np.bool_],
    ) -> list[Determinant]:
        """Determinants grown from a base and two more known positions, of which no single pair need be informative."""
        best: list[list[tuple[float, Positions]]] = [[] for _ in relations]
        for base in bases:
            self._report("closing from the inputs", len(self.closure.known), self.table.targets)
            pairs_2M = self.table.agreeing_pairs(base, _BASE_PAIRS // len(base) ** 2)
            agree_MK = torch.from_numpy(self.table.agreement(pairs_2M, known)[0]).float()
            times_KK = _gram(agree_MK).numpy()
            for relation, sets in zip(relations, best, strict=True):
                same_KK = _gram(agree_MK[torch.from_numpy(~relation.violated(pairs_2M))]).numpy()
                rate_KK = 1 - (same_KK + (1 - relation.base_rate) * DOUBT) / (times_KK + DOUBT)
                flat = int(rate_KK.argmin())
                if rate_KK.flat[flat] < (1 - _TELLING) * relation.base_rate:
                    positions = {*base, *(int(known[p]) for p in divmod(flat, len(known)))}
                    sets.append((float(rate_KK.flat[flat]), tuple(sorted(positions))))
        found: list[Determinant] = []
        for relation, sets in zip(relations, best, strict=True):
            starts = list(dict.fromkeys(positions for _, positions in sorted(sets)))[: self.config.starts]
            found += self._grown_from(relation, starts, allowed_P)
        return found


def mine_dependencies(
    train: EncodedDataset, config: MiningConfig, *, seed: int, report: ProgressReporter | None = None
) -> FunctionalDependencies:
    """The determinants of the targets; the same for the same samples and seed.

    Raises Interrupted when the reporter's stop is requested.
    """
    rng = numpy_generator(derive_seed(seed, "mining"))
    table = SampleTable(train, config.samples, rng)
    if table.samples < 2:  # there is no pair to compare
        return FunctionalDependencies.none(table.inputs, table.targets)
    return Miner(table, config, rng, report).mine()


def _gram(values_MP: torch.Tensor) -> torch.Tensor:
    return values_MP.T @ values_MP


def _pairs_with(new: Sequence[int], known: Sequence[int]) -> list[Positions]:
    """All pairs of known positions with at least one new position."""
    chosen = set(new)
    return [pair for pair in combinations(known, 2) if not chosen.isdisjoint(pair)]


def _with(positions: Positions, position: int) -> Positions:
    return tuple(sorted((*positions, position)))
