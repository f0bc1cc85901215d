"""The attention of models that are trained in different orders: the run of `genorder analyze attention`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import final

import torch

from genorder.analysis.attention import summarise_attention
from genorder.data import arrange
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, train_and_evaluate
from genorder.models import load_model
from genorder.orders import Order
from genorder.outcomes import AttentionEntry, AttentionOutcome
from genorder.runs.request import OrderLike, RunRequest, order_of_length
from genorder.runs.session import RunSpec, run_spec
from genorder.runs.source import Source, resolve_request
from genorder.settings import resolve
from genorder.store import RunDirectory
from genorder.training import Progress

_ONE_SWAP = "one-swap"
_ONE_HEAD = ("model.layers=1", "model.heads=1")
_SAMPLES = 200  # test samples over which maps are averaged


@final
@dataclass(frozen=True, eq=False)
class AttentionRun:
    runs: dict[str, FixedOrderRun]  # by the name of the order
    source: Source
    spec: RunSpec[AttentionOutcome]


def plan_attention(
    request: RunRequest, orders: Iterable[OrderLike | str] = ("forward", "reverse"), *, steps: int | None = None
) -> AttentionRun:
    """The trainings of a model of one layer and one head in each order. Raises InputError for what cannot be run.

    An order is what `order_of_length` takes, or `one-swap`: forward with the two middle targets swapped, as in the
    paper.
    """
    request = replace(request, settings=(*_ONE_HEAD, *request.settings))
    request = request.with_settings(*([] if steps is None else [f"training.steps={steps}"]))
    config, source = resolve_request(request, resolve)
    named: dict[str, Order] = {}
    for each in orders:
        order = _one_swap(source.length) if each == _ONE_SWAP else order_of_length(each, source.length)
        named[each if isinstance(each, str) else order.short()] = order
    if not named:
        raise InputError("there are no orders to compare")
    described = {
        "verb": "analyze attention",
        "orders": {name: list(order) for name, order in named.items()},
        "config": config.model_dump(),
    }
    runs = {
        name: FixedOrderRun(source.splits, order, config, request.seed, request.machine.device)
        for name, order in named.items()
    }
    return AttentionRun(runs, source, run_spec(request, source, "attention", described, AttentionOutcome))


def run_attention(
    directory: RunDirectory,
    run: AttentionRun,
    *,
    on_progress: Callable[[str, Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> AttentionOutcome:
    """Train each model and measure its attention. `on_progress` receives the name of the order and the progress."""
    entries: list[AttentionEntry] = []
    seconds: dict[str, float] = {}
    for number, (name, each) in enumerate(run.runs.items()):
        folder = f"model-{number}"

        def report(progress: Progress, name: str = name) -> None:
            if on_progress:
                on_progress(name, progress)
            directory.write_progress({"stage": name, **vars(progress)})

        trained = train_and_evaluate(each, directory, name=folder, on_progress=report, stop=stop)

        def measure(each: FixedOrderRun = each, folder: str = folder) -> dict[str, object]:
            return _measured(each, directory, folder)

        job = {"job": "attention", "name": folder, **each.description}
        measured = directory.journal.run(job, f"attention {name}", measure)
        tested = {"success_rate": trained.evaluation.success_rate, "loss": trained.evaluation.loss}
        entries.append(AttentionEntry.from_dict({"name": name, "order": list(each.order), **measured, **tested}))
        seconds[name] = (trained.seconds or 0.0) + (trained.evaluation_seconds or 0.0)
    outcome = AttentionOutcome(attention=entries, seconds=seconds, run_dir=directory.path)
    return outcome.with_truth(run.source.true_of_column, run.source.graph)


def _one_swap(length: int) -> Order:
    if length < 2:
        raise InputError(f"--order {_ONE_SWAP} needs 2 targets or more; received {length}")
    indices = list(range(length))
    middle = (length - 1) // 2
    indices[middle], indices[middle + 1] = indices[middle + 1], indices[middle]
    return Order(tuple(indices))


def _measured(run: FixedOrderRun, directory: RunDirectory, folder: str) -> dict[str, object]:
    model = load_model(directory.path / folder, run.device).model
    encoded = run.encode(run.splits.test).head(_SAMPLES)
    rows_B = torch.arange(len(encoded), device=run.device)
    batch = arrange(encoded, rows_B, torch.tensor([list(run.order)], device=run.device))
    summary = summarise_attention(model, batch.tokens_BT)
    weights = [[round(weight, 4) for weight in row] for row in summary.map_TT.tolist()]
    return {"sparsity": summary.sparsity, "samples": len(encoded), "map": weights}
