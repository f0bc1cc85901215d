"""How clear each step of an order is, against the oracle asked step by step."""

from dataclasses import replace

import numpy as np
import pytest
from any_order_helpers import random_oracle, trained_oracle
from profiling_helpers import random_data

from genorder.orders import Order
from genorder.profiling.margins import emissions


def test_a_step_is_compared_with_the_easiest_of_the_others() -> None:
    oracle = random_oracle(random_data(50, targets=5))
    order = Order((3, 0, 4, 1, 2))
    steps = emissions(oracle, order)
    assert [step.target for step in steps] == list(order)
    for place, step in enumerate(steps[:-1]):
        losses_NL = oracle.given(order.indices[:place])
        others = order.indices[place + 1 :]
        rival = min(others, key=lambda target: losses_NL[:, target].mean())
        worse_N = losses_NL[:, rival] - losses_NL[:, step.target]
        assert step.rival == rival
        assert step.loss == pytest.approx(losses_NL[:, step.target].mean())
        assert step.margin == pytest.approx(worse_N.mean(), abs=1e-6)
        assert step.margin_error == pytest.approx(worse_N.std(ddof=1) / np.sqrt(50), abs=1e-6)
    assert (steps[-1].rival, steps[-1].margin, steps[-1].margin_error) == (None, None, None)


def test_a_recurrence_leaves_no_choice_and_in_reverse_there_is_always_a_better_one() -> None:
    oracle = trained_oracle("square", "6")
    forward, reverse = (emissions(oracle, order) for order in (Order.forward(6), Order.reverse(6)))
    assert all(step.margin > 4 * step.margin_error for step in forward[1:-1])
    assert all(step.rival == step.target + 1 for step in forward[1:-1])
    assert all(step.margin < 0 for step in reverse[:4])


def test_samples_of_several_lengths() -> None:
    encoded = random_data(40, fixed=False)
    lengths_N = encoded.target_lengths_N.clamp(max=3)
    oracle = random_oracle(replace(encoded, target_lengths_N=lengths_N))
    first, *_, last = emissions(oracle, Order((1, 0, 2, 3)))
    has_N = lengths_N.numpy() > 1
    assert first.loss == pytest.approx(oracle.given([])[has_N, 1].mean())
    assert (last.loss, last.margin) == (None, None)  # no sample has the fourth
