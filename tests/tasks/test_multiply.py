import numpy as np
import pytest
from task_helpers import is_function_of

from genorder.errors import InputError
from genorder.orders import Order
from genorder.tasks import Split, make_task


def number(digits: list[int]) -> int:
    return int("".join(map(str, digits)))


@pytest.mark.parametrize(("digits", "by"), [(6, 1), (1, 4), (5, 3), (2, 4), (12, 12)])
def test_product_agrees_with_python_integers(digits: int, by: int) -> None:
    task = make_task(f"multiply:digits={digits},by={by}")
    drawn = task.generate(200, Split.TRAIN)
    assert drawn.inputs.shape == drawn.targets.shape == (200, digits + by)
    for x, y in zip(drawn.inputs.tolist(), drawn.targets.tolist(), strict=True):
        assert "".join(map(str, y)) == str(number(x[:digits]) * number(x[digits:])).zfill(digits + by)


def test_largest_factors() -> None:
    digits = make_task("multiply:digits=20,by=3").solve(np.full((1, 23), 9), np.array([23]))[0].tolist()
    assert number(digits) == (10**20 - 1) * 999


@pytest.mark.parametrize(("digits", "by"), [(4, 1), (1, 4)])
def test_with_a_factor_of_one_digit_the_graph_is_exact(digits: int, by: int) -> None:
    task = make_task(f"multiply:digits={digits},by={by}")
    drawn = task.generate(60_000, Split.TRAIN)
    graph = task.dependencies()
    for target in range(5):
        parents, inputs = graph.parents[target], graph.input_parents[target]
        assert is_function_of(drawn, target, parents, inputs)
        if target == 3:
            continue  # the first carry follows from the inputs alone
        assert target == 4 or not is_function_of(drawn, target, (), inputs)
        for omitted in inputs:
            assert not is_function_of(drawn, target, parents, [i for i in inputs if i != omitted])
    assert task.friendly_order() == Order.reverse(5)


def test_longer_factors_follow_the_convention_of_prod() -> None:
    assert make_task("multiply:digits=4,by=4").dependencies() == make_task("prod", 8).dependencies()
    graph = make_task("multiply:digits=3,by=2").dependencies()  # X = a2 a1 a0 b1 b0
    assert graph.input_parents == ((), (0, 3), (0, 1, 3, 4), (1, 2, 3, 4), (2, 4))
    assert graph.parents == ((1,), (2,), (3,), (4,), ())


def test_the_length_follows_from_the_digits() -> None:
    assert make_task("multiply").longest == 7
    assert make_task("multiply:digits=3,by=2", "5").longest == 5
    with pytest.raises(InputError, match="3 by 2 digits has 5 targets, received length 8: leave the length out"):
        make_task("multiply:digits=3,by=2", 8)
    with pytest.raises(InputError, match="received length 5-6"):
        make_task("multiply:digits=3,by=2", "5-6")


@pytest.mark.parametrize("settings", ["digits=0", "by=0", "digits=-9"])
def test_factors_need_a_digit(settings: str) -> None:
    with pytest.raises(InputError, match="digits and by must be 1 or more"):
        make_task(f"multiply:{settings}")
