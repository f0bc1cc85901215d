"""Loss profiling: one short run on a mixture of orders, then the validation loss of each.

Orders that are easy to learn show a lower loss early on. The paper's model is a plain GPT that is told nothing of which
order a sample uses; one that is told which target comes next separates the orders far better (benchmarks/RESULTS.md).
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from genorder.data import EncodedDataset
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.models import AnyGPT, GPTConfig, fresh_gpt, fresh_order_conditioned_gpt
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.profiling.scoring import (
    MEMORY_BYTES,
    RacingConfig,
    Scores,
    compare_with_best,
    exact_scores,
    finite_or_none,
    means_and_errors,
    racing_scores,
)
from genorder.seeding import derive_seed
from genorder.store import write_json_atomic
from genorder.training import BatchPlan, CheckpointFolder, Progress, TrainingConfig, fit


class ProfilerConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: GPTConfig
    training: TrainingConfig
    told: bool = False  # tell the model which target comes next; the paper's must guess it
    exact: bool = True  # score every candidate on every validation sample, as the paper does
    error_probability: float = Field(default=0.05, gt=0, lt=1)  # of racing, where exact is false
    curve_points: int = Field(default=5, ge=0)  # at how many steps before the last each candidate's loss is taken
    curve_samples: int = Field(default=128, ge=1)  # on so many validation samples
    memory_bytes: int = Field(default=MEMORY_BYTES, ge=1)

    def curve_steps(self) -> list[int]:
        steps = np.linspace(0, self.training.steps, self.curve_points + 2)[1:-1].round().astype(int)
        return sorted({int(step) for step in steps if 0 < step < self.training.steps})


@final
@dataclass(frozen=True, eq=False)
class Profile:
    """The candidates with their losses, in the sequence they were given in."""

    orders: list[Order]
    losses: NDArray[np.float64]  # mean over target tokens, without EOS; infinite where it was not finite
    errors: NDArray[np.float64]  # standard error of the mean over samples
    tied: NDArray[np.bool_]  # within the standard error of the paired difference from the best
    samples: NDArray[np.int64]  # on how many validation samples each was scored
    curve_steps: list[int] = field(default_factory=list)
    curves: list[list[float]] = field(default_factory=list)  # losses of all candidates at each of those steps
    train_seconds: float = 0.0
    score_seconds: float = 0.0

    @property
    def ranking(self) -> NDArray[np.int64]:
        """Candidates from best to worst: those that stayed longest in the race first, then by loss.

        A loss that is not finite ranks behind all others.
        """
        order: NDArray[np.int64] = np.lexsort((self.losses, -self.samples, ~np.isfinite(self.losses)))
        return order

    @property
    def best(self) -> Order:
        return self.orders[int(self.ranking[0])]

    def to_dict(self) -> dict[str, Any]:
        return {
            "orders": [list(order) for order in self.orders],
            "losses": [finite_or_none(value) for value in self.losses.tolist()],
            "errors": [finite_or_none(value) for value in self.errors.tolist()],
            "tied": self.tied.tolist(),
            "samples": self.samples.tolist(),
            "curve_steps": self.curve_steps,
            "curves": [[finite_or_none(value) for value in point] for point in self.curves],
            "train_seconds": self.train_seconds,
            "score_seconds": self.score_seconds,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "Profile":
        def floats(values: Sequence[float | None]) -> NDArray[np.float64]:
            return np.array([math.inf if value is None else value for value in values])

        return cls(
            orders=[Order(tuple(order)) for order in saved["orders"]],
            losses=floats(saved["losses"]),
            errors=floats(saved["errors"]),
            tied=np.array(saved["tied"], dtype=bool),
            samples=np.array(saved["samples"], dtype=np.int64),
            curve_steps=saved["curve_steps"],
            curves=[floats(point).tolist() for point in saved["curves"]],
            train_seconds=saved["train_seconds"],
            score_seconds=saved["score_seconds"],
        )


def profile_orders(
    train: EncodedDataset,
    validation: EncodedDataset,
    orders: Sequence[Order],
    config: ProfilerConfig,
    *,
    seed: int,
    folder: Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> Profile:
    """Train on the mixture of `orders`, then score each; with a folder, an interrupted training is continued."""
    orders = list(orders)
    if not orders:
        raise InputError("profiling needs at least one order, received none")
    model: AnyGPT = (fresh_order_conditioned_gpt if config.told else fresh_gpt)(config.model, train, seed)
    orders_KL = torch.tensor([list(order) for order in orders], device=train.inputs_NW.device)
    batch_at = BatchPlan(train, orders_KL, config.training.batch_size, derive_seed(seed, "batches"))
    curve = _Curve(model, validation.head(config.curve_samples), orders, config, folder)
    fitted = fit(
        model,
        lambda step: mean_loss(model, batch_at(step)),
        config.training,
        seed=derive_seed(seed, "dropout"),
        checkpoints=CheckpointFolder(folder) if folder else None,
        on_progress=on_progress,
        after_step=curve.after_step,
        stop=stop,
        keep_end=True,
    )
    started = time.monotonic()
    scores = score(model, validation, orders, config, stop)
    return summarise(
        orders,
        scores,
        curve_steps=sorted(curve.losses),
        curves=[curve.losses[step] for step in sorted(curve.losses)],
        train_seconds=fitted.seconds,
        score_seconds=time.monotonic() - started,
    )


def score(
    model: AnyGPT,
    validation: EncodedDataset,
    orders: list[Order],
    config: ProfilerConfig,
    stop: StopRequest | None = None,
) -> Scores:
    if config.exact:
        return exact_scores(model, validation, orders, memory_bytes=config.memory_bytes, stop=stop)
    racing = RacingConfig(error_probability=config.error_probability)
    return racing_scores(model, validation, orders, racing, memory_bytes=config.memory_bytes, stop=stop)


def summarise(orders: list[Order], scores: Scores, **details: Any) -> Profile:
    """Means, standard errors and ties. Candidates that left a race are compared on what they were scored on."""
    samples = scores.scored_C
    losses, errors = np.empty(len(orders)), np.empty(len(orders))
    tied = np.zeros(len(orders), dtype=bool)
    for count in np.unique(samples).tolist():
        group = np.flatnonzero(samples == count)
        part, lengths = scores.losses_CN[group, :count], scores.lengths_N[:count]
        losses[group], errors[group] = means_and_errors(part, lengths)
        if count == samples.max():
            means, differences, difference_errors = compare_with_best(part, lengths)
            tied[group] = (differences <= difference_errors) & np.isfinite(means)
    return Profile(orders, losses, errors, tied, samples, **details)


class _Curve:
    """Losses of all candidates at some steps of the run, kept in a file so that a continued run has them too."""

    def __init__(
        self,
        model: AnyGPT,
        validation: EncodedDataset,
        orders: list[Order],
        config: ProfilerConfig,
        folder: Path | None,
    ) -> None:
        self._model, self._validation, self._orders, self._config = model, validation, orders, config
        self._file = folder / "curve.json" if folder else None
        self.losses: dict[int, list[float]] = {}
        if self._file and self._file.exists():
            saved = json.loads(self._file.read_bytes())
            self.losses = {int(s): [math.inf if v is None else v for v in values] for s, values in saved.items()}

    def after_step(self, finished: int) -> None:
        if finished not in self._config.curve_steps():
            return
        scores = exact_scores(self._model, self._validation, self._orders, memory_bytes=self._config.memory_bytes)
        self._model.train()
        self.losses[finished] = means_and_errors(scores.losses_CN, scores.lengths_N)[0].tolist()
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            plain = {step: [finite_or_none(value) for value in values] for step, values in self.losses.items()}
            write_json_atomic(self._file, plain)
