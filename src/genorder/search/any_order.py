"""Construct the order instead of enumerating it: ask the routed profiler what each target is computed from.

One short run of the routed model gives the loss of any target given any others. The order is constructed greedily: emit
next the target of least loss; its reverse is tried too. As long as much is left to predict and the loss is falling, the
model trains on, twice as long each time. At last it trains for a while in the order found, paying for what it reads, so
that it shows what each target is computed from and nothing else; sorts of that graph go to the race (see linearise.py).
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, final

from genorder.analysis import pairs_in_sequence
from genorder.errors import InputError
from genorder.orders import Order
from genorder.profiling.any_order import AnyOrderOracle, fit_any_order, routed_model, with_steps
from genorder.search.base import (
    MOST_PROPOSALS,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    SearchProblem,
    SearchResult,
    Stage,
)
from genorder.search.schedule import SORTS, TrainingSchedule, fits, planned_phases
from genorder.seeding import derive_seed
from genorder.training import marginal_seconds

_PASSES_PER_TARGET = 1.0  # over all targets, to read what a trained model says: as long as they took in some runs


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
            short = with_steps(problem.any_order, steps)
            return fit_any_order(routed_model(problem.train, short, seed=0), problem.train, short, seed=0)

        return marginal_seconds(seconds, budget=1.0)

    def seconds_besides(self, problem: SearchProblem) -> float:
        if problem.only_order:
            return 0.0
        return self._models(problem) * self._constructing_seconds(problem)

    def _constructing_seconds(self, problem: SearchProblem) -> float:
        """By the time that the losses of all targets take, of which there are some for each target."""
        config = problem.any_order
        oracle = AnyOrderOracle(routed_model(problem.train, config, 0), problem.validation, config.validation_samples)

        def passing() -> float:
            started = time.monotonic()
            oracle.given([])
            return time.monotonic() - started

        return _PASSES_PER_TARGET * problem.length * min(passing() for _ in range(3))

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        config, share = problem.any_order, self._share(problem)
        first, *more = self._rounds(problem)
        most = first + sum(steps for steps in more if fits(first + steps, share))
        settled, longest = (
            steps + config.graph_steps * fits(steps + config.graph_steps, share)
            for steps in (first, most if share is None else min(most, share))
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

    def _rounds(self, problem: SearchProblem) -> list[int]:
        return planned_phases(problem.any_order, self.rounds, self._share(problem))

    def _orders(self, problem: SearchProblem) -> int:
        """Compared under one model, at most: greedy, its reverse, two of the round before, sorts of the graph."""
        orders = 2 + 2 * (self.rounds > 1) + SORTS
        return min(orders, problem.budget.candidates or orders)

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.only_order:
            return SearchResult([Proposal(problem.only_order)], [])
        models = [self._profile(problem, number) for number in range(self._models(problem))]
        best = min(models, key=lambda model: model["proposals"][0]["loss"])
        ranked = (best, *(model for model in models if model is not best))
        # The first of each model, before others of the best: all of them are raced.
        rows = [(model, row) for model in ranked for row in model["proposals"][:1]]
        rows += [(model, row) for model in ranked for row in model["proposals"][1:]]
        proposals = [
            replace(Proposal.from_dict(row), tied=row["tied_with_best"] and model is best)  # not under another model
            for model, row in rows
        ]
        unique: dict[Order, Proposal] = {}
        for proposal in proposals:
            unique.setdefault(proposal.order, proposal)
        told = ("verdict", "advice", "dependencies", "losses", "steps")
        details = {name: best[name] for name in told if name in best}
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
        found = problem.timed(name, described, lambda: self._train(problem, name, seed, folder))
        shutil.rmtree(folder, ignore_errors=True)
        best = [Proposal.from_dict(row) for row in found["proposals"]]
        seconds = {"train": found["train_seconds"], "construct": found["construct_seconds"]}
        problem.finish_stage(Stage(name, found["constructed"], len(best), best, seconds))
        return found

    def _train(self, problem: SearchProblem, name: str, seed: int, folder: Path) -> dict[str, Any]:
        rounds = TrainingSchedule(problem, name, seed, folder, self._share(problem))
        return rounds.run(self._rounds(problem), self._orders(problem))


def _agreement(orders: Sequence[Order]) -> float:
    """Of every two models' orders, the mean; 1.0 for one model."""
    return fmean([pairs_in_sequence(one, other) for one, other in combinations(orders, 2)] or [1.0])
