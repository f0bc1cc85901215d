"""The judge of finalists: short fixed-order runs of a fresh plain GPT per order, halved by validation loss.

Every round trains each remaining order from the start, with the same batches for all and a learning rate that decays
to zero within the round, so that a round's losses are those of finished trainings. The better half goes on to a longer
round; so do those that are close to the best, and those that are far from it do not; race_rules.py says it in full.
Where several have learnt all there is in the end, losses differ by chance, and those that did so sooner, by their mean
training loss, come first: another training is more likely to learn them too. A job is one order, seed and round; its
result depends on nothing else, so a race can be continued, or spread over workers, without changing its outcome.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from genorder.data import EncodedDataset
from genorder.errors import InputError
from genorder.execution import StopRequest, map_jobs, usable_cores
from genorder.orders import Order
from genorder.profiling.race_jobs import RaceJob, keep_data, run_job
from genorder.profiling.race_rules import RaceConfig, kept_after_round, race_steps
from genorder.profiling.scoring import compare_with_best, finite_or_none, means_and_errors
from genorder.seeding import derive_seed
from genorder.store import Journal, fingerprint

_ALL_LEARNT = 0.01  # nats a sample: about one in a hundred may still be wrong
_THREADS = 1  # of a job, whatever the number of workers, which must not change a bit of the result


@final
@dataclass(frozen=True, eq=False)
class RaceProgress:
    """How far a race is when one more of its jobs is done."""

    round: int  # from 0
    done: int  # jobs of the round, this one among them
    total: int
    order: Order  # of this job
    repeat: int  # which of its order's trainings in the round, from 0
    curve: list[float] = field(repr=False)  # its training losses
    loss: float  # its validation loss; infinite if training diverged
    best: Order  # of the jobs of the round that are done
    best_loss: float
    seconds_left: float  # of the whole race, by the time that its steps took so far


@final
@dataclass(frozen=True, eq=False)
class Contestant:
    order: Order
    losses: list[float]  # validation loss after each round it took part in; infinite if training diverged
    errors: list[float]  # standard errors of those
    curves: list[list[float]] = field(repr=False)  # training losses of each round, first seed
    left_after: int | None  # the round (from 0) after which it was dropped; None for finalists
    tied_with_best: bool = False  # in the last round, within the standard error of the paired difference; see `learnt`
    diverged: bool = False
    learnt: bool = False  # all there is, in the last round; then how soon it was learnt decides, and ties are in that


@final
@dataclass(frozen=True, eq=False)
class RaceResult:
    contestants: list[Contestant]  # from best to worst; those that diverged last
    seconds: float = 0.0  # of all jobs, by their own clocks, so that an interrupted race counts whole

    @property
    def winner(self) -> Order:
        return self.contestants[0].order

    def to_dict(self) -> list[dict[str, Any]]:
        return [
            {
                "order": list(contestant.order),
                "losses": [finite_or_none(loss) for loss in contestant.losses],
                "standard_errors": [finite_or_none(error) for error in contestant.errors],
                "left_after_round": contestant.left_after,
                "tied_with_best": contestant.tied_with_best,
                "diverged": contestant.diverged,
                "learnt": contestant.learnt,
                "curves": contestant.curves,
            }
            for contestant in self.contestants
        ]

    @property
    def tied(self) -> list[Order]:
        return [contestant.order for contestant in self.contestants if contestant.tied_with_best]


def race(
    train: EncodedDataset,
    validation: EncodedDataset,
    orders: Sequence[Order],
    config: RaceConfig,
    *,
    seed: int,
    folder: Path,
    journal: Journal,
    workers: int | None = None,
    on_job: Callable[[RaceProgress], None] | None = None,
    stop: StopRequest | None = None,
) -> RaceResult:
    """Race the orders; `on_job` is told how far it is. Finished jobs are in the journal.

    `workers` processes share the jobs; None: one per thread that this process uses, and at most one per core. Raises
    InputError for no orders.
    """
    running = list(dict.fromkeys(orders))
    if not running:
        raise InputError("a race needs at least one order, received none")
    data, digest = keep_data(train, validation, folder)
    device = train.inputs_NW.device.type
    if workers is None:
        workers = min(torch.get_num_threads(), usable_cores()) if device == "cpu" else 1
    seconds, trained = 0.0, 0
    outcomes: dict[Order, list[dict[str, Any]]] = {order: [] for order in running}
    left_after: dict[Order, int] = {}
    predictions_N = validation.target_lengths_N.cpu().numpy() + 1
    for number, steps in enumerate(config.round_steps):
        jobs = [
            RaceJob(
                data,
                digest,
                device,
                order.indices,
                config.model,
                config.training,
                steps,
                derive_seed(seed, "race", repeat),
            )
            for order in running
            for repeat in range(config.seeds)
        ]
        results: list[dict[str, Any] | None] = [None] * len(jobs)
        losses = [math.inf] * len(jobs)
        at_once = min(workers, len(jobs))
        later = race_steps(config, math.ceil(config.kept_share * len(running)), number + 1)
        for done, (index, result) in enumerate(_results(jobs, journal, workers, stop), start=1):
            results[index] = result
            seconds += result["seconds"] / at_once
            trained += steps
            losses[index] = _merge([result], predictions_N)["loss"]
            if on_job:
                left = ((len(jobs) - done) * steps + later) * seconds / trained
                on_job(_progress(number, done, jobs, index, index % config.seeds, losses, result["curve"], left))
        for place, order in enumerate(running):
            own = results[place * config.seeds : (place + 1) * config.seeds]
            outcomes[order].append(_merge([result for result in own if result is not None], predictions_N))
        running.sort(key=lambda order: outcomes[order][-1]["loss"])
        if number + 1 == len(config.round_steps):
            break
        losses = [outcomes[order][-1]["loss"] for order in running]
        kept = {running[place] for place in kept_after_round(losses, config)}
        left_after |= {order: number for order in running if order not in kept}
        running = [order for order in running if order in kept]
        if len(running) == 1:  # decided
            break
    dropped = sorted(left_after, key=lambda order: (-left_after[order], outcomes[order][-1]["loss"]))
    tied = dict(zip(running, _tied([outcomes[order][-1] for order in running], predictions_N), strict=True))
    learnt = {order for order in running if outcomes[order][-1]["loss"] * predictions_N.mean() <= _ALL_LEARNT}
    if learnt:
        effort = {order: float(np.mean(outcomes[order][-1]["curve"])) for order in learnt}
        running.sort(key=lambda order: effort.get(order, math.inf))
        tied = {order: effort[order] <= min(effort.values()) * (1 + config.close) for order in learnt}
    ranked = sorted([*running, *dropped], key=lambda order: math.isinf(outcomes[order][-1]["loss"]))
    return RaceResult(
        [
            Contestant(
                order,
                losses=[outcome["loss"] for outcome in outcomes[order]],
                errors=[outcome["error"] for outcome in outcomes[order]],
                curves=[outcome["curve"] for outcome in outcomes[order]],
                left_after=left_after.get(order),
                tied_with_best=tied.get(order, False),
                diverged=math.isinf(outcomes[order][-1]["loss"]),
                learnt=order in learnt,
            )
            for order in ranked
        ],
        seconds,
    )


def _progress(
    number: int,
    done: int,
    jobs: list[RaceJob],
    index: int,
    repeat: int,
    losses: list[float],
    curve: list[float],
    seconds_left: float,
) -> RaceProgress:
    """After the job of this index; `losses` are infinite for jobs that are not done."""
    best = min(range(len(jobs)), key=losses.__getitem__)
    job = jobs[index]
    return RaceProgress(
        round=number,
        done=done,
        total=len(jobs),
        order=Order(job.order),
        repeat=repeat,
        curve=curve,
        loss=losses[index],
        best=Order(jobs[best].order),
        best_loss=losses[best],
        seconds_left=seconds_left,
    )


def _results(
    jobs: list[RaceJob], journal: Journal, workers: int, stop: StopRequest | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every job's result: from the journal where it is there, else by doing it."""
    keys = [fingerprint(job.describe()) for job in jobs]
    missing = []
    for index, key in enumerate(keys):
        known = journal.get(key)
        if known is None:
            missing.append(index)
        else:
            yield index, known
    # In this process a job hears of the stop itself; workers are ended, and go on from their last checkpoints.
    work = partial(run_job, stop=stop) if stop is not None and workers <= 1 else run_job
    found = map_jobs(work, [jobs[index] for index in missing], workers=workers, threads=_THREADS, stop=stop)
    for place, result in found:
        index = missing[place]
        journal.record(keys[index], f"race: {jobs[index].steps} steps", result, result["seconds"])
        yield index, result


def _merge(results: list[dict[str, Any]], predictions_N: NDArray[np.int64]) -> dict[str, Any]:
    """One order's results in one round, over the seeds: the mean loss of each sample."""
    if any(result["losses"] is None for result in results):
        return {"loss": math.inf, "error": math.inf, "losses": None, "curve": results[0]["curve"]}
    losses_N = np.mean([result["losses"] for result in results], axis=0)
    means, errors = means_and_errors(losses_N[None], predictions_N)
    return {"loss": float(means[0]), "error": float(errors[0]), "losses": losses_N, "curve": results[0]["curve"]}


def _tied(outcomes: list[dict[str, Any]], predictions_N: NDArray[np.int64]) -> list[bool]:
    """Which finalists lie within the standard error of their paired difference from the best."""
    diverged_N = np.full(len(predictions_N), np.inf)
    losses = np.array([diverged_N if o["losses"] is None else o["losses"] for o in outcomes])
    _, differences, errors = compare_with_best(losses, predictions_N)
    tied: list[bool] = (differences <= errors).tolist()
    return tied
