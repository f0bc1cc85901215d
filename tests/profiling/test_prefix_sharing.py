import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from profiling_helpers import all_orders, random_data, random_model

from genorder.data import arrange
from genorder.models.losses import target_losses
from genorder.orders import Order
from genorder.profiling.prefix_sharing import common_prefixes, shared_prefix_losses


@st.composite
def sorted_orders(draw: st.DrawFn) -> list[tuple[int, ...]]:
    length = draw(st.integers(1, 6))
    return sorted(draw(st.sets(st.permutations(range(length)).map(tuple), min_size=1, max_size=30)))


@given(sorted_orders())
def test_common_prefixes_are_the_longest(orders: list[tuple[int, ...]]) -> None:
    shared = common_prefixes(torch.tensor(orders))
    assert len(shared) == len(orders)
    assert shared[0] == 0
    for before, order, count in zip(orders, orders[1:], shared[1:], strict=False):
        assert before[:count] == order[:count]
        assert before[count] != order[count]


@given(sorted_orders())
def test_every_prefix_is_computed_once(orders: list[tuple[int, ...]]) -> None:
    prefixes = {order[:step] for order in orders for step in range(1, len(order) + 1)}
    computed = sum(len(orders[0]) - shared for shared in common_prefixes(torch.tensor(orders)))
    assert computed == len(prefixes)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("orders", [all_orders(4), all_orders(4)[::5], [Order((2, 0, 3, 1))]], ids=len)
def test_losses_equal_a_forward_pass_per_order(layers: int, orders: list[Order]) -> None:
    encoded = random_data(6)
    model = random_model(encoded, layers=layers)
    orders_CL = torch.tensor([list(order) for order in orders])
    losses_CS = shared_prefix_losses(model, encoded.inputs_NW, encoded.targets_NL, orders_CL)
    assert losses_CS.shape == (len(orders), 6)
    for order_L, losses_S in zip(orders_CL, losses_CS, strict=True):
        batch = arrange(encoded, torch.arange(6), order_L[None])
        with torch.no_grad():
            plain_S = target_losses(model.target_logits(batch), batch).sum(dim=1)
        torch.testing.assert_close(losses_S, plain_S, rtol=1e-5, atol=1e-5)


def test_nothing_is_left_for_autograd() -> None:
    encoded = random_data(3)
    model = random_model(encoded)
    shared_prefix_losses(model, encoded.inputs_NW, encoded.targets_NL, torch.tensor([[0, 1, 2, 3]]))
    batch = arrange(encoded, torch.arange(3), torch.tensor([[0, 1, 2, 3]]))
    target_losses(model.target_logits(batch), batch).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
