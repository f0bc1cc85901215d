"""`genorder discover`: find a generation order, prove it by a full training run."""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from genorder.cli import options
from genorder.cli.console import ProgressLine, abbreviated, duration, emit_json, percent, progress_line, say, screen
from genorder.cli.reporting import reported
from genorder.cli.source import Source, configure
from genorder.discovery import Discovery, budget_within, estimated_seconds, new_problem
from genorder.discovery import discover as discover_order
from genorder.errors import InputError
from genorder.execution import StopRequest, choose_device, describe_machine, set_threads
from genorder.orders import Order
from genorder.presets import DiscoveryConfig, family_of, parse_setting, resolve_discovery
from genorder.search import Budget, SearchProblem, Stage
from genorder.search.strategies import DEFAULT_STRATEGY, STRATEGIES, make_search
from genorder.store import RunDirectory, fingerprint
from genorder.training import Progress

_SHOWN = 6  # targets whose dependencies are told
_SEARCH = "search."  # the settings of the strategy itself, in --set
_UNITS = {"s": 1, "m": 60, "h": 3600}


def discover(
    data: options.Data = None,
    task: options.Task = None,
    length: options.Length = None,
    hidden_order_seed: options.HiddenByDefault = None,
    strategy: Annotated[str, typer.Option(help=f"How to search: {', '.join(STRATEGIES)}.")] = DEFAULT_STRATEGY,
    init: Annotated[
        str | None, typer.Option(help="Orders to start from: random, sort, block, topo, vars, or a JSON FILE.")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="Blocks of the global stage (global-local); default 6.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time for exploring, e.g. 90s, 10m, 2h.")] = None,
    max_runs: Annotated[int | None, typer.Option(help="Profiling runs at most.")] = None,
    max_candidates: Annotated[int | None, typer.Option(help="Candidates of one profiling run at most.")] = None,
    explore_only: Annotated[bool, typer.Option("--explore-only", help="Stop before the final training.")] = False,
    baseline: Annotated[bool, typer.Option(help="Train the given order too, to compare.")] = True,
    workers: options.Workers = None,
    preset: options.Preset = "cpu",
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    threads: options.Threads = None,
    out: options.Out = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the configuration and an estimate.")] = False,
    json: options.Json = False,
) -> None:
    """Find the order in which a Transformer learns to emit the targets, and train a model with it.

    Example: genorder discover --task relu --length 10
    """
    chosen = choose_device(device)
    used_threads = set_threads(threads)
    seconds = _parse_budget(budget)
    own = {"init": init, "depth": depth}
    search = make_search(strategy, {**_search_settings(settings), **{k: v for k, v in own.items() if v is not None}})
    changes = [setting for setting in settings or [] if not setting.startswith(_SEARCH)]
    hidden = 0 if task is not None and hidden_order_seed is None else hidden_order_seed

    def configured(train_samples: int | None) -> DiscoveryConfig:
        family = family_of(task)
        return resolve_discovery(preset, family, train_samples=train_samples, config_file=config, settings=changes)

    resolved, source = configure(configured, data, task, length, hidden)
    discovery = Discovery(
        splits=source.splits,
        source=source.candidate_source(),
        config=resolved,
        search=search,
        seed=seed,
        device=chosen,
        budget=Budget(max_runs, max_candidates),
        workers=workers,
        explore_only=explore_only,
        baseline=baseline,
    )
    described = {
        "verb": "discover",
        "data": source.description,
        "strategy": strategy,
        "search": vars(search),
        "budget": {"seconds": seconds, **vars(discovery.budget)},
        "explore_only": explore_only,
        "baseline": baseline,
        "preset": preset,
        "config": resolved.model_dump(),
        "seed": seed,
        "device": chosen.type,
        "threads": used_threads,
    }
    asked = fingerprint({**described, "device": device, "threads": threads})
    path = out or Path("runs") / f"discover-{source.label}-{asked[:8]}"
    decided: Budget | None = None
    with _without_directory(discovery, described) as problem:  # what is refused leaves no run directory
        search.check(problem)
        if seconds is not None and (dry_run or not path.exists()):
            decided = budget_within(seconds, discovery, problem)
        if dry_run:
            problem.budget = decided or problem.budget
            plan = _plan(discovery, problem, described)
            emit_json(plan) if json else _show_plan(plan)
            return
    with (
        RunDirectory.open(path, described, command=sys.argv, environment=describe_machine()) as directory,
        reported(directory),
    ):
        result = directory.read_result()
        if result is None:
            result = _discover(discovery, source, directory, seconds, decided)
        else:
            say(f"{path} holds the finished run of this command; showing its result")
    emit_json(result) if json else _show(result)


def _discover(
    discovery: Discovery, source: Source, directory: RunDirectory, seconds: float | None, decided: Budget | None
) -> dict[str, Any]:
    splits = source.splits
    say(
        f"{source.label}: {len(splits.train)} training samples; {splits.input_width} inputs, {splits.target_width} "
        f"targets, {len(splits.train.vocabulary)} tokens; run directory {directory.path}"
    )
    problem = new_problem(discovery, directory)
    if seconds is not None:
        discovery = replace(discovery, budget=_budget_in_time(seconds, decided, discovery, problem, directory))
        problem = new_problem(discovery, directory)
    estimate = estimated_seconds(discovery, problem)
    runs = discovery.search.plan(problem)
    parts = ", ".join(f"{name} {duration(part)}" for name, part in estimate.items())
    say(f"{discovery.search.name}: {len(runs)} runs; about {duration(sum(estimate.values()))} in all ({parts})")
    with StopRequest() as stop, progress_line() as line:
        result = discover_order(discovery, directory, watcher=_Watcher(line, source, directory), stop=stop)
    result |= source.about_order(Order(tuple(result["order"])))
    for row in (*result["race"], *result["proposed"]["proposals"]):
        row |= source.about_order(Order(tuple(row["order"])))
    directory.write_result(result)
    return result


def _budget_in_time(
    seconds: float, decided: Budget | None, discovery: Discovery, problem: SearchProblem, directory: RunDirectory
) -> Budget:
    """Decided once, by this machine's speed, and kept: a continued run must not decide otherwise."""
    kept = directory.journal.run(
        {"job": "budget", "seconds": seconds},
        "budget",
        lambda: vars(decided or budget_within(seconds, discovery, problem)),
    )
    return Budget(**kept)


class _Watcher:
    """Shows how far a discovery is, and tells it to those who ask for the run's status."""

    def __init__(self, line: ProgressLine, source: Source, directory: RunDirectory) -> None:
        self._line, self._source, self._directory = line, source, directory

    def progress(self, stage: str, progress: Progress) -> None:
        self._line.training(stage, progress)
        self._directory.write_progress({"stage": stage, **vars(progress)})

    def stage(self, stage: Stage) -> None:
        best = stage.best[0]
        loss = "" if best.loss is None else f", loss {best.loss:.4f}"
        say(
            f"{stage.name}: {stage.candidates} candidates, {stage.kept} kept, {duration(sum(stage.seconds.values()))}; "
            f"best so far {_named(self._source.about_order(best.order))}{loss}"
        )

    def race(self, round_number: int, done: int, total: int) -> None:
        self._line.jobs(f"race, round {round_number + 1}", done, total)
        self._directory.write_progress({"stage": "race", "round": round_number + 1, "jobs": done, "of": total})


@contextmanager
def _without_directory(discovery: Discovery, described: dict[str, Any]) -> Iterator[SearchProblem]:
    """The problem, in a directory that does not last."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        RunDirectory.open(Path(scratch) / "plan", described, command=sys.argv, environment={}) as directory,
    ):
        yield new_problem(discovery, directory)


def _plan(discovery: Discovery, problem: SearchProblem, described: dict[str, Any]) -> dict[str, Any]:
    estimate = estimated_seconds(discovery, problem)
    runs = [vars(run) for run in discovery.search.plan(problem)]
    return {**described, "runs": runs, "estimated_seconds": {**estimate, "total": sum(estimate.values())}}


def _show_plan(plan: dict[str, Any]) -> None:
    for name, value in [*_flat(plan["config"]), *_flat({"search": plan["search"]})]:
        say(f"{name} = {value}")
    for run in plan["runs"]:
        say(f"{run['name']}: {run['candidates']} candidates, {run['steps']} steps")
    for part, seconds in plan["estimated_seconds"].items():
        say(f"{part}: about {duration(seconds)} on this machine")


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by the names that --set knows them by."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _show(result: dict[str, Any]) -> None:
    table = Table("round losses", "", "order", box=None)
    for row in result["race"]:
        losses = "  ".join("diverged" if loss is None else f"{loss:.4f}" for loss in row["losses"])
        table.add_row(losses, "tied" if row["tied_with_best"] else "", _named(row))
    type(screen)(soft_wrap=False).print(table)
    say(f"found: {_named(result)}")
    if result["tied_orders"]:
        others = "; ".join(abbreviated(Order(tuple(order))) for order in result["tied_orders"])
        say(f"the race could not separate it from these, so the search's ranking decided: {others}")
    if result["order"] != result["proposed"]["proposals"][0]["order"]:
        say("the race preferred it to the order that the search put first")
    if "cost_ratio" in result:
        say(f"it costs {result['cost_ratio']:.2f} times the operations of the best order")
    _show_findings(result)
    if "success_rate" in result:
        low, high = result["success_rate_interval"]
        say(
            f"success rate {percent(result['success_rate'])} ({percent(low)} to {percent(high)}) "
            f"on {result['samples']} test samples"
        )
        if result["success_rate_given_order"] is not None:
            say(f"in the given order: {percent(result['success_rate_given_order'])}")
        say(f"model in {Path(result['run_dir']) / 'model'}")
    seconds = ", ".join(f"{name} {duration(part)}" for name, part in result["seconds"].items())
    say(f"time: {seconds}")


def _show_findings(result: dict[str, Any]) -> None:
    """What an any-order search says beyond the order: whether to believe it, and what each target is computed from."""
    details = result["proposed"]["details"]
    if "verdict" in details:
        say(f"{details['verdict']}: {details['advice']}")
    if "dependencies" not in details or result["order"] != result["proposed"]["proposals"][0]["order"]:
        return
    name = dict(zip(result["order"], result.get("order_in_true_indices", result["order"]), strict=True))
    parents = {
        dependency["target"]: [f"x{i}" for i in dependency["inputs"]] + [f"y{name[i]}" for i in dependency["targets"]]
        for dependency in details["dependencies"]
    }
    shown = [f"y{name[target]} from {' '.join(parents[target]) or 'nothing'}" for target in result["order"][:_SHOWN]]
    more = ", ..." if len(parents) > _SHOWN else ""
    say(f"computed, in this order: {', '.join(shown)}{more}")


def _named(about: dict[str, Any]) -> str:
    """An order in short form; of a built-in task, in its true indices."""
    if "order_in_true_indices" in about:
        true = Order(tuple(about["order_in_true_indices"]))
        return f"{abbreviated(true)} (true indices, cost {about['cost_ratio']:.2f})"
    return abbreviated(Order(tuple(about["order"])))


def _search_settings(settings: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for setting in settings or []:
        if setting.startswith(_SEARCH):
            found |= parse_setting(setting)["search"]
    return found


def _parse_budget(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    if not match or float(match[1]) <= 0:
        raise InputError(f"--budget {text!r}: expected a time such as 90s, 10m or 2h")
    return float(match[1]) * _UNITS[match[2]]
