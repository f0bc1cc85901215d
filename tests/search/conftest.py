"""Small real problems that searches are tried on."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from genorder.data import EncodedDataset, encode
from genorder.models import GPTConfig
from genorder.orders import CandidateSource, Order
from genorder.profiling import ProfilerConfig
from genorder.search import SearchProblem
from genorder.store import Journal
from genorder.tasks import make_task, task_splits
from genorder.training import TrainingConfig

PROFILER = ProfilerConfig(
    model=GPTConfig(layers=1, heads=2, width=16, feedforward=32),
    training=TrainingConfig(steps=6, batch_size=8, learning_rate=5e-3),
    curve_points=0,
)


@cache
def square(length: int) -> tuple[EncodedDataset, EncodedDataset]:
    splits = task_splits(make_task("square", str(length)), train=60, validation=20, test=1).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return train, validation


@pytest.fixture
def make_problem(tmp_path: Path) -> Iterator[Callable[..., SearchProblem]]:
    """Problems that share one journal, as those of one run directory do; one thread, so no worker processes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with Journal(tmp_path / "journal.sqlite") as journal:

        def make(length: int = 4, **options: Any) -> SearchProblem:
            train, validation = square(length)
            source = CandidateSource(Order.forward(train.target_width))
            given = {"seed": 0, "journal": journal, **options}
            return SearchProblem(train, validation, source, PROFILER, folder=tmp_path, **given)

        yield make
    torch.set_num_threads(threads)
