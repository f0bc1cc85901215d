import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from profiling_helpers import all_orders, random_data, random_model

from genorder.data import arrange
from genorder.models.losses import target_logits, token_losses
from genorder.orders import Order
from genorder.profiling.prefix_sharing import shared_prefix_losses, tree_levels


@st.composite
def sorted_orders(draw: st.DrawFn) -> list[tuple[int, ...]]:
    length = draw(st.integers(1, 6))
    return sorted(draw(st.sets(st.permutations(range(length)).map(tuple), min_size=1, max_size=30)))


@given(sorted_orders())
def test_levels_are_those_of_the_prefix_tree(orders: list[tuple[int, ...]]) -> None:
    length = len(orders[0])
    prefixes = [sorted({order[: step + 1] for order in orders}) for step in range(length)]
    # A level begins at step 0 and wherever there are more prefixes than one step before.
    starts = [step for step in range(length) if step == 0 or len(prefixes[step]) > len(prefixes[step - 1])]
    levels = tree_levels(torch.tensor(orders))
    assert [level.start for level in levels] == starts
    assert [level.stop for level in levels] == [*starts[1:], length]
    above = [()]
    for level in levels:
        nodes = [orders[row][: level.stop] for row in level.representative_N.tolist()]
        assert nodes == prefixes[level.stop - 1]
        assert [above[parent] for parent in level.parent_N.tolist()] == [node[: level.start] for node in nodes]
        above = nodes


def test_levels_by_hand() -> None:
    levels = tree_levels(torch.tensor([[0, 1, 2, 3], [0, 1, 3, 2], [2, 0, 1, 3]]))
    assert [(level.start, level.stop) for level in levels] == [(0, 2), (2, 4)]
    assert [level.representative_N.tolist() for level in levels] == [[0, 2], [0, 1, 2]]
    assert [level.parent_N.tolist() for level in levels] == [[0, 0], [0, 0, 1]]


def test_one_order_is_one_level() -> None:
    (level,) = tree_levels(torch.tensor([[2, 0, 1]]))
    assert (level.start, level.stop) == (0, 3)


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
            plain_S = token_losses(target_logits(model, batch), batch).sum(dim=1)
        torch.testing.assert_close(losses_S, plain_S, rtol=1e-5, atol=1e-5)


def test_nothing_is_left_for_autograd() -> None:
    encoded = random_data(3)
    model = random_model(encoded)
    shared_prefix_losses(model, encoded.inputs_NW, encoded.targets_NL, torch.tensor([[0, 1, 2, 3]]))
    batch = arrange(encoded, torch.arange(3), torch.tensor([[0, 1, 2, 3]]))
    token_losses(target_logits(model, batch), batch).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
