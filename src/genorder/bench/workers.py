"""Jobs of a race: one worker process per thread, against one worker with all threads."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from genorder.data import encode_for_exploring
from genorder.execution import Workers
from genorder.orders import Order, random_orders
from genorder.presets import cpu_exploration
from genorder.race.jobs import RaceJob, run_job, write_samples
from genorder.race.rules import Recipe
from genorder.seeding import numpy_generator
from genorder.tasks import make_task, task_splits

LENGTHS = (10, 20, 40)


@final
@dataclass(frozen=True)
class WorkersRow:
    name: str
    baseline: str
    ratio: float
    seconds: float
    baseline_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.ratio:.2f} x {self.baseline} "
            f"({self.seconds:.1f} s against {self.baseline_seconds:.1f} s)"
        )


def bench_workers(
    device: torch.device, *, lengths: Sequence[int] = LENGTHS, jobs: int = 8, steps: int = 150
) -> Iterator[WorkersRow]:
    """The first jobs of a race, including the start of the processes."""
    threads = max(2, torch.get_num_threads())
    for length in lengths:
        # Alternating, so that a change of the machine's speed affects both; the first turn warms up.
        together, apart = [], []
        with tempfile.TemporaryDirectory() as folder:
            race_jobs = _race_jobs(length, jobs, steps, device, Path(folder))
            for _ in range(2):
                together.append(_seconds(race_jobs, workers=1, threads=threads))
                apart.append(_seconds(race_jobs, workers=threads, threads=1))
        yield WorkersRow(
            f"L = {length}: {threads} workers with one thread each",
            f"one worker with {threads} threads",
            min(together) / min(apart),
            min(apart),
            min(together),
        )


def _race_jobs(length: int, jobs: int, steps: int, device: torch.device, folder: Path) -> list[RaceJob]:
    splits = task_splits(make_task("relu", length), train=20_000, validation=500, test=1).splits
    train, validation = encode_for_exploring(splits, device)
    data, digest = write_samples(train, validation, folder)
    orders = [Order.forward(length), *random_orders(length, jobs - 1, numpy_generator(0))]
    final = cpu_exploration().final
    training = final.training.model_copy(update={"steps": steps, "stable_steps": steps})
    recipe = Recipe(model=final.model, training=training)
    return [RaceJob(data, digest, device.type, order.indices, recipe, seed) for seed, order in enumerate(orders)]


def _seconds(jobs: list[RaceJob], *, workers: int, threads: int) -> float:
    for job in jobs:
        job.checkpoints.delete()
    started = time.perf_counter()
    with Workers(workers, threads) as pool:
        list(pool.map(run_job, jobs))
    return time.perf_counter() - started
