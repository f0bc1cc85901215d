"""The one training loop of every run: AdamW, schedule, clipping, checkpoints, interruption."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from genorder.errors import GenorderError, Interrupted
from genorder.execution import StopRequest
from genorder.seeding import derive_seed
from genorder.training.checkpoint import CheckpointFolder, TrainingState, collect_tensors, restore_tensors
from genorder.training.config import TrainingConfig

_FINITE_CHECK_STEPS = 20  # how often losses are fetched from the device to see whether they are finite
CHECKPOINT_SECONDS = 60.0


@final
@dataclass(frozen=True)
class Progress:
    step: int
    steps: int
    loss: float  # mean over the last steps
    seconds: float  # spent so far, earlier parts of the run included

    @property
    def seconds_left(self) -> float:
        return self.seconds / self.step * (self.steps - self.step)


@final
@dataclass(frozen=True)
class FitResult:
    losses: list[float]  # training loss of every step
    seconds: float


def fit(
    model: nn.Module,
    loss_at: Callable[[int], Tensor],
    config: TrainingConfig,
    *,
    seed: int,
    checkpoints: CheckpointFolder | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
    parameter_groups: Sequence[dict[str, Any]] | None = None,
) -> FitResult:
    """Train `model` in place for `config.steps` steps on `loss_at(step)`, going on from a checkpoint if any.

    `loss_at` must be a function of the step alone. A parameter group may carry `rate_factor`, by which the
    learning rate is multiplied. Raises Interrupted, after a checkpoint, once `stop` is requested, and
    GenorderError with a diagnosis when the loss is not finite.
    """
    device = next(model.parameters()).device
    groups = parameter_groups or [{"params": list(model.parameters())}]
    optimizer = torch.optim.AdamW(
        groups,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
        fused=device.type != "mps",
    )
    losses = torch.zeros(config.steps, device=device)
    state = checkpoints.load_latest() if checkpoints else None
    if state:
        restore_tensors(model, optimizer, losses, state)
    done, seconds_before = (state.step, state.seconds) if state else (0, 0.0)
    started = last_checkpoint = time.monotonic()
    model.train()

    def save(step: int) -> None:
        if checkpoints:
            seconds = seconds_before + time.monotonic() - started
            checkpoints.save(TrainingState(step, seconds, collect_tensors(model, optimizer, losses, step)))

    for step in range(done, config.steps):
        rate = config.learning_rate_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate_factor", 1.0)
        # Dropout draws from torch's global generator: a seed per step keeps a resumed run the same.
        torch.manual_seed(derive_seed(seed, "step", step))
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            loss = loss_at(step)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses[step] = loss.detach()

        finished = step + 1
        stopping = stop is not None and stop.requested
        due = time.monotonic() - last_checkpoint >= checkpoint_seconds
        if finished % _FINITE_CHECK_STEPS == 0 or finished == config.steps or stopping or due:
            recent = _check_finite(
                losses, max(done, finished - _FINITE_CHECK_STEPS), finished, config, checkpoints
            )
            if on_progress:
                elapsed = seconds_before + time.monotonic() - started
                on_progress(Progress(finished, config.steps, recent, elapsed))
        if (stopping or due) and finished < config.steps:
            save(finished)
            last_checkpoint = time.monotonic()
        if stopping and finished < config.steps:
            raise Interrupted(
                f"stopped at step {finished} of {config.steps}; the same command continues from there"
            )
    model.eval()
    return FitResult(losses.tolist(), seconds_before + time.monotonic() - started)


def _check_finite(
    losses: Tensor, start: int, stop: int, config: TrainingConfig, checkpoints: CheckpointFolder | None
) -> float:
    """The mean of the losses from `start` to `stop`; raises GenorderError if one of them is not finite."""
    values: list[float] = losses[start:stop].tolist()
    for step, value in enumerate(values, start=start):
        if not math.isfinite(value):
            state = checkpoints.load_latest() if checkpoints else None
            good = f"the last good checkpoint is of step {state.step}" if state else "there is no checkpoint yet"
            raise GenorderError(
                f"the loss became {value} at step {step} (learning rate {config.learning_rate_at(step):.3g}); "
                f"{good}. Try a smaller training.learning_rate or more training.warmup_steps"
            )
    return sum(values) / len(values)
