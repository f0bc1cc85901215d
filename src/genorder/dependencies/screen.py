"""The screen: how often each pair of positions, taken as a determinant, is violated by random pairs of samples.

One matrix product gives the violation rates of all pairs of positions. Which pairs of samples agree at two positions is
counted once, for all targets; for each target only the pairs that agree in it too are multiplied.

Axes: M pairs of samples, P positions, R and K some of them.
"""

from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from genorder.dependencies.relations import Relation
from genorder.dependencies.samples import SampleTable

_ENTRIES = 40_000_000  # of the matrix of agreements: bounds memory and time for many positions
_CHUNK = 5_000_000  # entries that are multiplied at once
_FEW_SAME = 500  # pairs of samples that agree in a target: of a target of many tokens, more are screened
_FEWEST = 8  # pairs of samples that must agree at two positions before their violation rate counts
_ERRORS = 5.0  # standard errors by which a set must tell something
DOUBT = 5.0  # pairs at the base rate that are added to those seen: a rate of few pairs counts less


@final
class Screen:
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
        """rate_RK: the violation rate of each of the positions `rows` with each of `columns`, shrunk to the base rate;
        and the number of pairs of samples that agree there."""
        same = (1 - relation.base_rate) * self._few.pairs_2M.shape[1]
        more = same < _FEW_SAME and self._table.fixed_length and not relation.pointer
        products = self._many if more else self._few
        violated_M = relation.violated(products.pairs_2M)
        if self._table.fixed_length:
            agreed_M = ~violated_M
            weight_RK, times_RK = (counted_PP[np.ix_(rows, columns)] for counted_PP in products.of_all)
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
        """Where no violation was seen, among pairs of samples enough."""
        none_RK = relation.base_rate * DOUBT / (times_RK + DOUBT) + 1e-6  # what no violation at all is shrunk to
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
        """Of all pairs of samples: by the tokens' weights, and by number."""
        everything = np.arange(self._table.positions)
        all_M = np.ones(self.pairs_2M.shape[1], dtype=np.bool_)
        return self.of(all_M, everything, everything, weighted=True), self.of(
            all_M, everything, everything, weighted=False
        )

    def of(
        self, chosen_M: NDArray[np.bool_], rows: NDArray[np.int64], columns: NDArray[np.int64], *, weighted: bool
    ) -> NDArray[np.float32]:
        """Of the chosen pairs of samples."""
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
    """Violation rates, shrunk to the base rate if few pairs were seen; the base rate where they may lie below it by
    chance, that is by less than so many standard errors.
    """
    times = np.maximum(times, 1)
    chance = (base - rate) * np.sqrt(times) < errors * np.sqrt(base * (1 - base) + 1 / times)
    shrunk: NDArray[np.floating[Any]] = (rate * times + base * DOUBT) / (times + DOUBT)
    return np.where(chance, base, shrunk)
