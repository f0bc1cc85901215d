"""`genorder discover`: find a generation order, prove it by a full training run."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from genorder.cli import options
from genorder.cli.console import count_of, duration, emit_json, progress_line, say, say_all
from genorder.cli.discovery_screen import DiscoveryScreen, show_discovery
from genorder.cli.reporting import run_and_report
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.orders import Constraints, parse_before
from genorder.outcomes import DiscoveryOutcome
from genorder.reports.board import board_in
from genorder.runs import DiscoveryRun, RunRequest, keep_budget, plan_discovery, run_discovery
from genorder.search import AUTO, STRATEGY_NAMES
from genorder.settings import flat_settings
from genorder.store import RunDirectory

_UNITS = {"s": 1, "m": 60, "h": 3600}


@options.with_run_options(hidden=True)
def discover(
    request: RunRequest,
    strategy: Annotated[str, typer.Option(help=f"{', '.join(STRATEGY_NAMES)}; auto is dependencies.")] = AUTO,
    init: Annotated[
        str | None, typer.Option(help="Orders to start from: random, sort, block, topo, vars, or a JSON FILE.")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="Blocks of the global stage (global-local); default 6.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time for exploring, e.g. 90s, 10m, 2h.")] = None,
    max_runs: Annotated[int | None, typer.Option(help="Profiling runs at most.")] = None,
    max_candidates: Annotated[int | None, typer.Option(help="Candidates of one profiling run at most.")] = None,
    explore_only: Annotated[bool, typer.Option("--explore-only", help="Stop before the final training.")] = False,
    baseline: Annotated[bool, typer.Option(help="Train the given order too, to compare.")] = True,
    seeds: Annotated[int | None, typer.Option(min=1, help="Trainings of each order in the race; default 1.")] = None,
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
    tensorboard: options.TensorBoard = False,
    json: options.Json = False,
) -> None:
    """Find the order in which a Transformer learns to emit the targets, and train a model with it.

    Example: genorder discover --task relu --length 10
    """
    run = plan_discovery(
        request,
        strategy,
        search_settings={name: value for name, value in (("init", init), ("depth", depth)) if value is not None},
        seconds=_parse_budget(budget),
        max_runs=max_runs,
        max_candidates=max_candidates,
        explore_only=explore_only,
        baseline=baseline,
        seeds=seeds,
        constraints=Constraints(
            keep_first=keep_first, keep_last=keep_last, groups=groups, before=parse_before(before or [])
        ),
        also=also or [],
        workers=workers,
        dry_run=dry_run,
    )
    if dry_run:
        say_all(run.source.remarks)
        plan = _plan(run)
        emit_json(plan) if json else _show_plan(plan)
        return
    outcome = run_and_report(
        run.spec, lambda directory: _discover(directory, run, tensorboard), tensorboard=tensorboard
    )
    emit_json(outcome.to_dict()) if json else show_discovery(outcome)


def _discover(directory: RunDirectory, run: DiscoveryRun, tensorboard: bool) -> DiscoveryOutcome:
    say_all(run.source.remarks)
    splits, discovery = run.source.splits, run.discovery
    say(
        f"{run.source.label}: {len(splits.train)} training samples; {splits.input_width} inputs, {splits.target_width} "
        f"targets, {len(splits.train.vocabulary)} tokens; run directory {directory.path}"
    )
    keep_budget(directory, run)
    estimate = run.plan()
    if discovery.constraints:
        say(f"orders that are allowed: {discovery.constraints}")
    parts = ", ".join(f"{name} {duration(part)}" for name, part in estimate.parts.items())
    trainings = [each for each in estimate.search.runs if each.steps]
    how = f": {count_of(len(trainings), 'run')}" if trainings else ""
    more = _more(estimate.more_seconds)
    say(f"{discovery.search.name}{how}; about {duration(estimate.total)} in all ({parts}){more}")
    if not discovery.explore_only:
        final = discovery.config.final
        say(
            f"training: up to {count_of(final.training.steps, 'step')} of {final.training.batch_size} samples, "
            f"{count_of(final.model.layers, 'layer')} of width {final.model.width}"
        )
    with (
        StopRequest() as stop,
        board_in(directory.path, tensorboard, run.source.names.targets) as board,
        progress_line() as line,
    ):
        shown = DiscoveryScreen(line, run.source, estimate.parts)
        return run_discovery(directory, run, watchers=[shown, *([board] if board else [])], stop=stop)


def _plan(run: DiscoveryRun) -> dict[str, Any]:
    estimate = run.plan()
    return {
        **run.spec.described,
        "runs": [vars(planned) for planned in estimate.search.runs],
        "estimated_seconds": {**estimate.parts, "total": estimate.total},
        "more_seconds": estimate.more_seconds,
    }


def _show_plan(plan: Mapping[str, Any]) -> None:
    for name, value in flat_settings({**plan["config"], "search": plan["search"]}):
        say(f"{name} = {value}")
    if "constraints" in plan:
        say(f"orders that are allowed: {Constraints.from_dict(plan['constraints'])}")
    for run in plan["runs"]:
        steps = ("up to " if run["more_steps"] else "") + count_of(run["steps"] + run["more_steps"], "step")
        say(f"{run['name']}: {count_of(run['candidates'], 'candidate')}, {steps}")
    for part, seconds in plan["estimated_seconds"].items():
        more = _more(plan["more_seconds"]) if part == "total" else ""
        say(f"{part}: about {duration(seconds)} on this machine{more}")


def _more(seconds: float) -> str:
    return (
        f"; up to {duration(seconds)} more if a model must be trained to propose, many orders race, or learning is slow"
        if seconds
        else ""
    )


def _parse_budget(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    if not match or float(match[1]) <= 0:
        raise InputError(f"--budget {text!r}: expected a time such as 90s, 10m or 2h")
    return float(match[1]) * _UNITS[match[2]]
