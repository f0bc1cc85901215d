"""`genorder analyze attention`: what models trained in different orders attend to, and how sparsely."""

from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from genorder.analysis.attention import summarise_attention
from genorder.cli import options
from genorder.cli.console import emit_json, percent, say, say_all, screen, training_progress
from genorder.cli.reporting import kept
from genorder.data import arrange
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, train_and_evaluate
from genorder.models import load_model
from genorder.orders import Order, parse_order
from genorder.runs import run_spec
from genorder.settings import resolve
from genorder.store import RunDirectory
from genorder.training import Progress

_ANALYSES = ("attention",)
_ONE_SWAP = "one-swap"
_ORDERS = ["forward", "reverse"]
_SAMPLES = 200  # test samples over which maps are averaged


@options.with_run_options(hidden=False, board=False)
def analyze(
    name: Annotated[str, typer.Argument(help=f"Which analysis: {', '.join(_ANALYSES)}.")],
    asked: options.Asked,
    order: Annotated[
        list[str] | None,
        typer.Option(help="Repeat for each: forward, reverse, one-swap, random:SEED, a JSON FILE, or 0,3,1,2."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps; default: the preset's.")] = None,
) -> None:
    """Train a model of one layer and one head in each order; show its attention map and its sparsity S.

    Example: genorder analyze attention --task relu --length 20 --order forward --order reverse
    """
    if name not in _ANALYSES:
        raise InputError(f"no analysis {name!r}; there are: {', '.join(_ANALYSES)}")
    one_head = ["model.layers=1", "model.heads=1"]
    changes = [*one_head, *asked.settings, *([f"training.steps={steps}"] if steps is not None else [])]
    resolved, source = asked.configured(resolve, changes)
    orders = {text: _parse(text, source.length) for text in order or _ORDERS}
    described = {
        "verb": f"analyze {name}",
        "data": source.description,
        "orders": {text: list(parsed) for text, parsed in orders.items()},
        "preset": asked.preset,
        "config": resolved.model_dump(),
        "seed": asked.seed,
    }
    place = run_spec(asked.out, f"attention-{source.label}", described, source, asked.machine)
    runs = {
        text: FixedOrderRun(source.splits, parsed, resolved, asked.seed, asked.machine.device)
        for text, parsed in orders.items()
    }

    def work(directory: RunDirectory) -> dict[str, Any]:
        say_all(source.told)
        say(f"{source.label}: {len(runs)} trainings of {resolved.training.steps} steps; run directory {place.path}")
        result = _attention(runs, directory)
        for row in result["attention"]:
            row |= source.about_order(Order(tuple(row["order"])))
        return result

    result = kept(place, work)
    emit_json(result) if asked.json else _show(result)


def _parse(text: str, length: int) -> Order:
    """`one-swap` is the paper's one-permuted order: forward with one pair of neighbours, the middle one, swapped."""
    if text != _ONE_SWAP:
        return parse_order(text, length)
    if length < 2:
        raise InputError(f"--order {_ONE_SWAP} needs 2 targets or more; received {length}")
    indices = list(range(length))
    middle = (length - 1) // 2
    indices[middle], indices[middle + 1] = indices[middle + 1], indices[middle]
    return Order(tuple(indices))


def _attention(runs: dict[str, FixedOrderRun], directory: RunDirectory) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    seconds: dict[str, float] = {}
    with StopRequest() as stop:
        for number, (text, run) in enumerate(runs.items()):
            folder = f"model-{number}"
            with training_progress(text, run.config.training.steps) as show:

                def on_progress(progress: Progress, stage: str = text, show: Any = show) -> None:
                    show(progress)
                    directory.write_progress({"stage": stage, **vars(progress)})

                trained = train_and_evaluate(run, directory, name=folder, on_progress=on_progress, stop=stop)
            described = {"job": "attention", "name": folder, **run.description}
            found = directory.journal.run(described, f"attention {text}", lambda: _summary(run, directory, folder))  # noqa: B023
            rows.append({"name": text, "order": list(run.order), **found,
                         "success_rate": trained["success_rate"], "loss": trained["loss"]})  # fmt: skip
            seconds[text] = trained["seconds"] + trained["evaluation_seconds"]
    return {"attention": rows, "seconds": seconds, "run_dir": str(directory.path)}


def _summary(run: FixedOrderRun, directory: RunDirectory, folder: str) -> dict[str, Any]:
    model = load_model(directory.path / folder, run.device).model
    encoded = run.encode(run.splits.test).head(_SAMPLES)
    rows_B = torch.arange(len(encoded), device=run.device)
    batch = arrange(encoded, rows_B, torch.tensor([list(run.order)], device=run.device))
    summary = summarise_attention(model, batch.tokens_BT)
    weights = [[round(weight, 4) for weight in row] for row in summary.map_TT.tolist()]
    return {"sparsity": summary.sparsity, "samples": len(encoded), "map": weights}


def _show(result: dict[str, Any]) -> None:
    table = Table("order", "S", "success rate", box=None)
    for row in result["attention"]:
        table.add_row(row["name"], f"{row['sparsity']:.3f}", percent(row["success_rate"]))
    type(screen)(soft_wrap=False).print(table)
    say("S: mean entropy of the rows of the attention map, in nats; smaller is sparser")
