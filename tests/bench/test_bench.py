"""The benchmarks run and name what they compare. Their measurements are not tested."""

import math
from dataclasses import asdict

import numpy as np
import pytest
import torch

from genorder.bench import bench_reading, bench_scoring, bench_workers
from genorder.bench.reading import FILES
from genorder.bench.scoring import block_candidates, racing_winner, winner_agrees
from genorder.profiling import Scores

CPU = torch.device("cpu")


@pytest.mark.slow
def test_workers() -> None:
    rows = list(bench_workers(CPU, lengths=[3], jobs=2, steps=1))
    assert len(rows) == 1
    assert asdict(rows[0]).keys() >= {"name", "ratio", "baseline"}
    assert rows[0].ratio == pytest.approx(rows[0].baseline_seconds / rows[0].seconds)


def test_scoring() -> None:
    rows = list(bench_scoring(CPU, cases=[(3, 5)], train_samples=200, validation_samples=100, training_steps=2))
    kinds = [
        f"{model}: {way}" for model in ("order-conditioned", "unconditioned") for way in ("shared prefixes", "racing")
    ]
    assert [row.name.split(", ")[-1] for row in rows] == kinds
    assert len(rows) == 4
    assert all(row.name in str(row) for row in rows)
    for shared in rows[::2]:
        assert shared.largest_difference is not None
        assert shared.largest_difference < 1e-4
    assert all(row.winner_agrees and row.peak_memory_bytes > 0 for row in rows)


def test_block_candidates_are_the_orders_of_the_blocks_and_their_reversals() -> None:
    orders = block_candidates(6, 3, seed=0)
    assert len(orders) == len(set(orders)) == 12
    assert {tuple(reversed(order.indices)) for order in orders} == {order.indices for order in orders}


def scores(losses: list[list[float]]) -> Scores:
    return Scores(np.array(losses), np.full(len(losses[0]), 3))


def test_the_winner_of_a_race_is_among_those_never_dropped() -> None:
    raced = scores([[0.1, math.nan, math.nan], [0.5, 0.4, 0.3], [0.5, 0.5, 0.5]])
    assert racing_winner(raced) == 1
    assert not winner_agrees(scores([[0.1, 0.1, 0.1], [0.5, 0.4, 0.3], [0.5, 0.5, 0.5]]), raced)
    assert winner_agrees(scores([[0.9, 0.1, 0.8], [0.5, 0.4, 0.3], [0.5, 0.5, 0.5]]), raced)


def test_reading() -> None:
    rows = list(bench_reading(CPU, samples=200))
    assert [row.name for row in rows] == list(FILES)
    for row in rows:
        assert row.ratio == pytest.approx(row.lines_per_second / row.baseline_lines_per_second)
