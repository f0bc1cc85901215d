"""The trainings of an any-order search, one after the other until it is settled, and what is read off each of them."""

import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from genorder.dependencies.graph import TargetDependency
from genorder.models.routed import RoutedModel
from genorder.orders import Order
from genorder.profiling.any_order import AnyOrderConfig, AnyOrderOracle, fit_any_order, routed_model, with_steps
from genorder.profiling.dependencies import learned_dependencies
from genorder.profiling.unigram import unigram_loss
from genorder.search.base import SearchProblem
from genorder.search.diagnosis import Diagnosis, diagnosis_to_dict, proposals, read
from genorder.search.linearise import linearise
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import CheckpointFolder, ProgressReporter

SORTS = 3  # of the graph, that are proposed


def fits(steps: int, share: int | None) -> bool:
    return share is None or steps <= share


@final
class TrainingSchedule:
    """Of one search, with its steps and seconds so far. No more than `share` steps are taken, if there is one."""

    def __init__(
        self,
        problem: SearchProblem,
        name: str,
        seed: int,
        folder: Path,
        share: int | None,
    ) -> None:
        self._problem, self._name, self._seed, self._folder, self._share = problem, name, seed, folder, share
        self._config = problem.any_order
        self._blind = unigram_loss(problem.train, problem.validation.head(self._config.validation_samples))
        self._model = routed_model(problem.train, self._config, seed)
        self._steps, self._training, self._constructing = 0, 0.0, 0.0
        self._watch = ProgressReporter(problem.on_progress, problem.stop)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.monotonic()
        yield
        self._constructing += time.monotonic() - started

    def run(self, planned: Sequence[int], most_orders: int) -> dict[str, Any]:
        """Train in rounds of so many steps, until it is settled; then what was found, with at most so many orders."""
        reading: Diagnosis | None = None
        for number, steps in enumerate(planned):
            if steps and fits(self._steps + steps, self._share):
                reading = self._take(steps, number, reading, most_orders)
                if reading.settled:
                    break
        assert reading is not None  # the first round always fits
        return self._found(reading, most_orders)

    def _take(self, steps: int, number: int, last: Diagnosis | None, most_orders: int) -> Diagnosis:
        options = self._options(f"round {number + 1}", derive_seed(self._seed, "round", number), str(number))
        own = with_steps(self._config, steps)
        self._training += fit_any_order(self._model, self._problem.train, own, **options)
        self._steps += steps
        with self._timed():
            rng = numpy_generator(derive_seed(self._seed, "random orders"))
            earlier = last.orders[: max(0, min(2, most_orders - 2))] if last else []
            before = last.best if last else None
            return read(self._oracle(self._model), earlier, before, rng, self._problem.constraints, self._blind)

    def _oracle(self, model: RoutedModel) -> AnyOrderOracle:
        return AnyOrderOracle(model, self._problem.validation, self._config.validation_samples, self._watch)

    def _found(self, reading: Diagnosis, most_orders: int) -> dict[str, Any]:
        oracle, best = self._oracle(self._model), reading.orders[0]
        graph = self._graph(reading)
        with self._timed():
            others: list[Order] = []
            if reading.learnt:
                rng = numpy_generator(derive_seed(self._seed, "sorts"))
                parents = [one.targets for one in sorted(graph, key=lambda one: one.target)]
                others = linearise(parents, best, self._problem.constraints, rng, most=SORTS, report=self._watch)
            rows = proposals(reading, oracle, others)
            # What else was read off this model comes last: sorts of its graph are more worth a race.
            own = len(reading.orders)
            first = min(own, 2)
            rows = [*rows[:first], *rows[own:], *rows[first:own]][:most_orders]
        return {
            **diagnosis_to_dict(reading, oracle),
            "proposals": rows,
            "constructed": len(rows),
            "dependencies": [dependency.to_dict() for dependency in graph],
            "train_seconds": self._training,
            "construct_seconds": self._constructing,
            "steps": self._steps,
        }

    def _graph(self, reading: Diagnosis) -> list[TargetDependency]:
        """Read off the model after some more training in the order, in which each target pays for what it reads."""
        config, best = self._config, reading.orders[0]
        sparse = copy.deepcopy(self._model)
        if reading.learnt and config.graph_steps and fits(self._steps + config.graph_steps, self._share):
            options = self._options("graph", derive_seed(self._seed, "graph"), "graph")
            own = with_steps(config, config.graph_steps)
            self._training += fit_any_order(sparse, self._problem.train, own, order=best, **options)
        with self._timed():
            return learned_dependencies(self._oracle(sparse), best)

    def _options(self, part: str, seed: int, folder: str) -> dict[str, Any]:
        """Of a training; what an interrupted run had done of it is not done again."""
        name, on_progress = f"{self._name}, {part}", self._problem.on_progress
        return {
            "seed": seed,
            "checkpoints": CheckpointFolder(self._folder / folder),
            "on_progress": (lambda progress: on_progress(name, progress)) if on_progress else None,
            "stop": self._problem.stop,
        }


def planned_phases(config: AnyOrderConfig, rounds: int, share: int | None) -> list[int]:
    """Steps of each round, as long as the answer is not settled and they fit; the first in any case."""
    first, *more = (config.training.steps * 2**number for number in range(rounds))
    return [first if share is None else min(first, share), *more]
