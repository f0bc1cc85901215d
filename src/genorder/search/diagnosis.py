"""What a trained routed model says: the orders constructed from it, how good they are, and whether to believe it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from genorder.orders import Constraints, Order, deduplicated
from genorder.profiling.any_order import AnyOrderOracle
from genorder.profiling.construction import greedy_order
from genorder.profiling.scoring import compare_with_best, errors_for

# The verdicts of a search.
ORDER_FOUND, NO_ORDER = "order found", "no order preferred"
NOTHING_LEARNT, NOT_SETTLED = "nothing learnt", "not settled"
_RANDOM_ORDERS = 8  # against which a constructed order is compared
_CHANCE = 3e-5  # of taking noise for a difference: four standard errors of many samples, and more of few
_LEARNT_SHARE = 0.02  # of the loss of a blind guess: less than that is nothing
_LEFT_TARGETS = 0.5  # of the blind loss of one target, that is left of all of them


@final
@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What was read off a trained model."""

    orders: list[Order]  # best first
    losses_CN: NDArray[np.float64]  # mean over targets, of each order and validation sample
    others_CN: NDArray[np.float64]  # what it must beat: some random orders
    blind: float  # loss of guessing by the frequency of tokens alone
    before: float | None  # loss of the best order after the round before

    @property
    def best(self) -> float:
        return float(self.losses_CN[0].mean())

    @property
    def learnt(self) -> bool:
        least = max(_noise_of(self.losses_CN[0]), _LEARNT_SHARE * self.blind)
        return self.blind - self.best > least

    @property
    def converged(self) -> bool:
        """Has the last round hardly lowered the loss? One round alone cannot tell."""
        return self.before is not None and self.before - self.best <= _LEARNT_SHARE * self.blind

    @property
    def preferred(self) -> bool:
        """Does the order beat the others, beyond the noise?"""
        return bool(self._gained_N.mean() > max(_noise_of(self._gained_N), _LEARNT_SHARE * self.blind))

    @property
    def solved(self) -> bool:
        """Is all that is left to predict, of all targets together, less than half of one that is not predicted at all?
        Then no target stands before what it needs.
        """
        return self.best * len(self.orders[0]) <= _LEFT_TARGETS * self.blind

    @property
    def settled(self) -> bool:
        """More training would not change the answer, as far as can be told."""
        return self.blind == 0 or self.solved or (self.learnt and self.converged)

    @property
    def advantage(self) -> tuple[float, float]:
        """Of the best order over the others, and its standard error."""
        return float(self._gained_N.mean()), _error_of(self._gained_N)

    @property
    def _gained_N(self) -> NDArray[np.float64]:
        gained_N: NDArray[np.float64] = self.others_CN.mean(axis=0) - self.losses_CN[0]
        return gained_N


def read(
    oracle: AnyOrderOracle,
    earlier: Sequence[Order],
    before: float | None,
    rng: np.random.Generator,
    constraints: Constraints,
    blind: float,
) -> Diagnosis:
    """`earlier` are orders from the round before, and `before` the loss that the best of them had then.

    The reverse of the greedy order is tried too: what can be guessed from the inputs best may be computed last.
    """
    greedy = greedy_order(oracle, constraints)
    reverse = greedy.compose(Order.reverse(len(greedy)))
    orders = deduplicated([greedy, *([reverse] if constraints.allows(reverse) else []), *earlier])
    losses_CN = np.array([oracle.mean_of_order(order) for order in orders])
    ranking = np.argsort(losses_CN.mean(axis=1), kind="stable")
    drawn = [constraints.random(oracle.targets, rng) for _ in range(_RANDOM_ORDERS)]
    others_CN = np.array([oracle.mean_of_order(order) for order in drawn])
    ranked = [orders[index] for index in ranking]
    return Diagnosis(ranked, losses_CN[ranking], others_CN, blind, before)


def proposals(reading: Diagnosis, oracle: AnyOrderOracle, others: Sequence[Order]) -> list[dict[str, Any]]:
    """The orders that were read, best first, then the others, with their losses under the same model."""
    orders = deduplicated([*reading.orders, *others])
    losses_CN = np.array([*reading.losses_CN, *map(oracle.mean_of_order, orders[len(reading.orders) :])])
    samples = losses_CN.shape[1]
    means, differences, errors = compare_with_best(losses_CN, np.ones(samples, dtype=np.int64))
    return [
        {
            "order": list(order),
            "loss": float(means[place]),
            "standard_error": _error_of(losses_CN[place]),
            "tied_with_best": bool(differences[place] <= errors[place]),
        }
        for place, order in enumerate(orders)
    ]


def diagnosis_to_dict(reading: Diagnosis, oracle: AnyOrderOracle) -> dict[str, Any]:
    name, advice = verdict(reading)
    return {
        "verdict": name,
        "advice": advice,
        "losses": _losses(reading, oracle),
    }


def _losses(reading: Diagnosis, oracle: AnyOrderOracle) -> dict[str, float]:
    advantage, error = reading.advantage
    best, others = reading.orders[0], float(reading.others_CN.mean())
    losses = {"best": reading.best, "blind": reading.blind, "its_standard_error": error}
    reverse = float(oracle.mean_of_order(best.compose(Order.reverse(len(best)))).mean())
    return {**losses, "reverse": reverse, "random": others, "advantage_over_random": advantage}


def verdict(reading: Diagnosis) -> tuple[str, str]:
    """In two or three words, and in a sentence for the user."""
    if reading.blind == 0:
        return NO_ORDER, "Every target is the same in all samples: any order will do."
    if not reading.learnt:
        return NOTHING_LEARNT, (
            "The profiler predicts the targets no better than by their frequencies, in any order: they may be random, "
            "or harder than it can learn in this time. Try more steps (--set any_order.training.steps) or more data."
        )
    if not reading.settled:
        return NOT_SETTLED, (
            "The loss was still falling: the order may be improved by more rounds (--set search.schedule), more steps "
            "(--set any_order.training.steps) or more restarts (--set search.restarts)."
        )
    if not reading.preferred:
        return NO_ORDER, (
            "The targets can be predicted, but as well in a random order as in the constructed one: the order does not "
            "seem to matter."
        )
    return ORDER_FOUND, "In this order a model predicts the targets better than in random ones, beyond the noise."


def _noise_of(values_N: NDArray[np.float64]) -> float:
    """What their mean must exceed to be no chance."""
    return errors_for(_CHANCE, len(values_N)) * _error_of(values_N)


def _error_of(values_N: NDArray[np.float64]) -> float:
    return float(values_N.std(ddof=1) / np.sqrt(len(values_N)))
