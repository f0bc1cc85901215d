"""The rules of a race: how long each rung trains, which orders go on after it, and when it ends.

All orders train with the final model and recipe, at a constant learning rate. A rung continues each training that is
left. Then the orders are compared on the same validation samples, by the mean of their last weights, which is less
noisy than the weights at a constant rate:

1. Nothing is decided before the best order beats the unigram baseline.
2. From then on an order is dropped if its loss exceeds the best one's by at least `margin` of what the best has learnt,
   that is of the distance between the baseline and the best; or if its success rate is below the best one's by at least
   `margin`. In either case a paired t-test over the samples must call the difference significant. With several seeds
   the test is on their mean, and the margin must hold for each of them.
3. The race ends when an order solves the validation samples, when the best has not improved for `patience` rungs (only
   an order that beats the baseline can improve), or when the steps are spent.

Losses are means over target tokens, without EOS. Axes: S seeds, N validation samples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import stdtrit

from genorder.models import GPTConfig
from genorder.training import TrainingConfig


class Recipe(BaseModel):
    """The model that is trained in an order, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: GPTConfig
    training: TrainingConfig  # its steps are the most that are taken


class RaceConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    enabled: bool = True  # False: the first proposal is trained, by the recipe's own schedule
    # Rungs are short, since the given order trains to the end of the rung in which the winner is solved.
    first_rung: int = Field(default=125, ge=1)  # steps
    growth: float = Field(default=1.25, gt=1)  # of the steps from rung to rung, all steps counted
    seeds: int = Field(default=1, ge=1)  # trainings of each order
    significance: float = Field(default=0.01, gt=0, lt=0.5)
    margin: float = Field(default=0.1, ge=0)  # of the loss learnt so far, and of the success rate
    patience: int = Field(default=4, ge=1)  # rungs
    patient_steps: int = Field(default=2_000, ge=0)  # before which no race is given up
    # Of the steps so far, at the end, whose mean weights are validated in a rung. Measured in benchmarks/RESULTS.md.
    average_share: float | None = Field(default=0.05, gt=0, le=1)
    solved: float = Field(default=0.99, gt=0, le=1)  # success rate at which the learning rate may decay
    check_steps: int = Field(default=50, ge=1)  # from one look at the success rate to the next
    decay_share: float = Field(default=0.25, gt=0)  # of the steps at a constant rate, that follow while it decays


def rung_ends(config: RaceConfig, steps: int) -> list[int]:
    """The number of steps after each rung, so that the decay fits into `steps`."""
    most = max(1, math.floor(steps / (1 + config.decay_share)))
    ends = [min(config.first_rung, most)]
    while ends[-1] < most:
        ends.append(min(most, math.ceil(ends[-1] * config.growth)))
    return ends


def expected_steps(config: RaceConfig, steps: int, contestants: int) -> int:
    """Of all trainings of a race that takes `steps` at most: two go on after twice the first rung. For estimates."""
    last = rung_ends(config, steps)[-1]
    together = min(2 * config.first_rung, last)
    return config.seeds * (contestants * together + min(contestants, 2) * (last - together))


def decay_steps(config: RaceConfig, stable: int, steps: int) -> int:
    """Steps in which the rate decays to zero, after so many at a constant rate; at most `steps` in all."""
    return max(1, min(math.ceil(config.decay_share * stable), steps - stable))


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """What one order's trainings reached at the end of a rung."""

    steps: int
    losses_SN: NDArray[np.float64]  # mean over the sample's target tokens; infinite if training diverged
    right_SN: NDArray[np.bool_]  # samples whose targets are all predicted
    weights_N: NDArray[np.float64]  # of the samples, by their number of targets; mean 1

    @property
    def loss(self) -> float:
        return float(self._weighted_N.mean()) if self.finite else math.inf

    @property
    def error(self) -> float:
        """Standard error of the loss."""
        samples = len(self.weights_N)
        spread_N = (self.losses_SN.mean(axis=0) - self.loss) * self.weights_N if self.finite else np.full(1, np.inf)
        return float(spread_N.std(ddof=1) / math.sqrt(samples)) if self.finite and samples > 1 else math.inf

    @property
    def success(self) -> float:
        return float(self.right_SN.mean())

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.losses_SN).all())

    @property
    def _weighted_N(self) -> NDArray[np.float64]:
        weighted_N: NDArray[np.float64] = self.losses_SN.mean(axis=0) * self.weights_N
        return weighted_N

    def significantly_worse(self, other: "Outcome", config: RaceConfig, margin: float = 0.0) -> bool:
        """Does a paired t-test say that the loss exceeds the other's, and is it more than a margin for each seed?"""
        own_SN, other_SN = np.broadcast_arrays(self.losses_SN, other.losses_SN)
        with np.errstate(invalid="ignore"):
            differences_S = ((own_SN - other_SN) * self.weights_N).mean(axis=1)
        return _exceeds(self._weighted_N, other._weighted_N, config.significance) and bool(
            (differences_S > margin).all()
        )

    def succeeds_less(self, other: "Outcome", config: RaceConfig) -> bool:
        """Does a paired t-test say that the success rate is lower, and is it lower by the margin for each seed?"""
        own_SN, other_SN = np.broadcast_arrays(self.right_SN, other.right_SN)
        lower_S = other_SN.mean(axis=1) - own_SN.mean(axis=1)
        right_N, other_N = self.right_SN.mean(axis=0), other.right_SN.mean(axis=0)
        return _exceeds(other_N, right_N, config.significance) and bool((lower_S >= config.margin).all())

    def improves_on(self, before: "Outcome", config: RaceConfig) -> bool:
        """Is the loss lower than before, or the success rate higher, and not by chance?"""
        right_N, before_N = self.right_SN.mean(axis=0), before.right_SN.mean(axis=0)
        return before.significantly_worse(self, config) or _exceeds(right_N, before_N, config.significance)


def _exceeds(one_N: NDArray[np.floating], other_N: NDArray[np.floating], level: float) -> bool:
    """By a one-sided paired t-test."""
    if not np.isfinite(one_N).all():
        return bool(np.isfinite(other_N).all())
    differences_N = one_N - other_N
    samples = len(differences_N)
    if samples < 2 or not np.isfinite(differences_N).all():
        return False
    error = float(differences_N.std(ddof=1)) / math.sqrt(samples)
    return float(differences_N.mean()) > -float(stdtrit(samples - 1, level)) * error


def dropped(outcomes: Sequence[Outcome], unigram: Outcome, config: RaceConfig) -> list[int]:
    """Places of the orders that do not go on (rules 1 and 2)."""
    best = min(outcomes, key=lambda outcome: outcome.loss)
    diverged = [place for place, one in enumerate(outcomes) if not one.finite and best.finite]
    if not unigram.significantly_worse(best, config):
        return diverged
    margin = config.margin * (unigram.loss - best.loss)
    worse = (
        place
        for place, one in enumerate(outcomes)
        if one.significantly_worse(best, config, margin) or one.succeeds_less(best, config)
    )
    return sorted({*diverged, *worse})


@final
@dataclass(frozen=True)
class Outlook:
    """What to expect of a race after a rung. For estimates."""

    end: float  # steps of the last rung
    orders: int | None  # that go on; None: all of them


def outlook(best: Outcome, number: int, ends: Sequence[int], unigram: Outcome, config: RaceConfig) -> Outlook:
    """After the rung of this number: the rest is learnt as fast as the best order has learnt so far, and two orders go
    on. If nothing is learnt yet, all go on until the race is given up.
    """
    if unigram.significantly_worse(best, config):
        return Outlook(min(best.steps / (1 - best.loss / unigram.loss), ends[-1]), 2)
    first = max(config.patience, number + 1)  # the next rung after which it may be given up
    return Outlook(next((end for end in ends[first:] if end >= config.patient_steps), ends[-1]), None)


def has_converged(history: Sequence[Outcome], unigram: Outcome, config: RaceConfig) -> bool:
    """Has the order not improved for `patience` rungs (rule 3)? Above the unigram baseline nothing counts."""
    if len(history) <= config.patience or history[-1].steps < config.patient_steps:
        return False
    before = history[-1 - config.patience]
    return not any(
        unigram.significantly_worse(later, config) and later.improves_on(before, config)
        for later in history[-config.patience :]
    )
