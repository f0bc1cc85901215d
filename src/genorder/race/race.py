"""A race of orders: each is trained by the final recipe, rung by rung, until it is decided which to train to the end.

The winner's training in the race is the beginning of its final training: `finish` lets the learning rate decay to zero
from where the race has left it. rules.py says who goes on. A job continues one training; its result depends on the
order, the seed and the steps alone, so a race can be continued, or spread over workers, without changing its outcome.
"""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, final

import numpy as np
import torch

from genorder.data import EncodedDataset
from genorder.errors import InputError
from genorder.execution import StopRequest, Workers, using_threads
from genorder.models import GPT, fresh_gpt
from genorder.orders import Order
from genorder.profiling.scoring import finite_or_none
from genorder.profiling.unigram import unigram_losses
from genorder.race.jobs import RaceJob, run_job, write_samples
from genorder.race.rules import (
    Outcome,
    Outlook,
    RaceConfig,
    Recipe,
    decay_steps,
    dropped,
    has_converged,
    outlook,
    rung_ends,
)
from genorder.seeding import derive_seed
from genorder.store import Journal, fingerprint
from genorder.training import Progress, tensors_of

AT_ONCE = 2  # trainings, for each of which there is a part of the threads: the winner's and the given order's

Ended = Literal["solved", "decided", "converged", "diverged", "steps spent"]


@final
@dataclass(frozen=True, eq=False)
class RaceProgress:
    """How far a race is: one of its trainings has gone on, or has finished its rung."""

    rung: int | None  # from 0; None: the end, in which the learning rate decays
    done: int  # trainings of the rung that are finished
    total: int
    order: Order
    repeat: int  # which of its order's trainings, from 0
    step: int
    loss: float  # in training; of a finished one, on the validation samples, infinite if it diverged
    finished: bool
    curve: list[float] = field(repr=False)  # its training losses in the rung, if it is finished
    best: Order | None  # of those that are finished
    best_loss: float
    seconds_left: float  # of the rung, by the time that its steps took so far
    # Of all trainings, the decay too, if the best order goes on learning as fast as so far. Not a number in the first
    # rung, when nothing is known of that, and before a step is timed.
    run_seconds_left: float


@final
@dataclass(frozen=True, eq=False)
class Contestant:
    order: Order
    rungs: list[Outcome]  # that it took part in
    curves: list[list[float]] = field(repr=False)  # training losses in each rung, first seed
    left_after: int | None  # the rung (from 0) after which it was dropped; None: never
    tied_with_best: bool = False
    along: bool = False  # it only trained along, and cannot win

    @property
    def loss(self) -> float:
        return self.rungs[-1].loss

    @property
    def diverged(self) -> bool:
        return not self.rungs[-1].finite

    def to_dict(self) -> dict[str, Any]:
        return {
            "order": list(self.order),
            "steps": [rung.steps for rung in self.rungs],
            "losses": [finite_or_none(rung.loss) for rung in self.rungs],
            "standard_errors": [finite_or_none(rung.error) for rung in self.rungs],
            "success_rates": [rung.success for rung in self.rungs],
            "left_after_rung": self.left_after,
            "tied_with_best": self.tied_with_best,
            "diverged": self.diverged,
            "curves": self.curves,
        }


@final
@dataclass(frozen=True, eq=False)
class RaceResult:
    contestants: list[Contestant]  # from best to worst; those that diverged last
    unigram: Outcome
    ended: Ended
    config: RaceConfig
    seconds: float = 0.0  # of all jobs, by their own clocks, so that an interrupted race counts whole

    @property
    def best(self) -> Contestant:
        """Of those that could win."""
        return next(contestant for contestant in self.contestants if not contestant.along)

    @property
    def winner(self) -> Order:
        return self.best.order

    @property
    def tied(self) -> list[Order]:
        return [contestant.order for contestant in self.contestants if contestant.tied_with_best]

    def of(self, order: Order) -> Contestant:
        return next(contestant for contestant in self.contestants if contestant.order == order)

    @property
    def beats_baseline(self) -> bool:
        """Was the best order significantly below the unigram baseline, after some rung?"""
        return any(self.unigram.significantly_worse(rung, self.config) for rung in self.best.rungs)

    def separates(self, one: Order, other: Order) -> bool:
        """Is the first significantly better than the second?"""
        return self.of(other).rungs[-1].significantly_worse(self.of(one).rungs[-1], self.config)

    @property
    def still_improving(self) -> bool:
        """Did the last rung improve the best order?"""
        rungs = self.best.rungs
        return len(rungs) > 1 and rungs[-1].improves_on(rungs[-2], self.config)

    @property
    def overfits(self) -> bool:
        """Has the validation loss of the best order risen since an earlier rung?"""
        *before, last = self.best.rungs
        return last.finite and any(last.significantly_worse(rung, self.config) for rung in before)


@final
class Race:
    """Within the block there are workers; `workers` of None stands for as many as there are trainings at once.

    `threads` of each worker are a part of this process's, whatever the number of workers: they change bits.
    """

    def __init__(
        self,
        train: EncodedDataset,
        validation: EncodedDataset,
        recipe: Recipe,
        config: RaceConfig,
        *,
        seed: int,
        folder: Path,
        journal: Journal,
        workers: int | None = None,
        on_progress: Callable[[RaceProgress], None] | None = None,
        stop: StopRequest | None = None,
    ) -> None:
        self._train, self._recipe, self._config = train, recipe, config
        self._seed, self._folder, self._journal = seed, folder, journal
        self._on_progress, self._stop = on_progress, stop
        self._data = write_samples(train, validation, folder)
        self._device = train.inputs_NW.device.type
        threads = torch.get_num_threads()
        at_once = min(AT_ONCE, threads) if self._device == "cpu" else 1
        self._threads = max(1, threads // AT_ONCE)
        self._workers = Workers(workers or at_once, self._threads)
        self._at_once = workers or at_once
        lengths_N = validation.target_lengths_N.cpu().numpy().astype(np.float64)
        self._weights_N = lengths_N / max(lengths_N.mean(), 1e-9)
        losses_N = unigram_losses(train, validation).sum(axis=1) / np.maximum(lengths_N, 1)
        self._unigram = Outcome(0, losses_N[None], np.zeros((1, len(losses_N)), dtype=np.bool_), self._weights_N)
        self.seconds = 0.0  # of the jobs so far
        self._spent: dict[tuple[Order, int], float] = {}  # seconds of each training so far
        self._steps: dict[tuple[Order, int], int] = {}
        self._outlook: Outlook | None = None
        self._decays = False  # whether the learning rate decays after the race

    def __enter__(self) -> "Race":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.__exit__(kind, error, trace)

    def run(
        self,
        orders: Sequence[Order],
        *,
        along: Sequence[Order] = (),
        to_the_end: bool = False,
        rungs_end: Sequence[int] | None = None,
    ) -> RaceResult:
        """Race the orders. Those `along` train to its end, whether they are among them or not. A race that is decided
        goes on `to_the_end` with the winner alone. `rungs_end` are the steps after each rung, in place of the rules'.
        Raises InputError for no orders.
        """
        running = list(dict.fromkeys(orders))
        if not running:
            raise InputError("a race needs at least one order, received none")
        config = self._config
        rungs: dict[Order, list[Outcome]] = {}
        curves: dict[Order, list[list[float]]] = {}
        left_after: dict[Order, int] = {}
        ended: Ended = "steps spent"
        ends = rungs_end or rung_ends(config, self._recipe.training.steps)
        for number, end in enumerate(ends):
            beside = [order for order in along if order not in rungs or rungs[order][-1].finite]
            for order, results in self._rung(number, end, list(dict.fromkeys([*running, *beside]))).items():
                rungs.setdefault(order, []).append(self._outcome(results))
                curves.setdefault(order, []).append(results[0]["curve"])
            out = {running[place] for place in dropped([rungs[order][-1] for order in running], self._unigram, config)}
            left_after |= dict.fromkeys(out, number)
            running = sorted(
                (order for order in running if order not in out), key=lambda order: self._rank(rungs[order][-1])
            )
            best = rungs[running[0]]
            self._outlook, self._decays = outlook(best[-1], number, ends, self._unigram, config), to_the_end
            if best[-1].success >= config.solved:
                ended = "solved"
            elif len(running) == 1 and not to_the_end:
                ended = "decided"
            elif not best[-1].finite:
                ended = "diverged"
            elif has_converged(best, self._unigram, config):
                ended = "converged"
            if ended != "steps spent":
                break
        others = sorted(
            rungs.keys() - set(running), key=lambda order: (-len(rungs[order]), self._rank(rungs[order][-1]))
        )
        worse = {order for order in running if rungs[order][-1].significantly_worse(best[-1], config)}
        contestants = [
            Contestant(
                order,
                rungs[order],
                curves[order],
                left_after.get(order),
                tied_with_best=order in running and order not in worse,
                along=order not in orders,
            )
            for order in [*running, *others]
        ]
        return RaceResult(sorted(contestants, key=lambda one: one.diverged), self._unigram, ended, config, self.seconds)

    def finish(self, contestants: Sequence[Contestant]) -> list[dict[str, Any]]:
        """Let the learning rate of each training decay to zero; what was reached, in their sequence."""
        jobs = [self._final_job(contestant) for contestant in contestants]
        return self._results(None, jobs, [(contestant.order, 0) for contestant in contestants])

    def trained_model(self, contestant: Contestant) -> GPT:
        """With the weights at the end of `finish`; trained anew where they are gone. Raises GenorderError."""
        job = self._final_job(contestant)
        state = job.checkpoints.load_latest()
        if state is None or state.step != job.recipe.training.steps:
            with using_threads(self._threads):
                run_job(job, stop=self._stop)
            state = job.checkpoints.load_latest()
        assert state is not None
        model = fresh_gpt(self._recipe.model, self._train, job.seed)
        model.load_state_dict(tensors_of(state, "model"))
        return model.eval()

    def forget(self) -> None:
        """Remove the checkpoints."""
        for folder in self._folder.glob("training-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _final_job(self, contestant: Contestant) -> RaceJob:
        training = self._recipe.training
        if not contestant.rungs:  # it was not raced: by the recipe's own schedule
            return self._job(contestant.order, 0, training.steps, stable=training.stable_steps, begin=0)
        stable = self._steps[contestant.order, 0]
        steps = stable + decay_steps(self._config, stable, self._recipe.training.steps)
        return self._job(contestant.order, 0, steps, stable=stable, begin=stable)

    def _job(self, order: Order, repeat: int, steps: int, *, stable: int, begin: int) -> RaceJob:
        training = self._recipe.training.model_copy(update={"steps": steps, "stable_steps": stable})
        return RaceJob(
            *self._data,
            self._device,
            order.indices,
            Recipe(model=self._recipe.model, training=training),
            derive_seed(self._seed, "race", repeat),
            begin,
            self._config.average_share if stable == steps else None,
            self._config.check_steps if stable == steps and self._config.seeds == 1 else 0,
            self._config.solved,
        )

    def _rung(self, number: int, end: int, orders: list[Order]) -> dict[Order, list[dict[str, Any]]]:
        """The results of each order, by seed."""
        trainings = [(order, repeat) for order in orders for repeat in range(self._config.seeds)]
        jobs = [
            self._job(order, repeat, end, stable=end, begin=self._steps.get((order, repeat), 0))
            for order, repeat in trainings
        ]
        results: dict[Order, list[dict[str, Any]]] = {order: [] for order in orders}
        for (order, repeat), result in zip(trainings, self._results(number, jobs, trainings), strict=True):
            results[order].append(result)
            self._steps[order, repeat] = result["steps"]
        return results

    def _outcome(self, results: list[dict[str, Any]]) -> Outcome:
        samples = len(self._weights_N)
        losses = [np.full(samples, np.inf) if one["losses"] is None else np.array(one["losses"]) for one in results]
        right = [np.zeros(samples, dtype=np.bool_) if one["losses"] is None else one["right"] for one in results]
        return Outcome(
            max(one["steps"] for one in results), np.stack(losses), np.array(right, dtype=np.bool_), self._weights_N
        )

    def _results(
        self, number: int | None, jobs: list[RaceJob], trainings: list[tuple[Order, int]]
    ) -> list[dict[str, Any]]:
        """Every job's result: from the journal where it is there, else by doing it."""
        keys = [fingerprint(job.describe()) for job in jobs]
        results = [self._journal.get(key) for key in keys]
        missing = [index for index, result in enumerate(results) if result is None]
        steps = [job.begin if known is None else known["steps"] for job, known in zip(jobs, results, strict=True)]
        started = time.monotonic()

        def tell(index: int, loss: float, *, finished: bool) -> None:
            if self._on_progress:
                done = [place for place, result in enumerate(results) if result is not None]
                best = min(done, key=lambda place: self._loss_of(results[place]), default=None)
                taken = sum(steps[place] - jobs[place].begin for place in missing)
                left = sum(jobs[place].recipe.training.steps - steps[place] for place in missing if place not in done)
                order, repeat = trainings[index]
                per_step = (time.monotonic() - started) / taken if taken > 0 else math.nan
                later = 0.0 if number is None else self._steps_after(jobs, len({order for order, _ in trainings}))
                self._on_progress(
                    RaceProgress(
                        rung=number,
                        done=len(done),
                        total=len(jobs),
                        order=order,
                        repeat=repeat,
                        step=steps[index],
                        loss=loss,
                        finished=finished,
                        curve=(results[index] or {}).get("curve", []),
                        best=None if best is None else trainings[best][0],
                        best_loss=math.inf if best is None else self._loss_of(results[best]),
                        seconds_left=per_step * left,
                        run_seconds_left=per_step * (left + later),
                    )
                )

        def on_report(place: int, progress: Progress) -> None:
            steps[missing[place]] = progress.step
            tell(missing[place], math.nan if progress.loss is None else progress.loss, finished=False)

        for index in range(len(jobs)):
            if index not in missing:
                tell(index, self._loss_of(results[index]), finished=True)
        work = self._workers.map(run_job, [jobs[index] for index in missing], on_report=on_report, stop=self._stop)
        for place, result in work:
            index = missing[place]
            self._journal.record(keys[index], f"race: {result['steps']} steps", result, result["seconds"])
            results[index], steps[index] = result, result["steps"]
            tell(index, self._loss_of(result), finished=True)
        known = [result for result in results if result is not None]
        for training, result in zip(trainings, known, strict=True):  # the seconds of a job are of its whole training
            self.seconds += max(0.0, result["seconds"] - self._spent.get(training, 0.0)) / min(self._at_once, len(jobs))
            self._spent[training] = result["seconds"]
        return known

    def _steps_after(self, jobs: list[RaceJob], orders: int) -> float:
        """Steps of all trainings after a rung, by the outlook before it; not a number if there is none."""
        if self._outlook is None:
            return math.nan
        end = max(job.recipe.training.steps for job in jobs)
        stable = max(0.0, self._outlook.end - end) * min(orders, self._outlook.orders or orders) * self._config.seeds
        decay = (
            self._config.decay_share * max(self._outlook.end, end) * min(orders, 2)
        )  # the winner and the given order
        return stable + (decay if self._decays else 0.0)

    def _loss_of(self, result: dict[str, Any] | None) -> float:
        return math.inf if result is None or result["losses"] is None else self._outcome([result]).loss

    def _rank(self, outcome: Outcome) -> tuple[bool, float, float]:
        """Who has solved the samples sooner comes first, then the lower loss."""
        solved = outcome.success >= self._config.solved
        return not solved, outcome.steps if solved else 0, outcome.loss
