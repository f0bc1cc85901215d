"""A race of orders: each is trained with the final recipe, rung by rung, until one is chosen for the final training.

A race is successive halving (Jamieson and Talwalkar, 2016) with statistical tests in place of fixed halves; rules.py
has the rules. The winner's training in the race is the beginning of its final training: `finish` continues it while the
learning rate decays to zero. The result of a job depends on the order, the seed and the steps alone, so a race can be
resumed, or distributed over workers, without a change of its outcome.
"""

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import torch

from genorder.data import EncodedDataset
from genorder.errors import InputError
from genorder.execution import StopRequest, Workers, using_threads
from genorder.models import GPT, fresh_gpt
from genorder.orders import Order
from genorder.profiling.unigram import unigram_losses
from genorder.race.jobs import JobResult, RaceJob, run_job, write_samples
from genorder.race.result import Contestant, Ended, RaceProgress, RaceResult
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

AT_ONCE = 2  # trainings at the same time, each with its share of the threads: the winner's and the given order's


class _Training(NamedTuple):
    order: Order
    repeat: int  # from 0; each has its own seed


@final
class Race:
    """A context manager, which ends the worker processes. With `workers` of None there are AT_ONCE of them.

    Each worker uses a fixed share of this process's threads, because the number of threads changes the bits.
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
        self._threads = max(1, threads // AT_ONCE)
        self._at_once = workers or (min(AT_ONCE, threads) if self._device == "cpu" else 1)
        self._workers = Workers(self._at_once, self._threads)
        lengths_N = validation.target_lengths_N.cpu().numpy().astype(np.float64)
        self._weights_N = lengths_N / max(lengths_N.mean(), 1e-9)
        losses_N = unigram_losses(train, validation).sum(axis=1) / np.maximum(lengths_N, 1)
        self._unigram = Outcome(0, losses_N[None], np.zeros((1, len(losses_N)), dtype=np.bool_), self._weights_N)
        self.seconds = 0.0  # of the jobs so far
        self._spent: dict[_Training, float] = {}  # seconds of each training so far
        self._steps: dict[_Training, int] = {}  # of each training at a constant rate
        self._outlook: Outlook | None = None
        self._decays = False  # whether `finish` follows

    def __enter__(self) -> "Race":
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)

    def run(
        self,
        orders: Sequence[Order],
        *,
        baselines: Sequence[Order] = (),
        to_the_end: bool = False,
        rungs_end: Sequence[int] | None = None,
    ) -> RaceResult:
        """Race the orders. The `baselines` train until the end of the race, also if they are among the orders.

        With `to_the_end`, the winner trains on when all others are dropped. `rungs_end` are the steps after each rung,
        instead of those of the rules. Raises InputError for no orders.
        """
        running = list(dict.fromkeys(orders))
        if not running:
            raise InputError("a race needs at least one order, received none")
        config = self._config
        rungs: defaultdict[Order, list[Outcome]] = defaultdict(list)
        curves: defaultdict[Order, list[list[float]]] = defaultdict(list)
        dropped_after: dict[Order, int] = {}
        ended: Ended = "steps spent"
        ends = rungs_end or rung_ends(config, self._recipe.training.steps)
        for number, end in enumerate(ends):
            beside = [order for order in baselines if order not in rungs or rungs[order][-1].finite]
            for order, results in self._rung(number, end, list(dict.fromkeys([*running, *beside]))).items():
                rungs[order].append(self._outcome(results))
                curves[order].append(results[0].curve)
            out = {running[index] for index in dropped([rungs[order][-1] for order in running], self._unigram, config)}
            dropped_after |= dict.fromkeys(out, number)
            running = sorted(
                (order for order in running if order not in out), key=lambda order: self._rank(rungs[order][-1])
            )
            best = rungs[running[0]]
            self._outlook, self._decays = outlook(best[-1], number, ends, self._unigram, config), to_the_end
            if best[-1].success_rate >= config.solved:
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
                dropped_after.get(order),
                tied_with_best=order in running and order not in worse,
                is_baseline=order not in orders,
            )
            for order in [*running, *others]
        ]
        return RaceResult(sorted(contestants, key=lambda one: one.diverged), self._unigram, ended, config, self.seconds)

    def finish(self, contestants: Sequence[Contestant]) -> list[JobResult]:
        """Continue each training while the learning rate decays to zero. Returns the results in the same sequence."""
        jobs = [self._final_job(contestant) for contestant in contestants]
        return self._results(None, jobs, [_Training(contestant.order, 0) for contestant in contestants])

    def trained_model(self, contestant: Contestant) -> GPT:
        """The model after `finish`, trained again if its checkpoint is gone. Raises GenorderError."""
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
        if not contestant.rungs:  # without a race: the recipe's own schedule
            return self._job(contestant.order, 0, training.steps, stable=training.stable_steps, begin=0)
        stable = self._steps[_Training(contestant.order, 0)]
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

    def _rung(self, number: int, end: int, orders: list[Order]) -> dict[Order, list[JobResult]]:
        """The results of each order's trainings."""
        trainings = [_Training(order, repeat) for order in orders for repeat in range(self._config.seeds)]
        jobs = [self._job(*one, end, stable=end, begin=self._steps.get(one, 0)) for one in trainings]
        results: dict[Order, list[JobResult]] = {order: [] for order in orders}
        for training, result in zip(trainings, self._results(number, jobs, trainings), strict=True):
            results[training.order].append(result)
            self._steps[training] = result.steps
        return results

    def _results(self, number: int | None, jobs: list[RaceJob], trainings: list[_Training]) -> list[JobResult]:
        """The result of each job, from the journal if it is there. `number` is the rung, or None for the decay."""
        keys = [fingerprint(job.describe()) for job in jobs]
        rows = [self._journal.get(key) for key in keys]
        results = [None if row is None else JobResult.from_dict(row) for row in rows]
        later = 0.0 if number is None else self._steps_after(jobs, trainings)
        batch = _Batch(number, jobs, trainings, results, self._loss_of, later)
        on_progress = self._on_progress or (lambda progress: None)
        for index, result in enumerate(results):
            if result is not None:
                on_progress(batch.progress(index))

        def on_report(place: int, progress: Progress) -> None:
            index = batch.missing[place]
            batch.steps[index] = progress.step
            on_progress(batch.progress(index, math.nan if progress.loss is None else progress.loss))

        work = self._workers.map(
            run_job, [jobs[index] for index in batch.missing], on_report=on_report, stop=self._stop
        )
        for place, done in work:
            index = batch.missing[place]
            self._journal.record(keys[index], f"race: {done.steps} steps", done.to_dict(), done.seconds)
            results[index], batch.steps[index] = done, done.steps
            on_progress(batch.progress(index))
        known = [result for result in results if result is not None]
        for training, result in zip(trainings, known, strict=True):  # the seconds of a job are of its whole training
            self.seconds += max(0.0, result.seconds - self._spent.get(training, 0.0)) / min(self._at_once, len(jobs))
            self._spent[training] = result.seconds
        return known

    def _steps_after(self, jobs: list[RaceJob], trainings: list[_Training]) -> float:
        """An estimate of the steps of all trainings after this rung, decay included; NaN before the first outlook."""
        if self._outlook is None:
            return math.nan
        orders = len({training.order for training in trainings})
        end = max(job.recipe.training.steps for job in jobs)
        stable = max(0.0, self._outlook.end - end) * min(orders, self._outlook.orders or orders) * self._config.seeds
        finals = min(orders, 2)  # the winner and the given order
        decay = self._config.decay_share * max(self._outlook.end, end) * finals
        return stable + (decay if self._decays else 0.0)

    def _outcome(self, results: list[JobResult]) -> Outcome:
        samples = len(self._weights_N)
        losses = [np.full(samples, np.inf) if one.losses is None else np.array(one.losses) for one in results]
        exact = [np.zeros(samples, dtype=np.bool_) if one.losses is None else one.exact_matches for one in results]
        return Outcome(
            max(one.steps for one in results), np.stack(losses), np.array(exact, dtype=np.bool_), self._weights_N
        )

    def _loss_of(self, result: JobResult) -> float:
        return self._outcome([result]).loss

    def _rank(self, outcome: Outcome) -> tuple[bool, float, float]:
        """The sort key of orders: first those that solve the samples, by their steps, then the others by loss."""
        solved = outcome.success_rate >= self._config.solved
        return not solved, outcome.steps if solved else 0, outcome.loss


class _Batch:
    """The jobs of a rung, or of the decay, while they run."""

    def __init__(
        self,
        rung: int | None,
        jobs: list[RaceJob],
        trainings: list[_Training],
        results: list[JobResult | None],
        loss_of: Callable[[JobResult], float],
        steps_after: float,
    ) -> None:
        self._rung, self._jobs, self._trainings, self._results = rung, jobs, trainings, results
        self._loss_of, self._steps_after = loss_of, steps_after
        self.missing = [index for index, result in enumerate(results) if result is None]  # jobs to do
        self.steps = [job.begin if result is None else result.steps for job, result in zip(jobs, results, strict=True)]
        self._started = time.monotonic()

    def progress(self, index: int, training_loss: float = math.nan) -> RaceProgress:
        """The progress to report when the training at this index has made some steps, or has finished."""
        losses = {place: self._loss_of(one) for place, one in enumerate(self._results) if one is not None}
        best = min(losses, key=losses.__getitem__, default=None)
        taken = sum(self.steps[place] - self._jobs[place].begin for place in self.missing)
        left = sum(
            self._jobs[place].recipe.training.steps - self.steps[place] for place in self.missing if place not in losses
        )
        per_step = (time.monotonic() - self._started) / taken if taken > 0 else math.nan
        order, repeat = self._trainings[index]
        result = self._results[index]
        return RaceProgress(
            rung=self._rung,
            done=len(losses),
            total=len(self._jobs),
            order=order,
            repeat=repeat,
            step=self.steps[index],
            loss=training_loss if result is None else losses[index],
            finished=result is not None,
            curve=[] if result is None else result.curve,
            best=None if best is None else self._trainings[best].order,
            best_loss=math.inf if best is None else losses[best],
            seconds_left=per_step * left,
            run_seconds_left=per_step * (left + self._steps_after),
        )
