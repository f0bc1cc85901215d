"""genorder for Python programs: find, rank, train and analyse orders by one call each.

A call is a run: it keeps its work in a run directory, and the same call again continues an interrupted run, or returns
the result of a finished one. All calls raise InputError, one clear line, for what cannot be used.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from genorder.data import ReadOptions, SequenceDataset, names_from_lists, read_dataset
from genorder.discovery import Watcher
from genorder.errors import InputError
from genorder.orders import Constraints
from genorder.results import AttentionResult, DiscoveryResult, RankResult, TrainResult
from genorder.runs import (
    DatasetLike,
    DataSpec,
    Machine,
    OrderLike,
    RunRequest,
    SplitLike,
    plan_attention,
    plan_discovery,
    plan_rank,
    plan_train,
    run_attention,
    run_discovery,
    run_rank,
    run_session,
    run_train,
)
from genorder.runs.source import EXPECTED_DATASET
from genorder.search import Search
from genorder.training import Progress

Settings = Sequence[str] | Mapping[str, object]


class RunOptions(TypedDict, total=False):
    """The options of every call.

    The dataset is a SequenceDataset (split here: at most a tenth each for validation and test), Splits, the data of a
    task (`task_splits`), the path of a file, or a pair of lists (inputs, targets).
    """

    preset: str  # cpu (the default), paper, paper-prod or paper-delay
    seed: int  # default 0
    out: Path | str | None  # run directory; default: a new one under runs/
    validation: SplitLike | None  # separate samples: a dataset, a path or a pair of lists
    test: SplitLike | None
    settings: Settings  # changes of the preset: {"final.training.steps": 500} or ["final.training.steps=500"]
    config: Path | str | None  # a TOML file of settings
    device: str  # auto (the default), cpu, cuda or mps
    threads: int | None  # of torch; None leaves them as they are
    input_names: Sequence[str] | None  # of the positions, for report and result; a table's header has them already
    target_names: Sequence[str] | None


def load_dataset(path: Path | str, **options: Any) -> SequenceDataset:
    """Read a dataset in any format that the command line reads; `options` are the fields of `ReadOptions`."""
    return read_dataset(path, ReadOptions(**options))


def discover(
    dataset: DatasetLike,
    *,
    strategy: str | Search = "auto",
    seconds: float | None = None,
    max_runs: int | None = None,
    max_candidates: int | None = None,
    explore_only: bool = False,
    baseline: bool = True,
    seeds: int | None = None,
    constraints: Constraints | None = None,
    also: Iterable[OrderLike] = (),
    workers: int | None = None,
    watcher: Watcher | None = None,
    **options: Unpack[RunOptions],
) -> DiscoveryResult:
    """Find the order in which a Transformer learns to emit the targets, and train a model with it.

    Arguments, beside those in `RunOptions`:
        strategy: a name that `genorder discover --strategy` takes, or a Search; `auto` is dependencies.
        seconds, max_runs, max_candidates: limits of the exploration: its time, its profiling runs, their candidates.
        explore_only: stop before the final training.
        baseline: train the given order too, to compare.
        seeds: trainings of each order in the race.
        constraints: what every order must meet.
        also: orders that race beside the proposals.
        workers: processes that share the trainings of the race.
        watcher: receives the progress of the run.
    """
    if constraints is not None and not isinstance(constraints, Constraints):
        raise InputError(f"constraints are a {type(constraints).__name__}; expected genorder.Constraints, or None")
    run = plan_discovery(
        _request(dataset, **options),
        strategy,
        seconds=seconds,
        max_runs=max_runs,
        max_candidates=max_candidates,
        explore_only=explore_only,
        baseline=baseline,
        seeds=seeds,
        constraints=constraints,
        also=also,
        workers=workers,
    )
    watchers = [watcher] if watcher else []
    session = run_session(
        run.spec, lambda directory: run_discovery(directory, run, watchers=watchers), command=["genorder.discover"]
    )
    return DiscoveryResult(session.outcome)


def rank(
    dataset: DatasetLike,
    orders: Iterable[OrderLike] | str | Path,
    *,
    judge: str = "mixture",
    exact: bool | None = None,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Unpack[RunOptions],
) -> RankResult:
    """Rank orders by the early loss of one short run on their mixture, or by a race.

    Arguments, beside those in `RunOptions`:
        orders: a list of orders, the Path of a JSON file, or names of candidate sets such as "random:128,forward".
        judge: mixture or race.
        exact: score every order on every sample; False drops clearly worse ones early.
    """
    run = plan_rank(_request(dataset, **options), orders, judge=judge, exact=exact)
    session = run_session(
        run.spec,
        lambda directory: run_rank(directory, run, workers=workers, on_step=on_progress),
        command=["genorder.rank"],
    )
    return RankResult(session.outcome)


def train(
    dataset: DatasetLike,
    order: OrderLike | str = "forward",
    *,
    steps: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Unpack[RunOptions],
) -> TrainResult:
    """Train a model that emits its targets in one order, and test it by greedy generation.

    Arguments, beside those in `RunOptions`:
        order: an order, or what `--order` takes: forward, reverse, random:SEED, a JSON file, or "0,3,1,2".
    """
    run = plan_train(_request(dataset, **options), order, steps=steps)
    session = run_session(
        run.spec, lambda directory: run_train(directory, run, on_progress=on_progress), command=["genorder.train"]
    )
    return TrainResult(session.outcome)


def analyze_attention(
    dataset: DatasetLike,
    orders: Iterable[OrderLike | str] = ("forward", "reverse"),
    *,
    steps: int | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
    **options: Unpack[RunOptions],
) -> AttentionResult:
    """Train a model of one layer and one head in each order, and measure its attention map and its sparsity S.

    Arguments, beside those in `RunOptions`:
        orders: orders, or what `--order` takes: forward, reverse, one-swap, random:SEED, a JSON file, or "0,3,1,2".
    """
    run = plan_attention(_request(dataset, **options), orders, steps=steps)
    session = run_session(
        run.spec,
        lambda directory: run_attention(directory, run, on_progress=on_progress),
        command=["genorder.analyze_attention"],
    )
    return AttentionResult(session.outcome)


def _request(
    dataset: DatasetLike,
    *,
    preset: str = "cpu",
    seed: int = 0,
    out: Path | str | None = None,
    validation: SplitLike | None = None,
    test: SplitLike | None = None,
    settings: Settings = (),
    config: Path | str | None = None,
    device: str = "auto",
    threads: int | None = None,
    input_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
) -> RunRequest:
    if dataset is None:
        raise InputError(f"the dataset is a NoneType; expected {EXPECTED_DATASET}")
    names = names_from_lists(input_names, target_names)
    return RunRequest(
        data=DataSpec(data=dataset, validation=validation, test=test, names=names),
        machine=Machine.as_set(device) if threads is None else Machine.choose(device, threads),
        preset=preset,
        config_file=None if config is None else Path(config),
        settings=_settings(settings),
        seed=seed,
        out=None if out is None else Path(out),
    )


def _settings(settings: Settings) -> tuple[str, ...]:
    if isinstance(settings, str):
        raise InputError(f"settings are {settings!r}; expected a list of NAME=VALUE, or a dictionary")
    if isinstance(settings, Mapping):
        try:
            return tuple(f"{name}={json.dumps(value)}" for name, value in settings.items())
        except TypeError as error:
            raise InputError(f"settings hold a value that JSON cannot hold: {error}") from None
    return tuple(settings)
