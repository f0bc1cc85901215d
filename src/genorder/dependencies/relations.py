"""Determinants, and the two relations by which they determine a target: the same token, or the same input copied."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from genorder.dependencies.noise import MORE_NOISE
from genorder.dependencies.samples import Count, Positions, SampleTable

_POINTED_PAIRS = 10_000  # of samples by which pointers are sought
_POINTED_RATE = 0.2  # base rate below which nearly all pairs of samples have some input in common


@final
@dataclass(frozen=True)
class Determinant:
    """Positions that determine a target, with the evidence."""

    target: int
    positions: Positions
    bits: float  # the sum of the positions' entropies: the larger, the larger a table of the function is
    pairs: int
    violations: int
    pointer: bool = False  # the positions choose which input is copied

    @property
    def complexity(self) -> tuple[int, float, Positions]:
        return len(self.positions), self.bits, self.positions


class Relation(ABC):
    """What two samples may have in common as to one target: the same token, or a position that both copy."""

    pointer: bool

    def __init__(self, table: SampleTable, target: int) -> None:
        self.table, self.target = table, target

    @property
    @abstractmethod
    def base_rate(self) -> float:
        """The probability that two samples violate the relation."""

    @abstractmethod
    def violated(self, pairs_2M: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which pairs of samples violate it."""

    @abstractmethod
    def count(self, positions: Positions) -> Count:
        """Of all samples."""

    @abstractmethod
    def rough_count(self, positions: Positions) -> Count:
        """Of fewer samples, where these show violations."""

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
        """Is the target an input in every sample, and not just because nearly all tokens are among the inputs?"""
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
        """All samples of a group must copy the same input."""
        rough = self.rough_count(positions)
        if rough.violations:
            return rough
        wrong_G, size_G = self._not_copied(positions)
        return replace(rough, pairs=int((size_G * (size_G - 1) // 2).sum()), violations=int(wrong_G.sum()))

    def wrong_share(self, positions: Positions) -> float:
        """Of the samples, those that do not copy the same input as most others of their group."""
        wrong_G, size_G = self._not_copied(positions)
        return float(wrong_G.sum() / max(size_G.sum(), 1))

    def _not_copied(self, positions: Positions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        group_N, groups = self.table.groups(positions)
        size_G = np.bincount(group_N[self._has_N], minlength=groups)
        most_G = np.zeros(groups, dtype=np.int64)
        for equal_N in self._equal_NW.T:
            most_G = np.maximum(most_G, np.bincount(group_N[equal_N & self._has_N], minlength=groups))
        return size_G - most_G, size_G
