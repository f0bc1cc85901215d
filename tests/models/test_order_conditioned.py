"""The GPT that receives the index of the target that comes next."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from profiling_helpers import all_orders, random_data, random_model, relu_splits

from genorder.data import EncodedDataset, arrange
from genorder.models import GPTConfig, OrderConditionedGPT, fresh_order_conditioned_gpt
from genorder.orders import Order, cost_ratio
from genorder.profiling import ProfilerConfig, exact_scores, plain_scores, profile_orders
from genorder.seeding import torch_generator
from genorder.tasks import make_task
from genorder.training import TrainingConfig


def conditioned_model(
    encoded: EncodedDataset, *, layers: int = 1, heads: int = 2, scale: float = 0.5
) -> OrderConditionedGPT:
    gpt = random_model(encoded, layers=layers, heads=heads)
    rng = torch_generator(1)
    model = OrderConditionedGPT(gpt, targets=encoded.target_width, rng=rng)
    with torch.no_grad():
        for table in (model.emitted_ID, model.next_ID):
            table.copy_(scale * torch.randn(table.shape, generator=rng))
    return model.eval()


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (1, 4), (2, 2), (3, 8)])
def test_shared_prefixes_equal_the_plain_way(layers: int, heads: int, fixed: bool) -> None:
    encoded = random_data(40, fixed=fixed)
    model = conditioned_model(encoded, layers=layers, heads=heads)
    orders = all_orders(4)
    exact, plain = exact_scores(model, encoded, orders), plain_scores(model, encoded, orders)
    assert_allclose(exact.losses_CN, plain.losses_CN, rtol=0, atol=1e-5)
    assert np.ptp(exact.losses_CN.mean(axis=1)) > 0.01


@pytest.mark.parametrize("targets", [1, 2, 5])
def test_any_number_of_targets(targets: int) -> None:
    encoded = random_data(9, targets=targets)
    model, orders = conditioned_model(encoded), all_orders(targets)[::7]
    plain = plain_scores(model, encoded, orders)
    assert_allclose(exact_scores(model, encoded, orders).losses_CN, plain.losses_CN, rtol=0, atol=1e-5)


@torch.inference_mode()
def test_without_index_embeddings_it_is_the_plain_model() -> None:
    encoded = random_data(10)
    model = conditioned_model(encoded, scale=0.0)
    batch = arrange(encoded, torch.arange(10), torch.tensor([[2, 0, 3, 1]]))
    torch.testing.assert_close(model.target_logits(batch), model.gpt.target_logits(batch))


@torch.inference_mode()
def test_each_prediction_knows_its_own_index_and_no_later_one() -> None:
    encoded = random_data(10, targets=5)
    model = conditioned_model(encoded)
    tokens = arrange(encoded, torch.arange(10), torch.tensor([[0, 1, 2, 3, 4]])).tokens_BT
    one, other = (model(tokens, torch.tensor([[*order, 5]])) for order in ([0, 1, 2, 3, 4], [0, 1, 3, 2, 4]))
    torch.testing.assert_close(one[:, :2], other[:, :2])
    assert not torch.isclose(one[:, 2], other[:, 2]).all()


def test_the_end_of_a_short_sample_is_announced_as_the_end() -> None:
    encoded = random_data(30, fixed=False)
    orders = torch.tensor([list(order) for order in all_orders(4)])[torch.arange(30) % 24]
    batch = arrange(encoded, torch.arange(30), orders)
    for row, length in enumerate(encoded.target_lengths_N.tolist()):
        wanted = [index for index in orders[row].tolist() if index < length]
        assert batch.predicted_BQ[row].tolist() == [*wanted, *[4] * (5 - length)]


def test_a_seed_gives_the_same_model() -> None:
    config, encoded = GPTConfig(layers=1, heads=2, width=8, feedforward=16), random_data(5)
    one, same, other = (fresh_order_conditioned_gpt(config, encoded, seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["next_ID"], other["next_ID"])
    assert not torch.equal(one["next_ID"], one["emitted_ID"])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_finds_an_optimal_order_among_all(seed: int) -> None:
    """Of all 24 orders in the mixture, 4 are optimal. A model that does not know the order fails here."""
    train, validation = relu_splits()
    config = ProfilerConfig(
        order_conditioned=True,
        model=GPTConfig(layers=1, heads=2, width=32, feedforward=64, initialisation="fan_in"),
        training=TrainingConfig(steps=600, batch_size=64, learning_rate=5e-3, warmup_steps=20, beta2=0.98),
    )
    orders = [Order(tuple(order)) for order in np.random.default_rng(seed).permutation(all_orders(4)).tolist()]
    best = profile_orders(train, validation, orders, config, seed=seed).best
    assert cost_ratio(best, make_task("relu", "4").dependencies()) == 1.0
