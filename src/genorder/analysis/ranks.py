"""How well a ranking finds the right order, and how well it predicts the success rates after training."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike


def rank_of(losses: ArrayLike, candidate: int) -> int:
    """The candidate's rank by ascending loss, from 1; a tied candidate gets the worst rank of the tie.

    Losses that are not finite rank last.
    """
    values = _ascending(losses)
    return int((values <= values[candidate]).sum())


def identification_rates(ranks: Sequence[int], tops: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """Over several runs: the share in which the right order ranks among the first k, and its median rank."""
    if not ranks:
        raise ValueError("no ranks were given")
    rates = {f"top_{top}": sum(rank <= top for rank in ranks) / len(ranks) for top in tops}
    return {**rates, "median_rank": float(np.median(ranks))}


@final
@dataclass(frozen=True)
class RankAgreement:
    """Between profiling losses and success rates of the same candidates."""

    spearman: float  # of the two rankings: 1 is full agreement
    pearson: float  # of the raw values: negative where lower loss goes with higher success
    top_5_overlap: float  # share of the profiling top five among the five most successful
    mean_rank_gap: float


def agreement(losses: ArrayLike, success_rates: ArrayLike) -> RankAgreement:
    """The agreement of a ranking by loss with one by success rate. Correlations are NaN if one side is constant."""
    loss_values = _ascending(losses)
    rates = np.asarray(success_rates, dtype=float)
    if loss_values.shape != rates.shape or len(rates) < 2:
        raise ValueError(f"expected as many losses as success rates, two or more; got {len(loss_values)}, {len(rates)}")
    from scipy.stats import pearsonr, rankdata, spearmanr  # slow to import

    loss_ranks, rate_ranks = rankdata(loss_values), rankdata(-rates)
    top = min(5, len(rates))
    finite = np.isfinite(loss_values)
    varied = len(set(loss_values)) > 1 and len(set(rates)) > 1
    varied_finite = len(set(loss_values[finite])) > 1 and len(set(rates[finite])) > 1
    return RankAgreement(
        spearman=float(spearmanr(loss_ranks, rate_ranks).statistic) if varied else math.nan,
        pearson=float(pearsonr(loss_values[finite], rates[finite]).statistic) if varied_finite else math.nan,
        top_5_overlap=len(_first(loss_ranks, top) & _first(rate_ranks, top)) / top,
        mean_rank_gap=float(np.abs(loss_ranks - rate_ranks).mean()),
    )


def pairs_in_sequence(one: Iterable[int], other: Iterable[int]) -> float:
    """The share of the pairs of targets that two orders put in the same sequence: 1 for equals, 0 for the reverse.

    1 where there is no pair.
    """
    before_LL, other_LL = _comes_before(one), _comes_before(other)
    pairs = np.triu_indices(len(before_LL), 1)
    return float((before_LL == other_LL)[pairs].mean()) if len(pairs[0]) else 1.0


def _comes_before(order: Iterable[int]) -> np.ndarray:
    """Whether the target of the row is emitted before the target of the column."""
    places_L = np.argsort(list(order))
    return places_L[:, None] < places_L[None, :]


def _first(ranks: np.ndarray, count: int) -> set[int]:
    """The candidates of the best ranks; of tied candidates the earlier ones."""
    return set(np.argsort(ranks, kind="stable")[:count].tolist())


def _ascending(losses: ArrayLike) -> np.ndarray:
    values = np.asarray(losses, dtype=float)
    return np.where(np.isfinite(values), values, math.inf)
