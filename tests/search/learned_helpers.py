"""Problems of data made by hand, on which a routed model can learn within a second or two."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from search_helpers import PROFILER

from genorder.data import EncodedDataset, encode
from genorder.execution import StopRequest
from genorder.models.routed import RoutedConfig
from genorder.orders import CandidateSource, Order
from genorder.profiling import AnyOrderConfig
from genorder.search import AnyOrder, Search, SearchProblem, SearchResult
from genorder.store import Journal
from genorder.tasks import make_task, task_splits
from genorder.training import Progress, TrainingConfig
from made_data import TOKENS, encoded

IntArray = NDArray[np.int64]
Solve = Callable[[IntArray, np.random.Generator], IntArray]
Splits = tuple[EncodedDataset, EncodedDataset]

LEARNING = AnyOrderConfig(
    model=RoutedConfig(width=32, hidden=64),
    training=TrainingConfig(
        steps=500, batch_size=64, learning_rate=5e-3, warmup_steps=20, beta2=0.98, weight_decay=0.0
    ),
    groups=8,
    validation_samples=400,
    graph_steps=100,
)


def shortened(steps: int) -> AnyOrderConfig:
    return LEARNING.model_copy(update={"training": LEARNING.training.model_copy(update={"steps": steps})})


def splits_of(
    solve: Solve,
    *,
    inputs: int = 4,
    train: int = 4000,
    validation: int = 400,
    shortest: int | None = None,
) -> Splits:
    """Uniform inputs and what `solve` makes of them; with `shortest`, of several lengths."""
    rng = np.random.default_rng(0)
    parts = []
    for samples in (train, validation):
        inputs_NW = rng.integers(TOKENS, size=(samples, inputs))
        targets_NL = solve(inputs_NW, rng)
        longest = targets_NL.shape[1]
        lengths_N = None if shortest is None else rng.integers(shortest, longest + 1, size=samples)
        parts.append(encoded(inputs_NW, targets_NL, lengths_N))
    return parts[0], parts[1]


def random_targets(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return rng.integers(TOKENS, size=(len(inputs_NW), 4))


def copies(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return inputs_NW[:, ::-1].copy()


def noisy_copies(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return np.where(rng.random(inputs_NW.shape) < 0.5, inputs_NW, rng.integers(TOKENS, size=inputs_NW.shape))


def sums(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return inputs_NW.cumsum(axis=1) % TOKENS


def constant(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return np.tile(np.arange(4), (len(inputs_NW), 1))


def one_token(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return np.zeros((len(inputs_NW), 4), dtype=np.int64)


@cache
def square(length: str, hidden: int | None = None) -> Splits:
    splits = task_splits(
        make_task("square", length), train=8000, validation=400, test=1, hidden_order_seed=hidden
    ).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return train, validation


@contextmanager
def open_problem(
    folder: Path, splits: Splits, config: AnyOrderConfig = LEARNING, **options: Any
) -> Iterator[SearchProblem]:
    folder.mkdir(parents=True, exist_ok=True)
    with Journal(folder / "journal.sqlite") as journal:
        yield SearchProblem(
            *splits,
            CandidateSource(Order.forward(splits[0].target_width)),
            PROFILER,
            journal=journal,
            folder=folder / "checkpoints",
            any_order=config,
            **{"seed": 0, **options},
        )


def propose(
    folder: Path,
    splits: Splits,
    config: AnyOrderConfig = LEARNING,
    search: Search = AnyOrder(),
    **options: Any,
) -> SearchResult:
    with open_problem(folder, splits, config, **options) as problem:
        return search.propose(problem)


def told(result: SearchResult) -> Any:
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    for stage in plain["stages"]:
        del stage["seconds"]
    return plain


def stopped_at(event: int) -> dict[str, Any]:
    """At so many tellings of trainings."""
    stop = StopRequest()
    left = event

    def happened(_: str, progress: Progress) -> None:
        nonlocal left
        left -= progress.loss is not None
        stop.requested |= left == 0

    return {"stop": stop, "on_progress": happened}


def stopped_while(part: str) -> dict[str, Any]:
    stop = StopRequest()

    def happened(name: str, _: Progress) -> None:
        stop.requested |= name == part

    return {"stop": stop, "on_progress": happened}
