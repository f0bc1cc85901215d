"""A job of a race: continue the training of one order, in any process, on samples that are read from a file.

Axes: N validation samples, B batch, Q predictions (targets and EOS), V vocabulary.
"""

import time
from collections.abc import Callable, Iterator, Mapping
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
from genorder.models.losses import mean_loss, target_losses
from genorder.orders import Order
from genorder.race.rules import Recipe
from genorder.seeding import derive_seed
from genorder.store import fingerprint, sha256_file, write_bytes_atomic
from genorder.training import BatchPlan, CheckpointFolder, Progress, WeightAverage, fit

_CHUNK = 250  # samples in one forward pass
_REPORT_SECONDS = 0.5


@final
@dataclass(frozen=True)
class RaceJob:
    data: str  # file of the encoded samples
    data_sha256: str
    device: str
    order: tuple[int, ...]
    recipe: Recipe  # its training ends at the last step of this job
    seed: int
    begin: int = 0  # steps done by earlier jobs
    average_share: float | None = None  # validate the mean weights of this share of the steps; None: the last weights
    check_steps: int = 0  # steps between two checks of the success rate; 0: no checks
    solved: float = 1.0  # success rate at which the job ends early

    def describe(self) -> dict[str, Any]:
        return {**self._training(), "job": "race", "recipe": self.recipe.model_dump(), "check": self.check_steps,
                "solved": self.solved, "begin": self.begin, "average": self.average_share}  # fmt: skip

    @property
    def checkpoints(self) -> CheckpointFolder:
        """The checkpoints of the training, shared by all its jobs."""
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


@final
@dataclass(frozen=True)
class JobResult:
    """The state of a training after a job, as plain values. Without losses it has diverged, and `failure` says why."""

    steps: int  # done so far
    seconds: float  # of the whole training
    curve: list[float]  # training loss of each step of this job
    losses: list[float] | None  # of each validation sample
    exact_matches: list[bool]  # for each validation sample, whether all its targets and EOS are predicted
    failure: str | None = None

    def to_dict(self) -> dict[str, object]:
        if self.losses is None:
            failed = {"losses": None, "curve": self.curve, "steps": self.steps, "why": self.failure}
            return {**failed, "seconds": self.seconds}
        reached = {"losses": self.losses, "right": self.exact_matches, "curve": self.curve}
        return {**reached, "steps": self.steps, "seconds": self.seconds}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "JobResult":
        return cls(
            saved["steps"], saved["seconds"], saved["curve"], saved["losses"], saved.get("right", []), saved.get("why")
        )


def run_job(
    job: RaceJob, *, report: Callable[[Progress], None] = lambda progress: None, stop: StopRequest | None = None
) -> JobResult:
    """Continue the training to its last step, or until the order is solved, and validate the model.

    The last step is saved as a checkpoint. Raises Interrupted.
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
            end_early=is_solved,
            keep_end=True,
            average=average,
            stop=stop,
        )
    except (InputError, Interrupted):
        raise
    except GenorderError as error:
        return JobResult(training.steps, 0.0, [], None, [], failure=str(error))
    steps, seconds = len(fitted.losses), fitted.seconds
    losses_N, exact_N = validate(validated_model, validation, order)
    if not np.isfinite(losses_N).all():
        return JobResult(steps, seconds, [], None, [], failure="the validation loss is not finite")
    return JobResult(steps, seconds, fitted.losses[job.begin :], losses_N.tolist(), exact_N.tolist())


def validate(model: GPT, validation: EncodedDataset, order: Order) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """losses_N, the mean over each sample's target tokens without EOS, and exact_N, whether a sample is an exact match.

    A sample is an exact match if all its targets and EOS are predicted, each given the true targets before it. Greedy
    generation succeeds on the same samples.
    """
    losses, exact = zip(*_validated_chunks(model, validation, order), strict=True)
    losses_N = np.concatenate(losses)
    return np.where(np.isnan(losses_N), np.inf, losses_N), np.concatenate(exact)


def solves(model: GPT, validation: EncodedDataset, order: Order, rate: float) -> bool:
    """Whether at least this share of the samples is an exact match. Stops as soon as it cannot be reached."""
    wrong = 0
    for _, exact_B in _validated_chunks(model, validation, order):
        wrong += int((~exact_B).sum())
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
        logits_BQV = model.target_logits(batch)
        losses_BQ = target_losses(logits_BQV, batch)
        lengths_B = validation.target_lengths_N[rows_B].cpu().clamp(min=1)
        wrong_BQ = (logits_BQV.argmax(dim=-1) != batch.labels_BQ) & (batch.labels_BQ != IGNORED)
        yield (losses_BQ.cpu().double().sum(dim=1) / lengths_B).numpy(), (~wrong_BQ.any(dim=1)).cpu().numpy()


def write_samples(train: EncodedDataset, validation: EncodedDataset, folder: Path) -> tuple[str, str]:
    """Write the encoded samples to a file for the workers. Returns its path and SHA-256."""
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
    """The training and validation samples, read once per process and digest."""
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
