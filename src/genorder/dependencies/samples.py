"""Samples as columns of small integers, and counts of the pairs of samples that agree at given positions.

A set of positions S splits the samples into groups that agree at S. If all samples of each group agree in y_j too, S is
a *determinant* of target j (a functional dependency S -> j). The *violation rate* v(S -> j) is the probability that two
samples of one group differ in y_j.

Axes: N samples, P positions (the inputs, then the targets), M pairs of samples, G groups, L targets.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from genorder.data import EncodedDataset
from genorder.dependencies.graph import Positions

_IntArray = NDArray[np.integer[Any]]

# The weight of a group is at most its equal share of _CAPPED samples, or _CAP if that is more: a frequent combination
# of tokens must not dominate the rate.
_CAPPED, _CAP = 5_000, 50
_CELLS = 16  # cells of a table per sample; larger tables are not allocated, their keys are sorted instead
_FEW = 16_384  # samples that are counted first: they refute most sets
_ENOUGH = 500.0  # informative pairs among the first samples that make their violation rate precise enough
_WEIGHT, _MOST_WEIGHT = 6.0, 8.0  # weight of a token of average frequency; the largest multiple, for rare tokens
_CACHED = 128  # sets whose groups are kept


@final
@dataclass(frozen=True)
class Count:
    """The evidence of the samples for S -> j."""

    pairs: int  # pairs of samples that agree at S
    violations: int  # of these pairs, the number that differ in y_j
    violation_rate: float  # with equal weights of the samples, so that frequent tokens do not dominate
    informative: float  # violations to expect among these samples if y_j were independent of S
    representative: float  # variation of y_j over the samples with a partner, relative to all samples

    @property
    def exact(self) -> bool:
        return self.violations == 0 and self.pairs > 0


@final
class SampleTable:
    """The distinct training samples, at most `samples` of them, in a random sequence; counts are cached."""

    def __init__(self, train: EncodedDataset, samples: int, rng: np.random.Generator) -> None:
        train = train.head(samples)
        self.inputs, self.targets = train.input_width, train.target_width
        self.positions = self.inputs + self.targets
        columns = [*train.inputs_NW.cpu().numpy().T, *train.targets_NL.cpu().numpy().T]
        rows_N = _distinct(columns, rng)  # a repeated sample would agree with itself at every position
        rng.shuffle(rows_N)
        lengths_N = train.target_lengths_N.cpu().numpy()[rows_N]
        self.tokens = [np.flatnonzero(np.bincount(column_N)) for column_N in columns]  # the token of each code
        self.kinds_P = np.array([len(tokens) for tokens in self.tokens])
        kind = np.uint8 if self.kinds_P.max() <= 256 else np.uint16 if self.kinds_P.max() <= 65_536 else np.int32
        self.codes_NP: _IntArray = np.empty((len(rows_N), self.positions), dtype=kind)
        self.codes_PN = self.codes_NP.T
        for codes_N, tokens, column_N in zip(self.codes_PN, self.tokens, columns, strict=True):
            code_V = np.zeros(tokens[-1] + 1, dtype=kind)
            code_V[tokens] = np.arange(len(tokens))
            codes_N[:] = code_V[column_N[rows_N]]
        self.entropy_P = np.array([_entropy(codes_N) for codes_N in self.codes_PN])  # in bits
        self.samples = len(rows_N)
        self._first: SampleTable | None = None
        self.fixed_length = bool((lengths_N == self.targets).all())
        self.lengths_N = lengths_N
        # The weight of an agreement grows with the rarity of the shared token, so that frequent tokens do not dominate.
        # Weights are integers: sums of their products, mostly below 2^24, do not depend on the sequence of addition.
        self._first_weight_P = np.concatenate([[0], np.cumsum(self.kinds_P)[:-1]])
        self._weights = np.concatenate(
            [_weights(codes_N, int(kinds)) for codes_N, kinds in zip(self.codes_PN, self.kinds_P, strict=True)]
        )
        self._groups: dict[Positions, tuple[NDArray[np.int64], int]] = {}
        self._counts: dict[tuple[Positions, int], Count] = {}

    @property
    def first(self) -> "SampleTable":
        """A table of the first few samples only."""
        if self._first is None:
            few = copy.copy(self)
            few.samples = min(self.samples, _FEW)
            few.codes_NP, few.lengths_N = self.codes_NP[: few.samples], self.lengths_N[: few.samples]
            few.codes_PN = few.codes_NP.T
            few._groups, few._counts = {}, {}
            self._first = few
        return self._first

    def has(self, target: int) -> NDArray[np.bool_]:
        """has_N: whether each sample is long enough to have the target."""
        has_N: NDArray[np.bool_] = self.lengths_N > target
        return has_N

    def groups(self, positions: Positions) -> tuple[NDArray[np.int64], int]:
        """group_N of each sample, by its tokens at the positions, and the number of groups."""
        if positions not in self._groups:
            if len(self._groups) >= _CACHED:
                self._groups.pop(next(iter(self._groups)))
            group_N, groups = np.zeros(self.samples, dtype=np.int64), 1
            for position in positions:
                group_N = group_N * self.kinds_P[position] + self.codes_PN[position]
                groups *= int(self.kinds_P[position])
                if groups > self.samples:
                    group_N, groups = _compressed(group_N, groups)
            self._groups[positions] = group_N, groups
        return self._groups[positions]

    def can_tabulate(self, cells: int) -> bool:
        """Whether a table of this number of cells is small enough to allocate."""
        return cells <= _CELLS * self.samples

    def rough_count(self, positions: Positions, target: int) -> Count:
        """The count on the first few samples if they show enough violations, else on all samples."""
        if self.samples > _FEW:
            count = self.first.count(positions, target)
            if count.violations and count.informative >= _ENOUGH:
                return count
        return self.count(positions, target)

    def count(self, positions: Positions, target: int) -> Count:
        key = positions, target
        if key not in self._counts:
            self._counts[key] = self._count(positions, target)
        return self._counts[key]

    def _count(self, positions: Positions, target: int) -> Count:
        group_N, groups = self.groups(positions)
        target_N = self.codes_PN[self.inputs + target]
        if not self.fixed_length:
            has_N = self.has(target)
            group_N, target_N = group_N[has_N], target_N[has_N]
        kinds = int(self.kinds_P[self.inputs + target])
        cell_N = group_N * kinds + target_N
        if self.can_tabulate(groups * kinds):
            cells = np.bincount(cell_N, minlength=groups * kinds)
            cell_C = np.flatnonzero(cells)
            times_C = cells[cell_C]
        else:
            cell_C, times_C = np.unique(cell_N, return_counts=True)
        group_C, token_C = np.divmod(cell_C, kinds)
        size_G = np.bincount(group_N, minlength=groups).astype(np.float64)
        agreeing_G = np.bincount(group_C, times_C * (times_C - 1.0), minlength=groups)
        ordered_G = size_G * (size_G - 1)
        paired_G = size_G > 1
        weight_G = np.minimum(size_G[paired_G] - 1, max(_CAP, _CAPPED // groups))
        weight = float(weight_G.sum())
        if not weight:
            return Count(0, 0, 1.0, 0.0, 0.0)
        share_G = np.zeros(groups)
        share_G[paired_G] = weight_G / size_G[paired_G]
        frequency_T = np.bincount(token_C, share_G[group_C] * times_C, minlength=kinds) / weight
        varies = 1 - float((frequency_T**2).sum())
        base_T = np.bincount(token_C, times_C, minlength=kinds) / len(target_N)
        base = 1 - float((base_T**2).sum())
        size_C = size_G[group_C]
        paired_C = size_C > 1
        weight_C = times_C[paired_C]
        differs_C = 1 - (times_C[paired_C] - 1) / (size_C[paired_C] - 1)
        rate = float((weight_C * differs_C).sum() / weight_C.sum())
        pairs, agreeing = round(ordered_G.sum() / 2), round(agreeing_G.sum() / 2)
        return Count(pairs, pairs - agreeing, rate, weight * varies, varies / base if base else 1.0)

    def base_rate(self, target: int) -> float:
        """The probability that two samples differ in the target."""
        return self.count((), target).violation_rate

    def agreeing_pairs(self, positions: Positions, most: int, target: int | None = None) -> NDArray[np.int64]:
        """pairs_2M of samples that agree at the positions (and have the target), spread over all groups."""
        group_N, groups = self.groups(positions)
        rows_N = None if self.fixed_length or target is None else np.flatnonzero(self.has(target))
        if rows_N is not None:
            group_N = group_N[rows_N]
        sorted_N = _argsorted(group_N, groups)
        ordered_N = group_N[sorted_N]
        new_N = np.concatenate([[True], ordered_N[1:] != ordered_N[:-1]])
        rank_N = np.arange(len(ordered_N)) - np.flatnonzero(new_N)[np.cumsum(new_N) - 1]
        second_M = np.flatnonzero((rank_N > 0) & (rank_N <= max(_CAP, 2 * most // groups)))
        if len(second_M) > most:
            second_M = second_M[np.linspace(0, len(second_M) - 1, most).astype(np.int64)]
        pairs_2M = np.stack([sorted_N[second_M - 1], sorted_N[second_M]])
        return pairs_2M if rows_N is None else rows_N[pairs_2M]

    def agreement(
        self, pairs_2M: NDArray[np.int64], columns: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """agree_MP: whether each pair agrees at each position (or at `columns`); and the shared tokens' weights."""
        agree_MP, weight_A, at_A = self._agreements(pairs_2M, columns)
        weighted_MP = np.zeros(agree_MP.shape, dtype=np.float32)
        weighted_MP.flat[at_A] = weight_A
        return agree_MP, weighted_MP

    def violation_rates(
        self, pairs_2M: NDArray[np.int64], violated_M: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """rate_P: the weighted violation rate of the pairs that agree at each position; and the number of these."""
        agree_MP, weight_A, at_A = self._agreements(pairs_2M, None)
        pair_A, position_A = np.divmod(at_A, self.positions)
        weight_P = np.bincount(position_A, weight_A, minlength=self.positions)
        violated_P = np.bincount(position_A, weight_A * violated_M[pair_A], minlength=self.positions)
        return violated_P / np.maximum(weight_P, 1), agree_MP.sum(axis=0)

    def _agreements(
        self, pairs_2M: NDArray[np.int64], columns: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.float32], NDArray[np.int64]]:
        """agree_MP, the weights of the A agreements, and their indices in the flattened agree_MP."""
        one_MP, other_MP = self.codes_NP[pairs_2M[0]], self.codes_NP[pairs_2M[1]]
        if columns is not None:
            one_MP, other_MP = one_MP[:, columns], other_MP[:, columns]
        agree_MP = one_MP == other_MP
        at_A = np.flatnonzero(agree_MP)
        first_P = self._first_weight_P if columns is None else self._first_weight_P[columns]
        weight_A = self._weights[first_P[at_A % agree_MP.shape[1]] + one_MP.ravel()[at_A]]
        return agree_MP, weight_A, at_A


def _entropy(codes_N: _IntArray) -> float:
    frequency_T = np.bincount(codes_N) / len(codes_N)
    frequency_T = frequency_T[frequency_T > 0]
    return float(-(frequency_T * np.log2(frequency_T)).sum())


def _weights(codes_N: _IntArray, kinds: int) -> NDArray[np.float32]:
    """weight_T of each token, roughly inverse to its frequency."""
    relative_T = np.minimum(len(codes_N) / (kinds * np.maximum(np.bincount(codes_N, minlength=kinds), 1)), _MOST_WEIGHT)
    weight_T: NDArray[np.float32] = np.maximum(np.round(_WEIGHT * kinds**0.5 * relative_T), 1).astype(np.float32)
    return weight_T


def _distinct(columns: Sequence[NDArray[np.int64]], rng: np.random.Generator) -> NDArray[np.int64]:
    """rows_N: the first of each group of equal rows, by a 64-bit hash."""
    factors_P = rng.integers(1, 2**62, size=len(columns), dtype=np.int64) | 1
    hash_N = np.zeros(len(columns[0]), dtype=np.int64)
    for factor, column_N in zip(factors_P.tolist(), columns, strict=True):
        hash_N = (hash_N ^ (column_N + 1)) * factor
        hash_N ^= hash_N >> 29
    rows_N: NDArray[np.int64] = np.sort(np.unique(hash_N, return_index=True)[1])
    return rows_N


def _argsorted(group_N: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """A stable argsort, 16 bits at a time, which numpy sorts by radix."""
    sorted_N = np.argsort(group_N.astype(np.uint16), kind="stable")
    for shift in range(16, groups.bit_length(), 16):
        sorted_N = sorted_N[np.argsort((group_N >> shift)[sorted_N].astype(np.uint16), kind="stable")]
    return sorted_N


def _compressed(group_N: NDArray[np.int64], groups: int) -> tuple[NDArray[np.int64], int]:
    """The same groups, numbered without gaps."""
    sorted_N = _argsorted(group_N, groups)
    ordered_N = group_N[sorted_N]
    number_N = np.concatenate([[0], np.cumsum(ordered_N[1:] != ordered_N[:-1])])
    compressed_N = np.empty_like(group_N)
    compressed_N[sorted_N] = number_N
    return compressed_N, int(number_N[-1]) + 1
