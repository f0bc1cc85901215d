"""What a trained routed model says: the orders constructed from it, how good they are, and whether to believe it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from genorder.orders import Constraints, Order, Units, deduplicated
from genorder.profiling.any_order import AnyOrderOracle
from genorder.profiling.construction import Gains, greedy_order, least_loss_first, pairwise_gains
from genorder.profiling.scoring import compare_with_best, errors_for

if TYPE_CHECKING:
    import networkx

# The verdicts of a search.
ORDER_FOUND, NO_ORDER = "order found", "no order preferred"
NOTHING_LEARNT, NOT_SETTLED = "nothing learnt", "not settled"
_EDGE_SHARE = 0.25  # of the best gain into a target, that an edge of the graph must have
_EDGE_ERRORS = 4.0  # standard errors that it must exceed
_RANDOM_ORDERS = 8  # against which a constructed order is compared
_CHANCE = 3e-5  # of taking noise for a difference: four standard errors of many samples, and more of few
_LEARNT_SHARE = 0.02  # of the loss of a blind guess: less than that is nothing
_SOLVED_SHARE = 0.2  # of the loss of a blind guess, below which the targets count as predicted
_EXHAUSTED_TARGETS = 0.5  # of the blind loss of one target, that is left of all of them
_AGREED_SHARE = 0.1  # of what the best order saves, below which constructions do not differ


@final
@dataclass(frozen=True, eq=False)
class Reading:
    """What was read off a trained model."""

    orders: list[Order]  # best first
    losses_CN: NDArray[np.float64]  # mean over targets, of each order and validation sample
    others_CN: NDArray[np.float64]  # what it must beat: some random orders
    blind: float  # loss of guessing by the frequency of tokens alone
    gains: Gains | None
    before: float | None  # loss of the best order after the round before

    @property
    def best(self) -> float:
        return float(self.losses_CN[0].mean())

    @property
    def agreed(self) -> bool:
        """Do the constructions cost the same, relative to what an order can save?"""
        return bool(np.ptp(self.losses_CN.mean(axis=1)) <= _AGREED_SHARE * max(self.others_CN.mean() - self.best, 0.0))

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
    def exhausted(self) -> bool:
        """Is all that is left to predict, of all targets together, less than half of one that is not predicted at all?

        Then no target stands before what it needs, whatever another construction makes of it. Where relations can be
        solved in both directions, as sums can, the graph of gains has no direction, and only greedy gets it right.
        """
        return self.best * len(self.orders[0]) <= _EXHAUSTED_TARGETS * self.blind

    @property
    def settled(self) -> bool:
        """More training would not change the answer, as far as can be told."""
        if self.blind == 0:
            return True
        solved = self.best <= _SOLVED_SHARE * self.blind
        return (
            self.exhausted
            or (solved and self.agreed)
            or (self.learnt and self.converged and (self.agreed or not self.preferred))
        )

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
) -> Reading:
    """`earlier` are orders from the round before, and `before` the loss that the best of them had then."""
    gains = pairwise_gains(oracle)
    constructed = [greedy_order(oracle, constraints), graph_order(oracle, gains, constraints)]
    orders = deduplicated([*constructed, *earlier])
    losses_CN = np.array([oracle.mean_of_order(order) for order in orders])
    ranking = np.argsort(losses_CN.mean(axis=1), kind="stable")
    drawn = [constraints.random(oracle.targets, rng) for _ in range(_RANDOM_ORDERS)]
    others_CN = np.array([oracle.mean_of_order(order) for order in drawn])
    ranked = [orders[index] for index in ranking]
    return Reading(ranked, losses_CN[ranking], others_CN, blind, gains, before)


def proposals(reading: Reading, oracle: AnyOrderOracle, others: Sequence[Order]) -> list[dict[str, Any]]:
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


def reading_to_dict(reading: Reading, oracle: AnyOrderOracle) -> dict[str, Any]:
    name, advice = verdict(reading)
    return {
        "verdict": name,
        "advice": advice,
        "losses": _losses(reading, oracle),
        **({"gains": reading.gains.gain_LL.round(4).tolist()} if reading.gains else {}),
    }


def _losses(reading: Reading, oracle: AnyOrderOracle) -> dict[str, float]:
    advantage, error = reading.advantage
    best, others = reading.orders[0], float(reading.others_CN.mean())
    losses = {"best": reading.best, "blind": reading.blind, "its_standard_error": error}
    reverse = float(oracle.mean_of_order(best.compose(Order.reverse(len(best)))).mean())
    return {**losses, "reverse": reverse, "random": others, "advantage_over_random": advantage}


def verdict(reading: Reading) -> tuple[str, str]:
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
            "The loss was still falling, or different constructions still differ in loss: the order may be improved by "
            "more rounds (--set search.rounds), more steps (--set any_order.training.steps) or more restarts "
            "(--set search.restarts)."
        )
    if not reading.preferred:
        return NO_ORDER, (
            "The targets can be predicted, but as well in a random order as in the constructed one: the order does not "
            "seem to matter."
        )
    if not reading.agreed:
        return ORDER_FOUND, (
            "In this order nearly nothing is left that is not predicted, and it beats random ones beyond the noise; "
            "other constructions were worse."
        )
    return ORDER_FOUND, "The constructions agree, and the order beats random ones beyond the noise."


def _noise_of(values_N: NDArray[np.float64]) -> float:
    """What their mean must exceed to be no chance."""
    return errors_for(_CHANCE, len(values_N)) * _error_of(values_N)


def _error_of(values_N: NDArray[np.float64]) -> float:
    return float(values_N.std(ddof=1) / np.sqrt(len(values_N)))


def graph_order(oracle: AnyOrderOracle, gains: Gains, constraints: Constraints | None = None) -> Order:
    """A topological sort of the graph of gains; among targets that it allows, that of least loss comes first."""
    units = (constraints or Constraints()).units(oracle.targets)
    return least_loss_first(oracle, units, gain_graph(gains, units).edges, part="constructing by the graph")


def gain_graph(gains: Gains, units: Units | None = None) -> "networkx.DiGraph[int]":
    """Edges from a target to those that it helps, strongest first, without those that would close a cycle.

    With units, the nodes are their free ones: their own edges come first, then those of gains between their targets.
    """
    import networkx  # slow to import

    targets = len(gains.alone_L)
    units = units or Constraints().units(targets)
    unit_of = {target: number for number, unit in enumerate(units.free) for target in unit}
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(len(units.free)))
    graph.add_edges_from(units.edges)
    strongest_L = gains.gain_LL.max(axis=0)
    edges = [
        (gain, unit_of[known], unit_of[target])
        for known in unit_of
        for target in unit_of
        if unit_of[known] != unit_of[target]
        and (gain := gains.gain_LL[known, target]) >= _EDGE_SHARE * strongest_L[target]
        and gain > _EDGE_ERRORS * gains.error_LL[known, target]
    ]
    for _, known, target in sorted(edges, key=lambda edge: -edge[0]):
        if not networkx.has_path(graph, target, known):
            graph.add_edge(known, target)
    return graph
