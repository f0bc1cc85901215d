"""Train a model in one order, save it and test it: what `genorder train` does, also used for comparisons of orders."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
import torch

from genorder.data import EncodedDataset, SequenceDataset, Splits, encode
from genorder.evaluation import evaluate
from genorder.execution import StopRequest
from genorder.models import GPT, SavedModel, fresh_gpt, is_saved, load_model
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.outcomes import TrainedModel
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

_FALLING_SHARE = 0.05  # of the training loss: a smaller fall may come from the decay of the learning rate alone


@final
@dataclass(frozen=True, eq=False)
class FixedOrderRun:
    """A training in one order: everything that the resulting weights depend on."""

    splits: Splits
    order: Order
    config: RunConfig
    seed: int
    device: torch.device

    @cached_property
    def description(self) -> dict[str, object]:
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
) -> TrainedModel:
    """Train, save to the folder `name` of the run directory, evaluate on the test split.

    Finished jobs are in the journal and are not repeated; an unfinished training continues from its last checkpoint.
    """
    folder = directory.path / name
    job = fingerprint(run.description)
    checkpoints = CheckpointFolder(directory.checkpoints(f"{name}-{job[:16]}"))

    def train() -> dict[str, object]:
        model = run.new_model()
        fitted = fit_fixed_order(
            run, model, checkpoints=checkpoints, checkpoint_seconds=checkpoint_seconds,
            on_progress=on_progress, stop=stop,
        )  # fmt: skip
        return {
            "weights_sha256": save_model(model, run.splits, run.order, fitted.losses, folder),
            "steps": run.config.training.steps,
            "seconds": fitted.seconds,
            "loss_still_falling": still_falling(fitted.losses),
        }

    def test() -> dict[str, object]:
        return evaluate_saved_model(folder, run.splits, run.order, run.device, stop)

    trained = directory.journal.run({"job": "train", "name": name, **run.description}, f"train {name}", train)
    if not is_saved(folder):  # removed since
        _log.warning("%s is gone: training it again", folder)
        if train()["weights_sha256"] != trained["weights_sha256"]:
            _log.warning("%s differs in bits from the model that was tested", folder)
    checkpoints.delete()
    tested = directory.journal.run({"job": "test", "name": name, **run.description}, f"evaluate {name}", test)
    return TrainedModel.from_dict({**tested, **trained})


def save_model(model: GPT, splits: Splits, order: Order, losses: Sequence[float], folder: Path) -> str:
    """Save the model and the training losses of all steps. Returns the SHA-256 of the weights."""
    saved = SavedModel(model, splits.train.vocabulary, order, splits.input_width, splits.shortest_input)
    digest = saved.save(folder)
    write_json_atomic(folder / "training_losses.json", list(losses))
    return digest


def evaluate_saved_model(
    folder: Path, splits: Splits, order: Order, device: torch.device, stop: StopRequest | None
) -> dict[str, object]:
    """The test of the model in `folder`, as the journal keeps it: a part of what TrainedModel.from_dict reads."""
    model = load_model(folder, device).model
    started = time.monotonic()
    encoded = encode(splits.test, input_width=splits.input_width, target_width=len(order)).to(device)
    evaluation = evaluate(model, encoded, order, stop=stop)
    seconds = time.monotonic() - started
    examples = evaluation.decoded_examples(splits.test.vocabulary.tokens)
    return {
        **evaluation.to_dict(),
        "examples": [example.to_dict() for example in examples],
        "evaluation_seconds": seconds,
    }


def still_falling(losses: Sequence[float]) -> bool:
    """Whether the training loss fell so much in the last fifth of the steps that more steps may lower it further.

    The learning rate is nearly zero by then, so the loss of a converged model falls by little.
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
    """Measured on this machine by training `model` for about `budget` seconds."""
    batch_at = run.batches()

    def seconds(steps: int) -> float:
        short = run.config.training.model_copy(update={"steps": steps})
        return fit(model, lambda step: mean_loss(model, batch_at(step)), short, seed=0).seconds

    return marginal_seconds(seconds, budget)


def model_folder(path: Path) -> Path:
    """The folder of a model: `path` itself, or the folder `model` of the run directory `path`."""
    return path / "model" if (path / "model" / "model.json").exists() else path
