"""The paper's table of samples (tab:dataset_samples), every entry of it."""

import numpy as np
import pytest

from genorder.tasks import RecurrenceTask, make_task

# Rows of ten, as printed; Y is in the paper's forward order.
SAMPLES: dict[str, tuple[str, str]] = {
    "relu": (
        """
          4  -7  -7  -3   8   1  -8  -9   8   6
          0  -9   5  -9   6   5  -5  -9   7  -5
          8  -6  -7  -2  -7   6   7  -2   0  -6
         -3  -8  -7  -8   3  -1  -6   1  -4  -9
          2  -7   1   4   9  -5   6   2   3  -3
        """,
        """
          4   0   0   0   8   9   1   0   8  14
         14   5  10   1   7  12   7   0   7   2
         10   4   0   0   0   6  13  11  11   5
          2   0   0   0   3   2   0   1   0   0
          2   0   1   5  14   9  15  17  20  17
        """,
    ),
    "square": (
        """
         -5  -9   8   7   8  -7   5  -9  -6   9
         -2  -8   6  -7   2  -7  -6  -5  -5   7
          3   6  -9   1   7   0  -7   7  -5   0
         -2   6  -1  -9  -6  -7   0   2   7  -1
          1  -2  -6  -7   5   1   9  -6  -3  -3
        """,
        """
         -5   2   2   6  -4  -1  -2   0   8   3
          4  -5  -5   8   2   6   6  -5   3  -8
          7   0  -4   8   9  -4  -1   3   6   8
          2  -7   3   5  -5   8  -2  -1   3   1
         -7   6   6   0  -3   1  -3  -2   4  -3
        """,
    ),
    "triangle": (
        """
          1  17  11  18  18   5  10  12  20  11
          9  12   6  11   3  13  20  12   2  16
         11  12  12   9   0  11  19   3  14   7
          5  10  19  14  19   8   6  17   2  20
         16  19  18   1   2  13  20  19   1   0
        """,
        """
          1   2   7   5   3  12   2   6   6   3
          8   0  14   5  12   5   5   3  15  11
          2   6   2   9  11   2   1  16  10   3
         12   2   1   5   4   8   6   3  15  15
         11  10   8  11   7   0   0   1  18   2
        """,
    ),
    "mlp": (
        """
          1   0  16  12  12  10   2  30  24   7
         22  10   9   9   7   3  14   1   1  27
          6   8  19  14  27  10  10  13  21  29
          9  11  23  13   8   9   4   9   3   2
         27  26  25  30  24  28   3  28  17   7
        """,
        """
          1  30  16  21  19  21   0  21  14  24
         14  22  23  23  26   0  26   2  29  11
         25  25  15  20  13  22  22  19  16  12
         23  20  15  21  24  23  30  24   0  30
         11  17  14  13  15  13  29  11  20  25
        """,
    ),
    "sine": (
        """
          9   1  28  31  28  27   4  20  13  25
         21   5  27  10  22  28   4  15   5   1
          5   2  29  29  11   9   7  17   7  30
         11  24  24  20   5   1  13  21  10  27
         17   3  27  16  22  31  11  15  28   3
        """,
        """
          9  25  28   3  25   4   0   4   6  25
         25  25   4  25  25  28  31  25  25  25
         25   3  31  28   6  25  31  31   6   4
         25   6  25   3   0   6  28   6  31  25
         25  28   6   6  28   3  25   0  28  25
        """,
    ),
    "cubic": (
        """
         12  10  18  15  15   7   6   5   8  18
         13   3  12  11   0  18  18  13   3   5
         12   1  14  16   6  12  16   8   1  10
         12  11   2   4  11  11   5   4   5   4
         18   4  11   5   0   0  13  11   6   1
        """,
        """
         12   9   6   3   4  14  14  13   1   0
         13  15   5   3   8  17  10   6  10  17
          4   8  13   9  13   5   8   7   2  18
         11  12   1   5   3   0   5  15  17  15
         11   5   3  13  12  18  12  10  18   0
        """,
    ),
}


def sample(name: str) -> tuple[list[int], list[int]]:
    x_text, y_text = SAMPLES[name]
    x, y = [int(word) for word in x_text.split()], [int(word) for word in y_text.split()]
    assert len(x) == len(y) == 50
    return x, y


def solved(spec: str, x: list[int]) -> list[int]:
    length = np.array([len(x)])
    targets: list[int] = make_task(spec, len(x)).solve(np.array([x]), length)[0].tolist()
    return targets


@pytest.mark.parametrize("name", ["relu", "square", "triangle", "sine", "cubic"])
def test_recurrence_reproduces_the_papers_sample(name: str) -> None:
    x, y = sample(name)
    assert solved(name, x) == y


def test_sine_with_the_period_of_the_parameter_table_does_not() -> None:
    x, y = sample("sine")
    assert solved("sine:period=10", x) != y


def test_mlp_sample_has_the_same_start_and_range() -> None:
    """The paper's weights are not published, so only what does not depend on them can agree."""
    x, y = sample("mlp")
    ours = solved("mlp", x)
    assert ours[0] == y[0] == x[0]
    assert min(x + y + ours) >= 0
    assert max(x + y + ours) <= 31


@pytest.mark.parametrize("name", ["relu", "square", "mlp", "sine", "cubic"])
def test_inputs_of_the_sample_lie_in_the_tasks_range(name: str) -> None:
    x, _ = sample(name)
    task = make_task(name, 50)
    assert isinstance(task, RecurrenceTask)
    assert task.low <= min(x)
    assert max(x) <= task.high


def test_triangle_sample_needs_the_wider_range() -> None:
    x, _ = sample("triangle")
    assert make_task("triangle:high=20", 50).parameters["high"] == max(x) == 20
    assert make_task("triangle", 50).parameters["high"] == 19


def test_prod_reproduces_the_papers_sample() -> None:
    """The paper prints this row least significant digit first, in its friendly order."""
    a, b = [0, 0, 2, 0, 3], [0, 2, 6, 3, 7]
    printed = [1, 1, 3, 5, 3, 5, 0, 0, 0, 0]
    ours = solved("prod", a + b)
    assert ours[::-1] == printed
    assert make_task("prod", 10).friendly_order().apply(ours) == printed
