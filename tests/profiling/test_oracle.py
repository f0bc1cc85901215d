"""Losses given any targets, orders that are constructed from them, and the parents by permutation importance."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from any_order_helpers import random_oracle, shortened, task_data, trained_oracle
from hypothesis import given
from hypothesis import strategies as st
from profiling_helpers import random_data
from torch.nn import functional

from genorder.data.encoding import PAD
from genorder.dependencies.graph import TargetDependency
from genorder.orders import Constraints, Order, cost_ratio
from genorder.profiling import AnyOrderConfig
from genorder.profiling.any_order import available_before, fit_any_order, position_tokens, routed_model
from genorder.profiling.oracle import AnyOrderOracle, GrowingLosses, greedy_order, learned_dependencies
from genorder.seeding import numpy_generator
from genorder.tasks import TaskData, unhide_order


def test_losses_are_cross_entropies() -> None:
    oracle = random_oracle(random_data(6))
    order = Order((2, 0, 3, 1))
    tokens_NP = position_tokens(oracle.validation, torch.arange(6), oracle.model.vocabulary)
    available_LP = available_before(torch.tensor([list(order)]), 3)[0]
    with torch.inference_mode():
        logits_NLV = oracle.model(tokens_NP[None], available_LP[None])[0]
    expected_NL = functional.cross_entropy(
        logits_NLV.transpose(1, 2), oracle.validation.targets_NL.long(), reduction="none"
    )
    np.testing.assert_allclose(oracle.of_order(order), expected_NL.numpy(), rtol=1e-5, atol=1e-6)


@given(order=st.permutations(range(5)), step=st.integers(0, 4))
def test_the_next_target_costs_what_the_order_says(order: list[int], step: int) -> None:
    oracle = random_oracle(random_data(20, targets=5))
    whole_NL = oracle.of_order(Order.of(order))
    np.testing.assert_allclose(oracle.given(order[:step])[:, order[step]], whole_NL[:, order[step]], rtol=1e-5)
    named = [order[step], order[-1]]
    np.testing.assert_allclose(oracle.given(order[:step], named), oracle.given(order[:step])[:, named], rtol=1e-5)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("rows", [1, 9, 1000])
def test_the_size_of_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch, rows: int, fixed: bool) -> None:
    oracle = random_oracle(random_data(21, fixed=fixed))
    whole = oracle.of_order(Order.forward(4)), oracle.given([1], [2, 0])
    monkeypatch.setattr("genorder.profiling.oracle._ROWS", rows)
    chunked = oracle.of_order(Order.forward(4)), oracle.given([1], [2, 0])
    for one, other in zip(whole, chunked, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_no_more_validation_samples_than_measured_for() -> None:
    encoded = random_data(30)
    assert len(random_oracle(encoded, samples=12).given([])) == 12
    np.testing.assert_allclose(
        random_oracle(encoded, samples=12).given([]), random_oracle(encoded, samples=99).given([])[:12], rtol=1e-5
    )


def test_targets_beyond_the_end_of_a_sample_cost_nothing() -> None:
    oracle = random_oracle(random_data(40, fixed=False))
    lengths_N = oracle.validation.target_lengths_N.numpy()
    assert set(lengths_N) == {1, 2, 3, 4}
    has_NL = np.arange(4) < lengths_N[:, None]
    for losses_NL in (oracle.given([]), oracle.given([3, 0]), oracle.of_order(Order.reverse(4))):
        assert ((losses_NL > 0) == has_NL).all()
    assert ((oracle.given([0], [3, 1]) > 0) == has_NL[:, [3, 1]]).all()


def test_means_are_over_the_samples_that_have_the_target() -> None:
    """A target that few samples have is not cheap for that."""
    oracle = random_oracle(random_data(40, fixed=False))
    lengths_N = oracle.validation.target_lengths_N.numpy()
    losses_NM = oracle.given([0], [3, 1])
    expected = [losses_NM[lengths_N > 3, 0].mean(), losses_NM[lengths_N > 1, 1].mean()]
    np.testing.assert_allclose(oracle.mean_given([0], [3, 1]), expected)
    losses_NL = oracle.of_order(Order.reverse(4))
    np.testing.assert_allclose(oracle.mean_of_order(Order.reverse(4)).mean(), losses_NL.sum() / lengths_N.sum())


@pytest.mark.parametrize("fixed", [True, False])
def test_units_cost_what_their_targets_do_one_after_the_other(fixed: bool) -> None:
    oracle = random_oracle(random_data(40, fixed=fixed))
    expected = [
        (oracle.mean_given([2], [0]) + oracle.mean_given([2, 0], [1])) / 2,
        (oracle.mean_given([2], [3]) + oracle.mean_given([2, 3], [1])) / 2,
    ]
    np.testing.assert_allclose(oracle.mean_following([2], [(0, 1), (3, 1)]), np.concatenate(expected), rtol=1e-6)
    np.testing.assert_array_equal(oracle.mean_following([2], [(0,), (3,)]), oracle.mean_given([2], [0, 3]))


@pytest.mark.parametrize(
    "constraints",
    [Constraints(keep_first=2), Constraints(keep_last=1), Constraints(groups=2), Constraints(before=((3, 0), (2, 0)))],
    ids=str,
)
def test_the_greedy_order_takes_the_cheapest_of_what_is_allowed(constraints: Constraints) -> None:
    oracle = random_oracle(random_data(40, fixed=True))
    units = constraints.units(4)
    order = greedy_order(oracle, constraints)
    assert constraints.allows(order)
    first = next(unit for unit in units.free if unit[0] == order[constraints.keep_first])
    blocked = {other for _, other in units.edges}
    rivals = [unit for number, unit in enumerate(units.free) if number not in blocked]
    costs = oracle.mean_following(units.first, rivals)
    assert first == rivals[int(costs.argmin())]


def test_a_target_that_no_validation_sample_has() -> None:
    encoded = random_data(40, fixed=False)
    lengths_N = encoded.target_lengths_N.clamp(max=3)
    targets_NL = encoded.targets_NL.clone()
    targets_NL[:, 3] = PAD
    oracle = random_oracle(replace(encoded, target_lengths_N=lengths_N, targets_NL=targets_NL))
    assert oracle.mean_given([], [3]) == [np.inf]
    assert greedy_order(oracle)[3] == 3
    alone, seen = oracle.mean_following([], [(3, 0), (1, 2)]), oracle.mean_given([3], [0])
    np.testing.assert_allclose(alone[0], seen[0], rtol=1e-6)


def test_two_samples_are_permuted_too() -> None:
    oracle = random_oracle(random_data(2, fixed=True))
    permuted = oracle.with_permuted(0)
    assert permuted._tokens_NP[:, 0].tolist() == oracle._tokens_NP[:, 0].tolist()[::-1]


def test_the_permutation_is_drawn_from_the_seed() -> None:
    oracle = random_oracle(random_data(30))
    one, same, other = (
        AnyOrderOracle(oracle.model, oracle.validation, 30, seed=seed).with_permuted(0)._tokens_NP for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_greedy_construction_finds_the_order(seed: int) -> None:
    data, *_ = task_data("square", "6")
    order = greedy_order(trained_oracle("square", "6", seed))
    assert cost_ratio(order, data.task.dependencies()) == 1.0


def test_greedy_construction_finds_a_hidden_order() -> None:
    data, *_ = task_data("square", "6", 3)
    order = unhide_order(greedy_order(trained_oracle("square", "6", 0, 3)), data.true_of_column)
    assert cost_ratio(order, data.task.dependencies()) == 1.0


def test_greedy_construction_takes_the_least_loss_each_time() -> None:
    oracle = random_oracle(random_data(50, targets=5))
    order = greedy_order(oracle)
    for step, target in enumerate(order):
        losses_L = oracle.given(order.indices[:step]).mean(axis=0)
        remaining = order.indices[step:]
        assert losses_L[target] == pytest.approx(min(losses_L[other] for other in remaining), rel=1e-6)


def full_greedy_order(oracle: AnyOrderOracle) -> Order:
    """By measuring every target that is left at every step."""
    emitted: list[int] = []
    while left := [target for target in range(oracle.targets) if target not in emitted]:
        emitted.append(left[int(oracle.mean_given(emitted, left).argmin())])
    return Order.of(emitted)


@pytest.mark.parametrize(("task", "length"), [("square", "6"), ("relu", "8"), ("square", "2-5")])
def test_measuring_again_only_what_has_changed(task: str, length: str) -> None:
    oracle = trained_oracle(task, length)
    full, fast = full_greedy_order(oracle), greedy_order(oracle)
    assert oracle.mean_of_order(fast).mean() == pytest.approx(oracle.mean_of_order(full).mean(), abs=2e-3)
    growing, emitted = GrowingLosses(oracle), list[int]()
    for target in full:
        left = [other for other in range(oracle.targets) if other not in emitted]
        np.testing.assert_allclose(growing.mean_given(emitted, left), oracle.mean_given(emitted, left), atol=0.05)
        emitted.append(target)


def test_what_is_not_read_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = random_oracle(random_data(50, targets=5))
    with torch.no_grad():
        oracle.model.routing_LHP[:, :, oracle.model.inputs] = -10.0  # of the first target, nothing
    measured: list[list[int]] = []
    mean_given = AnyOrderOracle.mean_given
    monkeypatch.setattr(
        AnyOrderOracle, "mean_given", lambda self, *sets: measured.append(list(sets[1])) or mean_given(self, *sets)
    )
    growing = GrowingLosses(oracle)
    growing.mean_given([], [0, 1, 2, 3, 4])
    before_M = growing.mean_given([0], [1, 2, 3, 4])
    assert measured == [[0, 1, 2, 3, 4]]
    growing.mean_given([0, 1], [2, 3, 4])
    assert measured[1:] == [[2, 3, 4]]
    np.testing.assert_allclose(before_M, mean_given(oracle, [0], [1, 2, 3, 4]), atol=1e-3)


@given(position=st.integers(0, 6), seed=st.integers(0, 5))
def test_permuting_a_position_matters_to_its_readers_alone(position: int, seed: int) -> None:
    oracle = random_oracle(random_data(30, seed=seed))
    order = Order.random(4, numpy_generator(seed))
    whole_NL, permuted_NL = oracle.of_order(order), oracle.with_permuted(position).of_order(order)
    available_LP = available_before(torch.tensor([list(order)]), 3)[0]
    for target in range(4):
        unchanged = (whole_NL[:, target] == permuted_NL[:, target]).all()
        assert unchanged == (not available_LP[target, position])
    np.testing.assert_array_equal(oracle.of_order(order), whole_NL)  # the oracle itself is not changed


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


def test_losses_and_rises_of_a_target() -> None:
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
    monkeypatch.setattr("genorder.profiling.oracle._READ", 0.0)
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
    """After some training in that order, with the read penalty."""
    config = AnyOrderConfig()
    train = task_data(task, length, 3, train=100_000, validation=config.validation_samples)[1]
    model = copy.deepcopy(oracle.model)
    training = config.training.model_copy(update={"steps": config.graph_steps})
    fit_any_order(model, train, config.model_copy(update={"training": training}), seed=1, order=order)
    return AnyOrderOracle(model, oracle.validation, config.validation_samples, seed=0)


def test_the_read_penalty_leaves_the_parents() -> None:
    """A model that is hardly trained reads more positions than it needs."""
    data, train, validation = task_data("square", "6", 3, train=20_000, validation=512)
    order = data.true_of_column.inverse()
    model = routed_model(train, shortened(60), seed=0)
    fit_any_order(model, train, shortened(60), seed=0)
    available_GLP = available_before(torch.tensor([list(order)]), train.input_width)
    before = model.read_penalty(available_GLP).item()
    fit_any_order(model, train, shortened(200), seed=1, order=order)
    assert model.read_penalty(available_GLP).item() < 0.5 * before
    check_parents(learned_dependencies(AnyOrderOracle(model, validation, 512, seed=0), order), data)
