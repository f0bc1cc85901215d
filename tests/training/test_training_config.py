import pytest

from genorder.training import TrainingConfig


def config(**changes: float) -> TrainingConfig:
    return TrainingConfig(**{"steps": 100, "batch_size": 8, "learning_rate": 0.4, "warmup_steps": 10, **changes})


def test_warms_up_to_the_peak_then_decays_to_zero() -> None:
    rates = [config().learning_rate_at(step) for step in range(101)]
    assert rates[:10] == pytest.approx([0.04 * number for number in range(1, 11)])
    assert max(rates) == rates[9] == rates[10] == 0.4
    assert rates[10:] == pytest.approx([0.4 * (100 - step) / 90 for step in range(10, 101)])
    assert rates[55] == pytest.approx(0.2)
    assert rates[99] > 0
    assert rates[100] == 0


def test_the_rate_may_be_stable_before_it_decays() -> None:
    rates = [config(stable_steps=60).learning_rate_at(step) for step in range(101)]
    assert rates[:10] == pytest.approx([0.04 * number for number in range(1, 11)])
    assert set(rates[9:61]) == {0.4}
    assert rates[60:] == pytest.approx([0.4 * (100 - step) / 40 for step in range(60, 101)])
    assert {config(stable_steps=100).learning_rate_at(step) for step in range(10, 100)} == {0.4}


def test_stable_steps_count_from_the_first_step() -> None:
    """The warm-up is a part of them."""
    shorter = config(stable_steps=5)
    assert [shorter.learning_rate_at(step) for step in range(100)] == [
        config().learning_rate_at(step) for step in range(100)
    ]


def test_without_warm_up_the_first_step_has_the_peak() -> None:
    assert config(warmup_steps=0).learning_rate_at(0) == 0.4
    assert config(warmup_steps=0).learning_rate_at(50) == pytest.approx(0.2)
    assert config(steps=1, warmup_steps=0).learning_rate_at(0) == 0.4


@pytest.mark.parametrize("warmup", [100, 200])
def test_a_run_no_longer_than_its_warm_up_rises_all_the_way(warmup: int) -> None:
    rates = [config(warmup_steps=warmup).learning_rate_at(step) for step in range(100)]
    assert rates == pytest.approx([0.4 * (step + 1) / warmup for step in range(100)])


def test_defaults_are_those_of_adamw_in_the_paper() -> None:
    made = TrainingConfig(steps=1, batch_size=1, learning_rate=1e-3)
    assert (made.warmup_steps, made.beta1, made.beta2, made.weight_decay, made.clip_norm) == (
        0,
        0.9,
        0.999,
        0.01,
        1,
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"batch_size": 0},
        {"learning_rate": 0},
        {"learning_rate": float("nan")},
        {"learning_rate": float("inf")},
        {"warmup_steps": -1},
        {"stable_steps": -1},
        {"beta1": 1},
        {"beta2": -0.1},
        {"weight_decay": -1},
        {"weight_decay": float("inf")},
        {"clip_norm": 0},
        {"clip_norm": float("nan")},
        {"unknown": 1},
    ],
)
def test_refuses_what_makes_no_training(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        config(**wrong)


def test_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        config().steps = 3  # type: ignore[misc]
