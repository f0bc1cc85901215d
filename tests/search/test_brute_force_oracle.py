"""Against all orders there are: one exact run profiles them all, and the search may look its losses up."""

from collections.abc import Sequence
from functools import cache

import pytest
import torch
from search_helpers import all_orders, answered_problem

from genorder.data import encode
from genorder.models import GPTConfig
from genorder.orders import Order
from genorder.profiling import Profile, ProfilerConfig, profile_orders
from genorder.search import GlobalLocal
from genorder.tasks import make_task, task_splits
from genorder.training import TrainingConfig

PROFILER = ProfilerConfig(
    model=GPTConfig(layers=1, heads=2, width=32, feedforward=64),
    training=TrainingConfig(steps=400, batch_size=64, learning_rate=3e-3, warmup_steps=20, beta2=0.98),
    exact=True,
    curve_points=0,
)
CASES = [(task, length) for task in ("relu", "square", "triangle") for length in (4, 5)]


@cache
def everything(task: str, length: int) -> Profile:
    splits = task_splits(make_task(task, str(length)), train=5000, validation=300, test=1).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return profile_orders(train, validation, all_orders(length), PROFILER, seed=0)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "length"), CASES)
@pytest.mark.parametrize("depth", [4, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_answer_ties_with_the_best_of_all_orders(task: str, length: int, depth: int, seed: int) -> None:
    found = everything(task, length)
    losses = dict(zip(found.orders, found.losses.tolist(), strict=True))
    best_ones = {order for order, tied in zip(found.orders, found.tied.tolist(), strict=True) if tied}
    assert found.best in best_ones

    def looked_up(name: str, orders: Sequence[Order]) -> list[float]:
        return [losses[order] for order in orders]

    problem, _ = answered_problem(length, looked_up, seed=seed)
    answer = GlobalLocal(depth=depth).propose(problem).proposals[0].order
    assert answer in best_ones, (losses[answer], found.losses.min())
