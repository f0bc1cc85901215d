"""Which orders remain and when a race ends, for made-up outcomes."""

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from genorder.race import RaceConfig, expected_steps
from genorder.race.rules import Outcome, decay_steps, dropped, has_converged, outlook, rung_ends

CONFIG = RaceConfig(patience=2, patient_steps=0)
SAMPLES = 200


def spread(mean: float, seed: int = 0, *, width: float = 0.2) -> NDArray[np.float64]:
    """Losses of the samples, of exactly this mean."""
    noise_N = np.random.default_rng(seed).normal(0.0, width, SAMPLES)
    return mean + noise_N - noise_N.mean()


def outcome(
    *means: float, steps: int = 100, success: float = 0.0, seed: int = 0, weights: NDArray[np.float64] | None = None
) -> Outcome:
    """Of one training for each mean; infinite: it diverged."""
    losses = [
        np.full(SAMPLES, math.inf) if math.isinf(mean) else spread(mean, seed + n) for n, mean in enumerate(means)
    ]
    exact_N = np.arange(SAMPLES) < success * SAMPLES
    weights_N = np.ones(SAMPLES) if weights is None else weights
    return Outcome(steps, np.stack(losses), np.stack([exact_N] * len(means)), weights_N)


UNIGRAM = outcome(2.0, seed=50)


@pytest.mark.parametrize(
    ("settings", "steps", "ends"),
    [
        ({}, 800, [125, 157, 197, 247, 309, 387, 484, 605, 640]),
        ({"first_rung": 3, "growth": 1.5}, 8, [3, 5, 6]),  # a quarter more for the decay: 6 + 2
        ({"first_rung": 3, "growth": 2.0, "decay_share": 1.0}, 20, [3, 6, 10]),
        ({"first_rung": 100}, 8, [6]),
        ({"first_rung": 1, "growth": 1.01}, 5, [1, 2, 3, 4]),  # always a step more
        ({"first_rung": 3}, 1, [1]),
    ],
)
def test_the_rungs_leave_room_for_the_decay(settings: dict[str, Any], steps: int, ends: list[int]) -> None:
    config = RaceConfig(**settings)
    assert rung_ends(config, steps) == ends
    last = ends[-1] + decay_steps(config, ends[-1], steps)
    assert last <= max(steps, 2)  # the least of all: one step, and one in which the rate decays


@pytest.mark.parametrize(
    ("share", "stable", "steps", "expected"),
    [(0.25, 1000, 20_000, 250), (0.25, 10, 20_000, 3), (0.25, 6, 8, 2), (0.25, 8, 8, 1), (1.0, 3, 4, 1)],
)
def test_the_decay_takes_a_share_of_the_steps_before_it(share: float, stable: int, steps: int, expected: int) -> None:
    assert decay_steps(RaceConfig(decay_share=share), stable, steps) == expected


def test_steps_to_expect_of_a_race() -> None:
    """All orders for twice the first rung, then two go on; for each seed."""
    config = RaceConfig(first_rung=4)
    assert rung_ends(config, 20)[-1] == 16
    assert expected_steps(config, 20, 5) == 5 * 8 + 2 * 8
    assert expected_steps(config, 20, 1) == 16
    assert expected_steps(config, 5, 3) == 3 * 4  # one rung only
    assert expected_steps(RaceConfig(first_rung=4, seeds=3), 20, 5) == 3 * (5 * 8 + 2 * 8)


@pytest.mark.parametrize(
    ("loss", "number", "end", "orders"),
    [(1.0, 0, 8, 2), (1.5, 0, 16, 2), (1.9, 0, 16, 2), (2.0, 0, 9, None), (2.5, 1, 9, None), (2.0, 3, 16, None)],
)
def test_what_is_expected_of_a_race(loss: float, number: int, end: int, orders: int | None) -> None:
    """What is left is learnt as fast as so far, at most to the last rung; if nothing is learnt, it is given up."""
    config = RaceConfig(patience=1, patient_steps=7)
    expected = outlook(outcome(loss, steps=4), number, [4, 6, 9, 14, 16], UNIGRAM, config)
    assert (expected.end, expected.orders) == (pytest.approx(end), orders)


def test_no_order_is_dropped_before_the_best_beats_the_unigram_baseline() -> None:
    orders = [outcome(1.999, seed=1), outcome(3.0, seed=2), outcome(2.5, seed=3)]
    assert dropped(orders, UNIGRAM, CONFIG) == []
    orders[0] = outcome(1.5, seed=1)
    assert dropped(orders, UNIGRAM, CONFIG) == [1, 2]


@pytest.mark.parametrize(
    ("means", "margin", "expected"),
    [
        ((1.0, 1.08, 1.12), 0.1, [2]),  # the best has learnt 1.0 of the 2.0
        ((1.0, 1.08, 1.12), 0.2, []),
        ((1.0, 1.08, 1.12), 0.05, [1, 2]),
        ((1.12, 1.0, 1.08), 0.1, [0]),
        ((1.8, 1.81, 1.83), 0.1, [2]),  # 0.2 learnt
        ((1.0,), 0.1, []),
    ],
)
def test_an_order_that_is_behind_by_more_than_the_margin_is_dropped(
    means: tuple[float, ...], margin: float, expected: list[int]
) -> None:
    """By the same noise, each of them, so that every difference is significant."""
    config = CONFIG.model_copy(update={"margin": margin})
    assert dropped([outcome(mean) for mean in means], UNIGRAM, config) == expected


def test_a_difference_that_may_be_chance_drops_no_order() -> None:
    config = CONFIG.model_copy(update={"margin": 0.0})
    ahead, behind = outcome(1.0, seed=1), outcome(1.02, seed=2)
    assert dropped([ahead, behind], UNIGRAM, config) == []
    assert dropped([ahead, outcome(1.02, seed=1)], UNIGRAM, config) == [1]  # sample by sample the same, but for 0.02
    assert dropped([ahead, behind], UNIGRAM, config.model_copy(update={"significance": 0.49})) == [1]


@pytest.mark.parametrize(
    ("successes", "means", "expected"),
    [
        ((0.9, 0.7), (1.0, 1.05), [1]),  # the losses are within the margin
        ((0.9, 0.85), (1.0, 1.05), []),
        ((0.05, 0.0), (1.0, 1.05), []),
        ((0.7, 0.9), (1.0, 1.05), []),  # the lowest loss stays, whatever it solves
    ],
)
def test_an_order_that_solves_clearly_fewer_samples_is_dropped(
    successes: tuple[float, float], means: tuple[float, float], expected: list[int]
) -> None:
    orders = [outcome(mean, success=success) for mean, success in zip(means, successes, strict=True)]
    assert dropped(orders, UNIGRAM, CONFIG) == expected


def test_with_several_seeds_an_order_is_dropped_only_if_it_is_behind_for_each() -> None:
    best = outcome(1.0, 1.0)
    assert dropped([best, outcome(1.6, 1.6)], UNIGRAM, CONFIG) == [1]
    assert dropped([best, outcome(2.0, 1.05)], UNIGRAM, CONFIG) == []
    assert dropped([outcome(1.0, 1.9), outcome(1.6, 1.6)], UNIGRAM, CONFIG) == []


@pytest.mark.parametrize("learnt", [True, False])
def test_a_diverged_order_is_dropped_at_once(learnt: bool) -> None:
    best = outcome(1.0 if learnt else 2.0)
    assert dropped([outcome(math.inf), best, outcome(math.inf)], UNIGRAM, CONFIG) == [0, 2]


def test_if_all_diverged_none_is_dropped() -> None:
    assert dropped([outcome(math.inf), outcome(math.inf)], UNIGRAM, CONFIG) == []


def test_loss_and_error_count_target_tokens() -> None:
    lengths_N = np.random.default_rng(5).integers(1, 5, SAMPLES).astype(float)
    made = outcome(1.0, 1.4, weights=lengths_N / lengths_N.mean())
    losses_N = made.losses_SN.mean(axis=0)
    assert made.loss == pytest.approx(np.average(losses_N, weights=lengths_N))
    parts_N = lengths_N / lengths_N.mean() * (losses_N - made.loss)
    assert made.standard_error == pytest.approx(parts_N.std(ddof=1) / math.sqrt(SAMPLES))
    assert outcome(1.0, success=0.3).success_rate == pytest.approx(0.3)
    assert outcome(1.0).finite


def test_a_diverged_order_has_an_infinite_loss_and_error() -> None:
    made = outcome(1.0, math.inf)
    assert (made.finite, made.loss, made.standard_error) == (False, math.inf, math.inf)


def history(*means: float, success: tuple[float, ...] = (), first: int = 100) -> list[Outcome]:
    rates = success or (0.0,) * len(means)
    return [
        outcome(mean, steps=first * (n + 1), success=rate)
        for n, (mean, rate) in enumerate(zip(means, rates, strict=True))
    ]


@pytest.mark.parametrize(
    ("means", "converged"),
    [
        ((1.0,), False),
        ((1.0, 1.0), False),  # too few rungs
        ((1.0, 1.0, 1.0), True),
        ((1.0, 1.1, 1.2), True),  # it overfits
        ((1.0, 0.9, 1.0), False),  # better at the first of the two
        ((1.0, 1.1, 0.9), False),
        ((1.0, 0.9, 0.8, 0.8), False),
        ((1.0, 0.9, 0.8, 0.8, 0.8), True),
    ],
)
def test_a_race_ends_when_the_best_has_not_improved_for_some_rungs(means: tuple[float, ...], converged: bool) -> None:
    assert has_converged(history(*means), UNIGRAM, CONFIG) is converged


def test_more_samples_that_are_right_are_an_improvement() -> None:
    """Also where the loss stays."""
    assert has_converged(history(1.0, 1.0, 1.0, success=(0.2, 0.2, 0.2)), UNIGRAM, CONFIG)
    assert not has_converged(history(1.0, 1.0, 1.0, success=(0.2, 0.2, 0.3)), UNIGRAM, CONFIG)
    assert has_converged(history(1.0, 1.0, 1.0, success=(0.2, 0.2, 0.21)), UNIGRAM, CONFIG)  # two of 200 samples


def test_what_falls_to_the_baseline_and_no_further_is_no_improvement() -> None:
    assert has_converged(history(2.6, 2.3, 2.1, 2.0), UNIGRAM, CONFIG)
    assert not has_converged(history(2.6, 2.3, 2.1, 1.8), UNIGRAM, CONFIG)


def test_no_race_is_given_up_early() -> None:
    flat = history(1.0, 1.0, 1.0, 1.0)
    assert not has_converged(flat[:3], UNIGRAM, CONFIG.model_copy(update={"patient_steps": 400}))
    assert has_converged(flat, UNIGRAM, CONFIG.model_copy(update={"patient_steps": 400}))
    assert not has_converged(flat, UNIGRAM, CONFIG.model_copy(update={"patience": 4}))


def test_configuration_from_json() -> None:
    config = RaceConfig(first_rung=7, seeds=2, margin=0.3)
    assert RaceConfig.model_validate(json.loads(config.model_dump_json())) == config


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_rung": 0}, {"growth": 1.0}, {"seeds": 0}, {"significance": 0.5}, {"significance": 0.0},
        {"margin": -0.1}, {"patience": 0}, {"patient_steps": -1}, {"solved": 0.0}, {"solved": 1.1},
        {"check_steps": 0}, {"decay_share": 0.0}, {"round_steps": [1, 2]},
    ],
)  # fmt: skip
def test_refuses_what_makes_no_race(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RaceConfig(**wrong)
