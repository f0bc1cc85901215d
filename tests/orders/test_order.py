import json
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.errors import InputError
from genorder.orders import Order


@st.composite
def order_triples(draw: st.DrawFn) -> tuple[Order, Order, Order]:
    length = draw(st.integers(1, 12))
    permutations = st.permutations(range(length)).map(Order.of)
    return draw(permutations), draw(permutations), draw(permutations)


def test_convention_is_target_index_emitted_at_each_step() -> None:
    order = Order((2, 0, 1))
    assert order.apply(["first", "second", "third"]) == ["third", "first", "second"]
    assert (order[0], len(order), list(order)) == (2, 3, [2, 0, 1])


def test_apply_reorders_arrays_along_the_last_axis() -> None:
    array = np.arange(12).reshape(2, 2, 3)
    expected = np.stack([array[..., 2], array[..., 0], array[..., 1]], axis=-1)
    np.testing.assert_array_equal(Order((2, 0, 1)).apply(array), expected)


def test_apply_accepts_tuples_and_returns_a_list() -> None:
    assert Order((1, 0)).apply(("x", "y")) == ["y", "x"]


@pytest.mark.parametrize("sequence", [[1, 2], [1, 2, 3, 4], np.zeros((3, 2)), np.array(3)])
def test_apply_refuses_other_lengths(sequence: object) -> None:
    with pytest.raises(InputError, match="length 3 cannot reorder"):
        Order((2, 0, 1)).apply(sequence)  # type: ignore[call-overload]


@given(order_triples())
def test_inverse_undoes(orders: tuple[Order, Order, Order]) -> None:
    order = orders[0]
    sequence = [f"token {i}" for i in range(len(order))]
    assert order.inverse().apply(order.apply(sequence)) == sequence
    assert order.inverse().inverse() == order
    assert all(order.inverse()[target] == step for step, target in enumerate(order))


@given(order_triples())
def test_compose_applies_self_then_other(orders: tuple[Order, Order, Order]) -> None:
    first, second, third = orders
    sequence = [f"token {i}" for i in range(len(first))]
    assert first.compose(second).apply(sequence) == second.apply(first.apply(sequence))
    assert first.compose(second).compose(third) == first.compose(second.compose(third))
    assert first.compose(first.inverse()) == Order.forward(len(first))


@given(order_triples(), st.data())
def test_restrict_keeps_the_sequence_of_the_rest(orders: tuple[Order, Order, Order], data: st.DataObject) -> None:
    order = orders[0]
    length = data.draw(st.integers(1, len(order)))
    kept = order.restrict(length)
    assert set(kept) == set(range(length))
    steps = [order.inverse()[index] for index in kept]
    assert steps == sorted(steps)


@given(order_triples())
def test_json_round_trip(orders: tuple[Order, Order, Order]) -> None:
    order = orders[0]
    assert Order.from_json(order.to_json()) == order
    assert Order.from_json(json.loads(order.to_json())) == order


@pytest.mark.parametrize("length", [0, 4, -1])
def test_restrict_refuses_lengths_outside(length: int) -> None:
    with pytest.raises(InputError, match=r"restricted to 1\.\.3"):
        Order.forward(3).restrict(length)


def test_named_orders() -> None:
    assert Order.forward(4).indices == (0, 1, 2, 3)
    assert Order.reverse(4).indices == (3, 2, 1, 0)
    rng = np.random.default_rng(5)
    drawn = {Order.random(3, rng) for _ in range(200)}
    assert len(drawn) == 6


def test_is_an_immutable_value() -> None:
    order = Order.of(np.array([1, 0, 2]))
    assert order == Order((1, 0, 2))
    assert hash(order) == hash(Order((1, 0, 2)))
    assert all(type(index) is int for index in order)
    assert pickle.loads(pickle.dumps(order)) == order
    with pytest.raises((FrozenInstanceError, TypeError)):
        order.indices = (0, 1, 2)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ((0, 1, 2, 3, 3, 4), "index 3 appears twice, 5 is missing"),
        ((0, 0, 0), "index 0 appears 3 times, 1, 2 are missing"),
        ((0, 1, 2, 3, 4, 7), r"holds 7, but a length-6 order has only 0\.\.5"),
        ((0, -1), "holds -1"),
        ((), "at least one index"),
        ((0, True), "integers only, received bool True"),
        ((0, np.bool_(True)), "integers only"),
        ((0, 1.0), "integers only, received float"),
        ((0, "1"), "integers only, received str"),
        (tuple([0] * 20), "and 14 more are missing"),
    ],
)
def test_refuses_what_is_no_permutation(indices: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Order(indices)


@pytest.mark.parametrize("length", [0, -3])
def test_refuses_empty_orders(length: int) -> None:
    with pytest.raises(InputError, match="at least one index"):
        Order.forward(length)
    with pytest.raises(InputError, match="at least one index"):
        Order.reverse(length)
    with pytest.raises(InputError, match="at least one index"):
        Order.random(length, np.random.default_rng(0))


@pytest.mark.parametrize("text", ["", "[0, 1", '{"order": [0]}', "3", "null", "[0.0, 1.0]", "[true, 0]"])
def test_refuses_bad_json(text: str) -> None:
    with pytest.raises(InputError, match="order"):
        Order.from_json(text)


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ((0, 1, 2, 3, 4, 9, 8, 7, 6, 5, 12, 11, 10), "0-4 9-5 12-10"),
        ((0, 1, 2, 3, 4, 9, 8, 7, 6, 5, 11, 10), "0-4 9-5 11 10"),
        ((0,), "0"),
        ((1, 0), "1 0"),
        ((2, 0, 1), "2 0 1"),
        ((1, 0, 2, 3, 4), "1 0 2-4"),
        ((3, 2, 1, 0), "3-0"),
    ],
)
def test_short(indices: tuple[int, ...], text: str) -> None:
    assert Order(indices).short() == text
