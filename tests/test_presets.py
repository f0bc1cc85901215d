import pytest

from genorder.presets import DISCOVERIES, PRESETS, family_of
from genorder.settings import resolve


@pytest.mark.parametrize(
    ("family", "layers", "heads", "width", "feedforward", "samples", "steps", "rate"),
    [
        ("recurrence", 6, 8, 512, 2048, 100_000, 7_813, 5e-5),
        ("prod", 12, 12, 768, 3072, 1_000_000, 234_375, 5e-5),
        ("delay", 6, 1, 128, 512, 100_000, 7_813, 5e-4),
    ],
)
def test_paper_is_the_paper(
    family: str, layers: int, heads: int, width: int, feedforward: int, samples: int, steps: int, rate: float
) -> None:
    config = resolve("paper", family)  # type: ignore[arg-type]
    model = config.model
    assert (model.layers, model.heads, model.width, model.feedforward) == (layers, heads, width, feedforward)
    assert config.samples.train == samples
    assert config.training.batch_size == 128
    assert config.training.learning_rate == rate
    assert config.training.steps == steps  # ten epochs, of Prod thirty


def test_cpu_is_as_measured() -> None:
    config = resolve("cpu", "recurrence")
    assert (config.model.width, config.model.heads, config.model.dropout) == (128, 4, 0.0)
    training = config.training
    assert (training.batch_size, training.learning_rate, training.warmup_steps) == (128, 1e-3, 50)
    assert (training.beta1, training.beta2) == (0.9, 0.98)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("family", ["recurrence", "prod", "delay"])
def test_every_preset_fits_every_family(preset: str, family: str) -> None:
    config = resolve(preset, family)  # type: ignore[arg-type]
    assert config.training.warmup_steps < config.training.steps
    assert resolve(preset, family, train_samples=1280).samples.train == 1280  # type: ignore[arg-type]


def test_epochs_of_the_paper_follow_the_samples() -> None:
    assert resolve("paper", "recurrence", train_samples=1280).training.steps == 100
    assert resolve("paper", "prod", train_samples=1280).training.steps == 300


@pytest.mark.parametrize(
    ("task", "family"),
    [
        ("relu", "recurrence"),
        (None, "recurrence"),
        ("prod", "prod"),
        ("delay-square", "delay"),
        ("index", "recurrence"),
    ],
)
def test_family_of_a_task(task: str | None, family: str) -> None:
    assert family_of(task) == family


def test_on_delay_networks_the_last_round_of_the_race_trains_as_the_final_training_does() -> None:
    config = DISCOVERIES["cpu"]("delay", None)
    raced = config.race.training.model_copy(update={"steps": config.race.round_steps[-1]})
    final = config.final.training
    assert (raced.steps, raced.batch_size, raced.learning_rate) == (final.steps, final.batch_size, final.learning_rate)
