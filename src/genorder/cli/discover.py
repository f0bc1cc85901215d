"""`genorder discover`: find a generation order, prove it by a full training run."""

import re
from typing import Annotated, Any

import typer

from genorder.cli import options
from genorder.cli.console import (
    count_of,
    duration,
    emit_json,
    progress_line,
    say,
    say_all,
)
from genorder.cli.discovery_screen import DiscoveryScreen, show_discovery
from genorder.cli.reporting import kept
from genorder.discovery import new_problem
from genorder.errors import InputError
from genorder.estimates import estimated
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order, deduplicated, parse_before, parse_candidates, parse_order
from genorder.reports.board import board_in
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
from genorder.search import Budget
from genorder.search.strategies import AUTO, STRATEGY_NAMES, make_search
from genorder.seeding import numpy_generator
from genorder.settings import flat_settings, resolve_discovery
from genorder.store import RunDirectory

_UNITS = {"s": 1, "m": 60, "h": 3600}


@options.with_run_options(hidden=True, board=True)
def discover(
    asked: options.Asked,
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
) -> None:
    """Find the order in which a Transformer learns to emit the targets, and train a model with it.

    Example: genorder discover --task relu --length 10
    """
    constraints = Constraints(
        keep_first=keep_first, keep_last=keep_last, groups=groups, before=parse_before(before or [])
    )
    own, changes = split_settings(asked.settings)
    search = make_search(strategy, own | {k: v for k, v in {"init": init, "depth": depth}.items() if v is not None})
    changes += [] if seeds is None else [f"race.seeds={seeds}"]
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
    emit_json(result) if asked.json else show_discovery(result)


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
    estimate = estimated(run.discovery, problem)
    runs = run.discovery.search.plan(problem)
    if problem.constraints:
        say(f"orders that are allowed: {problem.constraints}")
    parts = ", ".join(f"{name} {duration(part)}" for name, part in estimate.parts.items())
    more = _more(estimate.more(runs))
    total = duration(estimate.total)
    trainings = [each for each in runs if each.steps]
    how = f": {count_of(len(trainings), 'run')}" if trainings else ""
    say(f"{run.discovery.search.name}{how}; about {total} in all ({parts}){more}")
    if not run.discovery.explore_only:
        final = run.discovery.config.final
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
        return discover_in(directory, run, watchers=[shown, *([board] if board else [])], stop=stop)


def _plan(run: DiscoveryRun) -> dict[str, Any]:
    with scratch_problem(run) as problem:
        problem.budget = run.decided or problem.budget
        estimate = estimated(run.discovery, problem)
        runs = run.discovery.search.plan(problem)
    return {
        **run.place.described,
        "runs": [vars(planned) for planned in runs],
        "estimated_seconds": {**estimate.parts, "total": estimate.total},
        "more_seconds": estimate.more(runs),
    }


def _show_plan(plan: dict[str, Any]) -> None:
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
