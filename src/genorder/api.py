"""genorder for Python programs: find, rank and train orders by one call each.

A call is a run: it keeps its work in a run directory, under `runs/` unless `out` says where, and the same call again
continues an interrupted one, or returns the finished one's result. `dataset` is a SequenceDataset (split here: at most
a tenth each for validation and test), Splits, the data of a task (`task_splits`), the path of a file, or a pair of
lists (inputs, targets). `validation` and `test` are samples of one's own for these splits, in place of those that would
be cut off a dataset, pair or file: each a dataset, a path or a pair. `settings` change the preset, as `--set` does:
`{"final.training.steps": 500}` or `["final.training.steps=500"]`. `input_names` and `target_names` are what you call
the places, for the report and the result; a table with a column for each token has them itself. All raise InputError,
one clear line, for what cannot be used.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from genorder.data import ReadOptions, SequenceDataset, given_names, read_dataset
from genorder.discovery import Watcher
from genorder.errors import InputError
from genorder.orders import Constraints, Order, deduplicated, parse_candidates, parse_order, read_orders
from genorder.results import DiscoveryResult, RankResult, TrainResult
from genorder.runs import (
    DatasetLike,
    Machine,
    Source,
    SplitLike,
    checked,
    configure_given,
    discover_in,
    discovery_run,
    rank_in,
    rank_run,
    run_session,
    split_settings,
    train_in,
    train_run,
    within_time,
)
from genorder.search import Budget, Search
from genorder.search.strategies import make_search
from genorder.seeding import derive_seed, numpy_generator
from genorder.settings import resolve, resolve_discovery, resolve_exploration
from genorder.store import to_plain
from genorder.training import Progress

Settings = Sequence[str] | Mapping[str, object]
OrderLike = Order | Sequence[int]


def load_dataset(path: Path | str, **options: Any) -> SequenceDataset:
    """Read a dataset in any format that the command line reads; `options` are the fields of `ReadOptions`."""
    return read_dataset(path, ReadOptions(**options))


def discover(
    dataset: DatasetLike,
    *,
    strategy: str | Search = "auto",
    preset: str = "cpu",
    seed: int = 0,
    out: Path | str | None = None,
    validation: SplitLike | None = None,
    test: SplitLike | None = None,
    settings: Settings = (),
    config: Path | str | None = None,
    seconds: float | None = None,
    max_runs: int | None = None,
    max_candidates: int | None = None,
    explore_only: bool = False,
    baseline: bool = True,
    seeds: int | None = None,
    constraints: Constraints | None = None,
    also: Iterable[OrderLike] = (),
    workers: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    input_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    watcher: Watcher | None = None,
) -> DiscoveryResult:
    """Find the order in which a Transformer learns to emit the targets, and train a model with it.

    `strategy` is one of `genorder discover --strategy`, or a Search of one's own; `auto` is dependencies.
    `seconds` limits the time for exploring, `max_runs` and `max_candidates` its profiling runs. `explore_only` stops
    before the final training; `baseline` trains the given order too; `seeds` are the trainings of each order in the
    race. Only orders that meet the `constraints` are
    searched and raced, and those that none can meet are refused. `also` are orders of your own that are raced beside
    those that the search proposes. `config` is a TOML file of settings. `threads`
    are torch's; None leaves them as they are. `watcher` is told how far the run is.
    """
    if constraints is not None and not isinstance(constraints, Constraints):
        raise InputError(f"constraints are a {type(constraints).__name__}; expected genorder.Constraints, or None")
    own, changes = split_settings(_settings(settings))
    changes += [] if seeds is None else [f"race.seeds={seeds}"]
    search = _search(strategy, own)
    resolver = partial(resolve_discovery, preset, config_file=_path(config), settings=changes)
    machine = _machine(device, threads)
    own_splits = {"validation": validation, "test": test}
    resolved, source = configure_given(resolver, dataset, own_splits, given_names(input_names, target_names))
    run = discovery_run(
        resolved,
        source,
        search,
        machine,
        preset=preset,
        seed=seed,
        out=_path(out),
        budget=Budget(max_runs, max_candidates),
        seconds=seconds,
        workers=workers,
        explore_only=explore_only,
        baseline=baseline,
        constraints=constraints,
        also=deduplicated(_order(order, source.length) for order in also),
    )
    run = checked(run)  # what is refused leaves no run directory
    result, _ = run_session(
        run.place,
        lambda directory: discover_in(directory, within_time(run, directory), watchers=[watcher] if watcher else []),
        command=["genorder.discover"],
    )
    return DiscoveryResult(result)


def rank(
    dataset: DatasetLike,
    orders: Iterable[OrderLike] | str | Path,
    *,
    judge: str = "mixture",
    exact: bool | None = None,
    preset: str = "cpu",
    seed: int = 0,
    out: Path | str | None = None,
    validation: SplitLike | None = None,
    test: SplitLike | None = None,
    settings: Settings = (),
    config: Path | str | None = None,
    workers: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    input_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RankResult:
    """Rank orders by the early loss of one short run on their mixture, or (`judge="race"`) by a race.

    `orders` is a list of orders, the Path of a JSON file of them, or the names of candidate sets such as
    `"random:128,forward"`. `exact` says whether to score all orders on all samples, or drop the surely worse early.
    """
    changes = [*_settings(settings), *([] if exact is None else [f"profiler.exact={json.dumps(exact)}"])]
    resolver = partial(resolve_exploration, preset, config_file=_path(config), settings=changes)
    machine = _machine(device, threads)
    own_splits = {"validation": validation, "test": test}
    resolved, source = configure_given(resolver, dataset, own_splits, given_names(input_names, target_names))
    ranked = _orders(orders, source, seed)
    run = rank_run(resolved, source, ranked, machine, judge=judge, preset=preset, seed=seed, out=_path(out))
    result, _ = run_session(
        run.place,
        lambda directory: rank_in(directory, run, workers=workers, on_step=on_progress),
        command=["genorder.rank"],
    )
    return RankResult(result)


def train(
    dataset: DatasetLike,
    order: OrderLike | str = "forward",
    *,
    steps: int | None = None,
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
    on_progress: Callable[[Progress], None] | None = None,
) -> TrainResult:
    """Train a model that emits its targets in one order, and test it by greedy generation.

    `order` is an order, or what `--order` takes: forward, reverse, random:SEED, a JSON file, or "0,3,1,2".
    """
    changes = [*_settings(settings), *([] if steps is None else [f"training.steps={steps}"])]
    resolver = partial(resolve, preset, config_file=_path(config), settings=changes)
    machine = _machine(device, threads)
    own_splits = {"validation": validation, "test": test}
    resolved, source = configure_given(resolver, dataset, own_splits, given_names(input_names, target_names))
    parsed = parse_order(order, source.length) if isinstance(order, str) else _order(order, source.length)
    run = train_run(resolved, source, parsed, machine, preset=preset, seed=seed, out=_path(out))
    result, _ = run_session(
        run.place,
        lambda directory: train_in(directory, run, on_progress=on_progress),
        command=["genorder.train"],
    )
    return TrainResult(result)


def _search(strategy: str | Search, settings: dict[str, Any]) -> Search:
    if isinstance(strategy, str):
        return make_search(strategy, settings)
    if settings:
        raise InputError("settings of search.* belong to a strategy by name; a Search has its settings already")
    try:
        to_plain(vars(strategy))
    except (TypeError, ValueError) as error:
        raise InputError(f"the search {strategy.name!r} cannot be written down: {error}") from None
    return strategy


def _settings(settings: Settings) -> list[str]:
    if isinstance(settings, str):
        raise InputError(f"settings are {settings!r}; expected a list of NAME=VALUE, or a dictionary")
    if isinstance(settings, Mapping):
        try:
            return [f"{name}={json.dumps(value)}" for name, value in settings.items()]
        except TypeError as error:
            raise InputError(f"settings hold what is no plain value: {error}") from None
    return list(settings)


def _orders(orders: Iterable[OrderLike] | str | Path, source: Source, seed: int) -> list[Order]:
    if isinstance(orders, Path):
        return read_orders(orders, source.length)
    if isinstance(orders, str):
        rng = numpy_generator(derive_seed(seed, "candidates"))
        return parse_candidates(orders, source.candidate_source(), rng)
    found = deduplicated(_order(order, source.length) for order in orders)
    if not found:
        raise InputError("there are no orders to rank")
    return found


def _order(order: OrderLike, length: int) -> Order:
    found = order if isinstance(order, Order) else Order.of(order)
    if len(found) != length:
        raise InputError(f"an order has {len(found)} indices; the data has {length} targets")
    return found


def _machine(device: str, threads: int | None) -> Machine:
    if threads is not None:
        return Machine.choose(device, threads)
    return Machine.as_set(device, torch.get_num_threads())


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
