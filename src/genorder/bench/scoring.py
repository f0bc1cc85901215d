"""Scoring many candidates with one model: sharing prefixes, and racing, against one forward pass per candidate.

The candidates are what the deepest global stage of a search profiles: all block orders of one parent, forwards and
backwards. The model, one that is told which target comes next and one that must guess it as the paper's, is trained on
their mixture for a while first, so that losses differ as they do in a search. The plain way is timed on a part of the
candidates, since each of them takes it the same time; the others are complete.
"""

import itertools
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
import torch

from genorder.data import EncodedDataset, encode_for_exploring
from genorder.models import AnyGPT, GPTConfig, fresh_gpt, fresh_order_conditioned_gpt
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.profiling.scoring import (
    RacingConfig,
    Scores,
    compare_with_best,
    exact_scores,
    plain_scores,
    racing_scores,
)
from genorder.search.blocks import block_family
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks import make_task, task_splits
from genorder.training import BatchPlan, TrainingConfig, fit

_PLAIN_CANDIDATES = 60
_TRAINING_STEPS = 400
_CASES = ((6, 10), (7, 20))  # blocks of the parent, targets


@final
@dataclass(frozen=True)
class ScoringRow:
    name: str
    baseline: str
    ratio: float
    seconds: float
    baseline_seconds: float
    largest_difference: float | None  # of a loss from the plain way's
    winner_agrees: bool  # is the best candidate, or ties with it within the standard error
    peak_memory_bytes: int

    def __str__(self) -> str:
        equal = "" if self.largest_difference is None else f"losses equal within {self.largest_difference:.1e}, "
        agrees = "" if self.winner_agrees else "; ANOTHER WINNER than exact scoring"
        return (
            f"{self.name}: {self.ratio:.1f} x {self.baseline} ({self.seconds:.1f} s against "
            f"{self.baseline_seconds:.0f} s; {equal}peak memory {self.peak_memory_bytes / 1e9:.2f} GB){agrees}"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def bench_scoring(device: torch.device, on_row: Callable[[ScoringRow], None] = lambda row: None) -> list[ScoringRow]:
    rows = []
    for (blocks, length), told in itertools.product(_CASES, (True, False)):
        for row in _measure(ScoringCase.trained(device, blocks, length, told=told, seed=0)):
            rows.append(row)
            on_row(row)
    return rows


@final
@dataclass(frozen=True, eq=False)
class ScoringCase:
    name: str
    model: AnyGPT
    validation: EncodedDataset
    orders: list[Order]
    seed: int

    @classmethod
    def trained(cls, device: torch.device, blocks: int, length: int, *, told: bool, seed: int) -> "ScoringCase":
        data = task_splits(make_task("square", length), train=50_000, validation=1_000, test=1, hidden_order_seed=seed)
        train, validation = encode_for_exploring(data.splits, device)
        orders = block_candidates(length, blocks, seed)
        name = f"T = {len(orders):,}, L = {length}, {'told' if told else 'guessing'}"
        return cls(name, _trained(train, orders, told, seed), validation, orders, seed)


def racing_winner(racing: Scores) -> int:
    """The candidate of lowest loss among those that stayed in the race to its end."""
    finalists = np.flatnonzero(racing.scored_C == racing.scored_C.max())
    return int(finalists[np.nanargmin(np.nanmean(racing.losses_CN[finalists], axis=1))])


def winner_agrees(exact: Scores, racing: Scores) -> bool:
    """Is racing's winner the best of exact scoring, or tied with it within the standard error?"""
    _, differences, errors = compare_with_best(exact.losses_CN, exact.lengths_N)
    winner = racing_winner(racing)
    return bool(differences[winner] <= errors[winner])


def _measure(case: ScoringCase) -> list[ScoringRow]:
    name, model, validation, orders = case.name, case.model, case.validation, case.orders
    picked = numpy_generator(case.seed).choice(len(orders), min(_PLAIN_CANDIDATES, len(orders)), replace=False)
    some = [orders[index] for index in picked]

    def timed_plain() -> tuple[Scores, float]:
        """Before, between and after the others, since the machine's speed changes from minute to minute."""
        started = time.perf_counter()
        scores = plain_scores(model, validation, some)
        return scores, (time.perf_counter() - started) * len(orders) / len(some)

    plain, before = timed_plain()
    started = time.perf_counter()
    exact = exact_scores(model, validation, orders)
    exact_seconds = time.perf_counter() - started
    between = timed_plain()[1]
    difference = float(np.abs(exact.losses_CN[picked].mean(axis=1) - plain.losses_CN.mean(axis=1)).max())

    started = time.perf_counter()
    racing = racing_scores(model, validation, orders, RacingConfig())
    racing_seconds = time.perf_counter() - started
    plain_seconds = (before + between + timed_plain()[1]) / 3
    agrees = winner_agrees(exact, racing)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return [
        ScoringRow(
            f"{name}: shared prefixes", "plain", plain_seconds / exact_seconds, exact_seconds, plain_seconds,
            difference, True, peak,
        ),
        ScoringRow(
            f"{name}: racing", "plain", plain_seconds / racing_seconds, racing_seconds, plain_seconds,
            None, agrees, peak,
        ),
    ]  # fmt: skip


def block_candidates(length: int, blocks: int, seed: int) -> list[Order]:
    """Every order of the blocks of a random parent, and each of them reversed."""
    parent = Order.of(numpy_generator(derive_seed(seed, "parent")).permutation(length))
    return block_family([parent], blocks)


def _trained(train: EncodedDataset, orders: list[Order], told: bool, seed: int) -> AnyGPT:
    config = GPTConfig(layers=1, heads=4, width=128, feedforward=512)
    model: AnyGPT = (fresh_order_conditioned_gpt if told else fresh_gpt)(config, train, seed)
    orders_KL = torch.tensor([list(order) for order in orders], device=train.inputs_NW.device)
    plan = BatchPlan(train, orders_KL, 128, derive_seed(seed, "batches"))
    training = TrainingConfig(steps=_TRAINING_STEPS, batch_size=128, learning_rate=1e-3, warmup_steps=50, beta2=0.98)
    fit(model, lambda step: mean_loss(model, plan(step)), training, seed=0)
    return model
