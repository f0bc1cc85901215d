import math
from collections.abc import Callable

import numpy as np
import pytest

from genorder.errors import InputError
from genorder.orders import Order, cost_ratio
from genorder.tasks import Lengths, RecurrenceTask, Split, make_task

# Written from the formulas, in plain Python.
STEPS: dict[str, Callable[[int, int], int]] = {
    "relu": lambda x, y: max(x + y, 0),
    "square": lambda x, y: (x**2 + y**2) % 19 - 9,
    "triangle": lambda x, y: abs((y + x) % 40 - 20),
    "sine": lambda x, y: math.floor(100 * math.sin(2 * math.pi / 16 * (y + x))) % 32,
    "sine:period=10": lambda x, y: math.floor(100 * math.sin(2 * math.pi / 10 * (y + x))) % 32,
    "cubic": lambda x, y: (y**3 + x) % 19,
}
RANGES = {
    "relu": (-9, 9),
    "square": (-9, 9),
    "triangle": (0, 19),
    "mlp": (0, 31),
    "sine": (0, 31),
    "cubic": (0, 18),
}


def entropy_bits(values: np.ndarray) -> float:
    _, counts = np.unique(values, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


@pytest.mark.parametrize("spec", STEPS)
def test_targets_follow_the_formula(spec: str) -> None:
    drawn = make_task(spec, 30).generate(50, Split.TRAIN)
    for x, y in zip(drawn.inputs.tolist(), drawn.targets.tolist(), strict=True):
        expected = [x[0]]
        for value in x[1:]:
            expected.append(STEPS[spec](value, expected[-1]))
        assert y == expected


@pytest.mark.parametrize("name", RANGES)
def test_inputs_fill_their_range_evenly(name: str) -> None:
    inputs = make_task(name, 20).generate(2000, Split.TRAIN).inputs
    low, high = RANGES[name]
    values, counts = np.unique(inputs, return_counts=True)
    assert values.tolist() == list(range(low, high + 1))
    expected = inputs.size / len(values)
    assert np.abs(counts - expected).max() < 5 * math.sqrt(expected)


def test_triangle_range_is_a_parameter() -> None:
    assert make_task("triangle:high=20", 20).generate(500, Split.TRAIN).inputs.max() == 20


def test_default_mlp_uses_its_tokens_and_its_past() -> None:
    task = make_task("mlp", 20)
    drawn = task.generate(2000, Split.TRAIN)
    later = drawn.targets[:, 1:]
    assert set(np.unique(later).tolist()) == set(range(32))
    assert entropy_bits(later) > 4
    assert isinstance(task, RecurrenceTask)
    x, y = np.meshgrid(np.arange(32), np.arange(32), indexing="ij")
    table = task.step(x.ravel(), y.ravel()).reshape(32, 32)
    assert min(len(set(row)) for row in table.tolist()) > 8  # for every x_i, many y_i as y_(i-1) varies
    assert min(len(set(column)) for column in table.T.tolist()) > 8


def test_mlp_is_a_plain_network_of_its_seed() -> None:
    first, again, other = (make_task(f"mlp:seed={seed}", 20) for seed in (5, 5, 6))
    inputs = first.generate(100, Split.TRAIN).inputs
    lengths = np.full(100, 20)
    np.testing.assert_array_equal(first.solve(inputs, lengths), again.solve(inputs, lengths))
    assert (first.solve(inputs, lengths) != other.solve(inputs, lengths)).mean() > 0.5
    assert first == again


@pytest.mark.parametrize("name", RANGES)
def test_forward_is_the_friendly_and_optimal_order(name: str) -> None:
    task = make_task(name, 12)
    graph = task.dependencies()
    assert task.friendly_order() == Order.forward(12)
    assert cost_ratio(Order.forward(12), graph) == 1.0
    assert cost_ratio(Order.reverse(12), graph) == (1 + 66) / 12
    assert graph.target_parents(5) == {4}
    assert graph.input_parents[5] == (5,)


@pytest.mark.parametrize("name", RANGES)
def test_variable_length_truncates(name: str) -> None:
    task = make_task(name, "3-7")
    drawn = task.generate(400, Split.TRAIN)
    assert set(drawn.target_lengths.tolist()) == {3, 4, 5, 6, 7}
    np.testing.assert_array_equal(drawn.input_lengths, drawn.target_lengths)
    for x, y, length in zip(drawn.inputs, drawn.targets, drawn.target_lengths.tolist(), strict=True):
        assert not x[length:].any()
        assert not y[length:].any()
        alone = make_task(name, length).solve(x[np.newaxis, :length], np.array([length]))
        assert alone[0].tolist() == y[:length].tolist()


def test_own_step() -> None:
    task = RecurrenceTask("running-xor", Lengths(5, 5), low=0, high=7, step=lambda x, y: x ^ y)
    drawn = task.generate(20, Split.TEST)
    np.testing.assert_array_equal(drawn.targets, np.bitwise_xor.accumulate(drawn.inputs, axis=1))


def test_step_must_return_integers_of_the_right_shape() -> None:
    halves = RecurrenceTask("halves", Lengths(3, 3), low=0, high=7, step=lambda x, y: (x + y) / 2)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="returned float64"):
        halves.generate(5, Split.TRAIN)
    one = RecurrenceTask("one", Lengths(3, 3), low=0, high=7, step=lambda x, y: x[:1])
    with pytest.raises(InputError, match=r"returned int64 of shape \(1,\)"):
        one.generate(5, Split.TRAIN)


def test_empty_range_and_bad_period_are_refused() -> None:
    with pytest.raises(InputError, match="empty range"):
        make_task("triangle:high=-1", 5)
    with pytest.raises(InputError, match="period must be 1 or more"):
        make_task("sine:period=0", 5)
