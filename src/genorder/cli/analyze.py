"""`genorder analyze attention`: what models that are trained in different orders attend to, and how sparsely."""

from typing import Annotated

import typer
from rich.table import Table

from genorder.cli import options
from genorder.cli.console import emit_json, percent, progress_line, say, say_all, screen
from genorder.cli.reporting import run_and_report
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.outcomes import AttentionOutcome
from genorder.runs import RunRequest, plan_attention, run_attention
from genorder.store import RunDirectory

_ANALYSES = ("attention",)


@options.with_run_options(hidden=False)
def analyze(
    name: Annotated[str, typer.Argument(help=f"Which analysis: {', '.join(_ANALYSES)}.")],
    request: RunRequest,
    order: Annotated[
        list[str] | None,
        typer.Option(help="Repeat for each: forward, reverse, one-swap, random:SEED, a JSON FILE, or 0,3,1,2."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps; default: the preset's.")] = None,
    json: options.Json = False,
) -> None:
    """Train a model of one layer and one head in each order; show its attention map and its sparsity S.

    Example: genorder analyze attention --task relu --length 20 --order forward --order reverse
    """
    if name not in _ANALYSES:
        raise InputError(f"no analysis {name!r}; there are: {', '.join(_ANALYSES)}")
    run = plan_attention(request, order or ("forward", "reverse"), steps=steps)
    training_steps = next(iter(run.runs.values())).config.training.steps

    def work(directory: RunDirectory) -> AttentionOutcome:
        say_all(run.source.remarks)
        say(f"{run.source.label}: {len(run.runs)} trainings of {training_steps} steps; run directory {run.spec.path}")
        with StopRequest() as stop, progress_line() as line:
            return run_attention(directory, run, on_progress=line.training, stop=stop)

    outcome = run_and_report(run.spec, work)
    emit_json(outcome.to_dict()) if json else _show(outcome)


def _show(outcome: AttentionOutcome) -> None:
    table = Table("order", "S", "success rate", box=None)
    for entry in outcome.attention:
        table.add_row(entry.name, f"{entry.sparsity:.3f}", percent(entry.success_rate))
    type(screen)(soft_wrap=False).print(table)
    say("S: mean entropy of the rows of the attention map, in nats; smaller is sparser")
