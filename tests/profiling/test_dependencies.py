"""The parents read off a trained model are those of the recurrence."""

import copy
import math

import pytest
import torch
from any_order_helpers import random_oracle, shortened, task_data, trained_oracle
from profiling_helpers import random_data

from genorder.dependencies.graph import TargetDependency
from genorder.orders import Order, cost_ratio
from genorder.profiling import AnyOrderConfig, dependencies
from genorder.profiling.any_order import (
    AnyOrderOracle,
    available_before,
    fit_any_order,
    routed_model,
)
from genorder.profiling.construction import greedy_order
from genorder.profiling.dependencies import learned_dependencies
from genorder.tasks import TaskData, unhide_order


def check_parents(found: list[TargetDependency], data: TaskData) -> None:
    """y_j from x_j and y_(j-1). The first target is a copy of x_0, which the second may read in its place."""
    graph = data.graph_of_columns()
    first = data.true_of_column.inverse()[0]
    assert [dependency.target for dependency in found] == list(range(graph.targets))
    for dependency in found:
        inputs, targets = set(graph.input_parents[dependency.target]), set(graph.parents[dependency.target])
        allowed = [(inputs, targets)]
        if targets == {first}:
            allowed.append(({0, *inputs}, set()))
        assert (set(dependency.inputs), set(dependency.targets)) in allowed, dependency


@pytest.mark.parametrize("hidden", [None, 3])
@pytest.mark.parametrize("task", ["square", "cubic"])
def test_parents_are_those_of_the_recurrence(task: str, hidden: int | None) -> None:
    data, *_ = task_data(task, "6", hidden)
    oracle = trained_oracle(task, "6", 0, hidden)
    check_parents(learned_dependencies(oracle, data.true_of_column.inverse()), data)
    check_parents(learned_dependencies(oracle, greedy_order(oracle)), data)


def test_only_targets_before_it_in_the_order_are_parents() -> None:
    oracle = trained_oracle("square", "6")
    for order in (Order.reverse(6), Order((3, 1, 5, 0, 2, 4))):
        step_of = order.inverse()
        for dependency in learned_dependencies(oracle, order):
            assert all(step_of[parent] < step_of[dependency.target] for parent in dependency.targets)


def test_what_is_told_of_a_target() -> None:
    oracle = trained_oracle("square", "6")
    losses_L = oracle.of_order(Order.forward(6)).mean(axis=0)
    for dependency in learned_dependencies(oracle, Order.forward(6)):
        names = [f"x{parent}" for parent in dependency.inputs] + [f"y{parent}" for parent in dependency.targets]
        assert set(dependency.loss_without) == set(names)
        rises = list(dependency.loss_without.values())
        assert rises == sorted(rises, reverse=True)  # strongest first
        assert min(rises) > 0.1
        for kind, parents in (("x", dependency.inputs), ("y", dependency.targets)):
            of_kind = [dependency.loss_without[f"{kind}{parent}"] for parent in parents]
            assert of_kind == sorted(of_kind, reverse=True)
        assert dependency.loss == pytest.approx(losses_L[dependency.target], rel=1e-4)


def test_a_target_that_reads_nothing_has_no_parents() -> None:
    oracle = random_oracle(random_data(50))
    with torch.no_grad():
        oracle.model.routing_LHP[:, :, -1] = 50.0
    for dependency in learned_dependencies(oracle, Order.forward(4)):
        assert (dependency.inputs, dependency.targets, dependency.loss_without) == ((), (), {})


def test_positions_taken_as_not_read_hardly_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving them out saves time and nothing else."""
    oracle = trained_oracle("square", "6")
    short = learned_dependencies(oracle, Order.forward(6))
    monkeypatch.setattr(dependencies, "READ", 0.0)
    for one, other in zip(short, learned_dependencies(oracle, Order.forward(6)), strict=True):
        assert (one.inputs, one.targets) == (other.inputs, other.targets)
        assert one.loss_without == pytest.approx(other.loss_without, rel=1e-4)


@pytest.mark.parametrize("samples", [2, 3, 64])
def test_few_samples(samples: int) -> None:
    for dependency in learned_dependencies(random_oracle(random_data(samples)), Order.forward(4)):
        assert dependency.loss is not None
        assert math.isfinite(dependency.loss)
        assert all(map(math.isfinite, dependency.loss_without.values()))


def test_targets_of_several_lengths() -> None:
    found = learned_dependencies(random_oracle(random_data(64, fixed=False)), Order.forward(4))
    assert [dependency.target for dependency in found] == [0, 1, 2, 3]


def test_a_constant_column_is_nobodys_parent() -> None:
    encoded = random_data(50)
    encoded.targets_NL[:, 1] = 4
    for dependency in learned_dependencies(random_oracle(encoded), Order.forward(4)):
        assert 1 not in dependency.targets


RECURRENCES = ["relu", "square", "triangle", "cubic", "sine", "mlp"]


def of_length_20(task: str) -> tuple[TaskData, AnyOrderOracle, Order]:
    """With the settings that users get."""
    config = AnyOrderConfig()
    data, *_ = task_data(task, "20", 3, train=100_000, validation=config.validation_samples)
    oracle = trained_oracle(task, "20", 0, 3, config, 100_000)
    return data, oracle, greedy_order(oracle)


@pytest.mark.slow
@pytest.mark.parametrize("task", RECURRENCES)
def test_orders_of_all_recurrences_at_length_20(task: str) -> None:
    data, _, order = of_length_20(task)
    assert cost_ratio(unhide_order(order, data.true_of_column), data.task.dependencies()) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("task", RECURRENCES)
def test_parents_of_all_recurrences_at_length_20(task: str) -> None:
    data, oracle, order = of_length_20(task)
    check_parents(learned_dependencies(sparsened(oracle, task, "20", order), order), data)


def sparsened(oracle: AnyOrderOracle, task: str, length: str, order: Order) -> AnyOrderOracle:
    """After some training in that order, with a price on reading."""
    config = AnyOrderConfig()
    train = task_data(task, length, 3, train=100_000, validation=config.validation_samples)[1]
    model = copy.deepcopy(oracle.model)
    training = config.training.model_copy(update={"steps": config.graph_steps})
    fit_any_order(model, train, config.model_copy(update={"training": training}), seed=1, order=order)
    return AnyOrderOracle(model, oracle.validation, config.validation_samples)


def test_a_price_on_reading_leaves_what_a_target_is_computed_from() -> None:
    """Of a model that is hardly trained, and reads more than it needs."""
    data, train, validation = task_data("square", "6", 3, train=20_000, validation=512)
    order = data.true_of_column.inverse()
    model = routed_model(train, shortened(60), seed=0)
    fit_any_order(model, train, shortened(60), seed=0)
    available_GLP = available_before(torch.tensor([list(order)]), train.input_width)
    before = model.reading_cost(available_GLP).item()
    fit_any_order(model, train, shortened(200), seed=1, order=order)
    assert model.reading_cost(available_GLP).item() < 0.5 * before
    check_parents(learned_dependencies(AnyOrderOracle(model, validation, 512), order), data)


def test_reading_costs_what_is_read() -> None:
    """One position per slot, all slots the same: one position is read, and nothing is undecided."""
    train = random_data(10)
    model = routed_model(train, AnyOrderConfig(), seed=0)
    available_GLP = available_before(torch.tensor([[0, 1, 2, 3]]), train.input_width)
    with torch.no_grad():
        model.routing_LHP.fill_(-100.0)
        model.routing_LHP[:, :, 0] = 100.0
        assert float(model.reading_cost(available_GLP)) == pytest.approx(1.0, abs=1e-4)
        model.routing_LHP[:, 1, 0], model.routing_LHP[:, 1, 1] = -100.0, 100.0
        assert float(model.reading_cost(available_GLP)) == pytest.approx(2.0, abs=1e-4)
        model.routing_LHP.fill_(-100.0)
        model.routing_LHP[:, :, -1] = 100.0
        assert float(model.reading_cost(available_GLP)) == pytest.approx(0.0, abs=1e-4)
    model.reading_cost(available_GLP).backward()
    assert model.routing_LHP.grad is not None
    assert model.routing_LHP.grad.isfinite().all()
