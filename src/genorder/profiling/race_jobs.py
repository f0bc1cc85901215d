"""One job of a race: a short training in one order, in any process, on samples that are read from a file."""

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from safetensors.torch import load_file, save

from genorder.data import EncodedDataset
from genorder.errors import GenorderError, Interrupted
from genorder.execution import StopRequest
from genorder.models import GPTConfig, fresh_gpt
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.profiling.scoring import plain_scores
from genorder.seeding import derive_seed
from genorder.store import fingerprint, sha256_file, write_bytes_atomic
from genorder.training import BatchPlan, CheckpointFolder, TrainingConfig, fit


@final
@dataclass(frozen=True)
class RaceJob:
    data: str  # file of the encoded samples
    data_sha256: str
    device: str
    order: tuple[int, ...]
    model: GPTConfig
    training: TrainingConfig  # but for its steps
    steps: int
    seed: int

    def describe(self) -> dict[str, Any]:
        return {
            "job": "race",
            "data": self.data_sha256,
            "order": list(self.order),
            "model": self.model.model_dump(),
            "training": self.training.model_dump(exclude={"steps"}),
            "steps": self.steps,
            "seed": self.seed,
            "device": self.device,
        }


def run_job(job: RaceJob, stop: StopRequest | None = None) -> dict[str, Any]:
    """Train one order from the start; its validation losses by sample, its training curve, and the seconds.

    Beside the samples are checkpoints, from which a long one goes on if it was interrupted. Raises Interrupted.
    """
    checkpoints = CheckpointFolder(Path(job.data).parent / f"job-{fingerprint(job.describe())[:16]}")
    result = _trained(job, checkpoints, stop)
    shutil.rmtree(checkpoints.path, ignore_errors=True)
    return result


def _trained(job: RaceJob, checkpoints: CheckpointFolder, stop: StopRequest | None) -> dict[str, Any]:
    train, validation = _load_data(job.data, job.data_sha256, job.device)
    model = fresh_gpt(job.model, train, job.seed)
    orders_1L = torch.tensor([list(job.order)], device=train.inputs_NW.device)
    training = job.training.model_copy(update={"steps": job.steps})
    batch_at = BatchPlan(train, orders_1L, training.batch_size, derive_seed(job.seed, "batches"))
    try:
        fitted = fit(
            model,
            lambda step: mean_loss(model, batch_at(step)),
            training,
            seed=derive_seed(job.seed, "dropout"),
            checkpoints=checkpoints,
            stop=stop,
        )
    except Interrupted:
        raise
    except GenorderError as error:
        return {"losses": None, "curve": [], "why": str(error), "seconds": 0.0}
    losses_N = plain_scores(model, validation, [Order(job.order)]).losses_CN[0]
    if not np.isfinite(losses_N).all():
        why = "the validation loss is not finite"
        return {"losses": None, "curve": fitted.losses, "why": why, "seconds": fitted.seconds}
    return {"losses": losses_N.tolist(), "curve": fitted.losses, "seconds": fitted.seconds}


def keep_data(train: EncodedDataset, validation: EncodedDataset, folder: Path) -> tuple[str, str]:
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
