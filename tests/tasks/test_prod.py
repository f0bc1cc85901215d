import numpy as np
import pytest

from genorder.errors import InputError
from genorder.orders import Order, cost_ratio
from genorder.tasks import Lengths, MultiplicationTask, Split, make_task


def number(digits: list[int]) -> int:
    return int("".join(str(digit) for digit in digits))


@pytest.mark.parametrize("length", [2, 4, 10, 20, 60])
@pytest.mark.parametrize("split", list(Split))
def test_product_agrees_with_python_integers(length: int, split: Split) -> None:
    drawn = make_task("prod", length).generate(200, split)
    for x, y in zip(drawn.inputs.tolist(), drawn.targets.tolist(), strict=True):
        a, b = number(x[: length // 2]), number(x[length // 2 :])
        assert "".join(map(str, y)) == str(a * b).zfill(length)


def test_largest_factors() -> None:
    nines = np.full((1, 60), 9)
    digits = make_task("prod", 60).solve(nines, np.array([60]))[0].tolist()
    assert number(digits) == (10**30 - 1) ** 2


def test_variable_length_is_even_and_right() -> None:
    drawn = make_task("prod", "4-10").generate(600, Split.TRAIN)
    assert set(drawn.target_lengths.tolist()) == {4, 6, 8, 10}
    for x, y, n in zip(drawn.inputs.tolist(), drawn.targets.tolist(), drawn.target_lengths.tolist(), strict=True):
        a, b = number(x[: n // 2]), number(x[n // 2 : n])
        assert "".join(map(str, y[:n])) == str(a * b).zfill(n)
        assert not any(x[n:] + y[n:])


def digit_counts(factor_digits: np.ndarray) -> np.ndarray:
    """How many digits each number has, leading zeros apart; 0 counts as one digit."""
    nonzero = factor_digits != 0
    width = factor_digits.shape[1]
    return np.where(nonzero.any(axis=1), width - nonzero.argmax(axis=1), 1)


@pytest.mark.parametrize(
    ("split", "expected"),
    [(Split.TRAIN, {1, 2, 3, 4, 5}), (Split.VALIDATION, {1, 2, 3, 4, 5}), (Split.TEST, {3, 4, 5})],
)
def test_digit_counts_are_uniform_in_the_splits_range(split: Split, expected: set[int]) -> None:
    drawn = make_task("prod", 10).draw(20_000, split, np.random.default_rng(1))
    for factor in (drawn.inputs[:, :5], drawn.inputs[:, 5:]):
        values, counts = np.unique(digit_counts(factor), return_counts=True)
        assert set(values.tolist()) == expected
        assert np.abs(counts / 20_000 - 1 / len(expected)).max() < 0.02


def test_evaluation_range_is_clipped_for_short_numbers() -> None:
    drawn = make_task("prod", 4).draw(500, Split.TEST, np.random.default_rng(1))
    assert set(digit_counts(drawn.inputs[:, :2]).tolist()) == {1, 2}


def test_factors_of_one_digit_may_be_zero() -> None:
    drawn = make_task("prod", 2).draw(2000, Split.TRAIN, np.random.default_rng(1))
    assert set(drawn.inputs.ravel().tolist()) == set(range(10))


def test_reverse_is_the_friendly_and_optimal_order() -> None:
    task = make_task("prod", 10)
    assert task.friendly_order() == Order.reverse(10)
    assert cost_ratio(Order.reverse(10), task.dependencies()) == 1.0
    assert cost_ratio(Order.forward(10), task.dependencies()) == 5.5


def test_graph_names_the_digits_that_are_summed() -> None:
    """Column j sums a_i * b_k over places i + k = 9 - j: compared with the products that can occur."""
    graph = make_task("prod", 10).dependencies()
    for column in range(10):
        place = 9 - column
        pairs = [(i, k) for i in range(5) for k in range(5) if i + k == place]
        positions = {4 - i for i, _ in pairs} | {5 + 4 - k for _, k in pairs}
        assert set(graph.input_parents[column]) == positions
        assert graph.parents[column] == ((column + 1,) if column < 9 else ())


def test_odd_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="even lengths, received 7"):
        MultiplicationTask("prod", Lengths(7, 7))
    with pytest.raises(InputError, match="even lengths, received 4-6"):
        MultiplicationTask("prod", Lengths(4, 6))
    assert MultiplicationTask("prod", Lengths(4, 6, step=2)).longest == 6
