"""The verbs, gathered."""

from importlib.metadata import version
from typing import Annotated

import typer

from genorder.cli import (
    analyze,
    bench,
    discover,
    doctor,
    evaluate,
    export,
    generate,
    inspect,
    predict,
    rank,
    report,
    status,
    tasks,
    train,
    watch,
)

app = typer.Typer(
    name="genorder",
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the order in which a Transformer should emit its target tokens so that training succeeds.",
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"genorder {version('genorder')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("discover")(discover.discover)
app.command("inspect")(inspect.inspect)
app.command("tasks")(tasks.tasks)
app.command("generate")(generate.generate)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("rank")(rank.rank)
app.command("export")(export.export)
app.command("report")(report.report)
app.command("watch")(watch.watch)
app.command("analyze")(analyze.analyze)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("bench")(bench.bench)
