"""The whole way under constraints, on a task whose true order is known: square of length 6, its columns shuffled."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import genorder
from genorder.orders import Constraints, order_cost
from genorder.tasks import TaskData, make_task, task_splits

SMALL_MODEL = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32}
SETTINGS = {
    "samples.train": 4000, "samples.validation": 300, "samples.test": 30,
    "any_order.training.steps": 400, "any_order.training.batch_size": 64, "any_order.training.learning_rate": 0.005,
    "any_order.training.warmup_steps": 20, "any_order.groups": 8,
    "any_order.model.width": 32, "any_order.model.hidden": 64, "any_order.graph_steps": 0,
    "race.first_rung": 3, "final.training.steps": 4, "final.training.batch_size": 8,
    **{f"final.model.{name}": value for name, value in SMALL_MODEL.items()},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data() -> TaskData:
    return task_splits(make_task("square", "6"), train=4000, validation=300, test=30, hidden_order_seed=2)


def found(data: TaskData, constraints: Constraints, out: Path) -> genorder.DiscoveryResult:
    return genorder.discover(data, constraints=constraints, settings=SETTINGS, explore_only=True, workers=1, out=out)


def pairs_of(data: TaskData, *true: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Over stored columns."""
    column = data.true_of_column.inverse()
    return tuple((column[one], column[other]) for one, other in true)


def test_constraints_that_agree_with_the_true_order(data: TaskData, tmp_path: Path) -> None:
    constraints = Constraints(before=pairs_of(data, (0, 2), (1, 4), (3, 5)))
    result = found(data, constraints, tmp_path / "run")
    assert result.constraints == constraints
    assert constraints.allows(result.order)
    assert result.content["cost_ratio"] == 1.0


@pytest.mark.slow
def test_constraints_that_contradict_the_true_order(data: TaskData, tmp_path: Path) -> None:
    """Target 4 before target 2, which it is computed from: the best that is left costs more, and is found."""
    constraints = Constraints(before=pairs_of(data, (4, 2)))
    result = found(data, constraints, tmp_path / "run")
    costs = {order: order_cost(order, data.graph_of_columns()) for order in constraints.all_orders(6)}
    assert result.content["cost_ratio"] > 1.0
    assert costs[result.order] == min(costs.values()) < max(costs.values())
