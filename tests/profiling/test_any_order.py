"""What is available when, training that can be interrupted, and the losses that orders are constructed from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from any_order_helpers import SMALL, random_oracle, shortened, task_data, trained_oracle
from hypothesis import given
from hypothesis import strategies as st
from profiling_helpers import random_data
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional

from genorder.data import EncodedDataset
from genorder.data.encoding import PAD
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order, cost_ratio
from genorder.profiling import AnyOrderConfig, any_order
from genorder.profiling.any_order import (
    AnyOrderOracle,
    available_before,
    available_given,
    fit_any_order,
    positions_of,
    routed_model,
)
from genorder.profiling.construction import GrowingLosses, greedy_order
from genorder.seeding import numpy_generator
from genorder.tasks import unhide_order
from genorder.training import CheckpointFolder, Progress

orders_of_groups = st.integers(1, 7).flatmap(
    lambda targets: st.lists(st.permutations(range(targets)), min_size=1, max_size=4)
)


@given(orders=orders_of_groups, inputs=st.integers(0, 3))
def test_available_before(orders: list[list[int]], inputs: int) -> None:
    available_GLP = available_before(torch.tensor(orders), inputs)
    targets = len(orders[0])
    assert available_GLP.shape == (len(orders), targets, inputs + targets + 1)
    for group, order in enumerate(orders):
        for step, target in enumerate(order):
            positions = available_GLP[group, target].nonzero()[:, 0].tolist()
            emitted = sorted(inputs + other for other in order[:step])
            assert positions == [*range(inputs), *emitted, inputs + targets]


@given(emitted=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1), inputs=st.integers(0, 3))
def test_available_given(emitted: list[list[bool]], inputs: int) -> None:
    available_GLP = available_given(torch.tensor(emitted), inputs)
    assert available_GLP.shape == (len(emitted), 5, inputs + 6)
    for group, known in enumerate(emitted):
        for target in range(5):
            positions = available_GLP[group, target].nonzero()[:, 0].tolist()
            others = [inputs + other for other in range(5) if known[other] and other != target]
            assert positions == [*range(inputs), *others, inputs + 5]


@given(orders=orders_of_groups)
def test_no_target_reads_itself(orders: list[list[int]]) -> None:
    everything = torch.ones(len(orders), len(orders[0]), dtype=torch.bool)
    for available_GLP in (available_before(torch.tensor(orders), 0), available_given(everything, 0)):
        assert not available_GLP[:, :, :-1].diagonal(dim1=1, dim2=2).any()


def test_positions_are_inputs_then_targets_then_the_empty_one() -> None:
    encoded = random_data(5)
    tokens_NP = positions_of(encoded, torch.tensor([3, 0]), 77)
    assert tokens_NP.dtype == torch.long
    for row, tokens_P in zip((3, 0), tokens_NP.tolist(), strict=True):
        assert tokens_P == [*encoded.inputs_NW[row].tolist(), *encoded.targets_NL[row].tolist(), 77]


def test_positions_without_inputs() -> None:
    encoded = random_data(5, inputs=0)
    assert positions_of(encoded, torch.arange(5), 77).shape == (5, 5)


def weights_after(config: AnyOrderConfig, train: EncodedDataset, *, seed: int = 0) -> dict[str, Tensor]:
    model = routed_model(train, config, seed)
    fit_any_order(model, train, config, seed=seed)
    return model.state_dict()


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_training_is_a_function_of_the_seed() -> None:
    train = random_data(50)
    config = shortened(10)
    first = weights_after(config, train)
    assert same(first, weights_after(config, train))
    assert not same(first, weights_after(config, train, seed=1))


def test_interrupted_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    train = random_data(50)
    config = shortened(70)
    model = routed_model(train, config, 0)
    stops = []
    for _ in range(3):
        model = routed_model(train, config, 0)
        stop = StopRequest()

        def ask(progress: Progress, stop: StopRequest = stop) -> None:
            stop.requested = True
            stops.append(progress.step)

        with pytest.raises(Interrupted):
            fit_any_order(
                model, train, config, seed=0, checkpoints=CheckpointFolder(tmp_path), on_progress=ask, stop=stop
            )
    assert len(set(stops)) >= 3
    model = routed_model(train, config, 1)  # its weights come from the checkpoint
    fit_any_order(model, train, config, seed=0, checkpoints=CheckpointFolder(tmp_path))
    assert same(model.state_dict(), weights_after(config, train))


@pytest.mark.parametrize(("batch", "groups"), [(1, 16), (5, 16), (17, 16), (16, 1)])
def test_any_number_of_groups(batch: int, groups: int) -> None:
    training = SMALL.training.model_copy(update={"steps": 2, "batch_size": batch})
    weights_after(SMALL.model_copy(update={"training": training, "groups": groups}), random_data(3))


def test_the_routing_has_a_learning_rate_of_its_own() -> None:
    train = random_data(50)
    slow = shortened(3).model_copy(update={"routing_rate_factor": 1e-6})
    start = routed_model(train, slow, 0).state_dict()
    for config, moved in ((slow, False), (shortened(3), True)):
        end = weights_after(config, train)
        assert ((end["routing_LHP"] - start["routing_LHP"]).abs().max() > 1e-3) == moved
        assert (end["values_HVD"] - start["values_HVD"]).abs().max() > 1e-3


@pytest.mark.parametrize("changed", [{"groups": 0}, {"routing_rate_factor": 0.0}, {"validation_samples": 1}])
def test_settings_are_checked(changed: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        AnyOrderConfig.model_validate(changed)


def test_losses_are_cross_entropies() -> None:
    oracle = random_oracle(random_data(6))
    order = Order((2, 0, 3, 1))
    tokens_NP = positions_of(oracle.validation, torch.arange(6), oracle.model.vocabulary)
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
    monkeypatch.setattr(any_order, "_ROWS", rows)
    chunked = oracle.of_order(Order.forward(4)), oracle.given([1], [2, 0])
    for one, other in zip(whole, chunked, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_no_more_validation_samples_than_asked_for() -> None:
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


def test_two_samples_are_broken_too() -> None:
    oracle = random_oracle(random_data(2, fixed=True))
    broken = oracle.with_broken(0)
    assert broken._tokens_NP[:, 0].tolist() == oracle._tokens_NP[:, 0].tolist()[::-1]


def test_training_on_targets_of_several_lengths() -> None:
    _, train, validation = task_data("square", "2-5")
    assert not train.is_fixed_length
    model = routed_model(train, SMALL, 0)
    fit_any_order(model, train, SMALL, seed=0)
    oracle = AnyOrderOracle(model, validation, 400)
    forward, reverse = (oracle.mean_of_order(order).mean() for order in (Order.forward(5), Order.reverse(5)))
    assert forward < 0.5
    assert reverse > forward + 0.3


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
    asked: list[list[int]] = []
    mean_given = AnyOrderOracle.mean_given
    monkeypatch.setattr(
        AnyOrderOracle, "mean_given", lambda self, *sets: asked.append(list(sets[1])) or mean_given(self, *sets)
    )
    growing = GrowingLosses(oracle)
    growing.mean_given([], [0, 1, 2, 3, 4])
    before_M = growing.mean_given([0], [1, 2, 3, 4])
    assert asked == [[0, 1, 2, 3, 4]]
    growing.mean_given([0, 1], [2, 3, 4])
    assert asked[1:] == [[2, 3, 4]]
    np.testing.assert_allclose(before_M, mean_given(oracle, [0], [1, 2, 3, 4]), atol=1e-3)


@given(position=st.integers(0, 6), seed=st.integers(0, 5))
def test_breaking_a_position_matters_to_its_readers_alone(position: int, seed: int) -> None:
    oracle = random_oracle(random_data(30, seed=seed))
    order = Order.random(4, numpy_generator(seed))
    whole_NL, broken_NL = oracle.of_order(order), oracle.with_broken(position).of_order(order)
    available_LP = available_before(torch.tensor([list(order)]), 3)[0]
    for target in range(4):
        unchanged = (whole_NL[:, target] == broken_NL[:, target]).all()
        assert unchanged == (not available_LP[target, position])
    np.testing.assert_array_equal(oracle.of_order(order), whole_NL)  # the oracle itself is not changed
