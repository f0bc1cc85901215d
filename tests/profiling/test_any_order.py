"""Which positions are available, and training on random orders that can be interrupted."""

from pathlib import Path

import pytest
import torch
from any_order_helpers import SMALL, shortened, task_data
from hypothesis import given
from hypothesis import strategies as st
from profiling_helpers import random_data
from pydantic import ValidationError
from torch import Tensor

from genorder.data import EncodedDataset
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.orders import Order
from genorder.profiling import AnyOrderConfig
from genorder.profiling.any_order import (
    available_before,
    available_given,
    fit_any_order,
    position_tokens,
    routed_model,
)
from genorder.profiling.oracle import AnyOrderOracle
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
    tokens_NP = position_tokens(encoded, torch.tensor([3, 0]), 77)
    assert tokens_NP.dtype == torch.long
    for row, tokens_P in zip((3, 0), tokens_NP.tolist(), strict=True):
        assert tokens_P == [*encoded.inputs_NW[row].tolist(), *encoded.targets_NL[row].tolist(), 77]


def test_positions_without_inputs() -> None:
    encoded = random_data(5, inputs=0)
    assert position_tokens(encoded, torch.arange(5), 77).shape == (5, 5)


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


def test_training_on_targets_of_several_lengths() -> None:
    _, train, validation = task_data("square", "2-5")
    assert not train.is_fixed_length
    model = routed_model(train, SMALL, 0)
    fit_any_order(model, train, SMALL, seed=0)
    oracle = AnyOrderOracle(model, validation, 400, seed=0)
    forward, reverse = (oracle.mean_of_order(order).mean() for order in (Order.forward(5), Order.reverse(5)))
    assert forward < 0.5
    assert reverse > forward + 0.3


def test_the_read_penalty_counts_positions() -> None:
    """If all slots attend to one position, the count is one and the entropy zero."""
    train = random_data(10)
    model = routed_model(train, AnyOrderConfig(), seed=0)
    available_GLP = available_before(torch.tensor([[0, 1, 2, 3]]), train.input_width)
    with torch.no_grad():
        model.routing_LHP.fill_(-100.0)
        model.routing_LHP[:, :, 0] = 100.0
        assert float(model.read_penalty(available_GLP)) == pytest.approx(1.0, abs=1e-4)
        model.routing_LHP[:, 1, 0], model.routing_LHP[:, 1, 1] = -100.0, 100.0
        assert float(model.read_penalty(available_GLP)) == pytest.approx(2.0, abs=1e-4)
        model.routing_LHP.fill_(-100.0)
        model.routing_LHP[:, :, -1] = 100.0
        assert float(model.read_penalty(available_GLP)) == pytest.approx(0.0, abs=1e-4)
    model.read_penalty(available_GLP).backward()
    assert model.routing_LHP.grad is not None
    assert model.routing_LHP.grad.isfinite().all()
