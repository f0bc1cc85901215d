"""The rules of a race: the steps of each rung, the orders that are dropped after it, and the end of the race.

All orders train with the final model and recipe, at a constant learning rate. A rung continues each remaining training.
Then the orders are compared on the same validation samples, with the mean of the last weights of each training, because
at a constant rate the weights themselves are noisy:

1. Before the best order beats the unigram baseline, only diverged orders are dropped.
2. After that an order is dropped if its loss exceeds the best one's by at least `margin` of the distance between the
   baseline and the best loss, or if its success rate is below the best one's by at least `margin`. In either case the
   difference must be significant by a paired t-test over the samples. With several seeds the test is on their mean, and
   the margin must hold for each seed.
3. The race ends when an order solves the validation samples, when the best order has not improved for `patience` rungs
   (an improvement counts only below the baseline), or when the steps are spent.

Losses are means over target tokens, without EOS. Axes: S seeds, N validation samples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from genorder.models import GPTConfig
from genorder.profiling.scoring import t_threshold
from genorder.training import TrainingConfig


class Recipe(BaseModel):
    """The model to train in each order, and its training."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: GPTConfig
    training: TrainingConfig  # its steps are the maximum of a race and the decay after it


class RaceConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    enabled: bool = True  # False: train the first proposal with the recipe's own schedule
    # Rungs are short, since the given order trains to the end of the rung in which the winner is solved.
    first_rung: int = Field(default=125, ge=1)  # steps
    growth: float = Field(default=1.25, gt=1)  # factor of the total steps from rung to rung
    seeds: int = Field(default=1, ge=1)  # trainings of each order
    significance: float = Field(default=0.01, gt=0, lt=0.5)  # level of the t-tests
    margin: float = Field(default=0.1, ge=0)  # share of the loss learnt so far; difference of success rates
    patience: int = Field(default=4, ge=1)  # rungs
    patient_steps: int = Field(default=2_000, ge=0)  # the race does not end for lack of improvement before this step
    # Validate the mean of the weights over this last share of the steps. Measured in benchmarks/RESULTS.md.
    average_share: float | None = Field(default=0.05, gt=0, le=1)
    solved: float = Field(default=0.99, gt=0, le=1)  # success rate at which the race ends
    check_steps: int = Field(default=50, ge=1)  # steps between two checks of the success rate
    decay_share: float = Field(default=0.25, gt=0)  # steps of decay after the race, relative to the steps before


def rung_ends(config: RaceConfig, steps: int) -> list[int]:
    """The total steps after each rung. They leave room for the decay within `steps`."""
    most = max(1, math.floor(steps / (1 + config.decay_share)))
    ends = [min(config.first_rung, most)]
    while ends[-1] < most:
        ends.append(min(most, math.ceil(ends[-1] * config.growth)))
    return ends


def expected_steps(config: RaceConfig, steps: int, contestants: int) -> int:
    """An estimate of the total steps of a race: two orders remain after twice the first rung, until `steps`."""
    last = rung_ends(config, steps)[-1]
    together = min(2 * config.first_rung, last)
    return config.seeds * (contestants * together + min(contestants, 2) * (last - together))


def decay_steps(config: RaceConfig, stable: int, steps: int) -> int:
    """Steps of decay after `stable` steps at a constant rate, at most `steps` in total."""
    return max(1, min(math.ceil(config.decay_share * stable), steps - stable))


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """The validation results of one order's trainings at the end of a rung."""

    steps: int
    losses_SN: NDArray[np.float64]  # mean over the sample's target tokens; infinite if training diverged
    exact_SN: NDArray[np.bool_]  # exact match: all target tokens of the sample and EOS are predicted
    weights_N: NDArray[np.float64]  # number of targets of each sample, divided by its mean

    @property
    def loss(self) -> float:
        return float(self._weighted_N.mean()) if self.finite else math.inf

    @property
    def standard_error(self) -> float:
        """The standard error of the loss."""
        samples = len(self.weights_N)
        spread_N = (self.losses_SN.mean(axis=0) - self.loss) * self.weights_N if self.finite else np.full(1, np.inf)
        return float(spread_N.std(ddof=1) / math.sqrt(samples)) if self.finite and samples > 1 else math.inf

    @property
    def success_rate(self) -> float:
        return float(self.exact_SN.mean())

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.losses_SN).all())

    @property
    def _weighted_N(self) -> NDArray[np.float64]:
        weighted_N: NDArray[np.float64] = self.losses_SN.mean(axis=0) * self.weights_N
        return weighted_N

    def significantly_worse(self, other: "Outcome", config: RaceConfig, margin: float = 0.0) -> bool:
        """Whether the loss is higher by a paired t-test, and by more than the margin for each seed."""
        own_SN, other_SN = np.broadcast_arrays(self.losses_SN, other.losses_SN)
        with np.errstate(invalid="ignore"):
            differences_S = ((own_SN - other_SN) * self.weights_N).mean(axis=1)
        significant = _significantly_higher(self._weighted_N, other._weighted_N, config.significance)
        return significant and bool((differences_S > margin).all())

    def succeeds_less(self, other: "Outcome", config: RaceConfig) -> bool:
        """Whether the success rate is lower by a paired t-test, and by at least the margin for each seed."""
        own_SN, other_SN = np.broadcast_arrays(self.exact_SN, other.exact_SN)
        lower_S = other_SN.mean(axis=1) - own_SN.mean(axis=1)
        exact_N, other_N = self.exact_SN.mean(axis=0), other.exact_SN.mean(axis=0)
        significant = _significantly_higher(other_N, exact_N, config.significance)
        return significant and bool((lower_S >= config.margin).all())

    def improves_on(self, before: "Outcome", config: RaceConfig) -> bool:
        """Whether the loss is significantly lower than before, or the success rate significantly higher."""
        exact_N, before_N = self.exact_SN.mean(axis=0), before.exact_SN.mean(axis=0)
        more_exact = _significantly_higher(exact_N, before_N, config.significance)
        return before.significantly_worse(self, config) or more_exact


def _significantly_higher(one_N: NDArray[np.floating], other_N: NDArray[np.floating], level: float) -> bool:
    """A one-sided paired t-test of the means."""
    if not np.isfinite(one_N).all():
        return bool(np.isfinite(other_N).all())
    differences_N = one_N - other_N
    samples = len(differences_N)
    if samples < 2 or not np.isfinite(differences_N).all():
        return False
    error = float(differences_N.std(ddof=1)) / math.sqrt(samples)
    return float(differences_N.mean()) > t_threshold(level, samples) * error


def dropped(outcomes: Sequence[Outcome], unigram: Outcome, config: RaceConfig) -> list[int]:
    """The indices of the orders that are dropped (rules 1 and 2)."""
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
    """An estimate of the rest of a race after a rung."""

    end: float  # total steps after the last rung
    orders: int | None  # number of orders that remain; None: all of them


def outlook(best: Outcome, number: int, ends: Sequence[int], unigram: Outcome, config: RaceConfig) -> Outlook:
    """The outlook after the rung of this number: the best order continues to learn as fast as so far, and two orders
    remain. If no order has learnt anything yet, all remain until the race ends for lack of improvement.
    """
    if unigram.significantly_worse(best, config):
        return Outlook(min(best.steps / (1 - best.loss / unigram.loss), ends[-1]), 2)
    first = max(config.patience, number + 1)  # the next rung after which the race may end
    return Outlook(next((end for end in ends[first:] if end >= config.patient_steps), ends[-1]), None)


def has_converged(history: Sequence[Outcome], unigram: Outcome, config: RaceConfig) -> bool:
    """Whether the order has not improved for `patience` rungs (rule 3). Only losses below the baseline count."""
    if len(history) <= config.patience or history[-1].steps < config.patient_steps:
        return False
    before = history[-1 - config.patience]
    return not any(
        unigram.significantly_worse(later, config) and later.improves_on(before, config)
        for later in history[-config.patience :]
    )
