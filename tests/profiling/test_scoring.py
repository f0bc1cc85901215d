import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from profiling_helpers import all_orders, random_data, random_model
from torch import Tensor

from genorder.data import Batch, EncodedDataset
from genorder.data.encoding import SPECIAL_TOKENS
from genorder.models import GPT, GPTConfig
from genorder.orders import Order
from genorder.profiling import RacingConfig, exact_scores, plain_scores, racing_scores, scoring
from genorder.profiling.scoring import compare_with_best, means_and_errors, ruled_out
from genorder.seeding import torch_generator

SOME = all_orders(4)[::3]
ZERO = SPECIAL_TOKENS  # what the model calls the first token of the vocabulary
STATUS = Path("/proc/self/status")


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (1, 4), (2, 2), (3, 8)])
def test_shared_prefixes_equal_the_plain_way(layers: int, heads: int, fixed: bool) -> None:
    encoded = random_data(40, fixed=fixed)
    model = random_model(encoded, layers=layers, heads=heads)
    exact, plain = exact_scores(model, encoded, SOME), plain_scores(model, encoded, SOME)
    assert_allclose(exact.losses_CN, plain.losses_CN, rtol=0, atol=1e-5)
    assert exact.lengths_N.tolist() == plain.lengths_N.tolist() == encoded.target_lengths_N.tolist()
    assert exact.scored_C.tolist() == [40] * len(SOME)
    assert np.ptp(exact.losses_CN.mean(axis=1)) > 0.01


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    "orders",
    [[SOME[3]], [SOME[3], SOME[1], SOME[3], SOME[3]], all_orders(4), all_orders(4)[::-1]],
    ids=["one", "duplicates", "all", "all backwards"],
)
def test_any_list_of_orders(orders: list[Order], fixed: bool) -> None:
    encoded = random_data(35, fixed=fixed)
    model = random_model(encoded)
    plain = plain_scores(model, encoded, orders)
    assert_allclose(exact_scores(model, encoded, orders).losses_CN, plain.losses_CN, rtol=0, atol=1e-5)


@pytest.mark.parametrize("samples", [1, 2, 33])
@pytest.mark.parametrize("targets", [1, 2, 5])
def test_any_size_of_data(samples: int, targets: int) -> None:
    encoded = random_data(samples, targets=targets)
    model, orders = random_model(encoded), all_orders(targets)[::7]
    plain = plain_scores(model, encoded, orders)
    assert_allclose(exact_scores(model, encoded, orders).losses_CN, plain.losses_CN, rtol=0, atol=1e-5)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("memory_bytes", [1, 100_000])
def test_little_memory_gives_the_same(memory_bytes: int, fixed: bool) -> None:
    encoded = random_data(40, fixed=fixed)
    model = random_model(encoded, layers=2)
    little = exact_scores(model, encoded, SOME, memory_bytes=memory_bytes)
    assert_allclose(little.losses_CN, exact_scores(model, encoded, SOME).losses_CN, rtol=0, atol=1e-5)


def test_dropout_plays_no_part() -> None:
    encoded = random_data(20)
    model = random_model(encoded)
    for block in model.blocks:
        block.dropout = 0.5
    first, second = (exact_scores(model.train(), encoded, SOME).losses_CN for _ in range(2))
    assert (first == second).all()


def test_memory_bounds_how_many_samples_walk_together(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = random_data(300)
    model = random_model(encoded)
    parts: list[int] = []
    walk = scoring.shared_prefix_losses

    def watched(model: GPT, inputs_SW: Tensor, targets_SL: Tensor, orders_CL: Tensor, stop: None) -> Tensor:
        parts.append(len(inputs_SW))
        return walk(model, inputs_SW, targets_SL, orders_CL)

    monkeypatch.setattr(scoring, "shared_prefix_losses", watched)
    exact_scores(model, encoded, SOME)
    assert parts == [250, 50]
    largest = []
    for memory_bytes in (1, 400_000, 800_000):
        parts.clear()
        exact_scores(model, encoded, SOME, memory_bytes=memory_bytes)
        assert sum(parts) == 300
        largest.append(max(parts))
    assert largest[0] == 1
    assert 1 < largest[1] < 125
    assert largest[2] in (2 * largest[1], 2 * largest[1] + 1)


def peak_memory() -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak can be measured on Linux only")
@pytest.mark.parametrize("shared", [True, False])
def test_memory_stays_within_the_bound(shared: bool) -> None:
    bound = 20_000_000
    encoded = random_data(600, inputs=12, targets=12, tokens=40)
    config = GPTConfig(layers=2, heads=4, width=64, feedforward=256)
    model = GPT(config, vocabulary=encoded.model_vocabulary, positions=25, rng=torch_generator(0))
    rng = np.random.default_rng(0)
    orders = [Order.of([*range(8), *(8 + rng.permutation(4))]) if shared else Order.random(12, rng) for _ in range(60)]
    exact_scores(model, encoded, orders[:2], memory_bytes=bound // 10)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = peak_memory()
    exact_scores(model, encoded, orders, memory_bytes=bound)
    assert peak_memory() - before < bound


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("fixed", [True, False])
def test_racing_finds_the_exact_winner_or_ties_with_it(seed: int, fixed: bool) -> None:
    encoded = random_data(300, fixed=fixed, seed=seed)
    model = random_model(encoded, seed=seed)
    orders = all_orders(4)
    exact = exact_scores(model, encoded, orders)
    racing = racing_scores(model, encoded, orders, RacingConfig())
    scored = racing.scored_C
    longest = scored.max()
    means, _ = means_and_errors(racing.losses_CN[:, :longest], racing.lengths_N[:longest])
    winner = int(means.argmin())  # infinite for those that left before
    _, differences, errors = compare_with_best(exact.losses_CN, exact.lengths_N)
    assert differences[winner] <= errors[winner]
    for candidate, count in enumerate(scored.tolist()):
        assert count in (16, 32, 64, 128, 256, 300)
        assert_allclose(racing.losses_CN[candidate, :count], exact.losses_CN[candidate, :count], rtol=0, atol=1e-5)
        assert np.isnan(racing.losses_CN[candidate, count:]).all()


def test_racing_saves_work() -> None:
    encoded = random_data(600)
    model = random_model(encoded, scale=0.6)
    scored = racing_scores(model, encoded, all_orders(4), RacingConfig()).scored_C
    assert scored.min() < 600
    assert scored.sum() < 0.8 * 24 * 600


def test_racing_keeps_what_cannot_be_told_apart() -> None:
    encoded = random_data(100)
    twins = [SOME[1], SOME[1], SOME[1]]
    racing = racing_scores(random_model(encoded), encoded, twins, RacingConfig(first_samples=10, growth=3))
    assert racing.scored_C.tolist() == [100, 100, 100]


@pytest.mark.parametrize("samples", [1, 2, 31, 32, 33])
def test_racing_on_few_samples(samples: int) -> None:
    encoded = random_data(samples)
    racing = racing_scores(random_model(encoded), encoded, SOME, RacingConfig())
    assert racing.scored_C.max() == samples


@pytest.mark.parametrize("setting", [{"first_samples": 0}, {"growth": 1}, {"error_probability": 0.0}])
def test_a_race_must_grow(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a race on growing subsets"):
        RacingConfig(**setting)


@pytest.fixture
def _not_a_number_after_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of a sample whose last emitted token is 0 is not a number, by either way of computing it."""
    walk, losses_of = scoring.shared_prefix_losses, scoring.target_losses

    def walked(model: GPT, inputs_SW: Tensor, targets_SL: Tensor, orders_CL: Tensor, stop: None) -> Tensor:
        last_CS = targets_SL.T[orders_CL[:, -1]]
        return walk(model, inputs_SW, targets_SL, orders_CL).masked_fill(last_CS == ZERO, math.nan)

    def computed(logits_BQV: Tensor, batch: Batch) -> Tensor:
        return losses_of(logits_BQV, batch).masked_fill(batch.labels_BQ[:, -2:-1] == ZERO, math.nan)

    monkeypatch.setattr(scoring, "shared_prefix_losses", walked)
    monkeypatch.setattr(scoring, "target_losses", computed)


def one_zero_target(samples: int) -> EncodedDataset:
    """The token 0 occurs once: in column 2 of the last sample."""
    encoded = random_data(samples)
    targets_NL = torch.where(encoded.targets_NL == ZERO, ZERO + 1, encoded.targets_NL)
    targets_NL[-1, 2] = ZERO
    return replace(encoded, targets_NL=targets_NL)


@pytest.mark.usefixtures("_not_a_number_after_zero")
@pytest.mark.parametrize("way", ["plain", "exact", "racing"])
def test_a_loss_that_is_not_a_number_is_infinite(way: str) -> None:
    encoded = one_zero_target(40)
    model = random_model(encoded, scale=0.1)
    orders = [Order((0, 1, 3, 2)), Order((2, 0, 1, 3)), Order((1, 0, 3, 2)), Order((0, 2, 1, 3))]
    if way == "racing":
        scores = racing_scores(model, encoded, orders, RacingConfig(error_probability=1e-9))
    else:
        scores = (plain_scores if way == "plain" else exact_scores)(model, encoded, orders)
    assert scores.scored_C[[0, 2]].tolist() == [40, 40]
    assert np.isinf(scores.losses_CN[:, -1]).tolist() == [True, False, True, False]
    assert not np.isinf(scores.losses_CN[:, :-1]).any()


def test_losses_that_are_not_finite_are_ruled_out() -> None:
    losses = np.array([[1.0, 2.0, 3.0], [math.inf, 1.0, 1.0], [math.nan, 1.0, 1.0], [1.1, 2.0, 2.9], [math.inf] * 3])
    predictions = np.array([5, 5, 5])
    assert ruled_out(losses, predictions, 0.01).tolist() == [False, True, True, False, True]
    means, differences, _ = compare_with_best(losses, predictions)
    assert differences[0] == 0
    assert np.isfinite(means).tolist() == [True, False, False, True, False]
    means, errors = means_and_errors(losses, predictions)
    assert np.isinf(means).tolist() == np.isinf(errors).tolist() == [False, True, True, False, True]


def test_if_none_is_finite_one_goes_on() -> None:
    losses = np.full((3, 4), math.inf)
    assert ruled_out(losses, np.full(4, 5), 0.01).tolist() == [False, True, True]


def test_comparison_with_the_best_in_plain_arithmetic() -> None:
    rng = np.random.default_rng(0)
    losses, predictions = rng.random((6, 50)), rng.integers(2, 9, 50)
    means, differences, errors = compare_with_best(losses, predictions)
    for candidate in range(6):
        # Over all predictions, so a sample counts by how many it has.
        assert means[candidate] == pytest.approx(np.average(losses[candidate], weights=predictions))
    best = int(means.argmin())
    scaled = predictions / predictions.mean()
    for candidate in range(6):
        pairs = [scaled[n] * (losses[candidate, n] - losses[best, n]) for n in range(50)]
        assert differences[candidate] == pytest.approx(sum(pairs) / 50)
        variance = sum((pair - sum(pairs) / 50) ** 2 for pair in pairs) / 49
        assert errors[candidate] == pytest.approx(math.sqrt(variance / 50))
    assert differences[best] == errors[best] == 0


def test_standard_error_of_a_loss() -> None:
    losses = np.array([[1.0, 2.0, 4.0, 5.0]])
    means, errors = means_and_errors(losses, np.array([3, 3, 3, 3]))
    assert means[0] == 3
    assert errors[0] == pytest.approx(math.sqrt(10 / 3) / 2)
    means, errors = means_and_errors(losses, np.array([1, 2, 1, 4]))
    assert means[0] == pytest.approx((1 + 4 + 4 + 20) / 8)
    constant = means_and_errors(np.full((1, 4), 2.0), np.array([1, 2, 1, 4]))
    assert constant[0].tolist() == [2.0]
    assert constant[1].tolist() == [0.0]
    assert math.isinf(means_and_errors(losses[:, :1], np.array([3]))[1][0])


def test_the_t_test_by_hand() -> None:
    best = np.zeros(10)
    other = np.array([0.5, 0.7] * 5)  # mean 0.6, standard error 0.0333: 18 of them
    noisy = np.array([1.6, -0.4] * 5)  # the same mean, standard error 0.333: 1.8 of them
    predictions = np.full(10, 4)
    losses = np.stack([best, other, noisy])
    assert ruled_out(losses, predictions, 0.05).tolist() == [False, True, False]  # the bound is 1.83
    assert ruled_out(losses, predictions, 0.06).tolist() == [False, True, True]
    assert not ruled_out(losses[:, :1], predictions[:1], 0.05).any()
