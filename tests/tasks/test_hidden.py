from collections import Counter

import numpy as np
import pytest

from genorder.errors import InputError
from genorder.orders import Order, cost_ratio
from genorder.tasks import Lengths, Split, hidden_order, hide_order, make_task, unhide_order


def test_hide_stores_true_targets_in_secret_columns() -> None:
    drawn = make_task("square", 8).generate(20, Split.TRAIN)
    secret = hidden_order(Lengths(8, 8), seed=3)
    stored = hide_order(drawn, secret)
    for column in range(8):
        np.testing.assert_array_equal(stored.targets[:, column], drawn.targets[:, secret[column]])
    np.testing.assert_array_equal(stored.inputs, drawn.inputs)
    np.testing.assert_array_equal(stored.target_lengths, drawn.target_lengths)


def test_unhide_maps_stored_columns_to_true_indices() -> None:
    secret, order = Order((2, 0, 3, 1)), Order((3, 1, 0, 2))
    assert unhide_order(order, secret) == Order((1, 0, 2, 3))
    assert unhide_order(secret.inverse(), secret) == Order.forward(4)


def test_emitting_the_hidden_targets_in_the_inverse_order_gives_the_true_ones() -> None:
    task = make_task("delay-hidden-cause", 16)
    drawn = task.generate(10, Split.TRAIN)
    secret = hidden_order(task.lengths, seed=1)
    found = secret.inverse()
    np.testing.assert_array_equal(found.apply(hide_order(drawn, secret).targets), drawn.targets)
    assert cost_ratio(found, task.dependencies().relabelled(secret)) == 1.0


def test_depends_on_the_seed() -> None:
    lengths = Lengths(20, 20)
    assert hidden_order(lengths, 1) == hidden_order(lengths, 1)
    assert len({hidden_order(lengths, seed) for seed in range(50)}) == 50


def test_all_orders_but_the_identity_occur() -> None:
    counts = Counter(hidden_order(Lengths(3, 3), seed) for seed in range(600))
    assert Order.forward(3) not in counts
    assert len(counts) == 5
    assert min(counts.values()) > 80


def test_two_targets_may_stay_or_swap() -> None:
    assert len({hidden_order(Lengths(2, 2), seed) for seed in range(40)}) == 2
    assert hidden_order(Lengths(1, 1), 0) == Order((0,))


def test_variable_length_shuffles_the_shortest_prefix_only() -> None:
    for seed in range(50):
        secret = hidden_order(Lengths(5, 9), seed)
        assert secret.indices[5:] == (5, 6, 7, 8)
        assert secret.indices[:5] != (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [(Lengths(4, 8, 2), [4, 6, 8]), (Lengths(4, 16, 4), [4, 8, 12, 16])],
)
def test_groups_between_lengths_are_shuffled_among_themselves(lengths: Lengths, groups: list[int]) -> None:
    secrets = [hidden_order(lengths, seed) for seed in range(60)]
    for start, end in zip([0, *groups], groups, strict=False):
        parts = {secret.indices[start:end] for secret in secrets}
        assert all(sorted(part) == list(range(start, end)) for part in parts)
        assert len(parts) > 1


@pytest.mark.parametrize("spec", ["relu", "prod", "delay-relu"])
def test_every_samples_padding_stays_at_its_end(spec: str) -> None:
    task = make_task(spec, "8-16")
    drawn = task.generate(300, Split.TRAIN)
    stored = hide_order(drawn, hidden_order(task.lengths, seed=4))
    for true, column, length in zip(
        drawn.targets.tolist(), stored.targets.tolist(), drawn.target_lengths.tolist(), strict=True
    ):
        assert sorted(column[:length]) == sorted(true[:length])
        assert column[length:] == true[length:]


def test_nothing_can_move_when_every_prefix_occurs() -> None:
    assert hidden_order(Lengths(1, 6), seed=0) == Order.forward(6)


def test_hide_refuses_an_order_that_mixes_in_padding() -> None:
    drawn = make_task("relu", "3-6").generate(100, Split.TRAIN)
    with pytest.raises(InputError, match="mix targets and padding"):
        hide_order(drawn, Order.reverse(6))
