"""Noise: a share of the target tokens is wrong, so no dependency between targets is exact.

The model: a wrong token is drawn uniformly from the tokens of its target, independently of all other tokens. It gives
mining two answers: how large the share is, and whether noise alone explains the violations of a set.

Axes: see samples.py; C cells, that is combinations of a group with a token of the target.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from genorder.dependencies.graph import Positions
from genorder.dependencies.samples import SampleTable

ERRORS = 3.0  # standard errors by which a measurement may exceed its expectation
MORE_NOISE = 1.15  # factor by which the noise may exceed its estimate


@final
@dataclass(frozen=True, order=True)
class PurestGroup:
    """A bound of the noise in one target: all tokens that differ within a group of samples may be noise."""

    bound: float  # upper bound of the noise, from half of the samples
    noise: float  # estimate from the same half
    unbiased: float  # estimate from the other half, which did not choose the group
    samples: int  # in the other half

    @staticmethod
    def among(table: SampleTable, positions: Positions, target: int) -> "PurestGroup":
        """The group of samples that agree at the positions with the least upper bound (Wilson's)."""
        group_N, groups = table.groups(positions)
        kinds = int(table.kinds_P[table.inputs + target])
        if not table.can_tabulate(groups * kinds):
            return PurestGroup(1.0, 1.0, 1.0, 1)
        rows_N = np.flatnonzero(table.has(target))
        cell_N = group_N[rows_N] * kinds + table.codes_PN[table.inputs + target][rows_N]
        half = len(rows_N) // 2
        times_GT, others_GT = (
            np.bincount(part, minlength=groups * kinds).reshape(groups, kinds)
            for part in (cell_N[:half], cell_N[half:])
        )
        size_G = np.maximum(times_GT.sum(axis=1), 1)
        wrong_G = 1 - times_GT.max(axis=1) / size_G
        doubt_G = ERRORS**2 / size_G
        bound_G = (wrong_G + doubt_G / 2 + np.sqrt(wrong_G * (1 - wrong_G) * doubt_G + doubt_G**2 / 4)) / (1 + doubt_G)
        best = int(bound_G.argmin())
        others = max(int(others_GT[best].sum()), 1)
        unbiased = 1 - float(others_GT[best, times_GT[best].argmax()]) / others
        scale = kinds / (kinds - 1)  # a token may be replaced by itself
        return PurestGroup(bound_G[best] * scale, wrong_G[best] * scale, unbiased * scale, others)

    @staticmethod
    def all_groups(rate: float, informative: float, kinds: int) -> "PurestGroup":
        """The bound from the violation rate of all groups together: both samples of a pair may be wrong."""
        high = min(1.0, rate + ERRORS * math.sqrt(rate * (1 - rate) / informative))
        bound, noise = ((1 - math.sqrt(1 - each)) * kinds / (kinds - 1) for each in (high, rate))
        return PurestGroup(bound, noise, noise, int(informative))


def pooled_noise(purest: list[PurestGroup]) -> float:
    """The noise of all targets: the mean over those of the targets' purest groups that noise alone may explain."""
    least = min(purest).bound
    pooled = [group for group in purest if group.noise <= least]
    noise = sum(group.unbiased * group.samples for group in pooled) / sum(group.samples for group in pooled)
    return noise if noise < 0.5 else 0.0  # else the purest groups are not pure: another cause varies in all of them


def expected_violations(table: SampleTable, positions: Positions, target: int, noise: float) -> tuple[float, float]:
    """The violation rate of the positions S if noise is the only cause of violations, and the excess over that rate.

    In a group, the target's token is wrong with the probability of noise. Noise in a target at S moves a sample to
    another group: groups that agree elsewhere in S exchange such samples. The excess is the mean over all samples of
    how far the rate of their group is significantly above the expected rate: if S lacks a position, some groups vary
    much and others not at all.
    """
    rows_N = np.flatnonzero(table.has(target))
    target_N = table.codes_PN[table.inputs + target][rows_N]
    kinds = int(table.kinds_P[table.inputs + target])

    def cells(group_N: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.unique(group_N * kinds + target_N, return_counts=True)

    group_N, groups = table.groups(positions)
    group_N = group_N[rows_N]
    cell_C, times_C = cells(group_N)
    size_G = np.bincount(group_N, minlength=groups).astype(np.float64)
    agreeing_G = np.bincount(cell_C // kinds, times_C * (times_C - 1.0), minlength=groups)
    by_times_C = np.argsort(times_C, kind="stable")
    token_G, most_G = np.zeros(groups, dtype=np.int64), np.zeros(groups)  # the most frequent token, and how often
    token_G[cell_C[by_times_C] // kinds] = cell_C[by_times_C] % kinds
    most_G[cell_C[by_times_C] // kinds] = times_C[by_times_C]
    member_G = np.zeros(groups, dtype=np.int64)
    member_G[group_N] = np.arange(len(group_N))
    moved_G = np.zeros(groups)  # samples with another token that noise at S brings
    for position in positions:
        if position >= table.inputs:
            wider_N, wider = table.groups(tuple(p for p in positions if p != position))
            wider_N = wider_N[rows_N]
            wider_C, wider_times_C = cells(wider_N)
            at_G = np.minimum(np.searchsorted(wider_C, wider_N[member_G] * kinds + token_G), len(wider_C) - 1)
            differ_G = np.bincount(wider_N, minlength=wider)[wider_N[member_G]] - wider_times_C[at_G]
            moved_G += noise / table.kinds_P[position] * (differ_G - (size_G - most_G))
    paired_G = size_G > 1
    size_G = size_G[paired_G]
    wrong_G = noise * (1 - 1 / kinds) + moved_G[paired_G] / size_G
    expected_G = 1 - np.maximum(1 - wrong_G, 0) ** 2
    rate_G = 1 - agreeing_G[paired_G] / (size_G * (size_G - 1))
    excess_G = rate_G - MORE_NOISE * expected_G - ERRORS * np.sqrt(expected_G * (1 - expected_G) / size_G)
    samples = max(float(size_G.sum()), 1.0)
    return float((size_G * expected_G).sum()) / samples, float((size_G * np.maximum(excess_G, 0)).sum()) / samples
