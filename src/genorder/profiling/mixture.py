"""Loss profiling: one short training run on a mixture of orders, then the validation loss of each order.

Orders that are easy to learn have a lower loss early in training. The paper's model is a plain GPT that does not know
the order of a sample. A model conditioned on the order separates the orders far better (benchmarks/RESULTS.md).
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
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
    order_conditioned: bool = False  # the model knows which target comes next; the paper's model does not
    exact: bool = True  # score every candidate on every validation sample, as the paper does
    error_probability: float = Field(default=0.05, gt=0, lt=1)  # of racing, if exact is false
    curve_points: int = Field(default=5, ge=0)  # number of steps before the last at which all candidates are scored
    curve_samples: int = Field(default=128, ge=1)  # validation samples of these scores
    memory_bytes: int = Field(default=MEMORY_BYTES, ge=1)

    def curve_steps(self) -> list[int]:
        steps = np.linspace(0, self.training.steps, self.curve_points + 2)[1:-1].round().astype(int)
        return sorted({int(step) for step in steps if 0 < step < self.training.steps})


@final
@dataclass(frozen=True, eq=False)
class Profile:
    """The candidates with their losses, in the sequence in which they were passed."""

    orders: list[Order]
    losses: NDArray[np.float64]  # mean over target tokens, without EOS; infinite if not finite
    errors: NDArray[np.float64]  # standard error of the mean over samples
    tied: NDArray[np.bool_]  # with the best: within the standard error of the paired difference
    samples: NDArray[np.int64]  # number of validation samples on which each was scored
    curve_steps: list[int] = field(default_factory=list)
    curves: list[list[float]] = field(default_factory=list)  # losses of all candidates at each of these steps
    train_seconds: float = 0.0
    score_seconds: float = 0.0

    @classmethod
    def from_scores(
        cls,
        orders: list[Order],
        scores: Scores,
        *,
        curve_steps: Sequence[int] = (),
        curves: Sequence[list[float]] = (),
        train_seconds: float = 0.0,
        score_seconds: float = 0.0,
    ) -> "Profile":
        """Means, standard errors and ties. Candidates are compared with those scored on as many samples."""
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
        return cls(orders, losses, errors, tied, samples, list(curve_steps), list(curves), train_seconds, score_seconds)

    @property
    def ranking(self) -> NDArray[np.int64]:
        """Candidates from best to worst: first those that stayed longest in a race of scores, then by loss.

        A loss that is not finite ranks last.
        """
        order: NDArray[np.int64] = np.lexsort((self.losses, -self.samples, ~np.isfinite(self.losses)))
        return order

    @property
    def best(self) -> Order:
        return self.orders[int(self.ranking[0])]

    def to_dict(self) -> dict[str, object]:
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
    def from_dict(cls, saved: Mapping[str, Any]) -> "Profile":
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
    """Train on the mixture of `orders`, then score each. With a folder, an interrupted training is resumed."""
    orders = list(orders)
    if not orders:
        raise InputError("profiling needs at least one order, received none")
    model: AnyGPT = (fresh_order_conditioned_gpt if config.order_conditioned else fresh_gpt)(config.model, train, seed)
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
    if config.exact:
        scores = exact_scores(model, validation, orders, memory_bytes=config.memory_bytes, stop=stop)
    else:
        racing = RacingConfig(error_probability=config.error_probability)
        scores = racing_scores(model, validation, orders, racing, memory_bytes=config.memory_bytes, stop=stop)
    return Profile.from_scores(
        orders,
        scores,
        curve_steps=sorted(curve.losses),
        curves=[curve.losses[step] for step in sorted(curve.losses)],
        train_seconds=fitted.seconds,
        score_seconds=time.monotonic() - started,
    )


class _Curve:
    """Losses of all candidates at some steps of the run, saved in a file for a resumed run."""

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
