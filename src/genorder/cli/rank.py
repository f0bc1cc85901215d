"""`genorder rank`: loss-profile given orders."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from genorder.cli import options
from genorder.cli.console import abbreviated, duration, emit_json, progress_line, say, say_all, screen
from genorder.cli.reporting import run_and_report
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.orders import Order
from genorder.outcomes import RankOutcome
from genorder.race import RaceProgress
from genorder.reports.board import board_in
from genorder.reports.wording import by_name
from genorder.runs import RunRequest, Source, plan_rank, run_rank
from genorder.store import RunDirectory
from genorder.training import Progress

_SHOWN = 20


@options.with_run_options(hidden=True)
def rank(
    request: RunRequest,
    candidates: Annotated[
        str | None,
        typer.Option(help="Sets of orders, e.g. random:128,forward; also reverse, sort:N, block:N, topo:N."),
    ] = None,
    orders: Annotated[Path | None, typer.Option(help="JSON file with a list of orders.")] = None,
    judge: Annotated[
        str,
        typer.Option(help="mixture: one short run on all orders; race: a training for each, the worse ones dropped."),
    ] = "mixture",
    exact: Annotated[
        bool | None, typer.Option(help="Score all orders on all samples, or drop the surely worse early.")
    ] = None,
    workers: options.Workers = None,
    tensorboard: options.TensorBoard = False,
    json: options.Json = False,
) -> None:
    """Rank orders by the early loss of one short run on their mixture, or by a race.

    Example: genorder rank --task relu --length 30 --candidates random:128,forward
    """
    ranked = candidates if orders is None else orders
    if ranked is None or (candidates is not None and orders is not None):
        raise InputError("give --candidates, such as random:128,forward, or --orders FILE, one of the two")
    run = plan_rank(request, ranked, judge=judge, exact=exact)

    def work(directory: RunDirectory) -> RankOutcome:
        source = run.source
        say_all(source.remarks)
        say(f"{source.label}: {len(run.orders)} orders; run directory {directory.path}")
        with StopRequest() as stop, board_in(directory.path, tensorboard) as board, progress_line() as line:

            def on_step(progress: Progress) -> None:
                line.training("profiling", progress)
                if board:
                    board.progress("profiling", progress)

            def on_job(progress: RaceProgress) -> None:
                line.racing(progress, _named(progress.best, source) if progress.best else "")
                if board:
                    board.race(progress)

            return run_rank(directory, run, workers=workers, on_step=on_step, on_job=on_job, stop=stop)

    outcome = run_and_report(run.spec, work, tensorboard=tensorboard)
    emit_json(outcome.to_dict()) if json else _show(outcome)


def _named(order: Order, source: Source) -> str:
    true = source.true_order(order)
    shown = f"{abbreviated(true)} (true indices)" if true else abbreviated(order)
    return f"{shown}{by_name(order, source.names.targets)}"


def _show(outcome: RankOutcome) -> None:
    truth = outcome.truth
    table = Table("rank", "loss", "± error", "", "true order" if truth else "order", box=None)
    for rank, one in enumerate(outcome.ranked[:_SHOWN], start=1):
        loss = "not finite" if one.loss is None else f"{one.loss:.4f}"
        error = "" if one.standard_error is None else f"{one.standard_error:.4f}"
        order = (truth.true_order(one.order) if truth else one.order).short()
        mark = "tied" if one.tied_with_best and rank > 1 else ""
        table.add_row(str(rank), loss, error, mark, order if len(order) <= 70 else f"{order[:67]}...")
    type(screen)(soft_wrap=False).print(table)
    if len(outcome.ranked) > _SHOWN:
        say(f"and {len(outcome.ranked) - _SHOWN} more")
    if outcome.names.targets:
        say(f"the first{by_name(outcome.best_order, outcome.names.targets)}")
    say("time: " + ", ".join(f"{name} {duration(seconds)}" for name, seconds in outcome.seconds.items()))
    say(f"all of them in {outcome.run_dir / 'ranking.csv'}")
