"""Construct the order instead of enumerating it: ask the routed profiler what each target is computed from.

One short run of the routed model gives the loss of any target given any others. Two constructions are read off it:
greedily (emit next the target of least loss), and by the graph of pairwise gains (strongest edges first, those that
would close a cycle left out), whose topological sort is completed greedily. The losses of whole orders under the same
model, with their standard errors, rank them. If the two disagree beyond the noise, or nothing has been learnt yet, the
model trains on. At last it trains for a while in the order found, paying for what it reads, so that it shows what each
target is computed from and nothing else; two more sorts of that graph go to the race, which learnability may prefer.
"""

import copy
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, combinations
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, final

from genorder.analysis import pairs_in_sequence
from genorder.errors import InputError
from genorder.models.routed import RoutedModel
from genorder.orders import Order
from genorder.profiling.any_order import AnyOrderConfig, AnyOrderOracle, fit_any_order, routed_model
from genorder.profiling.dependencies import dependencies
from genorder.search.base import (
    MOST_PROPOSALS,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    SearchProblem,
    SearchResult,
    Stage,
)
from genorder.search.graph_sorts import topological_sorts
from genorder.search.reading import blind_loss, proposals, read, reading_to_dict
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import CheckpointFolder, marginal_seconds


@final
@dataclass(frozen=True)
class AnyOrder(OwnModelSearch):
    name: ClassVar[str] = "any-order"
    finalists: ClassVar[int] = 4

    restarts: int = 1  # models from different seeds
    rounds: int = 3  # trainings of a model, each twice as long as the one before, as long as it is not settled

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.rounds < 1:
            raise InputError(f"any-order: restarts {self.restarts}, rounds {self.rounds}; expected at least 1 each")

    def check(self, problem: SearchProblem) -> None:
        if len(problem.validation) < 2:
            raise InputError(f"any-order needs 2 validation samples or more; received {len(problem.validation)}")

    def seconds_per_step(self, problem: SearchProblem) -> float:
        def seconds(steps: int) -> float:
            training = problem.any_order.training.model_copy(update={"steps": steps})
            short = problem.any_order.model_copy(update={"training": training})
            return fit_any_order(routed_model(problem.train, short, seed=0), problem.train, short, seed=0)

        return marginal_seconds(seconds, budget=1.0)

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        config, share = problem.any_order, self._share(problem)
        first, *more = self._round_steps(config, share)
        settled, longest = (
            steps + config.graph_steps * _fits(steps + config.graph_steps, share)
            for steps in (first, first + sum(more))
        )
        return [
            PlannedRun(f"any-order {number + 1}", self._orders(problem), settled, max(0, longest - settled))
            for number in range(self._models(problem))
        ]

    def _models(self, problem: SearchProblem) -> int:
        return 0 if problem.only_order else min(self.restarts, problem.budget.runs or self.restarts)

    def _share(self, problem: SearchProblem) -> int | None:
        """The steps that each model may take, where they are limited."""
        steps, models = problem.budget.steps, self._models(problem)
        return None if steps is None or not models else max(1, steps // models)

    def _round_steps(self, config: AnyOrderConfig, share: int | None) -> list[int]:
        """Of each training of one model, as long as it is not settled: those that fit, and the first in any case."""
        rounds = [config.training.steps * 2**number for number in range(self.rounds)]
        rounds[0] = rounds[0] if share is None else min(rounds[0], share)
        return [steps for steps, total in zip(rounds, accumulate(rounds), strict=True) if _fits(total, share)]

    def _orders(self, problem: SearchProblem) -> int:
        """Compared under one model, at most: two constructions, the best two of the round before, two more sorts."""
        orders = 4 if self.rounds == 1 else 6
        return min(orders, problem.budget.candidates or orders)

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.only_order:
            return SearchResult([Proposal(problem.only_order)], [])
        models = [self._profile(problem, number) for number in range(self._models(problem))]
        best = min(models, key=lambda model: model["proposals"][0]["loss"])
        proposals = [
            replace(Proposal.from_dict(row), tied=row["tied_with_best"] and model is best)  # not under another model
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
        problem.spend_run(name)
        folder = problem.folder_of(name, described)
        found = problem.timed(name, described, lambda: self._work(problem, name, seed, folder))
        shutil.rmtree(folder, ignore_errors=True)
        best = [Proposal.from_dict(row) for row in found["proposals"]]
        seconds = {"train": found["train_seconds"], "construct": found["construct_seconds"]}
        problem.finish_stage(Stage(name, found["constructed"], len(best), best, seconds))
        return found

    def _work(self, problem: SearchProblem, name: str, seed: int, folder: Path) -> dict[str, Any]:
        config = problem.any_order
        model = routed_model(problem.train, config, seed)
        steps, seconds, constructing = 0, 0.0, 0.0
        blind = blind_loss(problem.train, problem.validation.head(config.validation_samples))
        earlier: list[Order] = []
        before: float | None = None
        share = self._share(problem)
        for number, wanted in enumerate(self._round_steps(config, share)):
            training = config.training.model_copy(update={"steps": wanted})
            short = config.model_copy(update={"training": training})
            seconds += _trained(
                problem, model, short, f"{name}, round {number + 1}",
                derive_seed(seed, "round", number), folder / str(number),
            )  # fmt: skip
            steps += training.steps
            started = time.monotonic()
            oracle = AnyOrderOracle(model, problem.validation, config.validation_samples)
            rng = numpy_generator(derive_seed(seed, "random orders"))
            reading = read(oracle, earlier, before, rng, problem.constraints, blind)
            constructing += time.monotonic() - started
            if reading.settled:
                break
            earlier, before = reading.orders[: max(0, min(2, self._orders(problem) - 2))], reading.best
        best = reading.orders[0]
        sparse = copy.deepcopy(model)
        if reading.learnt and _fits(steps + config.graph_steps, share):
            seconds += self._sparsen(
                problem, sparse, best, f"{name}, graph", derive_seed(seed, "graph"), folder / "graph"
            )
        started = time.monotonic()
        graph = dependencies(AnyOrderOracle(sparse, problem.validation, config.validation_samples), best)
        others = topological_sorts(best, graph, problem.constraints) if reading.learnt else []
        rows = proposals(reading, oracle, others)[: self._orders(problem)]
        return {
            **reading_to_dict(reading, oracle),
            "proposals": rows,
            "constructed": len(rows),
            "dependencies": [asdict(dependency) for dependency in graph],
            "train_seconds": seconds,
            "construct_seconds": constructing + time.monotonic() - started,
            "steps": steps,
        }

    def _sparsen(
        self, problem: SearchProblem, model: RoutedModel, order: Order, name: str, seed: int, folder: Path
    ) -> float:
        """Let each target read only what it is computed from, when they are emitted in this order."""
        config = problem.any_order
        training = config.training.model_copy(update={"steps": config.graph_steps})
        short = config.model_copy(update={"training": training})
        return _trained(problem, model, short, name, seed, folder, order) if config.graph_steps else 0.0


def _fits(steps: int, share: int | None) -> bool:
    return share is None or steps <= share


def _trained(
    problem: SearchProblem,
    model: RoutedModel,
    config: AnyOrderConfig,
    name: str,
    seed: int,
    folder: Path,
    order: Order | None = None,
) -> float:
    """Train the model in place for one round; what an interrupted run had done of it is not done again."""
    on_progress = problem.on_progress
    return fit_any_order(
        model,
        problem.train,
        config,
        seed=seed,
        checkpoints=CheckpointFolder(folder),
        on_progress=(lambda progress: on_progress(name, progress)) if on_progress else None,
        stop=problem.stop,
        order=order,
    )


def _agreement(orders: Sequence[Order]) -> float:
    """Of every two models' orders, the mean; 1.0 for one model."""
    return fmean([pairs_in_sequence(one, other) for one, other in combinations(orders, 2)] or [1.0])
