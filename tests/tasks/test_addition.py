import numpy as np
import pytest
from task_helpers import is_function_of

from genorder.errors import InputError
from genorder.orders import Order, cost_ratio
from genorder.tasks import Split, make_task


def number(digits: list[int]) -> int:
    return int("".join(map(str, digits)))


@pytest.mark.parametrize("length", [2, 3, 13, 30])
@pytest.mark.parametrize("split", list(Split))
def test_sum_agrees_with_python_integers(length: int, split: Split) -> None:
    drawn = make_task("addition", length).generate(200 if length > 2 else 20, split)
    for x, y in zip(drawn.inputs.tolist(), drawn.targets.tolist(), strict=True):
        a, b = number(x[: length - 1]), number(x[length - 1 :])
        assert "".join(map(str, y)) == str(a + b).zfill(length)


def test_variable_length() -> None:
    drawn = make_task("addition", "3-6").generate(500, Split.TRAIN)
    assert set(drawn.target_lengths.tolist()) == {3, 4, 5, 6}
    assert drawn.input_lengths.tolist() == (2 * (drawn.target_lengths - 1)).tolist()
    for x, y, n in zip(drawn.inputs.tolist(), drawn.targets.tolist(), drawn.target_lengths.tolist(), strict=True):
        digits = n - 1
        assert "".join(map(str, y[:n])) == str(number(x[:digits]) + number(x[digits : 2 * digits])).zfill(n)
        assert not any(x[2 * digits :] + y[n:])


def test_each_digit_is_a_function_of_its_parents_and_of_no_subset() -> None:
    drawn = make_task("addition", 5).generate(100_000, Split.TRAIN)
    graph = make_task("addition", 5).dependencies()
    for target in range(5):
        parents, inputs = graph.parents[target], graph.input_parents[target]
        assert is_function_of(drawn, target, parents, inputs)
        if target == 3:
            continue  # the first carry follows from the inputs alone
        assert target == 4 or not is_function_of(drawn, target, (), inputs)
        for omitted in inputs:
            assert not is_function_of(drawn, target, parents, [i for i in inputs if i != omitted])
    assert graph.input_parents == ((0, 4), (0, 1, 4, 5), (1, 2, 5, 6), (2, 3, 6, 7), (3, 7))


def test_reverse_is_the_friendly_and_optimal_order() -> None:
    task = make_task("addition")
    assert task.longest == 13
    assert task.friendly_order() == Order.reverse(13)
    assert cost_ratio(Order.forward(13), task.dependencies()) == 7.0


def test_digits_are_uniform() -> None:
    drawn = make_task("addition", 4).draw(20_000, Split.TEST, np.random.default_rng(0))
    shares = np.bincount(drawn.inputs.ravel(), minlength=10) / drawn.inputs.size
    assert np.abs(shares - 0.1).max() < 0.01


def test_a_carry_alone_is_refused() -> None:
    with pytest.raises(InputError, match="needs lengths of 2 or more"):
        make_task("addition", 1)
