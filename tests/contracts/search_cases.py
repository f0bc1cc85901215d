"""Small problems for every strategy; run as a program, a search that kills itself at a moment of its choice."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from genorder.data import EncodedDataset, encode
from genorder.models import GPTConfig
from genorder.models.routed import RoutedConfig
from genorder.orders import CandidateSource, Constraints, Order
from genorder.profiling import AnyOrderConfig, ProfilerConfig
from genorder.search import (
    AnyOrder,
    Dependencies,
    Evolutionary,
    GlobalLocal,
    RandomSearch,
    Search,
    SearchProblem,
    SearchResult,
    SoftPermutation,
    Stage,
)
from genorder.store import Journal
from genorder.tasks import make_task, task_splits
from genorder.training import Progress, TrainingConfig

SEARCHES: dict[str, Search] = {
    "global-local": GlobalLocal(depth=3),
    "evolutionary": Evolutionary(population=6, generations=3),
    "evolutionary, separate": Evolutionary(population=4, generations=3, fitness="separate", separate_steps=6),
    "random": RandomSearch(runs=3, candidates=5),
    "dependencies": Dependencies(rounds=1),  # on so few samples it counts one target, and trains for the others
    "any-order": AnyOrder(rounds=2),
    "any-order, restarts": AnyOrder(restarts=2, rounds=1),
    "soft-permutation": SoftPermutation(steps=24),
    "soft-permutation, two-stage": SoftPermutation(variant="two-stage", rounds=2, model_steps=8, entropy_steps=6),
}
# Of four targets each, and one order at least that each leaves out.
CONSTRAINTS = {
    "keep first": Constraints(keep_first=1),
    "keep last": Constraints(keep_last=2),
    "groups": Constraints(groups=2),
    "before": Constraints(before=((3, 0), (2, 1))),
    "several": Constraints(keep_first=1, before=((3, 1),)),
}
ONE_ORDER_ONLY = {
    "kept": (Constraints(keep_first=2, keep_last=2), Order((0, 1, 2, 3))),
    "grouped": (Constraints(groups=2, before=((3, 0),)), Order((2, 3, 0, 1))),
    "chained": (Constraints(before=((2, 0), (0, 3), (3, 1))), Order((2, 0, 3, 1))),
}
# Training tells of its progress at step 20 and at the last: of the middle and of the end of a run.
PROFILER = ProfilerConfig(
    model=GPTConfig(layers=1, heads=2, width=16, feedforward=32, dropout=0.1),
    training=TrainingConfig(steps=24, batch_size=16, learning_rate=5e-3, warmup_steps=2),
    curve_points=0,
)
ANY_ORDER = AnyOrderConfig(
    model=RoutedConfig(width=8, hidden=16),
    training=TrainingConfig(steps=24, batch_size=16, learning_rate=5e-3, warmup_steps=2),
    groups=4,
    graph_steps=4,
)
SAMPLES = 100


@cache
def square(length: str, samples: int = SAMPLES) -> tuple[EncodedDataset, EncodedDataset]:
    splits = task_splits(make_task("square", length), train=samples, validation=60, test=1).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return train, validation


def relabelled(encoded: EncodedDataset, columns: Order) -> EncodedDataset:
    """Column c of the result is column columns[c]."""
    return replace(encoded, targets_NL=encoded.targets_NL[:, list(columns)])


@contextmanager
def open_problem(
    folder: Path, *, length: str = "4", samples: int = SAMPLES, columns: Order | None = None, **options: Any
) -> Iterator[SearchProblem]:
    """A problem with a journal and checkpoints of its own; the same folder again continues it."""
    folder.mkdir(parents=True, exist_ok=True)
    train, validation = square(length, samples)
    columns = columns or Order.forward(train.target_width)
    with Journal(folder / "journal.sqlite") as journal:
        yield SearchProblem(
            relabelled(train, columns),
            relabelled(validation, columns),
            CandidateSource(columns.inverse()),
            PROFILER,
            journal=journal,
            folder=folder / "checkpoints",
            **{"seed": 0, "any_order": ANY_ORDER, **options},
        )


def propose(search: Search, folder: Path, **options: Any) -> SearchResult:
    with open_problem(folder, **options) as problem:
        return search.propose(problem)


def told(result: SearchResult) -> Any:
    """All that a result says, but for how long it took."""
    return without_seconds(result.to_dict())


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_seconds(part) for name, part in value.items() if name != "seconds"}
    return [without_seconds(part) for part in value] if isinstance(value, list) else value


def killed_at(event: int) -> dict[str, Any]:
    """Callbacks of a problem that end this process, without a chance to tidy up, at that event from 1."""
    events = 0

    def happened() -> None:
        nonlocal events
        events += 1
        if events == event:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_progress(name: str, progress: Progress) -> None:
        happened()

    def on_stage(stage: Stage) -> None:
        happened()

    return {"on_progress": on_progress, "on_stage": on_stage}


if __name__ == "__main__":
    torch.set_num_threads(1)
    _, case, directory, moment = sys.argv
    finished = propose(SEARCHES[case], Path(directory), **killed_at(int(moment)))
    print(json.dumps(told(finished)))
