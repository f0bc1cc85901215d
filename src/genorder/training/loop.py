"""The training loop of every run: AdamW, schedule, clipping, averaged weights, checkpoints, interruption."""

import copy
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from genorder.errors import GenorderError, Interrupted
from genorder.execution import StopRequest, flushing_denormals
from genorder.seeding import derive_seed
from genorder.training.checkpoint import CheckpointFolder, TrainingState, collect_tensors, restore_tensors
from genorder.training.progress import Progress

_FINITE_CHECK_STEPS = 20  # steps between two transfers of the losses from the device, to check that they are finite
CHECKPOINT_SECONDS = 60.0

_Model = TypeVar("_Model", bound=nn.Module)


class TrainingConfig(BaseModel):
    """AdamW with linear warm-up, then a constant rate, then linear decay to zero at the last step."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    steps: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    stable_steps: int = Field(default=0, ge=0)  # before the decay, warm-up included; 0: decay right after the warm-up
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    clip_norm: float = Field(default=1.0, gt=0)

    def learning_rate_at(self, step: int) -> float:
        """The rate of 0-based `step`: a function of the step alone, so resuming needs no state.

        If the warm-up is longer than the run, the rate rises until the end.
        """
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        stable = max(self.warmup_steps, self.stable_steps)
        if step < stable:
            return self.learning_rate
        return self.learning_rate * (self.steps - step) / (self.steps - stable)


@final
@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters with a factor on the learning rate and, if not None, their own weight decay."""

    parameters: Iterable[Tensor]
    rate_factor: float = 1.0
    weight_decay: float | None = None


@final
class WeightAverage(Generic[_Model]):
    """A copy of the model whose weights are the mean over about the last `share` of the steps.

    Polynomial-decay averaging (Shamir and Zhang, 2013). At a constant learning rate the mean is less noisy than the
    weights themselves.
    """

    def __init__(self, model: _Model, share: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        self._share = share

    @torch.no_grad()
    def update(self, model: _Model, done: int) -> None:
        """Add the weights after `done` steps."""
        weight = min(1.0, 1 / (self._share * done))
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), weight)


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
    parameter_groups: Sequence[ParameterGroup] | None = None,
    keep_end: bool = False,
    end_early: Callable[[int], bool] = lambda done: False,
    average: WeightAverage[Any] | None = None,
) -> FitResult:
    """Train `model` in place for `config.steps` steps on `loss_at(step)`. Resumes from the latest checkpoint, if any.

    `loss_at` must be a function of the step and the model's state alone. `after_step` and `end_early` are called after
    each step with the number of steps done; training ends once `end_early` returns True, so it must be such a function
    too. With `keep_end` the last step is saved as a checkpoint. `average` is updated after each step, and is part of
    the checkpoints.

    Raises Interrupted, after saving a checkpoint, once `stop` is requested; GenorderError with a diagnosis if a loss
    or a weight is not finite.
    """
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(
        [
            {
                "params": list(group.parameters),
                "rate_factor": group.rate_factor,
                "weight_decay": config.weight_decay if group.weight_decay is None else group.weight_decay,
            }
            for group in parameter_groups or [ParameterGroup(model.parameters())]
        ],
        betas=(config.beta1, config.beta2),
        fused=device.type != "mps",
    )
    record = _Record(model, optimizer, config, checkpoints, average)
    last_checkpoint = time.monotonic()
    model.train()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), flushing_denormals():
        finished = record.done == config.steps or end_early(record.done)
        while not finished:
            step = record.done
            # Dropout draws from torch's global generator. With a seed per step, a resumed run draws the same numbers.
            torch.manual_seed(derive_seed(seed, "step", step))
            record.losses[step] = _step(model, optimizer, loss_at, config, step)
            record.done = step + 1
            if average:
                average.update(model, record.done)
            if after_step:
                after_step(record.done)
            finished = record.done == config.steps or end_early(record.done)
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
        group["lr"] = rate * group["rate_factor"]
    device = next(model.parameters()).device
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        loss = loss_at(step)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


class _Record:
    """Steps, losses and seconds of a run, including those before an interruption."""

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
        if state and state.step > config.steps:  # written by a longer run of the same training
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
        # The gradient of a finite loss may be infinite: such weights must not be saved.
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
