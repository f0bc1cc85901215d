"""The verbs, gathered."""

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
