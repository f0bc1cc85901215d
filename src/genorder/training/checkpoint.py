"""Checkpoints of a training run: safetensors and JSON, written atomically, the last two kept."""

import json
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor, nn

from genorder.store import ensure_writable_directory, sha256_bytes, write_bytes_atomic, write_json_atomic

_log = logging.getLogger(__name__)
_KEPT = 2


@final
@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state that a resumed run needs: everything else is a function of the step."""

    step: int  # number of steps done
    seconds: float  # of these steps
    tensors: dict[str, Tensor]


@final
class CheckpointFolder:
    """Files `step-N.safetensors` and `step-N.json`. The latter is written last and contains the SHA-256."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: TrainingState) -> None:
        ensure_writable_directory(self.path)
        content = save_safetensors(state.tensors)
        stem = self.path / _stem(state.step)
        write_bytes_atomic(stem.with_suffix(".safetensors"), content)
        description = {"step": state.step, "seconds": state.seconds, "sha256": sha256_bytes(content)}
        write_json_atomic(stem.with_suffix(".json"), description)
        # A later checkpoint is one that this run could not read: it is deleted and does not count.
        kept = [known.stem for known in self._descriptions() if known.stem <= stem.name][:_KEPT]
        for file in sorted(self.path.glob("step-*")):  # a description is deleted before its tensors
            if file.stem not in kept:
                file.unlink(missing_ok=True)

    def load_latest(self) -> TrainingState | None:
        """The newest intact checkpoint, or None. Logs a warning for each damaged one."""
        for description in self._descriptions():
            try:
                return _read(description)
            except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
                _log.warning("checkpoint %s is damaged (%s); trying the one before", description.stem, error)
        if self._descriptions():
            _log.warning("no checkpoint in %s can be read; starting from the first step", self.path)
        return None

    def delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _descriptions(self) -> list[Path]:
        """The JSON files, newest first."""
        return sorted(self.path.glob("step-*.json"), reverse=True)


def _stem(step: int) -> str:
    return f"step-{step:09d}"


def _read(description: Path) -> TrainingState:
    details = json.loads(description.read_bytes())
    content = description.with_suffix(".safetensors").read_bytes()
    if sha256_bytes(content) != details["sha256"]:
        raise ValueError("its SHA-256 does not match")
    if description.stem != _stem(int(details["step"])):
        raise ValueError(f"it says that it is of step {details['step']}")
    return TrainingState(int(details["step"]), float(details["seconds"]), load_safetensors(content))


def tensors_of(state: TrainingState, part: str) -> dict[str, Tensor]:
    """The state dict of a part of the checkpoint: `model` or `average`."""
    return {name.removeprefix(f"{part}."): v for name, v in state.tensors.items() if name.startswith(f"{part}.")}


def collect_tensors(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    losses: Tensor,
    step: int,
    average: nn.Module | None = None,
) -> dict[str, Tensor]:
    """The tensors of a checkpoint: weights, averaged weights, the optimiser's state and the losses so far."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.state_dict().items()} if average else {}
    for name, parameter in model.named_parameters():
        for kind, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{kind}.{name}"] = value
    tensors["losses"] = losses[:step]
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def restore_tensors(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    losses: Tensor,
    state: TrainingState,
    average: nn.Module | None = None,
) -> None:
    """Restore what `collect_tensors` saved. Raises ValueError for another model, or if the average is missing."""
    try:
        model.load_state_dict(tensors_of(state, "model"))
        if average:
            average.load_state_dict(tensors_of(state, "average"))
    except RuntimeError as error:
        raise ValueError(f"the checkpoint is of another model: {str(error).splitlines()[0]}") from None
    for name, parameter in model.named_parameters():
        if f"optimizer.step.{name}" not in state.tensors:
            continue  # not in the optimiser's groups, or without a gradient so far
        optimizer.state[parameter] = {
            kind: state.tensors[f"optimizer.{kind}.{name}"].to(parameter.device).clone()
            for kind in ("step", "exp_avg", "exp_avg_sq")
        }
    losses[: state.step] = state.tensors["losses"].to(losses.device)
