"""`genorder discover`: find a generation order, prove it by a full training run."""

import re
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from genorder.cli import options
from genorder.cli.console import (
    ProgressLine,
    abbreviated,
    count_of,
    duration,
    emit_json,
    more_steps_hint,
    percent,
    progress_line,
    say,
    say_all,
    screen,
)
from genorder.cli.reporting import kept
from genorder.discovery import TRAININGS, estimated_seconds, new_problem, unsettled_seconds
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order, deduplicated, parse_before, parse_candidates, parse_order
from genorder.presets import flat_settings, resolve_discovery
from genorder.profiling import RaceProgress
from genorder.reports.board import board_in
from genorder.reports.wording import NAME_WIDTH, by_name, race_overruled, visible
from genorder.runs import (
    DiscoveryRun,
    Source,
    checked,
    discover_in,
    discovery_run,
    scratch_problem,
    split_settings,
    within_time,
)
from genorder.search import Budget, SearchResult, Stage
from genorder.search.reading import NOTHING_LEARNT
from genorder.search.strategies import DEFAULT_STRATEGY, STRATEGIES, make_search
from genorder.seeding import numpy_generator
from genorder.store import RunDirectory
from genorder.training import Progress

_SHOWN = 6  # targets whose dependencies are told
_UNITS = {"s": 1, "m": 60, "h": 3600}


@options.with_run_options(hidden=True, board=True)
def discover(
    asked: options.Asked,
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
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORDER",
            help="Race this order too; repeat for more: reverse, random:SEED, a JSON FILE, 0,3,1,2, or hand (the "
            "hand-designed ones of a delay network).",
        ),
    ] = None,
    keep_first: options.KeepFirst = 0,
    keep_last: options.KeepLast = 0,
    groups: options.Groups = 1,
    before: options.Before = None,
    workers: options.Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the configuration and an estimate.")] = False,
) -> None:
    """Find the order in which a Transformer learns to emit the targets, and train a model with it.

    Example: genorder discover --task relu --length 10
    """
    constraints = Constraints(
        keep_first=keep_first, keep_last=keep_last, groups=groups, before=parse_before(before or [])
    )
    own, changes = split_settings(asked.settings)
    search = make_search(strategy, own | {k: v for k, v in {"init": init, "depth": depth}.items() if v is not None})
    resolved, source = asked.configured(resolve_discovery, changes)
    run = discovery_run(
        resolved,
        source,
        search,
        asked.machine,
        preset=asked.preset,
        seed=asked.seed,
        out=asked.out,
        budget=Budget(max_runs, max_candidates),
        seconds=_parse_budget(budget),
        workers=workers,
        explore_only=explore_only,
        baseline=baseline,
        constraints=constraints,
        also=_own_orders(also or [], source),
    )
    run = checked(run, anew=dry_run)
    if dry_run:
        say_all(source.told)
        plan = _plan(run)
        emit_json(plan) if asked.json else _show_plan(plan)
        return
    result = kept(
        run.place,
        lambda directory: _discover(directory, run, asked.tensorboard),
        tensorboard=asked.tensorboard,
    )
    emit_json(result) if asked.json else _show(result)


def _own_orders(texts: list[str], source: Source) -> list[Order]:
    """Those that are raced beside what the search proposes."""
    found: list[Order] = []
    for text in texts:
        if text == "hand":
            found += parse_candidates(text, source.candidate_source(), numpy_generator(0))  # none of them is random
        else:
            found.append(parse_order(text, source.length))
    return deduplicated(found)


def _discover(directory: RunDirectory, run: DiscoveryRun, tensorboard: bool) -> dict[str, Any]:
    say_all(run.source.told)
    splits = run.source.splits
    say(
        f"{run.source.label}: {len(splits.train)} training samples; {splits.input_width} inputs, {splits.target_width} "
        f"targets, {len(splits.train.vocabulary)} tokens; run directory {directory.path}"
    )
    run = within_time(run, directory)
    problem = new_problem(run.discovery, directory)
    estimate = estimated_seconds(run.discovery, problem)
    runs = run.discovery.search.plan(problem)
    if problem.constraints:
        say(f"orders that are allowed: {problem.constraints}")
    parts = ", ".join(f"{name} {duration(part)}" for name, part in estimate.items())
    total = duration(sum(estimate.values()))
    more = _more(unsettled_seconds(estimate, runs))
    say(f"{run.discovery.search.name}: {count_of(len(runs), 'run')}; about {total} in all ({parts}){more}")
    if not run.discovery.explore_only:
        final = run.discovery.config.final
        say(
            f"final training: {count_of(final.training.steps, 'step')} of {final.training.batch_size} samples, "
            f"{count_of(final.model.layers, 'layer')} of width {final.model.width}"
        )
    with (
        StopRequest() as stop,
        board_in(directory.path, tensorboard, run.source.names.targets) as board,
        progress_line() as line,
    ):
        shown = _Watcher(line, run.source, estimate)
        return discover_in(directory, run, watchers=[shown, *([board] if board else [])], stop=stop)


class _TimeLeft:
    """Of the whole run: what was estimated, corrected by what the part at work says."""

    def __init__(self, estimate: dict[str, float]) -> None:
        self._left = dict(estimate)  # of this part and those after it
        self._part, self._started = "", 0.0

    def now(self, part: str, of_stage: float) -> float:
        if part != self._part:
            self._part, self._started = part, time.monotonic()
            names = list(self._left)
            self._left = {name: self._left[name] for name in names[names.index(part) :]}
        here = max(of_stage, self._left[part] - (time.monotonic() - self._started))
        return here + sum(seconds for name, seconds in self._left.items() if name != part)


class _Watcher:
    """Shows how far a discovery is."""

    def __init__(self, line: ProgressLine, source: Source, estimate: dict[str, float]) -> None:
        self._line, self._source, self._left = line, source, _TimeLeft(estimate)

    def progress(self, stage: str, progress: Progress) -> None:
        part = "train" if stage in TRAININGS.values() else "propose"
        self._line.training(stage, progress, self._left.now(part, progress.seconds_left))

    def stage(self, stage: Stage) -> None:
        best = stage.best[0]
        loss = "" if best.loss is None else f", loss {best.loss:.4f}"
        self._line.best(self._told(best.order), best.loss)
        say(
            f"{stage.name}: {count_of(stage.candidates, 'candidate')}, {stage.kept} kept, "
            f"{duration(sum(stage.seconds.values()))}; best so far {self._told(best.order)}{loss}"
        )

    def proposed(self, proposed: SearchResult) -> None:
        """Before the race and the trainings, so that whoever does not want them can stop here."""
        if "verdict" in proposed.details:
            say(f"{proposed.details['verdict']}: {proposed.details['advice']}")

    def race(self, progress: RaceProgress) -> None:
        left = self._left.now("race", progress.seconds_left)
        self._line.racing(progress, self._told(progress.best), left)

    def _told(self, order: Order) -> str:
        return f"{_named(self._source.about_order(order))}{by_name(order, self._source.names.targets)}"


def _plan(run: DiscoveryRun) -> dict[str, Any]:
    with scratch_problem(run) as problem:
        problem.budget = run.decided or problem.budget
        estimate = estimated_seconds(run.discovery, problem)
        runs = run.discovery.search.plan(problem)
    return {
        **run.place.described,
        "runs": [vars(planned) for planned in runs],
        "estimated_seconds": {**estimate, "total": sum(estimate.values())},
        "unsettled_seconds": unsettled_seconds(estimate, runs),
    }


def _show_plan(plan: dict[str, Any]) -> None:
    for name, value in flat_settings({**plan["config"], "search": plan["search"]}):
        say(f"{name} = {value}")
    if "constraints" in plan:
        say(f"orders that are allowed: {Constraints.from_dict(plan['constraints'])}")
    for run in plan["runs"]:
        say(f"{run['name']}: {count_of(run['candidates'], 'candidate')}, {count_of(run['steps'], 'step')}")
    for part, seconds in plan["estimated_seconds"].items():
        more = _more(plan["unsettled_seconds"]) if part in ("propose", "total") else ""
        say(f"{part}: about {duration(seconds)} on this machine{more}")


def _more(seconds: float) -> str:
    return f"; up to {duration(seconds)} more if the search is late to settle" if seconds else ""


def _show(result: dict[str, Any]) -> None:
    true = "cost_ratio" in result
    table = Table("loss after each round", "", *(["cost", "order (true indices)"] if true else ["order"]), box=None)
    for place, row in enumerate(result["race"]):
        losses = "  ".join("diverged" if loss is None else f"{loss:.4f}" for loss in row["losses"])
        cost = [f"{row['cost_ratio']:.2f}"] if true else []
        table.add_row(losses, "tied" if place and row["tied_with_best"] else "", *cost, _indices(row))
    type(screen)(soft_wrap=False).print(table)
    say(f"found: {_named(result)}{by_name(result['order'], result.get('target_names'))}")
    if result.get("constraints"):
        say(f"among the orders that were allowed: {Constraints.from_dict(result['constraints'])}")
    if result["tied_orders"]:
        others = "; ".join(_indices(row) for row in result["race"] if row["order"] in result["tied_orders"])
        say(f"the race could not separate it from these, so the search's ranking decided: {others}")
    if result.get("race_overruled"):
        say(f"the race did not decide: {race_overruled(result)}")
    elif result["order"] != result["proposed"]["proposals"][0]["order"]:
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
        if "given_failed" in result:
            say(f"in the given order the training failed: {result['given_failed']}")
        if result["success_rate_given_order"] is not None:
            say(f"in the given order: {percent(result['success_rate_given_order'])}")
        say(f"model in {Path(result['run_dir']) / 'model'}, trained for {count_of(result['steps'], 'step')}")
        if more := more_steps_hint(result, "--set final.training.steps={}"):
            say(more)
    seconds = ", ".join(f"{name} {duration(part)}" for name, part in result["seconds"].items())
    say(f"time: {seconds}")


def _show_findings(result: dict[str, Any]) -> None:
    """What an any-order search says beyond the order: whether to believe it, and what each target is computed from."""
    details = result["proposed"]["details"]
    if "verdict" in details:
        say(f"{details['verdict']}: {details['advice']}")
    known = "dependencies" in details and details["verdict"] != NOTHING_LEARNT
    if not known or result["order"] != result["proposed"]["proposals"][0]["order"]:
        return
    true = dict(zip(result["order"], result.get("order_in_true_indices", result["order"]), strict=True))
    x, y = result.get("input_names"), result.get("target_names")

    def target(column: int) -> str:
        return visible(y[column], NAME_WIDTH) if y else f"y{true[column]}"

    parents = {
        dependency["target"]: [visible(x[i], NAME_WIDTH) if x else f"x{i}" for i in dependency["inputs"]]
        + [target(i) for i in dependency["targets"]]
        for dependency in details["dependencies"]
    }
    shown = [f"{target(column)} from {' '.join(parents[column]) or 'nothing'}" for column in result["order"][:_SHOWN]]
    more = ", ..." if len(parents) > _SHOWN else ""
    say(f"computed, in this order: {', '.join(shown)}{more}")


def _named(about: dict[str, Any]) -> str:
    """An order in short form; of a built-in task, in its true indices."""
    true = f" (true indices, cost {about['cost_ratio']:.2f})" if "cost_ratio" in about else ""
    return f"{_indices(about)}{true}"


def _indices(about: dict[str, Any]) -> str:
    return abbreviated(Order(tuple(about.get("order_in_true_indices", about["order"]))))


def _parse_budget(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    if not match or float(match[1]) <= 0:
        raise InputError(f"--budget {text!r}: expected a time such as 90s, 10m or 2h")
    return float(match[1]) * _UNITS[match[2]]
