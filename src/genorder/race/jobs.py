"""One job of a race: train one order further, in any process, on samples that are read from a file.

Axes: N validation samples, B batch, Q predictions (targets and EOS).
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save

from genorder.data import EncodedDataset, arrange
from genorder.data.encoding import IGNORED
from genorder.errors import GenorderError, InputError, Interrupted
from genorder.execution import StopRequest, prefer_deterministic_kernels
from genorder.models import GPT, fresh_gpt
from genorder.models.losses import mean_loss, target_logits, target_losses
from genorder.orders import Order
from genorder.race.rules import Recipe
from genorder.seeding import derive_seed
from genorder.store import fingerprint, sha256_file, write_bytes_atomic
from genorder.training import BatchPlan, CheckpointFolder, Progress, WeightAverage, fit

_CHUNK = 250  # samples of one forward pass
_REPORT_SECONDS = 0.5


@final
@dataclass(frozen=True)
class RaceJob:
    data: str  # file of the encoded samples
    data_sha256: str
    device: str
    order: tuple[int, ...]
    recipe: Recipe  # its training says how far: from where the training stands to its last step
    seed: int
    begin: int = 0  # steps that were done before
    average_share: float | None = None  # of the steps, whose mean weights are validated; None: the weights themselves
    check_steps: int = 0  # from one look at the success rate to the next; 0: never
    solved: float = 1.0  # success rate at which it ends early

    def describe(self) -> dict[str, Any]:
        return {**self._training(), "job": "race", "recipe": self.recipe.model_dump(), "check": self.check_steps,
                "solved": self.solved, "begin": self.begin, "average": self.average_share}  # fmt: skip

    @property
    def checkpoints(self) -> CheckpointFolder:
        """Of the training, which all its jobs continue."""
        return CheckpointFolder(Path(self.data).parent / f"training-{fingerprint(self._training())[:16]}")

    def _training(self) -> dict[str, Any]:
        """What all jobs of one training have in common."""
        length = {"steps", "stable_steps"}
        return {
            "data": self.data_sha256,
            "order": list(self.order),
            "model": self.recipe.model.model_dump(),
            "training": self.recipe.training.model_dump(exclude=length),
            "seed": self.seed,
            "device": self.device,
        }


def run_job(
    job: RaceJob, *, report: Callable[[Progress], None] = lambda progress: None, stop: StopRequest | None = None
) -> dict[str, Any]:
    """Continue the training to its last step, or until the order is solved: the validation losses by sample, which
    samples are right, the training curve since `begin`, the steps done and the seconds.

    The last step is kept as a checkpoint. Raises Interrupted.
    """
    prefer_deterministic_kernels(torch.device(job.device))
    train, validation = _load_data(job.data, job.data_sha256, job.device)
    model = fresh_gpt(job.recipe.model, train, job.seed)
    average = WeightAverage(model, job.average_share) if job.average_share else None
    validated_model = average.model if average else model
    order = Order(job.order)
    orders_1L = torch.tensor([list(order)], device=train.inputs_NW.device)
    training = job.recipe.training
    batch_at = BatchPlan(train, orders_1L, training.batch_size, derive_seed(job.seed, "batches"))
    reported = time.monotonic()

    def on_progress(progress: Progress) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _REPORT_SECONDS:
            reported = time.monotonic()
            report(progress)

    def is_solved(done: int) -> bool:
        if not job.check_steps or done % job.check_steps or done <= job.begin:
            return False
        answer = solves(validated_model, validation, order, job.solved)
        model.train()
        return answer

    try:
        fitted = fit(
            model,
            lambda step: mean_loss(model, batch_at(step)),
            training,
            seed=derive_seed(job.seed, "dropout"),
            checkpoints=job.checkpoints,
            on_progress=on_progress,
            enough=is_solved,
            keep_end=True,
            average=average,
            stop=stop,
        )
    except (InputError, Interrupted):
        raise
    except GenorderError as error:
        return {"losses": None, "curve": [], "steps": training.steps, "why": str(error), "seconds": 0.0}
    losses_N, right_N = validated(validated_model, validation, order)
    if not np.isfinite(losses_N).all():
        why = "the validation loss is not finite"
        return {"losses": None, "curve": [], "steps": len(fitted.losses), "why": why, "seconds": fitted.seconds}
    return {
        "losses": losses_N.tolist(),
        "right": right_N.tolist(),
        "curve": fitted.losses[job.begin :],
        "steps": len(fitted.losses),
        "seconds": fitted.seconds,  # of the whole training
    }


def validated(model: GPT, validation: EncodedDataset, order: Order) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """losses_N, the mean over each sample's target tokens without EOS; and right_N, whether all its tokens, EOS too,
    are predicted.

    A token is predicted given the true ones before it. Greedy generation succeeds on the same samples.
    """
    losses, right = zip(*_validated_chunks(model, validation, order), strict=True)
    losses_N = np.concatenate(losses)
    return np.where(np.isnan(losses_N), np.inf, losses_N), np.concatenate(right)


def solves(model: GPT, validation: EncodedDataset, order: Order, rate: float) -> bool:
    """Whether at least this share of the samples is right. Ends as soon as too many are wrong."""
    wrong = 0
    for _, right_B in _validated_chunks(model, validation, order):
        wrong += int((~right_B).sum())
        if (len(validation) - wrong) / len(validation) < rate:
            return False
    return True


@torch.inference_mode()
def _validated_chunks(
    model: GPT, validation: EncodedDataset, order: Order
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    device = validation.inputs_NW.device
    order_1L = torch.tensor([list(order)], device=device)
    model.eval()
    for rows_B in torch.split(torch.arange(len(validation), device=device), _CHUNK):
        batch = arrange(validation, rows_B, order_1L)
        logits_BQV = target_logits(model, batch)
        losses_BQ = target_losses(logits_BQV, batch)
        lengths_B = validation.target_lengths_N[rows_B].cpu().clamp(min=1)
        wrong_BQ = (logits_BQV.argmax(dim=-1) != batch.labels_BQ) & (batch.labels_BQ != IGNORED)
        yield (losses_BQ.cpu().double().sum(dim=1) / lengths_B).numpy(), (~wrong_BQ.any(dim=1)).cpu().numpy()


def write_samples(train: EncodedDataset, validation: EncodedDataset, folder: Path) -> tuple[str, str]:
    """Write the encoded samples where workers can read them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "race-data.safetensors"
    tensors = {}
    for name, split in (("train", train), ("validation", validation)):
        tensors[f"{name}.inputs"] = split.inputs_NW.cpu().contiguous()
        tensors[f"{name}.targets"] = split.targets_NL.cpu().contiguous()
        tensors[f"{name}.lengths"] = split.target_lengths_N.cpu().contiguous()
    tensors["vocabulary"] = torch.tensor(train.model_vocabulary)
    write_bytes_atomic(path, save(tensors))
    return str(path), sha256_file(path)


@lru_cache(maxsize=1)
def _load_data(path: str, digest: str, device: str) -> tuple[EncodedDataset, EncodedDataset]:
    """Read once per process; the digest tells apart what stood at one path at different times."""
    tensors = load_file(path)
    train, validation = (
        EncodedDataset(
            tensors[f"{name}.inputs"],
            tensors[f"{name}.targets"],
            tensors[f"{name}.lengths"],
            int(tensors["vocabulary"]),
        ).to(torch.device(device))
        for name in ("train", "validation")
    )
    return train, validation
