"""The one training loop of every run: AdamW, schedule, clipping, checkpoints, interruption."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from genorder.errors import GenorderError, Interrupted
from genorder.execution import StopRequest, flushing_denormals
from genorder.seeding import derive_seed
from genorder.training.average import WeightAverage
from genorder.training.checkpoint import CheckpointFolder, TrainingState, collect_tensors, restore_tensors
from genorder.training.config import TrainingConfig

_FINITE_CHECK_STEPS = 20  # how often losses are fetched from the device to see whether they are finite
CHECKPOINT_SECONDS = 60.0


@final
@dataclass(frozen=True)
class Progress:
    step: int
    steps: int
    loss: float | None  # mean over the last steps; none where nothing is trained
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
    after_step: Callable[[int], None] | None = None,
    stop: StopRequest | None = None,
    parameter_groups: Sequence[dict[str, Any]] | None = None,
    keep_end: bool = False,
    enough: Callable[[int], bool] = lambda done: False,
    average: WeightAverage[Any] | None = None,
) -> FitResult:
    """Train `model` in place for `config.steps` steps on `loss_at(step)`, going on from a checkpoint if any.

    `loss_at` must be a function of the step and of the model's state alone, and so must `enough`, which is asked with
    the number of steps done whether the training may end before its last step. `after_step` is called with the number
    of steps done after each.
    A parameter group may carry `rate_factor`, by which the learning rate is multiplied. Raises Interrupted, after a
    checkpoint, once `stop` is requested, and GenorderError with a diagnosis when the loss is not finite. With
    `keep_end` the last step is kept as a checkpoint too, for what comes after it may be interrupted. `average` is
    updated after each step, and kept in the checkpoints.
    """
    device = next(model.parameters()).device
    groups = parameter_groups or [{"params": list(model.parameters())}]
    optimizer = torch.optim.AdamW(
        groups, betas=(config.beta1, config.beta2), weight_decay=config.weight_decay, fused=device.type != "mps"
    )
    record = _Record(model, optimizer, config, checkpoints, average)
    last_checkpoint = time.monotonic()
    model.train()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), flushing_denormals():
        finished = record.done == config.steps or enough(record.done)
        while not finished:
            step = record.done
            # Dropout draws from torch's global generator: a seed per step keeps a resumed run the same.
            torch.manual_seed(derive_seed(seed, "step", step))
            record.losses[step] = _step(model, optimizer, loss_at, config, step)
            record.done = step + 1
            if average:
                average.update(model, record.done)
            if after_step:
                after_step(record.done)
            finished = record.done == config.steps or enough(record.done)
            stopping = stop is not None and stop.requested and not finished
            due = time.monotonic() - last_checkpoint >= checkpoint_seconds
            if record.done % _FINITE_CHECK_STEPS == 0 or finished or stopping or due:
                progress = record.checked_progress()
                if on_progress:
                    on_progress(progress)
            if stopping or (keep_end if finished else due):
                record.save()
                last_checkpoint = time.monotonic()
            if stopping:
                raise Interrupted(
                    f"stopped at step {record.done} of {config.steps}; the same command continues from there"
                )
    model.eval()
    return FitResult(record.losses[: record.done].tolist(), record.seconds)


def _step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_at: Callable[[int], Tensor],
    config: TrainingConfig,
    step: int,
) -> Tensor:
    rate = config.learning_rate_at(step)
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("rate_factor", 1.0)
    device = next(model.parameters()).device
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        loss = loss_at(step)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


class _Record:
    """How far a run is: steps, losses and time, with what went before it was interrupted."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        config: TrainingConfig,
        checkpoints: CheckpointFolder | None,
        average: WeightAverage[Any] | None,
    ) -> None:
        self._model, self._optimizer, self._config, self._checkpoints = model, optimizer, config, checkpoints
        self._average = average.model if average else None
        self.losses = torch.zeros(config.steps, device=next(model.parameters()).device)
        state = checkpoints.load_latest() if checkpoints else None
        if state and state.step > config.steps:  # of a later part of the training: there is no way back from it
            state = None
        if state:
            restore_tensors(model, optimizer, self.losses, state, self._average)
        self.done = state.step if state else 0
        self._checked = self.done
        self._seconds_before = state.seconds if state else 0.0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def checked_progress(self) -> Progress:
        """Raises GenorderError if a loss since the last check is not finite."""
        values: list[float] = self.losses[self._checked : self.done].tolist()
        for step, value in enumerate(values, start=self._checked):
            if not math.isfinite(value):
                raise self._diagnosis(f"the loss became {value}", step)
        self._checked = self.done
        recent = self.losses[max(0, self.done - _FINITE_CHECK_STEPS) : self.done]
        return Progress(self.done, self._config.steps, float(recent.mean()), self.seconds)

    def save(self) -> None:
        if self._checkpoints is None:
            return
        # A finite loss may still have given a gradient that is not: such weights must not be kept as good.
        if not all(bool(parameter.isfinite().all()) for parameter in self._model.parameters()):
            raise self._diagnosis("a weight became infinite or not a number", self.done - 1)
        tensors = collect_tensors(self._model, self._optimizer, self.losses, self.done, self._average)
        self._checkpoints.save(TrainingState(self.done, self.seconds, tensors))

    def _diagnosis(self, what: str, step: int) -> GenorderError:
        state = self._checkpoints.load_latest() if self._checkpoints else None
        good = f"the last good checkpoint is of step {state.step}" if state else "there is no checkpoint yet"
        return GenorderError(
            f"{what} at step {step} (learning rate {self._config.learning_rate_at(step):.3g}); {good}. "
            "Try a smaller training.learning_rate or more training.warmup_steps"
        )
