from collections import Counter

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import EncodedDataset, arrange
from genorder.training import BatchPlan

plans = st.builds(
    lambda samples, orders, batch_size, seed: make_plan(samples, orders, batch_size, seed),
    st.integers(1, 30),
    st.integers(1, 7),
    st.integers(1, 20),
    st.integers(0, 5),
)


def make_plan(samples: int, orders: int, batch_size: int, seed: int, targets: int = 3) -> BatchPlan:
    """Every sample and every order can be recognised by its tokens."""
    rng = np.random.default_rng(0)
    encoded = EncodedDataset(
        torch.arange(samples, dtype=torch.int32)[:, None] + 3,
        torch.arange(samples * targets, dtype=torch.int32).view(samples, targets) + 3,
        torch.full((samples,), targets),
        samples * targets + 3,
    )
    rows = torch.from_numpy(np.stack([rng.permutation(targets) for _ in range(orders)]))
    return BatchPlan(encoded, rows, batch_size, seed)


def drawn(plan: BatchPlan, steps: int) -> list[tuple[int, int]]:
    """(sample, order) in the sequence of training, over all the steps."""
    pairs: list[tuple[int, int]] = []
    for step in range(steps):
        rows, orders = plan.rows_and_orders(step)
        assert len(rows) == len(orders) == plan.batch_size
        pairs.extend(zip(rows.tolist(), orders.tolist(), strict=True))
    return pairs


@settings(deadline=None)
@given(plans, st.lists(st.integers(0, 60), max_size=8), st.integers(0, 60))
def test_a_batch_depends_on_seed_and_step_alone(plan: BatchPlan, before: list[int], step: int) -> None:
    fresh = BatchPlan(plan.encoded, plan.orders_KL, plan.batch_size, plan.seed)
    for earlier in before:
        plan.rows_and_orders(earlier)
    for rows, expected in zip(plan.rows_and_orders(step), fresh.rows_and_orders(step), strict=True):
        np.testing.assert_array_equal(rows, expected)


@settings(deadline=None)
@given(plans)
def test_each_pass_visits_each_sample_once_and_shares_the_orders_evenly(plan: BatchPlan) -> None:
    samples, orders = len(plan.encoded), len(plan.orders_KL)
    pairs = drawn(plan, -(-3 * samples // plan.batch_size))
    for start in range(0, 3 * samples, samples):
        one_pass = pairs[start : start + samples]
        assert sorted(row for row, _ in one_pass) == list(range(samples))
        shares = Counter(order for _, order in one_pass)
        counts = [shares[order] for order in range(orders)]
        assert max(counts) - min(counts) <= 1
        for turn in range(0, samples - orders + 1, orders):
            assert len({order for _, order in one_pass[turn : turn + orders]}) == orders


def test_passes_are_shuffled_each_in_its_own_way() -> None:
    pairs = drawn(make_plan(samples=200, orders=5, batch_size=50, seed=0), 12)
    passes = [pairs[start : start + 200] for start in (0, 200, 400)]
    sequences = [tuple(row for row, _ in one_pass) for one_pass in passes]
    assert len({*sequences, tuple(range(200))}) == 4


def test_a_sample_meets_other_orders_in_other_passes() -> None:
    pairs = drawn(make_plan(samples=50, orders=5, batch_size=50, seed=0), 40)
    met = {row: {order for sample, order in pairs if sample == row} for row in range(50)}
    assert all(len(orders) >= 4 for orders in met.values())
    first_orders = {pairs[start][1] for start in range(0, len(pairs), 50)}
    assert len(first_orders) == 5  # the list of orders is shuffled again for each pass


def test_other_seed_other_batches() -> None:
    first, second = (make_plan(samples=100, orders=4, batch_size=64, seed=seed) for seed in (0, 1))
    assert drawn(first, 1) != drawn(second, 1)
    assert [order for _, order in drawn(first, 4)] != [order for _, order in drawn(second, 4)]


@settings(deadline=None)
@given(plans, st.integers(0, 20))
def test_the_batch_holds_those_samples_in_those_orders(plan: BatchPlan, step: int) -> None:
    rows, orders = plan.rows_and_orders(step)
    expected = arrange(plan.encoded, torch.from_numpy(rows), plan.orders_KL[torch.from_numpy(orders)])
    batch = plan(step)
    assert torch.equal(batch.tokens_BT, expected.tokens_BT)
    assert torch.equal(batch.labels_BQ, expected.labels_BQ)


def test_passes_that_are_over_are_forgotten() -> None:
    plan = make_plan(samples=5, orders=1, batch_size=2, seed=0)
    for step in range(500):
        plan.rows_and_orders(step)
    assert len(plan._passes) <= 3
