"""Construct the order instead of enumerating it: a routed model shows what each target is computed from.

One short training of the routed model gives the loss of any target given any others. The order is constructed greedily:
emit next the target of least loss; its reverse is tried too. If much is left to predict and the loss is still falling,
the model trains for another phase, twice as long as the one before. Finally it trains in the order found, with a
penalty on each position that it reads, so that it reads only what each target is computed from. Topological sorts of
that graph are proposed too (see linearise.py).
"""

import copy
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, final

from genorder.analysis import pairs_in_sequence
from genorder.dependencies.graph import TargetDependency
from genorder.errors import InputError
from genorder.models.routed import RoutedModel
from genorder.orders import Order
from genorder.profiling.any_order import AnyOrderConfig, fit_any_order, routed_model, with_steps
from genorder.profiling.oracle import AnyOrderOracle, learned_dependencies
from genorder.profiling.unigram import unigram_loss
from genorder.search.base import (
    MOST_PROPOSALS,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    SearchDetails,
    SearchProblem,
    SearchResult,
    Stage,
    Verdict,
)
from genorder.search.diagnosis import Diagnosis, OrderLosses, diagnose
from genorder.search.linearise import linearise
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import CheckpointFolder, ProgressReporter, marginal_seconds

_SORTS = 3  # topological sorts of the graph that are proposed
_EARLIER = 2  # best orders of the phase before that are compared again
_PASSES_PER_TARGET = 1.0  # measurements of all targets' losses while constructing: as many as in some real runs


@final
@dataclass(frozen=True, kw_only=True)
class AnyOrderDetails(SearchDetails):
    losses: OrderLosses
    steps: int  # of training in random orders, by the best model
    agreement: float  # of the models' orders: the mean share of pairs of targets in the same sequence

    def to_dict(self) -> dict[str, object]:
        return {**super().to_dict(), **self.measurements()}

    def measurements(self) -> dict[str, Any]:
        return {"losses": self.losses.to_dict(), "steps": self.steps, "agreement": self.agreement}


@final
@dataclass(frozen=True)
class AnyOrder(OwnModelSearch):
    name: ClassVar[str] = "any-order"
    finalists: ClassVar[int] = 4

    restarts: int = 1  # models from different seeds
    rounds: int = 3  # phases of a model's training, at most; it ends earlier once the model has converged

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.rounds < 1:
            raise InputError(f"any-order: restarts {self.restarts}, rounds {self.rounds}; expected at least 1 each")

    def check(self, problem: SearchProblem) -> None:
        if len(problem.validation) < 2:
            raise InputError(f"any-order needs 2 validation samples or more; received {len(problem.validation)}")

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        schedule = self._schedule(problem)
        return [
            PlannedRun(f"any-order {number + 1}", self._orders(problem), schedule.shortest, schedule.more)
            for number in range(self._models(problem))
        ]

    def seconds_per_step(self, problem: SearchProblem) -> float:
        seed = derive_seed(problem.seed, "estimate")

        def seconds(steps: int) -> float:
            short = with_steps(problem.any_order, steps)
            return fit_any_order(routed_model(problem.train, short, seed), problem.train, short, seed=seed)

        return marginal_seconds(seconds, budget=1.0)

    def seconds_besides(self, problem: SearchProblem) -> float:
        """Estimated from the time of a few measurements of all targets' losses."""
        if problem.only_order:
            return 0.0
        config = problem.any_order
        seed = derive_seed(problem.seed, "estimate")
        model = routed_model(problem.train, config, seed)
        oracle = AnyOrderOracle(model, problem.validation, config.validation_samples, seed=seed)

        def seconds() -> float:
            started = time.monotonic()
            oracle.given([])
            return time.monotonic() - started

        return self._models(problem) * _PASSES_PER_TARGET * problem.length * min(seconds() for _ in range(3))

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.only_order:
            return SearchResult([Proposal(problem.only_order)], [])
        proposals, details = self.learn(problem)
        return SearchResult(proposals, problem.stages, details)

    def learn(self, problem: SearchProblem) -> tuple[list[Proposal], AnyOrderDetails]:
        """Train the models, and rank their orders. Expects more than one allowed order."""
        models = [self._train(problem, number) for number in range(self._models(problem))]
        best = min(models, key=lambda model: model.losses.best)
        # The first order of each model precedes the other orders of the best, so that all models are in the race. Only
        # orders of one model can be tied.
        ranked = [best, *(model for model in models if model is not best)]
        rows = [(model, model.proposals[0]) for model in ranked]
        rows += [(model, proposal) for model in ranked for proposal in model.proposals[1:]]
        unique: dict[Order, Proposal] = {}
        for model, proposal in rows:
            unique.setdefault(proposal.order, replace(proposal, tied=proposal.tied and model is best))
        first_orders = [model.proposals[0].order for model in models]
        details = AnyOrderDetails(
            verdict=best.verdict,
            advice=best.advice,
            dependencies=best.dependencies,
            losses=best.losses,
            steps=best.steps,
            agreement=_agreement(first_orders),
        )
        return list(unique.values())[:MOST_PROPOSALS], details

    def _models(self, problem: SearchProblem) -> int:
        return 0 if problem.only_order else min(self.restarts, problem.budget.runs or self.restarts)

    def _schedule(self, problem: SearchProblem) -> "TrainingSchedule":
        steps, models = problem.budget.steps, self._models(problem)
        limit = None if steps is None or not models else max(1, steps // models)
        return TrainingSchedule.doubling(problem.any_order, self.rounds, limit)

    def _orders(self, problem: SearchProblem) -> int:
        """The most orders that are compared under one model."""
        orders = 2 + _EARLIER * (self.rounds > 1) + _SORTS
        return min(orders, problem.budget.candidates or orders)

    def _train(self, problem: SearchProblem, number: int) -> "TrainedOracle":
        """One model, from its first phase to its graph; from the journal if it was done before."""
        name, most_orders = f"any-order {number + 1}", self._orders(problem)
        described = {
            "search": vars(self),
            "any_order": problem.any_order.model_dump(),
            "model": number,
            "steps": problem.budget.steps,
            "orders": most_orders,
        }
        problem.spend_run(name)
        folder = problem.folder_of(name, described)

        def work() -> Mapping[str, object]:
            seed = derive_seed(problem.seed, "any-order", number)
            return OracleTraining(problem, name, seed, folder, self._schedule(problem), most_orders).run().to_dict()

        trained = TrainedOracle.from_dict(problem.timed(name, described, work))
        shutil.rmtree(folder, ignore_errors=True)
        count = len(trained.proposals)
        seconds = {"train": trained.train_seconds, "construct": trained.construct_seconds}
        problem.finish_stage(Stage(name, count, count, trained.proposals, seconds))
        return trained


@final
@dataclass(frozen=True)
class TrainingSchedule:
    """The planned training of one model, in steps: phases until it has converged, then training for the graph."""

    phases: tuple[int, ...]  # the first always fits the limit
    graph_steps: int
    limit: int | None  # of all steps together

    @classmethod
    def doubling(cls, config: AnyOrderConfig, phases: int, limit: int | None) -> "TrainingSchedule":
        """Phases of which each is twice as long as the one before."""
        first, *more = (config.training.steps * 2**number for number in range(phases))
        return cls((first if limit is None else min(first, limit), *more), config.graph_steps, limit)

    def allows(self, steps: int) -> bool:
        return self.limit is None or steps <= self.limit

    @property
    def shortest(self) -> int:
        """The steps of a model that converges in the first phase."""
        return self._with_graph(self.phases[0])

    @property
    def more(self) -> int:
        """The steps that a model may take beyond the shortest training."""
        first, *later = self.phases
        most = first + sum(steps for steps in later if self.allows(first + steps))
        return max(0, self._with_graph(most if self.limit is None else min(most, self.limit)) - self.shortest)

    def _with_graph(self, steps: int) -> int:
        return steps + self.graph_steps * self.allows(steps + self.graph_steps)


@final
@dataclass(frozen=True, kw_only=True)
class TrainedOracle:
    """What one trained model says, as the journal keeps it."""

    verdict: Verdict
    advice: str
    losses: OrderLosses
    proposals: list[Proposal]
    dependencies: list[TargetDependency]
    train_seconds: float
    construct_seconds: float
    steps: int  # of training in random orders

    def to_dict(self) -> dict[str, object]:
        return {
            "verdict": self.verdict,
            "advice": self.advice,
            "losses": self.losses.to_dict(),
            "proposals": [proposal.to_dict() for proposal in self.proposals],
            "constructed": len(self.proposals),
            "dependencies": [dependency.to_dict() for dependency in self.dependencies],
            "train_seconds": self.train_seconds,
            "construct_seconds": self.construct_seconds,
            "steps": self.steps,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "TrainedOracle":
        return cls(
            verdict=saved["verdict"],
            advice=saved["advice"],
            losses=OrderLosses.from_dict(saved["losses"]),
            proposals=[Proposal.from_dict(row) for row in saved["proposals"]],
            dependencies=[TargetDependency.from_dict(row) for row in saved["dependencies"]],
            train_seconds=saved["train_seconds"],
            construct_seconds=saved["construct_seconds"],
            steps=saved["steps"],
        )


@final
class OracleTraining:
    """The training of one model by its schedule, with a diagnosis after each phase."""

    def __init__(
        self,
        problem: SearchProblem,
        name: str,
        seed: int,
        folder: Path,
        schedule: TrainingSchedule,
        most_orders: int,
    ) -> None:
        self._problem, self._name, self._seed, self._folder = problem, name, seed, folder
        self._schedule, self._most_orders = schedule, most_orders
        self._config = problem.any_order
        self._unigram = unigram_loss(problem.train, problem.validation.head(self._config.validation_samples))
        self._model = routed_model(problem.train, self._config, seed)
        self._steps, self._train_seconds, self._construct_seconds = 0, 0.0, 0.0
        self._report = ProgressReporter(problem.on_progress, problem.stop)

    def run(self) -> TrainedOracle:
        """Train phase by phase until the model has converged; then construct its graph and its orders."""
        diagnosis: Diagnosis | None = None
        for number, steps in enumerate(self._schedule.phases):
            if steps and self._schedule.allows(self._steps + steps):
                diagnosis = self._phase(number, steps, diagnosis)
                if diagnosis.converged:
                    break
        assert diagnosis is not None  # the first phase always fits
        graph = self._graph(diagnosis)
        oracle = self._oracle(self._model)
        with self._constructing():
            sorts: list[Order] = []
            if diagnosis.beats_baseline:
                rng = numpy_generator(derive_seed(self._seed, "sorts"))
                parents = [one.targets for one in sorted(graph, key=lambda one: one.target)]
                sorts = linearise(
                    parents,
                    diagnosis.orders[0],
                    self._problem.constraints,
                    rng,
                    most=_SORTS,
                    report=self._report,
                )
            proposals = diagnosis.proposals(oracle, sorts)
            # Two constructed orders, then the sorts: they are more worth a race than further constructed orders.
            constructed = len(diagnosis.orders)
            first = min(constructed, 2)
            proposals = [*proposals[:first], *proposals[constructed:], *proposals[first:constructed]]
        verdict, advice = diagnosis.verdict
        return TrainedOracle(
            verdict=verdict,
            advice=advice,
            losses=diagnosis.losses(oracle),
            proposals=proposals[: self._most_orders],
            dependencies=graph,
            train_seconds=self._train_seconds,
            construct_seconds=self._construct_seconds,
            steps=self._steps,
        )

    def _phase(self, number: int, steps: int, last: Diagnosis | None) -> Diagnosis:
        seed = derive_seed(self._seed, "round", number)
        self._fit(self._model, steps, f"round {number + 1}", seed, self._folder / str(number))
        self._steps += steps
        with self._constructing():
            return diagnose(
                self._oracle(self._model),
                last=last,
                kept=max(0, min(_EARLIER, self._most_orders - 2)),
                rng=numpy_generator(derive_seed(self._seed, "random orders")),
                constraints=self._problem.constraints,
                unigram=self._unigram,
            )

    def _graph(self, diagnosis: Diagnosis) -> list[TargetDependency]:
        """What each target is computed from, after some training in the best order with a penalty on reading.

        If that training does not fit the limit, or the model has learned nothing, the model is used as it is.
        """
        steps, best = self._config.graph_steps, diagnosis.orders[0]
        sparse = copy.deepcopy(self._model)
        if diagnosis.beats_baseline and steps and self._schedule.allows(self._steps + steps):
            self._fit(sparse, steps, "graph", derive_seed(self._seed, "graph"), self._folder / "graph", best)
        with self._constructing():
            return learned_dependencies(self._oracle(sparse), best)

    def _fit(
        self, model: RoutedModel, steps: int, part: str, seed: int, folder: Path, order: Order | None = None
    ) -> None:
        self._train_seconds += fit_any_order(
            model,
            self._problem.train,
            with_steps(self._config, steps),
            seed=seed,
            checkpoints=CheckpointFolder(folder),
            on_progress=self._problem.progress_of(f"{self._name}, {part}"),
            stop=self._problem.stop,
            order=order,
        )

    def _oracle(self, model: RoutedModel) -> AnyOrderOracle:
        return AnyOrderOracle(
            model,
            self._problem.validation,
            self._config.validation_samples,
            seed=self._seed,
            reporter=self._report,
        )

    @contextmanager
    def _constructing(self) -> Iterator[None]:
        started = time.monotonic()
        yield
        self._construct_seconds += time.monotonic() - started


def _agreement(orders: Sequence[Order]) -> float:
    """The mean agreement of every two orders; 1.0 for one order."""
    return fmean([pairs_in_sequence(one, other) for one, other in combinations(orders, 2)] or [1.0])
