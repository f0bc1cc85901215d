from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from genorder.data import EncodedDataset, encode
from genorder.dependencies.graph import FunctionalDependencies
from genorder.dependencies.mining import MiningConfig, mine_dependencies
from genorder.dependencies.samples import SampleTable
from genorder.orders import Order, cost_ratio
from genorder.tasks import make_task, task_splits
from made_data import encoded

Table = NDArray[np.int64]


def mined(train: EncodedDataset, seed: int = 0) -> FunctionalDependencies:
    return mine_dependencies(train, MiningConfig(), seed=seed)


def positions_of(result: FunctionalDependencies) -> dict[int, tuple[int, ...]]:
    return {target: one.positions for target, one in result.determinants.items()}


def draw(samples: int, width: int, tokens: int = 7, seed: int = 0) -> Table:
    return np.random.default_rng(seed).integers(tokens, size=(samples, width))


def of_task(spec: str, length: int | str | None, samples: int = 20_000) -> tuple[FunctionalDependencies, float]:
    data = task_splits(make_task(spec, length), train=samples, validation=2, test=2, hidden_order_seed=3)
    splits = data.splits
    result = mined(encode(splits.train, input_width=splits.input_width, target_width=splits.target_width))
    graph = data.graph_of_columns()
    assert graph is not None
    return result, cost_ratio(Order((*result.determinants, *result.open)), graph)


# -- counts of pairs


@pytest.mark.parametrize("seed", range(3))
def test_pairs_and_violations_are_those_of_all_pairs_of_samples(seed: int) -> None:
    values_NP = np.unique(draw(60, 5, tokens=3, seed=seed), axis=0)
    table = SampleTable(encoded(values_NP[:, :3], values_NP[:, 3:]), 100, np.random.default_rng(0))
    for size in range(4):
        for positions in combinations(range(3), size):
            agree = violate = 0
            for one, other in combinations(values_NP, 2):
                if (one[list(positions)] == other[list(positions)]).all():
                    agree += 1
                    violate += int(one[4] != other[4])
            count = table.count(positions, 1)
            assert (count.pairs, count.violations) == (agree, violate)


def is_determined(values_NP: Table, positions: tuple[int, ...], column: int) -> bool:
    with_target = len(np.unique(values_NP[:, [*positions, column]], axis=0))
    return with_target == len(np.unique(values_NP[:, list(positions)], axis=0))


@pytest.mark.parametrize("seed", range(6))
def test_determinants_are_exact_and_minimal_by_brute_force(seed: int) -> None:
    """Each target is a random table of one to three earlier positions."""
    rng = np.random.default_rng(seed)
    columns = list(draw(4000, 5, tokens=4, seed=seed).T)
    for _ in range(4):
        read = rng.permutation(len(columns))[: rng.integers(1, 4)]
        table = rng.integers(4, size=4 ** len(read))
        columns.append(table[sum(columns[p] * 4**place for place, p in enumerate(read))])
    values_NP = np.stack(columns, axis=1)
    result = mined(encoded(values_NP[:, :5], values_NP[:, 5:]))
    assert not result.open
    for target, sets in result.found.items():
        smallest = next(
            size
            for size in range(4)
            if any(
                is_determined(values_NP, chosen, 5 + target)
                for chosen in combinations([p for p in range(9) if p != 5 + target], size)
            )
        )
        assert min(len(one.positions) for one in sets) == smallest
        for one in sets:
            assert one.violations == 0
            assert is_determined(values_NP, one.positions, 5 + target)
            for smaller in combinations(one.positions, len(one.positions) - 1):
                assert not is_determined(values_NP, smaller, 5 + target)


def test_each_determinant_reads_inputs_and_targets_that_come_before() -> None:
    result, _ = of_task("random:family=grid,seed=1,noise=0", 12)
    known = set(range(result.inputs))
    for target, one in result.determinants.items():
        assert known.issuperset(one.positions)
        known.add(result.inputs + target)
    assert not result.open


# -- what is found


@pytest.mark.parametrize("task", ["relu", "square", "triangle", "mlp", "sine", "cubic"])
def test_recurrences_are_found_from_5000_samples(task: str) -> None:
    result, ratio = of_task(task, 20, samples=5000)
    assert ratio == 1
    assert not result.open


def test_a_chain_that_can_be_solved_backwards_starts_at_the_inputs() -> None:
    x_NW = draw(5000, 8)
    result = mined(encoded(x_NW, x_NW.cumsum(axis=1)[:, ::-1] % 7))
    assert list(result.determinants) == list(range(7, -1, -1))
    assert positions_of(result)[3] == (4, 8 + 4)


def test_a_running_sum_is_found_from_160_samples() -> None:
    x_NW = draw(160, 6, tokens=10)
    result = mined(encoded(x_NW, x_NW.cumsum(axis=1)))
    assert list(result.determinants) == list(range(6))
    assert positions_of(result) == {0: (0,), **{k: (k, 6 + k - 1) for k in range(1, 6)}}


def test_a_shortcut_does_not_come_before_the_targets_that_it_leaves_out() -> None:
    result, ratio = of_task("delay-relu", 36)
    assert ratio == 1
    assert not result.open


def test_a_pointer_is_found() -> None:
    x_NW = draw(10_000, 8)
    x_NW[:, 0] %= 6
    y_N = x_NW[np.arange(len(x_NW)), 2 + (x_NW[:, 0] + x_NW[:, 1]) % 6]
    result = mined(encoded(x_NW, y_N[:, np.newaxis]))
    assert result.determinants[0].pointer
    assert result.determinants[0].positions == (0, 1)


def test_a_sum_of_three_terms_of_which_no_pair_tells_anything_is_found() -> None:
    x_NW = draw(20_000, 8)
    result = mined(encoded(x_NW, (x_NW[:, [1]] + 2 * x_NW[:, [4]] + x_NW[:, [6]]) % 7))
    assert positions_of(result) == {0: (1, 4, 6)}


def test_noise_is_measured_and_the_order_found() -> None:
    x_NW = draw(30_000, 8, seed=1)
    y_NL = x_NW.cumsum(axis=1)[:, 1:] % 7
    rng = np.random.default_rng(2)
    noisy_NL = np.where(rng.random(y_NL.shape) < 0.08, rng.integers(7, size=y_NL.shape), y_NL)
    result = mined(encoded(x_NW, noisy_NL))
    assert list(result.determinants) == list(range(7))
    assert result.noise == pytest.approx(0.08 * 6 / 7, abs=0.02)


def test_variable_length() -> None:
    result, ratio = of_task("relu", "5-10")
    assert ratio == 1
    assert not result.open
    result, ratio = of_task("random:family=chain,seed=3,noise=0", "5-8")
    assert ratio == 1
    assert not result.open


# -- unusual data


def test_constants_and_copies() -> None:
    x_NW = draw(2000, 3)
    y_NL = np.stack([np.full(2000, 4), x_NW[:, 2]], axis=1)
    assert positions_of(mined(encoded(x_NW, y_NL))) == {0: (), 1: (2,)}


def test_nothing_is_found_in_random_targets() -> None:
    for tokens in (2, 7, 40):
        values_NP = draw(20_000, 14, tokens=tokens)
        result = mined(encoded(values_NP[:, :7], values_NP[:, 7:]))
        assert result.determinants == {}
        assert result.open == list(range(7))


def test_a_random_target_stays_open_beside_others_that_are_determined() -> None:
    values_NP = draw(10_000, 4)
    y_NL = np.stack([values_NP[:, 3], (values_NP[:, 0] + values_NP[:, 1]) % 7], axis=1)
    result = mined(encoded(values_NP[:, :3], y_NL))
    assert positions_of(result) == {1: (0, 1)}
    assert result.open == [0]


def test_repeated_rows_are_no_evidence() -> None:
    values_NP = np.repeat(draw(40, 12, tokens=9), 50, axis=0)
    result = mined(encoded(values_NP[:, :8], values_NP[:, 8:]))
    assert result.determinants == {}


def test_few_samples_of_many_tokens_determine_nothing() -> None:
    """Hardly any two samples agree anywhere: that is no evidence."""
    values_NP = draw(500, 8, tokens=5000)
    assert mined(encoded(values_NP[:, :4], values_NP[:, 4:])).determinants == {}


def test_thousands_of_tokens() -> None:
    x_NW = draw(50_000, 3, tokens=3000)
    result = mined(encoded(x_NW, np.stack([x_NW[:, 1], x_NW[:, 1] * 7 % 3001], axis=1)))
    assert result.determinants[0].positions == (1,)
    assert not result.open


@pytest.mark.parametrize("samples", [1, 2])
def test_hardly_any_samples(samples: int) -> None:
    values_NP = draw(samples, 5, tokens=7)
    result = mined(encoded(values_NP[:, :3], values_NP[:, 3:]))
    assert all(not one.positions for one in result.determinants.values())


def test_no_inputs() -> None:
    y_NL = draw(5000, 2)
    result = mined(encoded(np.zeros((5000, 0), dtype=np.int64), np.stack([y_NL[:, 0], y_NL[:, 0]], axis=1)))
    assert result.inputs == 0
    assert set(result.open) | set(result.determinants) == {0, 1}


def test_the_same_result_whatever_the_number_of_threads() -> None:
    splits = task_splits(make_task("random:family=sums,seed=13", 8), train=20_000, validation=2, test=2).splits
    train = encode(splits.train, input_width=splits.input_width, target_width=splits.target_width)
    threads = torch.get_num_threads()
    try:
        results = []
        for number in (1, 2):
            torch.set_num_threads(number)
            results.append(mined(train, seed=5))
    finally:
        torch.set_num_threads(threads)
    assert results[0] == results[1]
    assert list(results[0].determinants) == list(results[1].determinants)
