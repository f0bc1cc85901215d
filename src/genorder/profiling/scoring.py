"""Validation losses of candidate orders under one model: all orders on all samples, or a race on growing subsets.

Axes: C candidates, N validation samples.
"""

import math
import time
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genorder.data import EncodedDataset, arrange
from genorder.execution import StopRequest
from genorder.models import AnyGPT
from genorder.models.losses import target_losses
from genorder.orders import Order
from genorder.profiling.prefix_sharing import shared_prefix_losses

MEMORY_BYTES = 500_000_000
_FLOAT_BYTES = 4
_MOST_SAMPLES = 250  # in one walk of the prefix tree: enough to fill the cores, few enough for the caches
_PLAIN_CHUNK = 250  # samples in one forward pass of `plain_scores`


@final
@dataclass(frozen=True, eq=False)
class Scores:
    """The loss of each candidate on each sample: the mean over the sample's target tokens, without EOS.

    NaN if the candidate was not scored on the sample; infinity if the loss was NaN.
    """

    losses_CN: NDArray[np.float64]
    lengths_N: NDArray[np.int64]  # targets of each sample

    @property
    def scored_C(self) -> NDArray[np.int64]:
        """The number of samples on which each candidate was scored; these are the first samples."""
        scored: NDArray[np.int64] = (~np.isnan(self.losses_CN)).sum(axis=1)
        return scored


def plain_scores(model: AnyGPT, encoded: EncodedDataset, orders: list[Order]) -> Scores:
    """One full forward pass per candidate: the reference for the faster functions."""
    device = encoded.inputs_NW.device
    losses_CN = np.empty((len(orders), len(encoded)))
    lengths_N = encoded.target_lengths_N.cpu().numpy()
    model.eval()
    with torch.inference_mode():
        for candidate, order in enumerate(orders):
            order_1L = torch.tensor([list(order)], device=device)
            parts = []
            for rows_B in torch.split(torch.arange(len(encoded), device=device), _PLAIN_CHUNK):
                batch = arrange(encoded, rows_B, order_1L)
                parts.append(target_losses(model.target_logits(batch), batch).cpu().double().sum(dim=1))
            losses_CN[candidate] = _no_nan(torch.cat(parts).numpy()) / np.maximum(lengths_N, 1)
    return Scores(losses_CN, lengths_N)


def exact_scores(
    model: AnyGPT,
    encoded: EncodedDataset,
    orders: list[Order],
    *,
    memory_bytes: int = MEMORY_BYTES,
    stop: StopRequest | None = None,
) -> Scores:
    """Every candidate on every sample, with the input and common prefixes computed once."""
    lengths_N = encoded.target_lengths_N.cpu().numpy()
    losses_CN = np.empty((len(orders), len(encoded)))
    model.eval()
    for length in np.unique(lengths_N).tolist():
        rows = np.flatnonzero(lengths_N == length)
        # A shorter sample has fewer targets: candidates that agree on the order of these are scored once.
        restricted = [tuple(index for index in order if index < length) for order in orders]
        distinct = sorted(set(restricted))
        losses = _losses_of_one_length(model, encoded, rows, torch.tensor(distinct), memory_bytes, stop)
        number = {order: position for position, order in enumerate(distinct)}
        losses_CN[:, rows] = losses[[number[order] for order in restricted]] / max(length, 1)
    return Scores(losses_CN, lengths_N)


def _losses_of_one_length(
    model: AnyGPT,
    encoded: EncodedDataset,
    rows: NDArray[np.int64],
    orders_CL: Tensor,
    memory_bytes: int,
    stop: StopRequest | None,
) -> NDArray[np.float64]:
    device = encoded.inputs_NW.device
    orders_CL = orders_CL.to(device)
    length = orders_CL.shape[1]
    losses_CN = np.empty((len(orders_CL), len(rows)))
    chunk = _samples_at_once(model, encoded, memory_bytes)
    for first in range(0, len(rows), chunk):
        part = torch.from_numpy(rows[first : first + chunk]).to(device)
        inputs_SW, targets_SL = encoded.inputs_NW[part], encoded.targets_NL[part, :length]
        losses_CS = shared_prefix_losses(model, inputs_SW, targets_SL, orders_CL, stop)
        losses_CN[:, first : first + len(part)] = losses_CS.cpu().double().numpy()
    return _no_nan(losses_CN)


def seconds_per_candidate(model: AnyGPT, encoded: EncodedDataset, *, samples: int = 64) -> float:
    """The measured time to score one order on all samples, without shared prefixes."""
    part = encoded.head(samples)
    order = Order.forward(encoded.target_width)
    exact_scores(model, part, [order])
    started = time.perf_counter()
    exact_scores(model, part, [order])
    return (time.perf_counter() - started) * len(encoded) / len(part)


def finite_or_none(value: float) -> float | None:
    """For JSON, which has no infinity."""
    return float(value) if math.isfinite(value) else None


def _no_nan(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(losses), math.inf, losses)


def _samples_at_once(model: AnyGPT, encoded: EncodedDataset, memory_bytes: int) -> int:
    """The number of samples that fit into the memory together."""
    config = model.config
    tokens = encoded.input_width + 1 + encoded.target_width
    kept = 2 * config.width * tokens * config.layers + 2 * (encoded.target_width + 1) * encoded.model_vocabulary
    step = 8 * config.width + 2 * config.feedforward + 2 * encoded.model_vocabulary + 2 * config.heads * tokens
    return max(1, min(_MOST_SAMPLES, memory_bytes // (_FLOAT_BYTES * (kept + tokens * step))))


@final
@dataclass(frozen=True)
class RacingConfig:
    """A race of scores: a candidate is dropped once a paired t-test says that it is worse than the best one.

    `error_probability` bounds the probability that the best candidate is dropped at any time in the race. It is divided
    by the number of subsets and of candidates (Bonferroni).
    """

    first_samples: int = 16
    growth: int = 2
    error_probability: float = 0.05

    def __post_init__(self) -> None:
        if self.first_samples < 1 or self.growth < 2 or not 0 < self.error_probability < 1:
            raise ValueError(f"not a race on growing subsets: {self}")


def racing_scores(
    model: AnyGPT,
    encoded: EncodedDataset,
    orders: list[Order],
    racing: RacingConfig,
    *,
    memory_bytes: int = MEMORY_BYTES,
    stop: StopRequest | None = None,
) -> Scores:
    """Score all candidates on few samples, drop those that are significantly worse than the best, add samples."""
    samples = len(encoded)
    lengths_N = encoded.target_lengths_N.cpu().numpy()
    losses_CN = np.full((len(orders), samples), np.nan)
    sizes = [min(racing.first_samples, samples)]
    while sizes[-1] < samples:
        sizes.append(min(sizes[-1] * racing.growth, samples))
    alive = np.arange(len(orders))
    done = 0
    for size in sizes:
        part = EncodedDataset(
            encoded.inputs_NW[done:size],
            encoded.targets_NL[done:size],
            encoded.target_lengths_N[done:size],
            encoded.model_vocabulary,
        )
        remaining = [orders[index] for index in alive]
        scored = exact_scores(model, part, remaining, memory_bytes=memory_bytes, stop=stop)
        losses_CN[alive, done:size] = scored.losses_CN
        done = size
        level = racing.error_probability / (len(sizes) * len(orders))
        alive = alive[~ruled_out(losses_CN[alive, :size], lengths_N[:size], level)]
        if len(alive) == 1:
            break
    return Scores(losses_CN, lengths_N)


def ruled_out(losses_CN: NDArray[np.float64], lengths_N: NDArray[np.int64], level: float) -> NDArray[np.bool_]:
    """The candidates whose loss exceeds the lowest one by a one-sided paired t-test at this significance level."""
    means, differences, errors = compare_with_best(losses_CN, lengths_N)
    samples = losses_CN.shape[1]
    if samples < 2:
        return np.zeros(len(means), dtype=bool)
    threshold = t_threshold(level, samples)
    worse: NDArray[np.bool_] = (differences > threshold * errors) | ~np.isfinite(means)
    worse[int(np.nanargmin(np.where(np.isfinite(means), means, np.inf)))] = False
    return worse


def t_threshold(level: float, samples: int) -> float:
    """The t-value, a mean in standard errors, that this many samples of mean zero exceed with probability `level`."""
    from scipy.special import stdtrit  # here, since importing scipy takes as long as a short command

    return -float(stdtrit(samples - 1, level))


def compare_with_best(
    losses_CN: NDArray[np.float64], lengths_N: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean loss over all targets, its paired difference from the lowest mean, and the difference's standard error."""
    weights = lengths_N / max(lengths_N.mean(), 1e-9)
    weighted_CN = losses_CN * weights
    means = weighted_CN.mean(axis=1)
    finite = np.where(np.isfinite(means), means, np.inf)
    best = int(np.argmin(finite))
    with np.errstate(invalid="ignore"):
        paired_CN = weighted_CN - weighted_CN[best]
        differences = paired_CN.mean(axis=1)
        errors = standard_errors(paired_CN)
    return means, differences, errors


def means_and_errors(
    losses_CN: NDArray[np.float64], lengths_N: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean loss over all targets and its standard error over samples; both infinite if the mean is not finite."""
    weights = lengths_N / max(lengths_N.mean(), 1e-9)
    means = (losses_CN * weights).mean(axis=1)
    with np.errstate(invalid="ignore"):
        errors = standard_errors((losses_CN - means[:, None]) * weights)
    finite = np.isfinite(means)
    return np.where(finite, means, math.inf), np.where(finite, errors, math.inf)


def standard_errors(values_CN: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error of each row's mean; infinite for one sample."""
    samples = values_CN.shape[1]
    if samples < 2:
        return np.full(len(values_CN), math.inf)
    errors: NDArray[np.float64] = values_CN.std(axis=1, ddof=1) / math.sqrt(samples)
    return errors
