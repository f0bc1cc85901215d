"""Rearrangements by blocks: sizes, counts, the unchanged first."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.orders import Order
from genorder.search.global_local import (
    block_arrangements,
    even_blocks,
    sized_blocks,
    some_block_arrangements,
    some_inner_arrangements,
)
from genorder.seeding import numpy_generator

Sampler = Callable[[int, np.random.Generator], list[Order]]


@given(st.integers(1, 30), st.data())
def test_even_blocks_are_one_longer_at_the_front(length: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, length))
    blocks = even_blocks(length, count)
    assert [step for block in blocks for step in block] == list(range(length))
    short, longer = divmod(length, count)
    assert [len(block) for block in blocks] == [short + 1] * longer + [short] * (count - longer)


def test_even_blocks_by_hand() -> None:
    assert even_blocks(7, 3) == [[0, 1, 2], [3, 4], [5, 6]]
    assert even_blocks(4, 1) == [[0, 1, 2, 3]]


@given(st.integers(1, 30), st.integers(1, 30))
def test_sized_blocks_leave_the_rest_to_the_last(length: int, size: int) -> None:
    blocks = sized_blocks(length, size)
    assert [step for block in blocks for step in block] == list(range(length))
    assert len(blocks) == math.ceil(length / size)
    assert all(len(block) == size for block in blocks[:-1])
    assert 1 <= len(blocks[-1]) <= size


@given(st.integers(1, 12), st.data())
def test_every_sequence_of_the_blocks(length: int, data: st.DataObject) -> None:
    blocks = even_blocks(length, data.draw(st.integers(1, min(length, 5))))
    fixed = data.draw(st.integers(0, len(blocks)))
    arrangements = list(block_arrangements(blocks, fixed))
    assert arrangements[0] == Order.forward(length)
    assert len(set(arrangements)) == len(arrangements) == math.factorial(len(blocks) - fixed)
    staying = [step for block in blocks[len(blocks) - fixed :] for step in block]
    for arrangement in arrangements:
        assert list(arrangement)[length - len(staying) :] == staying
        for block in blocks:  # moved as a whole
            place = arrangement.inverse()[block[0]]
            assert list(arrangement)[place : place + len(block)] == block


def test_arrangements_by_hand() -> None:
    assert [list(order) for order in block_arrangements([[0, 1], [2], [3]], fixed=1)] == [[0, 1, 2, 3], [2, 0, 1, 3]]
    inner = some_inner_arrangements([[0, 1], [2, 3]], 100, numpy_generator(0))
    assert [list(order) for order in inner] == [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2]]


@given(st.integers(2, 12), st.integers(2, 4))
def test_every_order_within_one_block_at_a_time(length: int, size: int) -> None:
    blocks = sized_blocks(length, size)
    found = some_inner_arrangements(blocks, 10_000, numpy_generator(0))
    assert found[0] == Order.forward(length)
    assert len(set(found)) == len(found) == 1 + sum(math.factorial(len(block)) - 1 for block in blocks)
    for arrangement in found[1:]:
        moved = [step for step, index in enumerate(arrangement) if step != index]
        assert len({step // size for step in moved}) == 1


SAMPLERS: dict[str, tuple[Sampler, int]] = {
    "between": (lambda count, rng: some_block_arrangements(sized_blocks(13, 2), 1, count, rng), 720),
    "within": (lambda count, rng: some_inner_arrangements(sized_blocks(13, 5), count, rng), 120 + 119 + 5),
}


@pytest.mark.parametrize(("draw", "everything"), SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("count", [2, 50, 200])
def test_a_sample_above_the_count(draw: Sampler, everything: int, count: int) -> None:
    assert len(draw(10_000, numpy_generator(0))) == everything
    some = draw(count, numpy_generator(1))
    assert len(set(some)) == len(some) == count < everything
    assert some[0] == Order.forward(13)
    assert set(some) <= set(draw(10_000, numpy_generator(0)))
    assert some == draw(count, numpy_generator(1))
    assert some != draw(count, numpy_generator(2))


def test_a_sample_keeps_the_remainder_last() -> None:
    some = some_block_arrangements(sized_blocks(13, 2), 1, 50, numpy_generator(0))
    assert {order[12] for order in some} == {12}


def test_a_count_just_below_the_number_with_repetitions() -> None:
    """Two blocks of two have 2 + 2 inner orders, of which one is the unchanged, twice: three in all."""
    found = some_inner_arrangements(sized_blocks(4, 2), 3, numpy_generator(0))
    assert sorted(map(list, found)) == [[0, 1, 2, 3], [0, 1, 3, 2], [1, 0, 2, 3]]
