"""`genorder train`: one order, one model."""

from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import (
    abbreviated,
    duration,
    emit_json,
    percent,
    say,
    say_all,
    training_progress,
)
from genorder.cli.reporting import run_and_report
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, seconds_per_step
from genorder.outcomes import TrainOutcome
from genorder.reports.answer import training_hint
from genorder.reports.board import TRAINING, board_in
from genorder.reports.wording import by_name
from genorder.runs import RunRequest, Source, plan_train, run_train
from genorder.store import RunDirectory
from genorder.training import CHECKPOINT_SECONDS, Progress


@options.with_run_options(hidden=False)
def train(
    request: RunRequest,
    order: Annotated[str, typer.Option(help="forward, reverse, random:SEED, a JSON FILE, or 0,3,1,2.")] = "forward",
    steps: Annotated[int | None, typer.Option(help="Training steps; default: the preset's.")] = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = CHECKPOINT_SECONDS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the configuration and an estimate.")] = False,
    tensorboard: options.TensorBoard = False,
    json: options.Json = False,
) -> None:
    """Train a model that emits its targets in one order, and test it by greedy generation.

    Example: genorder train --task relu --length 20 --order reverse
    """
    planned = plan_train(request, order, steps=steps)
    run, source = planned.run, planned.source
    if dry_run:
        _show_plan(run, source, json=json)
        return

    def work(directory: RunDirectory) -> TrainOutcome:
        _introduce(run, source, directory)
        with (
            StopRequest() as stop,
            board_in(directory.path, tensorboard) as board,
            training_progress(TRAINING, run.config.training.steps) as show,
        ):

            def on_progress(progress: Progress) -> None:
                show(progress)
                if board:
                    board.progress(TRAINING, progress)

            return run_train(
                directory, planned, checkpoint_seconds=checkpoint_every, on_progress=on_progress, stop=stop
            )

    outcome = run_and_report(planned.spec, work, tensorboard=tensorboard)
    emit_json(outcome.to_dict()) if json else _show(outcome)


def _introduce(run: FixedOrderRun, source: Source, directory: RunDirectory) -> None:
    say_all(source.remarks)
    splits = source.splits
    named = zip(("training", "validation", "test"), splits.all, strict=True)
    counts = ", ".join(f"{len(part)} {name}" for name, part in named)
    widths = f"{splits.input_width} inputs, {splits.target_width} targets, {len(splits.train.vocabulary)} tokens"
    say(f"{source.label}: {counts} samples; {widths}")
    say(f"order {abbreviated(run.order)}{by_name(run.order, source.names.targets)}; run directory {directory.path}")


def _show(outcome: TrainOutcome) -> None:
    model = outcome.model
    low, high = model.evaluation.success_rate_interval
    say(
        f"success rate {percent(model.evaluation.success_rate)} ({percent(low)} to {percent(high)}) "
        f"on {model.evaluation.samples} test samples"
    )
    say(f"test loss {model.evaluation.loss:.4f}; {model.steps} steps in {duration(model.seconds or 0.0)}")
    if outcome.cost_ratio is not None:
        say(f"the order costs {outcome.cost_ratio:.2f} times the operations of the best one")
    say(f"model in {outcome.run_dir / 'model'}")
    if hint := training_hint(outcome, "--steps {}"):
        say(hint)


def _show_plan(run: FixedOrderRun, source: Source, *, json: bool) -> None:
    model = run.new_model()
    per_step = seconds_per_step(run, model)
    plan = {
        "config": run.config.model_dump(),
        **source.about_order(run.order),
        "steps": run.config.training.steps,
        "parameters": model.parameter_count(),
        "seconds_per_step": per_step,
        "estimated_seconds": per_step * run.config.training.steps,
        "device": run.device.type,
    }
    if json:
        emit_json(plan)
        return
    say_all(source.remarks)
    for group, values in plan["config"].items():
        say(f"[{group}]")
        for name, value in values.items():
            say(f"{name} = {value}")
    say(f"order {abbreviated(run.order)}{by_name(run.order, source.names.targets)}")
    say(f"{plan['parameters']:,} parameters, {plan['steps']:,} steps on {run.device.type}")
    say(f"about {duration(plan['estimated_seconds'])} on this machine ({1000 * per_step:.0f} ms per step)")
