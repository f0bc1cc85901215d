"""Scoring many candidates with one model: shared prefixes, and racing, against one forward pass per candidate.

The candidates are those of the deepest global stage of a search: all block orders of one parent, forwards and
backwards. The model is order-conditioned (it knows which target comes next), or unconditioned like the paper's. It is
first trained on the mixture of the candidates, so that their losses differ as in a search. The plain way is timed on a
part of the candidates, because it takes the same time for each; the others are timed on all.
"""

import itertools
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

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
from genorder.search.global_local import block_family
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks import make_task, task_splits
from genorder.training import BatchPlan, TrainingConfig, fit

_PLAIN_CANDIDATES = 60
CASES = ((6, 10), (7, 20))  # blocks of the parent, targets


@final
@dataclass(frozen=True)
class ScoringRow:
    name: str
    baseline: str
    ratio: float
    seconds: float
    baseline_seconds: float
    largest_difference: float | None  # between a loss and that of the plain way
    winner_agrees: bool  # whether the winner is the best candidate, or within the standard error of it
    peak_memory_bytes: int

    def __str__(self) -> str:
        equal = "" if self.largest_difference is None else f"losses equal within {self.largest_difference:.1e}, "
        agrees = "" if self.winner_agrees else "; ANOTHER WINNER than exact scoring"
        return (
            f"{self.name}: {self.ratio:.1f} x {self.baseline} ({self.seconds:.1f} s against "
            f"{self.baseline_seconds:.0f} s; {equal}peak memory {self.peak_memory_bytes / 1e9:.2f} GB){agrees}"
        )


def bench_scoring(
    device: torch.device,
    *,
    cases: Sequence[tuple[int, int]] = CASES,
    train_samples: int = 50_000,
    validation_samples: int = 1_000,
    training_steps: int = 400,
) -> Iterator[ScoringRow]:
    for (blocks, length), conditioned in itertools.product(cases, (True, False)):
        case = ScoringCase.trained(
            device,
            blocks,
            length,
            order_conditioned=conditioned,
            seed=0,
            train_samples=train_samples,
            validation_samples=validation_samples,
            training_steps=training_steps,
        )
        yield from _measure(case)


@final
@dataclass(frozen=True, eq=False)
class ScoringCase:
    name: str
    model: AnyGPT
    validation: EncodedDataset
    orders: list[Order]
    seed: int

    @classmethod
    def trained(
        cls,
        device: torch.device,
        blocks: int,
        length: int,
        *,
        order_conditioned: bool,
        seed: int,
        train_samples: int = 50_000,
        validation_samples: int = 1_000,
        training_steps: int = 400,
    ) -> "ScoringCase":
        data = task_splits(
            make_task("square", length),
            train=train_samples,
            validation=validation_samples,
            test=1,
            hidden_order_seed=seed,
        )
        train, validation = encode_for_exploring(data.splits, device)
        orders = block_candidates(length, blocks, seed)
        name = f"T = {len(orders):,}, L = {length}, {'order-conditioned' if order_conditioned else 'unconditioned'}"
        model = _trained(train, orders, order_conditioned, seed, training_steps)
        return cls(name, model, validation, orders, seed)


def racing_winner(racing: Scores) -> int:
    """The candidate with the lowest loss among those that racing never dropped."""
    finalists = np.flatnonzero(racing.scored_C == racing.scored_C.max())
    return int(finalists[np.nanargmin(np.nanmean(racing.losses_CN[finalists], axis=1))])


def winner_agrees(exact: Scores, racing: Scores) -> bool:
    """Whether the winner of racing is the best of exact scoring, or within the standard error of it."""
    _, differences, errors = compare_with_best(exact.losses_CN, exact.lengths_N)
    winner = racing_winner(racing)
    return bool(differences[winner] <= errors[winner])


def _measure(case: ScoringCase) -> list[ScoringRow]:
    name, model, validation, orders = case.name, case.model, case.validation, case.orders
    picked = numpy_generator(case.seed).choice(len(orders), min(_PLAIN_CANDIDATES, len(orders)), replace=False)
    sampled = [orders[index] for index in picked]

    def timed_plain() -> tuple[Scores, float]:
        """Called before, between and after the others, because the machine's speed changes from minute to minute."""
        started = time.perf_counter()
        scores = plain_scores(model, validation, sampled)
        return scores, (time.perf_counter() - started) * len(orders) / len(sampled)

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
    """Every order of the blocks of a random parent, and the reverse of each."""
    parent = Order.of(numpy_generator(derive_seed(seed, "parent")).permutation(length))
    return block_family([parent], blocks)


def _trained(train: EncodedDataset, orders: list[Order], order_conditioned: bool, seed: int, steps: int) -> AnyGPT:
    config = GPTConfig(layers=1, heads=4, width=128, feedforward=512)
    model: AnyGPT = (fresh_order_conditioned_gpt if order_conditioned else fresh_gpt)(config, train, seed)
    orders_KL = torch.tensor([list(order) for order in orders], device=train.inputs_NW.device)
    plan = BatchPlan(train, orders_KL, 128, derive_seed(seed, "batches"))
    training = TrainingConfig(steps=steps, batch_size=128, learning_rate=1e-3, warmup_steps=50, beta2=0.98)
    fit(model, lambda step: mean_loss(model, plan(step)), training, seed=0)
    return model
