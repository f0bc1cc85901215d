"""The race's jobs: one worker with all threads against one worker per thread, with one each."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import encode_for_exploring
from genorder.execution import Workers
from genorder.orders import Order, random_orders
from genorder.presets import cpu_exploration
from genorder.race.jobs import RaceJob, write_samples, run_job
from genorder.race.rules import Recipe
from genorder.seeding import numpy_generator
from genorder.tasks import make_task, task_splits

_JOBS = 8
_STEPS = 150
_LENGTHS = (10, 20, 40)


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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def bench_workers(device: torch.device, on_row: Callable[[WorkersRow], None] = lambda row: None) -> list[WorkersRow]:
    """Eight jobs of a race's first rung, the start of the processes included."""
    threads = max(2, torch.get_num_threads())
    rows = []
    for length in _LENGTHS:
        jobs = _jobs(length, device)
        # Taking turns, so that a change of the machine's speed meets both; the first turn warms up.
        together, apart = [], []
        for _ in range(2):
            together.append(_seconds(jobs, workers=1, threads=threads))
            apart.append(_seconds(jobs, workers=threads, threads=1))
        row = WorkersRow(
            f"L = {length}: {threads} workers with one thread each",
            f"one worker with {threads} threads",
            min(together) / min(apart),
            min(apart),
            min(together),
        )
        rows.append(row)
        on_row(row)
    return rows


def _jobs(length: int, device: torch.device) -> list[RaceJob]:
    splits = task_splits(make_task("relu", length), train=20_000, validation=500, test=1).splits
    train, validation = encode_for_exploring(splits, device)
    data, digest = write_samples(train, validation, Path(tempfile.mkdtemp()))
    orders = [Order.forward(length), *random_orders(length, _JOBS - 1, numpy_generator(0))]
    final = cpu_exploration().final
    training = final.training.model_copy(update={"steps": _STEPS, "stable_steps": _STEPS})
    recipe = Recipe(model=final.model, training=training)
    return [RaceJob(data, digest, device.type, order.indices, recipe, seed) for seed, order in enumerate(orders)]


def _seconds(jobs: list[RaceJob], *, workers: int, threads: int) -> float:
    for job in jobs:
        job.checkpoints.delete()
    started = time.perf_counter()
    with Workers(workers, threads) as pool:
        list(pool.map(run_job, jobs))
    return time.perf_counter() - started
