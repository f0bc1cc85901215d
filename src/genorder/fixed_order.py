"""Train one model on one order, evaluate it, keep it: the last step of a discovery, and `genorder train`."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from genorder.data import EncodedDataset, SequenceDataset, Splits, encode
from genorder.evaluation import evaluate
from genorder.execution import StopRequest
from genorder.models import GPT, SavedModel, fresh_gpt, is_saved, load_model
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.presets import RunConfig
from genorder.seeding import derive_seed
from genorder.store import RunDirectory, fingerprint, write_json_atomic
from genorder.training import (
    CHECKPOINT_SECONDS,
    BatchPlan,
    CheckpointFolder,
    FitResult,
    Progress,
    fit,
    marginal_seconds,
)

_log = logging.getLogger(__name__)

_FALLING_SHARE = 0.05  # of the training loss: what falls less may be the learning rate's decay alone


@final
@dataclass(frozen=True, eq=False)
class FixedOrderRun:
    """One order on one dataset: everything that the resulting weights depend on."""

    splits: Splits
    order: Order
    config: RunConfig
    seed: int
    device: torch.device

    @cached_property
    def description(self) -> dict[str, Any]:
        return {
            "data": self.splits.fingerprint(),
            "order": list(self.order),
            "model": self.config.model.model_dump(),
            "training": self.config.training.model_dump(),
            "seed": self.seed,
            "device": self.device.type,
            "threads": torch.get_num_threads(),
        }

    def new_model(self) -> GPT:
        return fresh_gpt(self.config.model, self.encode(self.splits.validation), self.seed)

    def encode(self, split: SequenceDataset) -> EncodedDataset:
        encoded = encode(split, input_width=self.splits.input_width, target_width=len(self.order))
        return encoded.to(self.device)

    def batches(self) -> BatchPlan:
        return BatchPlan(
            self.encode(self.splits.train),
            torch.tensor([list(self.order)], device=self.device),
            self.config.training.batch_size,
            derive_seed(self.seed, "batches"),
        )


def train_and_evaluate(
    run: FixedOrderRun,
    directory: RunDirectory,
    *,
    name: str = "model",
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> dict[str, Any]:
    """Train, save to the folder `name` of the run directory, evaluate on the test split.

    Each finished part is in the journal and is not done again; an unfinished training goes on from its last
    checkpoint. The result holds the evaluation, `weights_sha256`, `steps` and `seconds` of training.
    """
    folder = directory.path / name
    job = fingerprint(run.description)
    checkpoints = CheckpointFolder(directory.checkpoints(f"{name}-{job[:16]}"))

    def train() -> dict[str, Any]:
        model = run.new_model()
        fitted = fit_fixed_order(
            run, model, checkpoints=checkpoints, checkpoint_seconds=checkpoint_seconds,
            on_progress=on_progress, stop=stop,
        )  # fmt: skip
        saved = SavedModel(
            model, run.splits.train.vocabulary, run.order, run.splits.input_width, run.splits.shortest_input
        )
        digest = saved.save(folder)
        write_json_atomic(folder / "training_losses.json", fitted.losses)
        return {
            "weights_sha256": digest,
            "steps": run.config.training.steps,
            "seconds": fitted.seconds,
            "loss_still_falling": still_falling(fitted.losses),
        }

    def test() -> dict[str, Any]:
        model = load_model(folder, run.device).model
        started = time.monotonic()
        evaluation = evaluate(model, run.encode(run.splits.test), run.order, stop=stop)
        seconds = time.monotonic() - started
        examples = evaluation.examples_in(run.splits.test.vocabulary.tokens)
        return {**evaluation.to_dict(), "examples": examples, "evaluation_seconds": seconds}

    trained = directory.journal.run({"job": "train", "name": name, **run.description}, f"train {name}", train)
    if not is_saved(folder):  # somebody has removed it since
        _log.warning("%s is gone: training it again", folder)
        if train()["weights_sha256"] != trained["weights_sha256"]:
            _log.warning("%s differs in bits from the model that was tested", folder)
    checkpoints.delete()
    tested = directory.journal.run({"job": "test", "name": name, **run.description}, f"evaluate {name}", test)
    return {**tested, **trained}


def still_falling(losses: Sequence[float]) -> bool:
    """Whether the training loss fell, in the last fifth of the steps, by a share that more steps might continue.

    The learning rate has decayed to nearly nothing by then, so that a model which learns no more falls by little.
    """
    fifth = len(losses) // 5
    if fifth < 2:
        return False
    before, last = np.array(losses[-2 * fifth : -fifth]), np.array(losses[-fifth:])
    fell = before.mean() - last.mean()
    error = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / fifth)
    return bool(fell > _FALLING_SHARE * before.mean() and fell > 2 * error)


def fit_fixed_order(
    run: FixedOrderRun,
    model: GPT,
    *,
    checkpoints: CheckpointFolder | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> FitResult:
    batch_at = run.batches()
    return fit(
        model,
        lambda step: mean_loss(model, batch_at(step)),
        run.config.training,
        seed=derive_seed(run.seed, "dropout"),
        checkpoints=checkpoints,
        checkpoint_seconds=checkpoint_seconds,
        on_progress=on_progress,
        stop=stop,
    )


def seconds_per_step(run: FixedOrderRun, model: GPT, *, budget: float = 3.0) -> float:
    """Measured on this machine by real steps on `model`, for some `budget` seconds."""
    batch_at = run.batches()

    def seconds(steps: int) -> float:
        short = run.config.training.model_copy(update={"steps": steps})
        return fit(model, lambda step: mean_loss(model, batch_at(step)), short, seed=0).seconds

    return marginal_seconds(seconds, budget)


def model_folder(path: Path) -> Path:
    """The model's folder, given it or the run directory that holds it."""
    return path / "model" if (path / "model" / "model.json").exists() else path
