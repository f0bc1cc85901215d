"""Relations of positions to a target, and the screen that measures a relation for all pairs of positions.

A relation says what two samples that agree at the positions must have in common: the same token of the target, or an
input that both copy. The screen draws random pairs of samples and gives the violation rates of all pairs of positions
by one matrix product. The pairs of samples that agree at two positions are counted once, for all targets; for each
target only the pairs that also agree in the target are multiplied.

Axes: see samples.py; R and K some of the positions.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from genorder.dependencies.graph import Determinant, Positions
from genorder.dependencies.noise import MORE_NOISE
from genorder.dependencies.samples import Count, SampleTable

_POINTED_PAIRS = 10_000  # pairs of samples for the search of pointers
_POINTED_RATE = 0.2  # base rate below which nearly all pairs of samples have some input in common
_ENTRIES = 40_000_000  # of the matrix of agreements: bounds memory and time for many positions
_CHUNK = 5_000_000  # entries that are multiplied at once
_FEW_SAME = 500  # pairs that agree in a target; if a target of many tokens has fewer, more pairs are screened
_FEWEST = 8  # pairs of samples that must agree at two positions before their violation rate counts
_ERRORS = 5.0  # standard errors by which a set must be better than the base rate
DOUBT = 5.0  # pairs at the base rate that are added to the observed ones, so that a rate of few pairs counts less


class Relation(ABC):
    """What two samples must have in common in one target: the same token, or an input that both copy."""

    pointer: bool

    def __init__(self, table: SampleTable, target: int) -> None:
        self.table, self.target = table, target

    @property
    @abstractmethod
    def base_rate(self) -> float:
        """The probability that two samples violate the relation."""

    @abstractmethod
    def violated(self, pairs_2M: NDArray[np.int64]) -> NDArray[np.bool_]:
        """violated_M: whether each pair of samples violates the relation."""

    @abstractmethod
    def count(self, positions: Positions) -> Count:
        """The count on all samples."""

    @abstractmethod
    def rough_count(self, positions: Positions) -> Count:
        """The count on fewer samples, if these show violations."""

    def determinant(self, positions: Positions, count: Count) -> Determinant:
        bits = round(float(self.table.entropy_P[list(positions)].sum()), 3)
        return Determinant(self.target, positions, bits, count.pairs, count.violations, self.pointer)


@final
class SameToken(Relation):
    """y_j is a function of the tokens at some positions."""

    pointer = False

    @property
    def base_rate(self) -> float:
        return self.table.base_rate(self.target)

    def violated(self, pairs_2M: NDArray[np.int64]) -> NDArray[np.bool_]:
        target_N = self.table.codes_PN[self.table.inputs + self.target]
        differ_M: NDArray[np.bool_] = target_N[pairs_2M[0]] != target_N[pairs_2M[1]]
        return differ_M

    def count(self, positions: Positions) -> Count:
        return self.table.count(positions, self.target)

    def rough_count(self, positions: Positions) -> Count:
        return self.table.rough_count(positions, self.target)


@final
class SamePointer(Relation):
    """y_j = x[p], with p a function of the tokens at some positions: samples that agree there copy the same input."""

    pointer = True

    def __init__(self, table: SampleTable, target: int, random_pairs_2M: NDArray[np.int64], noise: float) -> None:
        super().__init__(table, target)
        self._noise = noise
        column = table.inputs + target
        tokens_N = table.tokens[column][table.codes_PN[column]]
        self._equal_NW = np.stack([table.tokens[p][table.codes_PN[p]] == tokens_N for p in range(table.inputs)], axis=1)
        self._has_N = table.has(target)
        self._base_rate = float(self.violated(random_pairs_2M).mean())

    @property
    def base_rate(self) -> float:
        return self._base_rate

    @property
    def possible(self) -> bool:
        """Whether the target is an input in every sample, though not every token occurs among the inputs."""
        share = float(self._equal_NW[self._has_N].any(axis=1).mean())
        return share >= 1 - MORE_NOISE * self._noise and self._base_rate > _POINTED_RATE

    def violated(self, pairs_2M: NDArray[np.int64]) -> NDArray[np.bool_]:
        common_M: NDArray[np.bool_] = (self._equal_NW[pairs_2M[0]] & self._equal_NW[pairs_2M[1]]).any(axis=1)
        return ~common_M

    def rough_count(self, positions: Positions) -> Count:
        pairs_2M = self.table.first.agreeing_pairs(positions, _POINTED_PAIRS, self.target)
        if pairs_2M.shape[1] < _POINTED_PAIRS // 10:
            pairs_2M = self.table.agreeing_pairs(positions, _POINTED_PAIRS, self.target)
        pairs, violations = pairs_2M.shape[1], int(self.violated(pairs_2M).sum())
        return Count(pairs, violations, violations / pairs if pairs else 1.0, pairs * self._base_rate, 1.0)

    def count(self, positions: Positions) -> Count:
        """The count on all samples; all samples of a group must copy the same input."""
        rough = self.rough_count(positions)
        if rough.violations:
            return rough
        wrong_G, size_G = self._not_copied(positions)
        return replace(rough, pairs=int((size_G * (size_G - 1) // 2).sum()), violations=int(wrong_G.sum()))

    def wrong_share(self, positions: Positions) -> float:
        """The share of samples that do not copy the same input as most others of their group."""
        wrong_G, size_G = self._not_copied(positions)
        return float(wrong_G.sum() / max(size_G.sum(), 1))

    def _not_copied(self, positions: Positions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        group_N, groups = self.table.groups(positions)
        size_G = np.bincount(group_N[self._has_N], minlength=groups)
        most_G = np.zeros(groups, dtype=np.int64)
        for equal_N in self._equal_NW.T:
            most_G = np.maximum(most_G, np.bincount(group_N[equal_N & self._has_N], minlength=groups))
        return size_G - most_G, size_G


@final
class Screen:
    """Violation rates of all pairs of positions, on random pairs of samples."""

    def __init__(self, table: SampleTable, pairs: int, rng: np.random.Generator) -> None:
        self._table = table
        pairs_2M = rng.integers(table.samples, size=(2, pairs))
        pairs_2M = pairs_2M[:, pairs_2M[0] != pairs_2M[1]]
        most = max(1_000, _ENTRIES // table.positions)
        self._few = _Products(table, pairs_2M[:, :most], keep=True)
        self._many = _Products(table, pairs_2M, keep=False)

    @property
    def pairs_2M(self) -> NDArray[np.int64]:
        return self._few.pairs_2M

    def rates(
        self, relation: Relation, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """rate_RK: the violation rate of each of the positions `rows` with each of `columns`, shrunk to the base rate.
        And times_RK: the number of pairs of samples that agree at both.
        """
        same = (1 - relation.base_rate) * self._few.pairs_2M.shape[1]
        more = same < _FEW_SAME and self._table.fixed_length and not relation.pointer
        products = self._many if more else self._few
        violated_M = relation.violated(products.pairs_2M)
        if self._table.fixed_length:
            agreed_M = ~violated_M
            weight_RK, times_RK = (sums_PP[np.ix_(rows, columns)] for sums_PP in products.of_all)
        else:
            has_N = self._table.has(relation.target)
            has_M = has_N[products.pairs_2M[0]] & has_N[products.pairs_2M[1]]
            agreed_M = has_M & ~violated_M
            weight_RK, times_RK = (products.of(has_M, rows, columns, weighted=weighted) for weighted in (True, False))
        same_RK = products.of(agreed_M, rows, columns, weighted=True)
        rate_RK = judged(1 - same_RK / np.maximum(weight_RK, 1), times_RK, relation.base_rate, _ERRORS)
        own = self._table.inputs + relation.target
        rate_RK[rows == own] = rate_RK[:, columns == own] = relation.base_rate
        return rate_RK, times_RK

    def clean(
        self, relation: Relation, rate_RK: NDArray[np.float32], times_RK: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """clean_RK: whether enough pairs of samples agree, and none of them is a violation."""
        none_RK = relation.base_rate * DOUBT / (times_RK + DOUBT) + 1e-6  # the shrunk rate of no violations
        return (rate_RK <= none_RK) & (times_RK >= _FEWEST)


@final
class _Products:
    """Sums over pairs of samples of the products of two positions' agreements."""

    def __init__(self, table: SampleTable, pairs_2M: NDArray[np.int64], *, keep: bool) -> None:
        self._table, self.pairs_2M = table, pairs_2M
        self._kept_MP: NDArray[np.uint16] | None = None
        if keep:
            self._kept_MP = np.concatenate([self._weighted(chosen).astype(np.uint16) for chosen in self._chunks()])

    @cached_property
    def of_all(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Sums over all pairs of samples: of the tokens' weights, and of ones."""
        everything = np.arange(self._table.positions)
        all_M = np.ones(self.pairs_2M.shape[1], dtype=np.bool_)
        return self.of(all_M, everything, everything, weighted=True), self.of(
            all_M, everything, everything, weighted=False
        )

    def of(
        self, chosen_M: NDArray[np.bool_], rows: NDArray[np.int64], columns: NDArray[np.int64], *, weighted: bool
    ) -> NDArray[np.float32]:
        """The sum over the chosen pairs of samples."""
        few_rows = 4 * len(rows) < self._table.positions
        sum_RK = np.zeros((len(rows), len(columns)), dtype=np.float32)
        for chosen in self._chunks(np.flatnonzero(chosen_M)):
            values_MP = torch.from_numpy(self._weighted(chosen))
            if not weighted:
                values_MP = (values_MP > 0).float()
            if few_rows:
                sum_RK += (values_MP[:, rows].T @ values_MP).numpy()[:, columns]
            else:
                sum_RK += (values_MP.T @ values_MP).numpy()[np.ix_(rows, columns)]
        return sum_RK

    def _chunks(self, chosen: NDArray[np.int64] | None = None) -> list[NDArray[np.int64]]:
        chosen = np.arange(self.pairs_2M.shape[1]) if chosen is None else chosen
        size = max(1, _CHUNK // self._table.positions)
        return [chosen[at : at + size] for at in range(0, len(chosen), size)]

    def _weighted(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        if self._kept_MP is None:
            return self._table.agreement(self.pairs_2M[:, chosen])[1]
        return self._kept_MP[chosen].astype(np.float32)


def judged(
    rate: NDArray[np.floating[Any]], times: NDArray[Any], base: float, errors: float
) -> NDArray[np.floating[Any]]:
    """Violation rates, shrunk to the base rate if there are few pairs.

    A rate that is below the base rate by fewer than `errors` standard errors is replaced by the base rate.
    """
    times = np.maximum(times, 1)
    chance = (base - rate) * np.sqrt(times) < errors * np.sqrt(base * (1 - base) + 1 / times)
    shrunk: NDArray[np.floating[Any]] = (rate * times + base * DOUBT) / (times + DOUBT)
    return np.where(chance, base, shrunk)
