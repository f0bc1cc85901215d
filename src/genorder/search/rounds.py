"""The trainings of an any-order search, one after the other until it is settled, and what is read off each of them."""

import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from genorder.dependencies.graph import TargetDependency
from genorder.models.routed import RoutedModel
from genorder.profiling.any_order import AnyOrderConfig, AnyOrderOracle, fit_any_order, routed_model, with_steps
from genorder.profiling.blind import blind_loss, blind_losses
from genorder.profiling.dependencies import learned_dependencies
from genorder.profiling.margins import emissions
from genorder.profiling.outward import fit_outward
from genorder.search.base import SearchProblem
from genorder.search.linearise import linearise
from genorder.search.reading import Reading, chosen, proposals, read, read_outward, reading_to_dict
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import CheckpointFolder, ProgressReporter


@final
@dataclass(frozen=True)
class Round:
    steps: int  # at most, if it works outwards
    kind: str = "random"  # orders; or "outward" from the inputs
    pointer: bool = False  # of the model


def fits(steps: int, share: int | None) -> bool:
    return share is None or steps <= share


@final
class Rounds:
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
        self._guessed = problem.validation.head(self._config.validation_samples)
        self._blind = blind_loss(problem.train, self._guessed)
        self._model = routed_model(problem.train, self._config, seed)  # that trains in random orders
        self._last: Reading | None = None  # off that
        self._readings: dict[Reading, AnyOrderOracle] = {}
        self._steps, self._training, self._constructing = 0, 0.0, 0.0
        self._watch = ProgressReporter(problem.on_progress, problem.stop)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.monotonic()
        yield
        self._constructing += time.monotonic() - started

    def run(self, planned: Sequence[Round], most_orders: int) -> dict[str, Any]:
        """Until it is settled; then what was found, with at most so many orders."""
        left = list(planned)
        for number in range(len(left)):
            each = next_of(left, self._last)
            if each.steps and fits(self._steps + each.steps, self._share):
                self._take(each, number, most_orders)
                if chosen(list(self._readings)).settled:
                    break
        return self._found(most_orders)

    def _take(self, each: Round, number: int, most_orders: int) -> None:
        problem, config = self._problem, self._config
        options = self._options(
            f"round {number + 1}", derive_seed(self._seed, "round", number), f"{number}-{each.kind}"
        )
        known: list[int] | None = None
        model, taken = self._model, each.steps
        if each.kind == "random":
            self._training += fit_any_order(model, problem.train, with_steps(config, each.steps), **options)
        else:
            own = config.model_copy(update={"model": config.model.model_copy(update={"pointer": each.pointer})})
            model = routed_model(problem.train, own, derive_seed(self._seed, "outward", number))
            known, taken, seconds = fit_outward(model, problem.train, problem.validation, own, **options)
            self._training += seconds
        self._steps += taken
        with self._timed():
            oracle = self._oracle(model)
            if each.kind == "random":
                self._read_random(oracle, most_orders)
            else:
                assert known is not None
                self._readings[self._read_outward(oracle, known)] = oracle

    def _oracle(self, model: RoutedModel) -> AnyOrderOracle:
        return AnyOrderOracle(model, self._problem.validation, self._config.validation_samples, self._watch)

    def _read_random(self, oracle: AnyOrderOracle, most_orders: int) -> None:
        last = self._last
        rng = numpy_generator(derive_seed(self._seed, "random orders"))
        earlier = last.orders[: max(0, min(2, most_orders - 2))] if last else []
        before = last.best if last else None
        self._last = read(oracle, earlier, before, rng, self._problem.constraints, self._blind)
        if last:
            self._readings.pop(last)  # the model is another by now
        self._readings[self._last] = oracle

    def _read_outward(self, oracle: AnyOrderOracle, known: Sequence[int]) -> Reading:
        """Off a model that knows nothing of random orders; `known` are the targets in the sequence it found."""
        assert self._last is not None  # the first round is in random orders
        random_CN = self._last.others_CN.mean(axis=0)[None]
        blind_L = blind_losses(self._problem.train, self._guessed)
        return read_outward(oracle, known, self._problem.constraints, blind_L, self._blind, random_CN)

    def _found(self, most_orders: int) -> dict[str, Any]:
        reading = chosen(list(self._readings))
        oracle, best = self._readings[reading], reading.orders[0]
        graph = self._graph(reading)
        with self._timed():
            others = [other.orders[0] for other in self._readings if other is not reading and other.learnt]
            if reading.learnt:
                rng = numpy_generator(derive_seed(self._seed, "sorts"))
                parents = [one.targets for one in sorted(graph, key=lambda one: one.target)]
                others += linearise(parents, best, self._problem.constraints, rng, most=3, report=self._watch)
            rows = proposals(reading, oracle, others)
            # What else was read off this model comes last: sorts of its graph are more worth a race.
            own = len(reading.orders)
            first = min(own, 2)
            rows = [*rows[:first], *rows[own:], *rows[first:own]][:most_orders]
            margins = [asdict(emission) for emission in emissions(oracle, best)]
        return {
            **reading_to_dict(reading, oracle),
            "proposals": rows,
            "constructed": len(rows),
            "dependencies": [dependency.to_dict() for dependency in graph],
            "emissions": margins,
            "train_seconds": self._training,
            "construct_seconds": self._constructing,
            "steps": self._steps,
        }

    def _graph(self, reading: Reading) -> list[TargetDependency]:
        """Read off the model after some more training in the order, in which each target pays for what it reads."""
        config, best = self._config, reading.orders[0]
        sparse = copy.deepcopy(self._readings[reading].model)
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


def next_of(left: list[Round], last: Reading | None) -> Round:
    """Taken off those left: in random orders first, and again while what was read off the last of these is promising;
    else outwards.
    """
    kind = "random" if last is None or last.promising else "outward"
    planned = next((planned for planned in left if planned.kind == kind), left[0])
    left.remove(planned)
    return planned


def planned_rounds(config: AnyOrderConfig, rounds: int, outward: bool, share: int | None) -> list[Round]:
    """As long as the answer is not settled and they fit; the first in any case."""
    first, *more = (Round(config.training.steps * 2**number) for number in range(rounds))
    pointers = [True] if config.model.pointer else [False, True]
    most = config.outward_training().steps
    return [
        first if share is None else Round(min(first.steps, share)),
        *([Round(most, "outward", pointer) for pointer in pointers] if outward else []),
        *more,
    ]
