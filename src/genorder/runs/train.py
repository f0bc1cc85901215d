"""One order, one model: the run of `genorder train`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, train_and_evaluate
from genorder.orders import Order
from genorder.outcomes import TrainOutcome
from genorder.runs.request import OrderLike, RunRequest, order_of_length
from genorder.runs.session import RunSpec, run_spec
from genorder.runs.source import Source, resolve_request
from genorder.settings import resolve
from genorder.store import RunDirectory
from genorder.training import CHECKPOINT_SECONDS, Progress


@final
@dataclass(frozen=True, eq=False)
class TrainRun:
    run: FixedOrderRun
    source: Source
    spec: RunSpec[TrainOutcome]


def plan_train(request: RunRequest, order: OrderLike | str, *, steps: int | None = None) -> TrainRun:
    """Raises InputError for what cannot be run."""
    request = request.with_settings(*([] if steps is None else [f"training.steps={steps}"]))
    config, source = resolve_request(request, resolve)
    order = order_of_length(order, source.length)
    described = {"verb": "train", "order": list(order), "config": config.model_dump()}
    names = {Order.reverse(len(order)): "reverse", Order.forward(len(order)): "forward"}
    spec = run_spec(request, source, "train", described, TrainOutcome, names.get(order, "order"))
    run = FixedOrderRun(source.splits, order, config, request.seed, request.machine.device)
    return TrainRun(run, source, spec)


def run_train(
    directory: RunDirectory,
    run: TrainRun,
    *,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> TrainOutcome:
    def report(progress: Progress) -> None:
        if on_progress:
            on_progress(progress)
        directory.write_progress({"stage": "train", **vars(progress)})

    model = train_and_evaluate(run.run, directory, checkpoint_seconds=checkpoint_seconds, on_progress=report, stop=stop)
    outcome = TrainOutcome(order=run.run.order, model=model, seed=run.run.seed, run_dir=directory.path)
    return outcome.with_truth(run.source.true_of_column, run.source.graph)
