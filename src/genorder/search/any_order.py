"""Construct the order instead of enumerating it: ask the routed profiler what each target is computed from.

One short run of the routed model gives the loss of any target given any others. Two constructions are read off it:
greedily (emit next the target of least loss), and by the graph of pairwise gains (strongest edges first, those that
would close a cycle left out), whose topological sort is completed greedily. The losses of whole orders under the same
model, with their standard errors, rank them. If the two disagree beyond the noise, or nothing has been learnt yet, the
model trains on.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import networkx
import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from genorder.errors import InputError
from genorder.models.routed import RoutedModel
from genorder.orders import Order, deduplicated
from genorder.profiling.any_order import (
    AnyOrderConfig,
    AnyOrderOracle,
    Gains,
    fit_any_order,
    greedy_order,
    pairwise_gains,
    routed_model,
)
from genorder.profiling.dependencies import Dependency, dependencies
from genorder.profiling.scoring import compare_with_best
from genorder.search.base import MOST_PROPOSALS, PlannedRun, Proposal, Search, SearchProblem, SearchResult, Stage
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import CheckpointFolder

_EDGE_SHARE = 0.25  # of the best gain into a target, that an edge of the graph must have
_EDGE_ERRORS = 4.0  # standard errors that it must exceed
_RANDOM_ORDERS = 8  # against which a constructed order is compared
_PREFERRED_ERRORS = 4.0  # standard errors by which a constructed order must beat those
_LEARNT_SHARE = 0.02  # of the loss of a blind guess, that knowing the others must save
_SETTLED_SHARE = 0.1  # of what the best order saves, below which constructions do not differ


@final
@dataclass(frozen=True)
class AnyOrder(Search):
    name: ClassVar[str] = "any-order"
    finalists: ClassVar[int] = 2

    restarts: int = 1  # models from different seeds
    rounds: int = 3  # trainings of a model, each twice as long as the one before, as long as it is not settled

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.rounds < 1:
            raise InputError(f"any-order: restarts {self.restarts}, rounds {self.rounds}; expected at least 1 each")

    def check(self, problem: SearchProblem) -> None:
        if len(problem.validation) < 2:
            raise InputError(f"any-order needs 2 validation samples or more; received {len(problem.validation)}")

    def own_seconds_per_step(self, problem: SearchProblem) -> float:
        def seconds(steps: int) -> float:
            training = problem.any_order.training.model_copy(update={"steps": steps})
            short = problem.any_order.model_copy(update={"training": training})
            return fit_any_order(routed_model(problem.train, short, seed=0), problem.train, short, seed=0) / steps

        seconds(1)
        return seconds(5)

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        steps = problem.any_order.training.steps
        orders = self._orders(problem)
        runs = [PlannedRun(f"any-order {number + 1}", orders, steps) for number in range(self.restarts)]
        return runs[: problem.budget.runs]

    def _orders(self, problem: SearchProblem) -> int:
        """Compared under one model, at most: two constructions, and the best two of the round before."""
        orders = 2 if self.rounds == 1 else 4
        return min(orders, problem.budget.candidates or orders)

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.length == 1:
            return SearchResult([Proposal(Order.forward(1))], [])
        models = [self._profile(problem, number) for number in range(len(self.plan(problem)))]
        best = min(models, key=lambda model: model["proposals"][0]["loss"])
        proposals = [
            Proposal(
                Order(tuple(row["order"])),
                row["loss"],
                row["standard_error"],
                row["tied_with_best"] and model is best,  # losses under another model cannot tie
            )
            for model in (best, *(model for model in models if model is not best))
            for row in model["proposals"]
        ]
        unique: dict[Order, Proposal] = {}
        for proposal in proposals:
            unique.setdefault(proposal.order, proposal)
        details = {name: best[name] for name in ("verdict", "advice", "dependencies", "gains", "losses", "steps")}
        details["agreement"] = _agreement([Order(tuple(model["proposals"][0]["order"])) for model in models])
        return SearchResult(list(unique.values())[:MOST_PROPOSALS], problem.stages, details)

    def _profile(self, problem: SearchProblem, number: int) -> dict[str, Any]:
        """One model, from its first training to what was read off it."""
        name = f"any-order {number + 1}"
        seed = derive_seed(problem.seed, "any-order", number)
        config = problem.any_order
        described = {
            "search": vars(self),
            "any_order": config.model_dump(),
            "model": number,
            "steps": problem.budget.steps,
            "orders": self._orders(problem),
        }
        problem.runs += 1
        folder = problem.folder_of(name, described)
        found = problem.timed(name, described, lambda: self._work(problem, name, seed, folder))
        shutil.rmtree(folder, ignore_errors=True)
        best = [
            Proposal(Order(tuple(row["order"])), row["loss"], row["standard_error"], row["tied_with_best"])
            for row in found["proposals"]
        ]
        seconds = {"train": found["train_seconds"], "construct": found["seconds"] - found["train_seconds"]}
        problem.finish_stage(Stage(name, found["constructed"], len(best), best, seconds))
        return found

    def _work(self, problem: SearchProblem, name: str, seed: int, folder: Path) -> dict[str, Any]:
        config = problem.any_order
        model = routed_model(problem.train, config, seed)
        steps, seconds = 0, 0.0
        earlier: list[Order] = []
        most = problem.budget.steps and max(1, problem.budget.steps // self.restarts)
        for number in range(self.rounds):
            wanted = config.training.steps * 2**number
            if most and number and steps + wanted > most:
                break
            training = config.training.model_copy(update={"steps": min(wanted, most or wanted)})
            short = config.model_copy(update={"training": training})
            seconds += _trained(problem, model, short, name, derive_seed(seed, "round", number), folder / str(number))
            steps += training.steps
            oracle = AnyOrderOracle(model, problem.validation, config.validation_samples)
            reading = _read(oracle, earlier, numpy_generator(derive_seed(seed, "random orders")))
            if reading.settled:
                break
            earlier = reading.orders[: self._orders(problem) - 2]
        return {**_told(reading, oracle), "train_seconds": seconds, "steps": steps}


def _trained(
    problem: SearchProblem, model: RoutedModel, config: AnyOrderConfig, name: str, seed: int, folder: Path
) -> float:
    """Train the model in place for one round, or load what an interrupted run had finished of it."""
    finished = folder / "finished.safetensors"
    if finished.exists():
        model.load_state_dict(load_file(finished))
        return float((folder / "seconds").read_text())
    on_progress = problem.on_progress
    seconds = fit_any_order(
        model,
        problem.train,
        config,
        seed=seed,
        checkpoints=CheckpointFolder(folder),
        on_progress=(lambda progress: on_progress(name, progress)) if on_progress else None,
        stop=problem.stop,
    )
    _keep(model, seconds, folder)
    return seconds


def _keep(model: RoutedModel, seconds: float, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seconds").write_text(repr(seconds))
    save_file(model.state_dict(), folder / "unfinished.safetensors")
    (folder / "unfinished.safetensors").rename(folder / "finished.safetensors")


@final
@dataclass(frozen=True, eq=False)
class _Reading:
    """What was read off a trained model."""

    orders: list[Order]  # best first
    losses_CN: NDArray[np.float64]  # mean over targets, of each order and validation sample
    random_CN: NDArray[np.float64]  # of some random orders
    blind: float  # loss of guessing by the frequency of tokens alone
    gains: Gains
    settled: bool

    @property
    def advantage(self) -> tuple[float, float]:
        """Of the best order over random ones, and its standard error."""
        gained_N = self.random_CN.mean(axis=0) - self.losses_CN[0]
        return float(gained_N.mean()), float(gained_N.std(ddof=1) / np.sqrt(len(gained_N)))


def _read(oracle: AnyOrderOracle, earlier: Sequence[Order], rng: np.random.Generator) -> _Reading:
    gains = pairwise_gains(oracle)
    orders = deduplicated([greedy_order(oracle), graph_order(oracle, gains), *earlier])
    losses_CN = np.array([oracle.mean_of_order(order) for order in orders])
    ranking = np.argsort(losses_CN.mean(axis=1), kind="stable")
    random_CN = np.array([oracle.mean_of_order(Order.random(oracle.targets, rng)) for _ in range(_RANDOM_ORDERS)])
    blind = _blind_loss(oracle)
    means = losses_CN[ranking].mean(axis=1)
    saved = blind - means[0]
    # Settled when what different constructions cost, relative to what an order can save, hardly differs.
    learnt = saved > _LEARNT_SHARE * blind
    settled = bool(learnt and np.ptp(means[: 2 + len(earlier)]) <= _SETTLED_SHARE * max(random_CN.mean() - means[0], 0))
    return _Reading([orders[index] for index in ranking], losses_CN[ranking], random_CN, blind, gains, settled)


def _told(reading: _Reading, oracle: AnyOrderOracle) -> dict[str, Any]:
    """The reading as plain data."""
    ones = np.ones(reading.losses_CN.shape[1], dtype=np.int64)
    means, differences, errors = compare_with_best(reading.losses_CN, ones)
    advantage, error = reading.advantage
    best = reading.orders[0]
    verdict, advice = _verdict(reading)
    return {
        "proposals": [
            {
                "order": list(order),
                "loss": float(means[place]),
                "standard_error": float(reading.losses_CN[place].std(ddof=1) / np.sqrt(len(ones))),
                "tied_with_best": bool(differences[place] <= errors[place]),
            }
            for place, order in enumerate(reading.orders)
        ],
        "constructed": len(reading.orders),
        "verdict": verdict,
        "advice": advice,
        "losses": {
            "best": float(means[0]),
            "reverse": float(oracle.mean_of_order(best.compose(Order.reverse(len(best)))).mean()),
            "random": float(reading.random_CN.mean()),
            "blind": reading.blind,
            "advantage_over_random": advantage,
            "its_standard_error": error,
        },
        "gains": reading.gains.gain_LL.round(4).tolist(),
        "dependencies": [dependency_to_dict(dependency) for dependency in dependencies(oracle, best)],
    }


def _verdict(reading: _Reading) -> tuple[str, str]:
    advantage, error = reading.advantage
    best = float(reading.losses_CN[0].mean())
    if reading.blind - best <= _LEARNT_SHARE * reading.blind:
        return "nothing learnt", (
            "The profiler predicts the targets no better than by their frequencies, in any order: they may be random, "
            "or harder than it can learn in this time. Try more steps (--set any_order.training.steps) or more data."
        )
    if advantage <= max(_PREFERRED_ERRORS * error, _LEARNT_SHARE * reading.blind):
        return "no order preferred", (
            "The targets can be predicted, but as well in a random order as in the constructed one: they do not seem "
            "to depend on each other."
        )
    if not reading.settled:
        return "not settled", (
            "Different constructions still differ in loss: the order may be improved by more steps "
            "(--set any_order.training.steps) or more restarts (--set search.restarts)."
        )
    return "order found", "The constructions agree, and the order beats random ones beyond the noise."


def _blind_loss(oracle: AnyOrderOracle) -> float:
    """Entropy of the tokens of each target column, mean over columns."""
    validation = oracle.validation
    targets_NL, lengths_N = validation.targets_NL.cpu().numpy(), validation.target_lengths_N.cpu().numpy()
    total, weight = 0.0, 0
    for column in range(targets_NL.shape[1]):
        counts = np.unique(targets_NL[lengths_N > column, column], return_counts=True)[1]
        shares = counts / counts.sum()
        total -= float((shares * np.log(shares)).sum()) * int(counts.sum())
        weight += int(counts.sum())
    return total / weight


def graph_order(oracle: AnyOrderOracle, gains: Gains) -> Order:
    """A topological sort of the graph of gains; among targets that it allows, that of least loss comes first."""
    graph = gain_graph(gains)
    emitted: list[int] = []
    waiting = {target: graph.in_degree(target) for target in graph}
    available = [target for target, parents in waiting.items() if not parents]
    while available:
        losses_M = oracle.mean_given(emitted, available)
        target = available.pop(int(losses_M.argmin()))
        emitted.append(target)
        for child in graph.successors(target):
            waiting[child] -= 1
            if not waiting[child]:
                available.append(child)
    return Order.of(emitted)


def gain_graph(gains: Gains) -> "networkx.DiGraph[int]":
    """Edges from a target to those that it helps, strongest first, without those that would close a cycle."""
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    targets = len(gains.alone_L)
    graph.add_nodes_from(range(targets))
    strongest_L = gains.gain_LL.max(axis=0)
    edges = [
        (gain, known, target)
        for known in range(targets)
        for target in range(targets)
        if known != target
        and (gain := gains.gain_LL[known, target]) >= _EDGE_SHARE * strongest_L[target]
        and gain > _EDGE_ERRORS * gains.error_LL[known, target]
    ]
    for _, known, target in sorted(edges, key=lambda edge: -edge[0]):
        if not networkx.has_path(graph, target, known):
            graph.add_edge(known, target)
    return graph


def dependency_to_dict(dependency: Dependency) -> dict[str, Any]:
    return {
        "target": dependency.target,
        "inputs": dependency.inputs,
        "targets": dependency.targets,
        "loss": dependency.loss,
        "loss_without": dependency.loss_without,
    }


def _agreement(orders: Sequence[Order]) -> float:
    """Mean share of pairs of targets that two models' orders put in the same sequence; 1.0 for one model."""
    if len(orders) < 2:
        return 1.0
    places = [np.array(order.inverse().indices) for order in orders]
    upper = np.triu_indices(len(orders[0]), 1)
    signs = [np.sign(place[:, None] - place[None, :])[upper] for place in places]
    return float(np.mean([(a == b).mean() for n, a in enumerate(signs) for b in signs[:n]]))
