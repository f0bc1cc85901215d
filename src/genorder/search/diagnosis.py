"""Diagnosis of a trained routed model: the orders constructed from it, their losses, and how far to trust them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from genorder.orders import Constraints, Order, deduplicated
from genorder.profiling.oracle import AnyOrderOracle, greedy_order
from genorder.profiling.scoring import compare_with_best, t_threshold
from genorder.search.base import NO_ORDER, NOT_SETTLED, NOTHING_LEARNT, ORDER_FOUND, Proposal, Verdict

_RANDOM_ORDERS = 8  # that the constructed order is compared with
_CHANCE = 3e-5  # probability of taking noise for a difference: four standard errors of many samples, more of few
_LEAST_SHARE = 0.02  # of the unigram loss: smaller differences are not significant
_LOSS_KEYS = {  # JSON keys of OrderLosses
    "best": "best",
    "blind": "unigram",
    "its_standard_error": "advantage_error",
    "reverse": "reverse",
    "random": "random",
    "advantage_over_random": "advantage",
}
_UNPREDICTED_TARGETS = 0.5  # unigram losses of one target that may remain of all targets together in a solved problem


@final
@dataclass(frozen=True)
class OrderLosses:
    """Validation losses per target, of orders under one model."""

    best: float
    unigram: float  # of predicting each target by the frequency of its tokens
    reverse: float  # of the reverse of the best order
    random: float  # mean of random orders
    advantage: float  # of the best order over random ones
    advantage_error: float  # its standard error

    def to_dict(self) -> dict[str, float]:
        return {key: getattr(self, name) for key, name in _LOSS_KEYS.items()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, float]) -> "OrderLosses":
        return cls(**{name: saved[key] for key, name in _LOSS_KEYS.items()})


@final
@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The orders constructed from a trained model, compared with random orders and with the unigram baseline."""

    orders: list[Order]  # best first
    losses_CN: NDArray[np.float64]  # mean over targets, of each order and validation sample
    random_CN: NDArray[np.float64]  # the same of some random orders
    unigram: float  # loss of the unigram baseline
    previous: float | None  # loss of the best order after the previous phase of training

    @property
    def loss(self) -> float:
        """The loss of the best order."""
        return float(self.losses_CN[0].mean())

    @property
    def beats_baseline(self) -> bool:
        return self.unigram - self.loss > max(_significant(self.losses_CN[0]), _LEAST_SHARE * self.unigram)

    @property
    def beats_random_orders(self) -> bool:
        return self.advantage > max(_significant(self._advantage_N), _LEAST_SHARE * self.unigram)

    @property
    def plateaued(self) -> bool:
        """Whether the last phase hardly lowered the loss. False after the first phase."""
        return self.previous is not None and self.previous - self.loss <= _LEAST_SHARE * self.unigram

    @property
    def solved(self) -> bool:
        """Whether the losses of all targets together are less than half of the unigram loss of one target.

        Then no target comes before another that it is computed from.
        """
        return self.loss * len(self.orders[0]) <= _UNPREDICTED_TARGETS * self.unigram

    @property
    def converged(self) -> bool:
        """Whether more training would probably not change the answer."""
        return self.unigram == 0 or self.solved or (self.beats_baseline and self.plateaued)

    @property
    def advantage(self) -> float:
        """The mean advantage of the best order over random orders."""
        return float(self._advantage_N.mean())

    @property
    def _advantage_N(self) -> NDArray[np.float64]:
        advantage_N: NDArray[np.float64] = self.random_CN.mean(axis=0) - self.losses_CN[0]
        return advantage_N

    def losses(self, oracle: AnyOrderOracle) -> OrderLosses:
        best = self.orders[0]
        return OrderLosses(
            best=self.loss,
            unigram=self.unigram,
            reverse=float(oracle.mean_of_order(best.compose(Order.reverse(len(best)))).mean()),
            random=float(self.random_CN.mean()),
            advantage=self.advantage,
            advantage_error=_standard_error(self._advantage_N),
        )

    def proposals(self, oracle: AnyOrderOracle, others: Sequence[Order]) -> list[Proposal]:
        """The constructed orders, best first, then the others, with their losses under the same model."""
        orders = deduplicated([*self.orders, *others])
        losses_CN = np.array([*self.losses_CN, *map(oracle.mean_of_order, orders[len(self.orders) :])])
        samples = losses_CN.shape[1]
        means, differences, errors = compare_with_best(losses_CN, np.ones(samples, dtype=np.int64))
        return [
            Proposal(order, float(mean), _standard_error(losses_N), bool(difference <= error))
            for order, losses_N, mean, difference, error in zip(
                orders, losses_CN, means, differences, errors, strict=True
            )
        ]

    @property
    def verdict(self) -> tuple[Verdict, str]:
        """The verdict, and advice to the user in a sentence or two."""
        if self.unigram == 0:
            return NO_ORDER, "Every target is the same in all samples: any order will do."
        if not self.beats_baseline:
            return NOTHING_LEARNT, (
                "The profiler predicts the targets no better than by their frequencies, in any order: they may be "
                "random, or harder than it can learn in this time. Try more steps (--set any_order.training.steps) or "
                "more data."
            )
        if not self.converged:
            return NOT_SETTLED, (
                "The loss was still falling: the order may be improved by more phases of training (--set "
                "search.rounds), more steps (--set any_order.training.steps) or more restarts (--set search.restarts)."
            )
        if not self.beats_random_orders:
            return NO_ORDER, (
                "The targets can be predicted, but as well in a random order as in the constructed one: the order does "
                "not seem to matter."
            )
        return ORDER_FOUND, "In this order a model predicts the targets significantly better than in random orders."


def diagnose(
    oracle: AnyOrderOracle,
    *,
    last: Diagnosis | None,
    kept: int,
    rng: np.random.Generator,
    constraints: Constraints,
    unigram: float,
) -> Diagnosis:
    """Construct the greedy order and its reverse, and compare them with the `kept` best orders of the last diagnosis.

    The reverse is included because the target that is easiest to guess from the inputs may be computed last.
    """
    greedy = greedy_order(oracle, constraints)
    reverse = greedy.compose(Order.reverse(len(greedy)))
    earlier = last.orders[:kept] if last else []
    orders = deduplicated([greedy, *([reverse] if constraints.allows(reverse) else []), *earlier])
    losses_CN = np.array([oracle.mean_of_order(order) for order in orders])
    ranking = np.argsort(losses_CN.mean(axis=1), kind="stable")
    drawn = [constraints.random(oracle.targets, rng) for _ in range(_RANDOM_ORDERS)]
    random_CN = np.array([oracle.mean_of_order(order) for order in drawn])
    ranked = [orders[index] for index in ranking]
    return Diagnosis(ranked, losses_CN[ranking], random_CN, unigram, last.loss if last else None)


def _significant(values_N: NDArray[np.float64]) -> float:
    """The least mean of the values that is significantly above zero."""
    return float(t_threshold(_CHANCE, len(values_N)) * _standard_error(values_N))


def _standard_error(values_N: NDArray[np.float64]) -> float:
    return float(values_N.std(ddof=1) / np.sqrt(len(values_N)))
