import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from profiling_helpers import FORWARD, REVERSE, all_orders, relu_splits

from genorder.errors import GenorderError, Interrupted
from genorder.execution import StopRequest
from genorder.models import GPTConfig
from genorder.orders import Order
from genorder.profiling import Profile, ProfilerConfig, Scores, profile_orders
from genorder.training import Progress, TrainingConfig

STEPS = 60
SHORT = ProfilerConfig(
    model=GPTConfig(layers=1, heads=2, width=16, feedforward=32, dropout=0.1),
    training=TrainingConfig(steps=STEPS, batch_size=32, learning_rate=5e-3, warmup_steps=5),
    curve_points=3,
    curve_samples=20,
)


def short_profile(length: str = "4", seed: int = 0, config: ProfilerConfig = SHORT, **options: Any) -> Profile:
    train, validation = relu_splits(length)
    return profile_orders(train, validation, all_orders(4), config, seed=seed, **options)


def assert_identical(first: Profile, second: Profile) -> None:
    """In all but the time they took."""
    timeless = [{k: v for k, v in p.to_dict().items() if not k.endswith("seconds")} for p in (first, second)]
    assert timeless[0] == timeless[1]


@pytest.fixture(scope="module")
def undisturbed() -> Profile:
    return short_profile()


@pytest.mark.parametrize("seed", [0, 1])
def test_forward_beats_reverse(seed: int) -> None:
    """Of these two. With all 24 in the mixture, four targets are too few to tell which order a sample has."""
    train, validation = relu_splits()
    config = ProfilerConfig(
        model=GPTConfig(layers=1, heads=2, width=32, feedforward=64),
        training=TrainingConfig(steps=300, batch_size=64, learning_rate=5e-3, warmup_steps=20, beta2=0.98),
    )
    profile = profile_orders(train, validation, [REVERSE, FORWARD], config, seed=seed)
    assert profile.best == FORWARD
    assert profile.tied.tolist() == [False, True]


def test_what_a_profile_holds(undisturbed: Profile) -> None:
    assert undisturbed.orders == all_orders(4)
    assert undisturbed.samples.tolist() == [200] * 24
    assert np.isfinite(undisturbed.losses).all()
    assert (undisturbed.errors > 0).all()
    assert undisturbed.curve_steps == [15, 30, 45]
    assert [len(point) for point in undisturbed.curves] == [24, 24, 24]
    assert np.mean(undisturbed.curves[0]) > np.mean(undisturbed.curves[2])
    assert undisturbed.train_seconds > 0
    assert undisturbed.score_seconds > 0
    best = int(undisturbed.ranking[0])
    assert undisturbed.best == undisturbed.orders[best]
    assert undisturbed.losses[best] == undisturbed.losses.min()
    assert undisturbed.tied[best]


def test_same_seed_same_profile(undisturbed: Profile) -> None:
    assert_identical(short_profile(), undisturbed)
    assert not np.array_equal(short_profile(seed=1).losses, undisturbed.losses)


def test_looking_at_the_curve_changes_nothing(undisturbed: Profile) -> None:
    unwatched = short_profile(config=SHORT.model_copy(update={"curve_points": 0}))
    assert unwatched.curves == unwatched.curve_steps == []
    assert np.array_equal(unwatched.losses, undisturbed.losses)


@pytest.mark.parametrize("stops", [[0], [20], [40], [0, 20, 40]])
def test_interrupted_and_continued_gives_the_same(tmp_path: Path, stops: list[int], undisturbed: Profile) -> None:
    folder = tmp_path / "profile"
    for stop_at in stops:
        stop = StopRequest()
        stop.requested = stop_at == 0

        def on_progress(progress: Progress, stop: StopRequest = stop, stop_at: int = stop_at) -> None:
            stop.requested = progress.step >= stop_at

        with pytest.raises(Interrupted, match=f"stopped at step {stop_at + 1} of {STEPS}"):
            short_profile(folder=folder, stop=stop, on_progress=on_progress)
    assert_identical(short_profile(folder=folder), undisturbed)


@pytest.mark.parametrize("exact", [True, False])
def test_interrupted_while_candidates_are_scored(tmp_path: Path, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SHORT.model_copy(update={"exact": exact})
    stop = StopRequest()

    def on_progress(progress: Progress) -> None:
        stop.requested = progress.step == STEPS

    with pytest.raises(Interrupted, match="while candidates were scored"):
        short_profile(config=config, folder=tmp_path, stop=stop, on_progress=on_progress)
    whole = short_profile(config=config)
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: pytest.fail("trained again"))
    assert_identical(short_profile(config=config, folder=tmp_path), whole)


def test_a_folder_changes_nothing(tmp_path: Path, undisturbed: Profile) -> None:
    assert_identical(short_profile(folder=tmp_path / "new" / "profile"), undisturbed)


def test_racing_agrees_on_the_best(undisturbed: Profile) -> None:
    raced = short_profile(config=SHORT.model_copy(update={"exact": False}))
    best = undisturbed.orders.index(raced.best)
    assert undisturbed.tied[best]
    assert set(raced.samples.tolist()) <= {32, 64, 128, 200}


@pytest.mark.parametrize("exact", [True, False])
def test_variable_length(exact: bool) -> None:
    profile = short_profile("2-4", config=SHORT.model_copy(update={"exact": exact}))
    assert np.isfinite(profile.losses).all()
    # A short sample leaves out the last targets; the orders still differ on the long ones.
    assert len(set(profile.losses.tolist())) > 12


def test_one_order() -> None:
    train, validation = relu_splits()
    profile = profile_orders(train, validation, [REVERSE], SHORT, seed=0)
    assert profile.best == REVERSE
    assert profile.tied.tolist() == [True]


def test_a_run_that_diverges_says_so() -> None:
    absurd = SHORT.training.model_copy(update={"learning_rate": 1e38})
    with pytest.raises(GenorderError, match=r"the loss became (nan|inf) at step"):
        short_profile(config=SHORT.model_copy(update={"training": absurd}))


@pytest.mark.parametrize(
    ("steps", "points", "expected"),
    [(60, 3, [15, 30, 45]), (600, 5, [100, 200, 300, 400, 500]), (3, 5, [1, 2]), (1, 5, []), (10, 0, [])],
)
def test_curve_steps(steps: int, points: int, expected: list[int]) -> None:
    training = SHORT.training.model_copy(update={"steps": steps})
    config = SHORT.model_copy(update={"training": training, "curve_points": points})
    assert config.curve_steps() == expected


def test_round_trip(undisturbed: Profile) -> None:
    again = Profile.from_dict(json.loads(json.dumps(undisturbed.to_dict(), allow_nan=False)))
    assert again.to_dict() == undisturbed.to_dict()
    assert again.orders == undisturbed.orders
    assert np.array_equal(again.ranking, undisturbed.ranking)


def test_round_trip_of_losses_that_are_not_finite() -> None:
    scores = Scores(np.array([[1.0, 2.0], [math.inf, 1.0], [0.5, 0.7]]), np.array([5, 5]))
    profile = Profile.from_scores(all_orders(4)[:3], scores, curve_steps=[7], curves=[[1.0, math.inf, 2.0]])
    again = Profile.from_dict(json.loads(json.dumps(profile.to_dict(), allow_nan=False)))
    for name in ("losses", "errors", "tied", "samples", "ranking"):
        assert np.array_equal(getattr(again, name), getattr(profile, name)), name
        assert getattr(again, name).dtype == getattr(profile, name).dtype
    assert again.curves == [[1.0, math.inf, 2.0]]
    assert again.curve_steps == [7]


def test_ranking_puts_the_infinite_last_and_marks_ties() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(50)
    losses = np.stack([base + 1, base, base + rng.normal(0, 0.01, 50) + 1e-4, base, np.full(50, math.inf)])
    losses[3, 7] = math.inf
    profile = Profile.from_scores(all_orders(4)[:5], Scores(losses, np.full(50, 5)))
    assert profile.ranking.tolist() == [1, 2, 0, 3, 4]
    assert profile.tied.tolist() == [False, True, True, False, False]
    assert np.isinf(profile.losses).tolist() == np.isinf(profile.errors).tolist() == [False] * 3 + [True] * 2
    assert profile.errors[0] == pytest.approx(base.std(ddof=1) / math.sqrt(50))


def test_none_is_tied_if_none_is_finite() -> None:
    profile = Profile.from_scores(all_orders(4)[:2], Scores(np.full((2, 5), math.inf), np.full(5, 5)))
    assert profile.tied.tolist() == [False, False]
    assert profile.ranking.tolist() == [0, 1]


def test_ranking_of_a_race_goes_by_how_long_each_stayed() -> None:
    losses = np.array([[0.1, 0.1, math.nan, math.nan], [0.5, 0.5, 0.6, 0.5], [0.2, 0.1, math.nan, math.nan]])
    profile = Profile.from_scores(all_orders(4)[:3], Scores(losses, np.full(4, 5)))
    assert profile.samples.tolist() == [2, 4, 2]
    assert profile.ranking.tolist() == [1, 0, 2]
    assert profile.tied.tolist() == [False, True, False]
    diverged = replace(profile, losses=np.array([0.1, math.inf, 0.15]))
    assert diverged.ranking.tolist() == [0, 2, 1]


def test_samples_count_by_their_predictions() -> None:
    profile = Profile.from_scores([FORWARD], Scores(np.array([[1.0, 2.0]]), np.array([2, 6])))
    assert profile.losses[0] == pytest.approx((2 * 1 + 6 * 2) / 8)


def test_orders_may_be_any_sequence(undisturbed: Profile) -> None:
    train, validation = relu_splits()
    orders: tuple[Order, ...] = tuple(all_orders(4))
    assert_identical(profile_orders(train, validation, orders, SHORT, seed=0), undisturbed)
