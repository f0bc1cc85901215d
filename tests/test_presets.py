import inspect

import pytest

from genorder.presets import DISCOVERIES, EXPLORATIONS, PRESETS, DataSize
from genorder.settings import resolve, resolve_discovery, resolve_exploration


@pytest.mark.parametrize(
    ("preset", "layers", "heads", "width", "feedforward", "samples", "steps", "rate"),
    [
        ("paper", 6, 8, 512, 2048, 100_000, 7_813, 5e-5),
        ("paper-prod", 12, 12, 768, 3072, 1_000_000, 234_375, 5e-5),
        ("paper-delay", 6, 1, 128, 512, 100_000, 7_813, 5e-4),
    ],
)
def test_paper_is_the_paper(
    preset: str, layers: int, heads: int, width: int, feedforward: int, samples: int, steps: int, rate: float
) -> None:
    config = resolve(preset)
    model = config.model
    assert (model.layers, model.heads, model.width, model.feedforward) == (layers, heads, width, feedforward)
    assert config.samples.train == samples
    assert config.training.batch_size == 128
    assert config.training.learning_rate == rate
    assert config.training.steps == steps  # ten epochs, of multiplication thirty


@pytest.mark.parametrize(
    ("preset", "batch", "steps", "rate"),
    [("paper", 128, 782, 5e-5), ("paper-prod", 128, 782, 5e-5), ("paper-delay", 32, 3_125, 5e-4)],
)
def test_the_paper_explores_for_one_epoch(preset: str, batch: int, steps: int, rate: float) -> None:
    config = resolve_exploration(preset)
    training = config.profiler.training
    assert config.samples.train == 100_000
    assert (training.batch_size, training.steps, training.learning_rate) == (batch, steps, rate)


def test_cpu_is_as_measured() -> None:
    config = resolve_discovery("cpu")
    model, training = config.final.model, config.final.training
    assert (model.width, model.heads, model.dropout) == (128, 4, 0.0)
    assert (training.steps, training.batch_size, training.learning_rate) == (40_000, 64, 1e-3)
    assert (training.warmup_steps, training.beta1, training.beta2) == (50, 0.9, 0.98)
    race = config.race
    assert (race.enabled, race.first_rung, race.growth, race.decay_share) == (True, 125, 1.25, 0.25)
    assert resolve("cpu").training.steps == 1_000  # of `genorder train`, which races nobody
    assert resolve_exploration("cpu").final == config.final


@pytest.mark.parametrize("preset", ["paper", "paper-prod", "paper-delay"])
def test_the_paper_has_no_race(preset: str) -> None:
    config = resolve_discovery(preset)
    assert not config.race.enabled
    assert config.final_run() == resolve(preset)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_knows_the_size_of_the_data_and_nothing_else(preset: str) -> None:
    for presets in (PRESETS, EXPLORATIONS, DISCOVERIES):
        assert list(inspect.signature(presets[preset]).parameters) == ["size"]
        assert presets[preset](DataSize(1_280)).samples.train == 1_280
    config = resolve(preset)
    assert config.training.warmup_steps < config.training.steps


@pytest.mark.parametrize("preset", DISCOVERIES)
def test_a_discovery_is_the_same_whether_the_number_of_samples_is_the_default_or_counted(preset: str) -> None:
    default = resolve_discovery(preset)
    assert resolve_discovery(preset, train_samples=default.samples.train) == default


def test_the_most_steps_of_a_race_follow_the_length_of_a_sample() -> None:
    def most(positions: int, samples: int = 100_000) -> tuple[int, int]:
        training = resolve_discovery("cpu", train_samples=samples, positions=positions).final.training
        return training.steps, training.batch_size

    assert most(20) == (40_000, 64)
    assert most(2_001) == (781, 64)  # 100 million tokens
    assert most(20, samples=10) == (40_000, 10)
    assert resolve("paper", positions=2_001) == resolve("paper")


def test_epochs_of_the_paper_follow_the_samples() -> None:
    assert resolve("paper", train_samples=1280).training.steps == 100
    assert resolve("paper-prod", train_samples=1280).training.steps == 300
