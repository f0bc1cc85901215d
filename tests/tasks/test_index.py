import numpy as np
import pytest

from genorder.errors import InputError
from genorder.orders import Order, cost_ratio
from genorder.tasks import Split, make_task
from genorder.tasks.base import owned_by


def by_loop(x: list[int], d: int) -> list[int]:
    y: list[int] = []
    for i in range(len(x)):
        pointer = sum(y[j] for j in range(i - d, i) if j >= 0) % len(x)
        y.append(x[pointer])
    return y


@pytest.mark.parametrize("d", [1, 2, 4, 8, 20])
def test_targets_follow_the_pointers(d: int) -> None:
    drawn = make_task(f"index:d={d}", 13).generate(100, Split.TRAIN)
    for x, y in zip(drawn.inputs.tolist(), drawn.targets.tolist(), strict=True):
        assert y == by_loop(x, d)
        assert y[0] == x[0]


def test_default_d_is_two() -> None:
    drawn = make_task("index", 13).generate(30, Split.TRAIN)
    assert drawn.targets.tolist() == [by_loop(x, 2) for x in drawn.inputs.tolist()]


def test_variable_length_uses_each_samples_own_length() -> None:
    drawn = make_task("index:d=3", "5-9").generate(500, Split.TRAIN)
    for x, y, length in zip(drawn.inputs.tolist(), drawn.targets.tolist(), drawn.target_lengths.tolist(), strict=True):
        assert max(x[:length]) < length
        assert x[length:] == y[length:] == [0] * (9 - length)
        assert y[:length] == by_loop(x[:length], 3)
    for length in range(5, 10):
        assert drawn.inputs[drawn.target_lengths == length].max() == length - 1


def test_dependencies() -> None:
    task = make_task("index:d=3", 6)
    graph = task.dependencies()
    expected = [set(), {0}, {0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}]
    assert [graph.target_parents(j) for j in range(6)] == expected
    assert graph.input_copies == {0}
    assert task.friendly_order() == Order.forward(6)
    assert cost_ratio(Order.reverse(6), graph) == (1 + 1 + 2 + 3 + 4 + 5) / 6


def test_one_input_cannot_fill_three_splits() -> None:
    task = make_task("index", 1)
    owners = {split for split in Split if owned_by(split, np.array([[0]]), np.array([1])).all()}
    assert len(owners) == 1
    for split in set(Split) - owners:
        with pytest.raises(InputError, match=f"too few inputs to fill a {split} .* use a longer length"):
            task.generate(3, split)


def test_d_must_be_positive() -> None:
    with pytest.raises(InputError, match="d must be 1 or more"):
        make_task("index:d=0", 5)


def test_targets_depend_on_all_inputs() -> None:
    """In the graph every target except the first may read any position of X: some sample must do so."""
    task = make_task("index", 6)
    drawn = task.generate(3000, Split.TRAIN)
    for position in range(6):
        changed = drawn.inputs.copy()
        changed[:, position] = (changed[:, position] + 1) % 6
        differs = (task.solve(changed, drawn.target_lengths) != drawn.targets).any(axis=0)
        assert differs.tolist() == [position == 0] + [True] * 5
    assert np.array_equal(drawn.targets[:, 0], drawn.inputs[:, 0])
