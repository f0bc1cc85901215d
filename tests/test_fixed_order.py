"""What a training's losses say at its end."""

import numpy as np
import pytest

from genorder.fixed_order import still_falling

STEPS = np.arange(1000)
NOISE = np.random.default_rng(0).normal(size=1000)


@pytest.mark.parametrize(
    ("losses", "falling"),
    [
        (3 - 0.002 * STEPS + 0.05 * NOISE, True),
        (np.exp(-STEPS / 300), True),
        (3 + 0.05 * NOISE, False),
        (3 - 0.0001 * STEPS + 0.05 * NOISE, False),  # by less than a learning rate that decays would do
        (3 * np.exp(-STEPS / 50) + 1 + 0.05 * NOISE, False),
        (1 + 0.002 * STEPS, False),
        (np.array([3.0, 2.0, 1.0]), False),  # too few to say
        (np.array([]), False),
    ],
)  # fmt: skip
def test_still_falling(losses: np.ndarray, falling: bool) -> None:
    assert still_falling(losses.tolist()) is falling
