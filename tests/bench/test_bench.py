"""The benchmarks run, and say what they compared. What they measure is not tested: speed is no unit test."""

import math

import numpy as np
import pytest
import torch

from genorder.bench import bench_reading, bench_scoring, bench_workers, reading, scoring, workers
from genorder.bench.scoring import block_candidates, racing_winner, winner_agrees
from genorder.profiling import Scores

CPU = torch.device("cpu")


@pytest.mark.slow
def test_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_STEPS", 1)
    monkeypatch.setattr(workers, "_JOBS", 2)
    monkeypatch.setattr(workers, "_LENGTHS", (3,))
    rows = bench_workers(CPU)
    assert len(rows) == 1
    assert rows[0].to_dict().keys() >= {"name", "ratio", "baseline"}
    assert rows[0].ratio == pytest.approx(rows[0].baseline_seconds / rows[0].seconds)


def test_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_TRAINING_STEPS", 2)
    monkeypatch.setattr(scoring, "_CASES", ((3, 5),))
    told: list[str] = []
    rows = bench_scoring(CPU, lambda row: told.append(str(row)))
    kinds = [f"{model}: {way}" for model in ("told", "guessing") for way in ("shared prefixes", "racing")]
    assert [row.name.split(", ")[-1] for row in rows] == kinds
    assert len(told) == 4
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


def test_the_winner_of_a_race_is_among_those_that_stayed() -> None:
    raced = scores([[0.1, math.nan, math.nan], [0.5, 0.4, 0.3], [0.5, 0.5, 0.5]])
    assert racing_winner(raced) == 1
    assert not winner_agrees(scores([[0.1, 0.1, 0.1], [0.5, 0.4, 0.3], [0.5, 0.5, 0.5]]), raced)
    assert winner_agrees(scores([[0.9, 0.1, 0.8], [0.5, 0.4, 0.3], [0.5, 0.5, 0.5]]), raced)


def test_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SAMPLES", 200)
    rows = bench_reading(CPU)
    assert [row.name for row in rows] == list(reading._FILES)
    for row in rows:
        assert row.ratio == pytest.approx(row.lines_per_second / row.baseline_lines_per_second)
