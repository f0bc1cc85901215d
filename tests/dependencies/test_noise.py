"""How large the noise is, and what it explains, on data whose noise is known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from genorder.dependencies.mining import MiningConfig, mine_dependencies
from genorder.dependencies.noise import PurestGroup, expected_violations, pooled_noise
from genorder.dependencies.samples import SampleTable
from made_data import encoded

Table = NDArray[np.int64]
SAMPLES = 60_000


def table_of(inputs_NW: Table, targets_NL: Table) -> SampleTable:
    return SampleTable(encoded(inputs_NW, targets_NL), SAMPLES, np.random.default_rng(0))


def noisy(targets_NL: Table, noise: float, tokens: int, rng: np.random.Generator) -> Table:
    return np.where(rng.random(targets_NL.shape) < noise, rng.integers(tokens, size=targets_NL.shape), targets_NL)


def gates(noise: float, seed: int = 0) -> tuple[Table, Table]:
    """y0 = x0 and x1, y1 = y0 xor x2, y2 = y1 or x3: bits, beside other inputs, so that no sample comes twice."""
    rng = np.random.default_rng(seed)
    x_NW = np.concatenate([rng.integers(2, size=(SAMPLES, 4)), rng.integers(50, size=(SAMPLES, 3))], axis=1)
    y0 = x_NW[:, 0] & x_NW[:, 1]
    y1 = y0 ^ x_NW[:, 2]
    y2 = y1 | x_NW[:, 3]
    return x_NW, noisy(np.stack([y0, y1, y2], axis=1), noise, 2, rng)


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2])
def test_the_purest_group_bounds_the_noise_even_if_a_position_is_missing(noise: float) -> None:
    """x0 = 0 alone determines y0, and x0 = 1 does not."""
    table = table_of(*gates(noise))
    group = PurestGroup.among(table, (0,), 0)
    assert group.noise <= group.bound
    assert group.bound >= noise
    assert group.unbiased == pytest.approx(noise, rel=0.2)
    assert pooled_noise([group, PurestGroup.among(table, (5,), 1)]) == group.unbiased


def test_impure_groups_are_not_called_noise() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.integers(50, size=(SAMPLES, 3)), rng.integers(4, size=(SAMPLES, 2)))
    assert pooled_noise([PurestGroup.among(table, (0,), target) for target in range(2)]) == 0


@pytest.mark.parametrize("noise", [0.03, 0.1])
def test_what_noise_explains_is_close_to_the_measured_rate(noise: float) -> None:
    """For the positions that each target is computed from: the inputs 0 to 3, and targets from position 7 on."""
    table = table_of(*gates(noise))
    for target, positions in enumerate([(0, 1), (2, 7), (3, 8)]):
        expected, excess = expected_violations(table, positions, target, noise)
        measured = table.count(positions, target).violation_rate
        assert measured == pytest.approx(expected, rel=0.12)
        assert excess == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("positions", "target"), [((0,), 0), ((8,), 2), ((3,), 2), ((3, 4, 7), 2)])
def test_a_set_that_lacks_a_position_exceeds_the_noise(positions: tuple[int, ...], target: int) -> None:
    _, excess = expected_violations(table_of(*gates(0.1)), positions, target, 0.1)
    assert excess > 0.02


def test_a_target_that_tells_nothing_explains_no_violations() -> None:
    """However noisy it is: those that noise brings into a group are like those that are there."""
    table = table_of(*gates(0.1))
    without, _ = expected_violations(table, (0, 1), 0, 0.1)
    useless, _ = expected_violations(table, (0, 1, 9), 0, 0.1)
    assert useless == pytest.approx(without, rel=0.15)


@pytest.mark.parametrize("seed", range(2))
def test_determinants_under_noise_are_those_of_the_program(seed: int) -> None:
    """Masked bits look like noise: x0 alone leaves as few violations as noise does elsewhere."""
    mined = mine_dependencies(encoded(*gates(0.08, seed)), MiningConfig(), seed=seed)
    found = {target: one.positions for target, one in mined.determinants.items()}
    assert found == {0: (0, 1), 1: (2, 7), 2: (3, 8)}
    assert mined.noise == pytest.approx(0.08, rel=0.2)


def test_a_pointer_is_found_under_noise() -> None:
    rng = np.random.default_rng(1)
    x_NW = rng.integers(8, size=(SAMPLES, 9))
    y0_N = x_NW[np.arange(SAMPLES), 1 + x_NW[:, 0]]
    y1_N = x_NW[np.arange(SAMPLES), 1 + (y0_N + 3) % 8]
    mined = mine_dependencies(
        encoded(x_NW, noisy(np.stack([y1_N, y0_N], axis=1), 0.05, 8, rng)), MiningConfig(), seed=0
    )
    assert list(mined.determinants) == [1, 0]
    assert all(one.pointer for one in mined.determinants.values())
    assert mined.determinants[0].positions == (9 + 1,)
    assert not mined.open


def test_data_without_noise_have_none() -> None:
    mined = mine_dependencies(encoded(*gates(0.0)), MiningConfig(), seed=0)
    assert mined.noise == 0
    assert not mined.open
