"""One order, one model: the run of `genorder train`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, train_and_evaluate
from genorder.orders import Order
from genorder.presets import RunConfig
from genorder.runs.session import Machine, RunSpec, run_spec
from genorder.runs.source import Source
from genorder.store import RunDirectory
from genorder.training import CHECKPOINT_SECONDS, Progress


@final
@dataclass(frozen=True, eq=False)
class TrainRun:
    run: FixedOrderRun
    source: Source
    place: RunSpec


def train_run(
    config: RunConfig, source: Source, order: Order, machine: Machine, *, preset: str, seed: int, out: Path | None
) -> TrainRun:
    described = {
        "verb": "train",
        "data": source.description,
        "order": list(order),
        "preset": preset,
        "config": config.model_dump(),
        "seed": seed,
    }
    named = {Order.reverse(len(order)): "reverse", Order.forward(len(order)): "forward"}
    place = run_spec(out, f"train-{source.label}-{named.get(order, 'order')}", described, source, machine)
    return TrainRun(FixedOrderRun(source.splits, order, config, seed, machine.device), source, place)


def train_in(
    directory: RunDirectory,
    run: TrainRun,
    *,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> dict[str, Any]:
    def tell(progress: Progress) -> None:
        if on_progress:
            on_progress(progress)
        directory.write_progress({"stage": "train", **vars(progress)})

    result = train_and_evaluate(run.run, directory, checkpoint_seconds=checkpoint_seconds, on_progress=tell, stop=stop)
    about = run.source.about_order(run.run.order)
    return {**result, **about, "seed": run.run.seed, "run_dir": str(directory.path)}
