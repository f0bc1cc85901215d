import math

import pytest

from genorder.evaluation import wilson_interval


@pytest.mark.parametrize(
    ("successes", "samples", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (1, 10, 0.0179, 0.4042),
        (50, 100, 0.4038, 0.5962),
        (0, 1, 0.0, 0.7935),
        (1000, 1000, 0.9962, 1.0),
    ],
)
def test_known_values(successes: int, samples: int, low: float, high: float) -> None:
    assert wilson_interval(successes, samples) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("samples", [1, 7, 1000])
def test_formula(samples: int) -> None:
    z = 1.959963984540054
    for successes in range(0, samples + 1, max(1, samples // 7)):
        rate = successes / samples
        centre = (rate + z * z / (2 * samples)) / (1 + z * z / samples)
        half = z / (1 + z * z / samples) * math.sqrt(rate * (1 - rate) / samples + z * z / (4 * samples**2))
        assert wilson_interval(successes, samples) == pytest.approx((centre - half, centre + half), abs=1e-12)


def test_values_are_plain_numbers_within_0_and_1() -> None:
    for pair in (wilson_interval(0, 3), wilson_interval(3, 3)):
        assert all(type(value) is float for value in pair)
        assert 0 <= pair[0] < pair[1] <= 1
