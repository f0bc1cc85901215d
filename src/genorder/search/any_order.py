"""Construct the order instead of enumerating it: ask the routed profiler what each target is computed from.

One short run of the routed model gives the loss of any target given any others. Two constructions are read off it:
greedily (emit next the target of least loss), and by the graph of pairwise gains (strongest edges first, those that
would close a cycle left out), whose topological sort is completed greedily. The losses of whole orders under the same
model, with their standard errors, rank them. If the two agree on an order that matters, but much is left to predict,
the model trains on. If they disagree beyond the noise, or nothing has been learnt yet, another model works outwards
from the inputs (see profiling/outward.py), then one that can also follow a pointer from one token to another; if
neither gets there, the first trains on. At last the best of them trains for a while in the order found, paying for what
it reads, so that it shows what each target is computed from and nothing else; two more sorts of that graph go to the
race, as learnability may differ.
"""

import copy
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, final

from genorder.analysis import pairs_in_sequence
from genorder.errors import InputError
from genorder.models.routed import RoutedModel
from genorder.orders import Order
from genorder.profiling.any_order import AnyOrderConfig, AnyOrderOracle, fit_any_order, routed_model, with_steps
from genorder.profiling.blind import blind_loss, blind_losses
from genorder.profiling.dependencies import dependencies
from genorder.profiling.margins import emissions
from genorder.profiling.outward import fit_outward
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
from genorder.search.reading import Reading, chosen, proposals, read, read_outward, reading_to_dict
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import CheckpointFolder, marginal_seconds


@final
@dataclass(frozen=True)
class AnyOrder(OwnModelSearch):
    name: ClassVar[str] = "any-order"
    finalists: ClassVar[int] = 4

    restarts: int = 1  # models from different seeds
    rounds: int = 3  # trainings of a model, each twice as long as the one before, as long as it is not settled
    outward: bool = True  # after the first of them, two other models work outwards from the inputs

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

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        config, share = problem.any_order, self._share(problem)
        first, *more = (planned.steps for planned in self._rounds(config, share))
        most = first + sum(steps for steps in more if _fits(first + steps, share))
        settled, longest = (
            steps + config.graph_steps * _fits(steps + config.graph_steps, share)
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

    def _rounds(self, config: AnyOrderConfig, share: int | None) -> list["_Round"]:
        """The trainings, as long as the answer is not settled and they fit; the first in any case."""
        first, *more = (_Round(config.training.steps * 2**number) for number in range(self.rounds))
        pointers = [True] if config.model.pointer else [False, True]
        most = config.outward_training().steps
        outward = [_Round(most, outward=True, pointer=pointer) for pointer in pointers]
        return [
            first if share is None else _Round(min(first.steps, share)), *(outward if self.outward else []), *more
        ]  # fmt: skip

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
        told = ("verdict", "advice", "dependencies", "emissions", "gains", "losses", "steps")
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
        found = problem.timed(name, described, lambda: self._work(problem, name, seed, folder))
        shutil.rmtree(folder, ignore_errors=True)
        best = [Proposal.from_dict(row) for row in found["proposals"]]
        seconds = {"train": found["train_seconds"], "construct": found["construct_seconds"]}
        problem.finish_stage(Stage(name, found["constructed"], len(best), best, seconds))
        return found

    def _work(self, problem: SearchProblem, name: str, seed: int, folder: Path) -> dict[str, Any]:
        config, share = problem.any_order, self._share(problem)
        model = routed_model(problem.train, config, seed)
        guessed = problem.validation.head(config.validation_samples)
        blind = blind_loss(problem.train, guessed)
        steps, seconds, constructing = 0, 0.0, 0.0
        last: Reading | None = None  # off the model that trains in random orders
        readings: dict[Reading, AnyOrderOracle] = {}
        left = self._rounds(config, share)
        for number in range(len(left)):
            planned = _next_of(left, last)
            if not _fits(steps + planned.steps, share):
                continue
            kind = "outward" if planned.outward else "random"
            part = _Part(
                problem,
                f"{name}, round {number + 1}",
                derive_seed(seed, "round", number),
                folder / f"{number}-{kind}",
            )
            if planned.outward:
                own = config.model_copy(update={"model": config.model.model_copy(update={"pointer": planned.pointer})})
                trained = routed_model(problem.train, own, derive_seed(seed, "outward", number))
                known, taken, spent = part.fit_outward(trained, own)
            else:
                trained, taken = model, planned.steps
                spent = part.fit(trained, with_steps(config, planned.steps))
            steps, seconds = steps + taken, seconds + spent
            started = time.monotonic()
            oracle = AnyOrderOracle(trained, problem.validation, config.validation_samples)
            if planned.outward:
                assert last is not None  # the first round is in random orders
                random_CN = last.others_CN.mean(axis=0)[None]
                blind_L = blind_losses(problem.train, guessed)
                reading = read_outward(oracle, known, problem.constraints, blind_L, blind, random_CN)
            else:
                rng = numpy_generator(derive_seed(seed, "random orders"))
                earlier = last.orders[: max(0, min(2, self._orders(problem) - 2))] if last else []
                reading = read(oracle, earlier, last.best if last else None, rng, problem.constraints, blind)
                if last:
                    readings.pop(last)  # the model is another by now
                last = reading
            constructing += time.monotonic() - started
            readings[reading] = oracle
            reading = chosen(list(readings))
            if reading.settled:
                break
        oracle, best = readings[reading], reading.orders[0]
        sparse = copy.deepcopy(oracle.model)
        if reading.learnt and config.graph_steps and _fits(steps + config.graph_steps, share):
            part = _Part(problem, f"{name}, graph", derive_seed(seed, "graph"), folder / "graph")
            seconds += part.fit(sparse, with_steps(config, config.graph_steps), best)
        started = time.monotonic()
        graph = dependencies(AnyOrderOracle(sparse, problem.validation, config.validation_samples), best)
        others = [other.orders[0] for other in readings if other is not reading and other.learnt]
        others += topological_sorts(best, graph, problem.constraints) if reading.learnt else []
        rows = proposals(reading, oracle, others)[: self._orders(problem)]
        return {
            **reading_to_dict(reading, oracle),
            "proposals": rows,
            "constructed": len(rows),
            "dependencies": [asdict(dependency) for dependency in graph],
            "emissions": [asdict(emission) for emission in emissions(oracle, best)],
            "train_seconds": seconds,
            "construct_seconds": constructing + time.monotonic() - started,
            "steps": steps,
        }


@final
@dataclass(frozen=True)
class _Round:
    steps: int  # at most, if it works outwards
    outward: bool = False
    pointer: bool = False  # of the model


@final
@dataclass(frozen=True)
class _Part:
    """One training of a search; what an interrupted run had done of it is not done again."""

    problem: SearchProblem
    name: str
    seed: int
    folder: Path

    def fit(self, model: RoutedModel, config: AnyOrderConfig, order: Order | None = None) -> float:
        """Train the model in place; the seconds it took."""
        return fit_any_order(model, self.problem.train, config, order=order, **self._options())

    def fit_outward(self, model: RoutedModel, config: AnyOrderConfig) -> tuple[list[int], int, float]:
        return fit_outward(model, self.problem.train, self.problem.validation, config, **self._options())

    def _options(self) -> dict[str, Any]:
        on_progress = self.problem.on_progress
        return {
            "seed": self.seed,
            "checkpoints": CheckpointFolder(self.folder),
            "on_progress": (lambda progress: on_progress(self.name, progress)) if on_progress else None,
            "stop": self.problem.stop,
        }


def _next_of(left: list[_Round], last: Reading | None) -> _Round:
    """Taken off those left: in random orders if the last of these is promising, otherwise one that works outwards."""
    outward = last is not None and not last.promising
    planned = next((planned for planned in left if planned.outward == outward), left[0])
    left.remove(planned)
    return planned


def _fits(steps: int, share: int | None) -> bool:
    return share is None or steps <= share


def _agreement(orders: Sequence[Order]) -> float:
    """Of every two models' orders, the mean; 1.0 for one model."""
    return fmean([pairs_in_sequence(one, other) for one, other in combinations(orders, 2)] or [1.0])
