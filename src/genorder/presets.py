"""Complete, named configurations: `cpu` for a laptop; `paper`, `paper-prod` and `paper-delay` for a GPU.

Each preset is a function of the number of training samples alone (None: the preset's own number), and returns the whole
configuration; nothing is filled in later. No preset knows which task or file the samples come from: the user chooses.
"""

import math
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from genorder.dependencies.mining import MiningConfig
from genorder.models import GPTConfig
from genorder.profiling import AnyOrderConfig, ProfilerConfig
from genorder.race import RaceConfig, Recipe
from genorder.training import TrainingConfig


class SampleSizes(BaseModel):
    """How many samples of a built-in task each split holds; of a user's data, validation and test."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    train: int = Field(ge=1)
    validation: int = Field(ge=1)
    test: int = Field(ge=1)


class RunConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    samples: SampleSizes
    model: GPTConfig
    training: TrainingConfig


def cpu(train_samples: int | None = None) -> RunConfig:
    """Teaches the same lesson as `paper` in minutes on two CPU cores."""
    return RunConfig(
        samples=SampleSizes(train=train_samples or 100_000, validation=1_000, test=1_000),
        model=GPTConfig(layers=2, heads=4, width=128, feedforward=512, dropout=0.0),
        training=TrainingConfig(
            steps=1_000, batch_size=128, learning_rate=1e-3, warmup_steps=50, beta2=0.98, clip_norm=1.0
        ),
    )


def paper(train_samples: int | None = None) -> RunConfig:
    """The paper's final training for its recurrences: ten epochs of 100,000 samples."""
    return _paper_run(
        train_samples or 100_000,
        GPTConfig(layers=6, heads=8, width=512, feedforward=2048, dropout=0.1),
        epochs=10,
        learning_rate=5e-5,
    )


def paper_prod(train_samples: int | None = None) -> RunConfig:
    """The paper's final training for the multiplication of integers: thirty epochs of 1,000,000 samples."""
    return _paper_run(
        train_samples or 1_000_000,
        GPTConfig(layers=12, heads=12, width=768, feedforward=3072, dropout=0.1),
        epochs=30,
        learning_rate=5e-5,
    )


def paper_delay(train_samples: int | None = None) -> RunConfig:
    """The paper's final training for its delay networks: ten epochs of 100,000 samples, a small model."""
    return _paper_run(
        train_samples or 100_000,
        GPTConfig(layers=6, heads=1, width=128, feedforward=512, dropout=0.1),
        epochs=10,
        learning_rate=5e-4,
    )


def _paper_run(samples: int, model: GPTConfig, *, epochs: int, learning_rate: float) -> RunConfig:
    return RunConfig(
        samples=SampleSizes(train=samples, validation=1_000, test=1_000),
        model=model,
        training=TrainingConfig(steps=math.ceil(epochs * samples / 128), batch_size=128, learning_rate=learning_rate),
    )


class ExplorationConfig(BaseModel):
    """How orders are profiled: one short run of a small model on a mixture, or a race of fixed-order runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    samples: SampleSizes
    profiler: ProfilerConfig
    race: RaceConfig
    final: Recipe


def cpu_exploration(train_samples: int | None = None) -> ExplorationConfig:
    """A model of one layer that is told which target comes next; many small steps. Measured: benchmarks/RESULTS.md."""
    final = cpu(train_samples)
    return ExplorationConfig(
        samples=SampleSizes(train=train_samples or 100_000, validation=1_000, test=1),
        profiler=ProfilerConfig(
            told=True,
            model=GPTConfig(layers=1, heads=4, width=128, feedforward=512),
            training=TrainingConfig(steps=2_000, batch_size=32, learning_rate=1e-3, warmup_steps=50, beta2=0.98),
        ),
        race=RaceConfig(),
        final=_raced(final),
    )


def paper_exploration(train_samples: int | None = None) -> ExplorationConfig:
    """One epoch of a one-layer GPT-2, as in the paper for its recurrences."""
    return _paper_exploration(paper(train_samples), train_samples, batch_size=128, learning_rate=5e-5)


def paper_prod_exploration(train_samples: int | None = None) -> ExplorationConfig:
    """The same, before the final training for multiplication."""
    return _paper_exploration(paper_prod(train_samples), train_samples, batch_size=128, learning_rate=5e-5)


def paper_delay_exploration(train_samples: int | None = None) -> ExplorationConfig:
    """One epoch of a one-layer GPT-2, as in the paper for its delay networks."""
    return _paper_exploration(paper_delay(train_samples), train_samples, batch_size=32, learning_rate=5e-4)


def _paper_exploration(
    final: RunConfig, train_samples: int | None, *, batch_size: int, learning_rate: float
) -> ExplorationConfig:
    samples = train_samples or 100_000
    return ExplorationConfig(
        samples=SampleSizes(train=samples, validation=1_000, test=1),
        profiler=ProfilerConfig(
            model=GPTConfig(layers=1, heads=1, width=128, feedforward=512, dropout=0.1),
            training=TrainingConfig(
                steps=math.ceil(samples / batch_size), batch_size=batch_size, learning_rate=learning_rate
            ),
        ),
        race=RaceConfig(enabled=False),
        final=_recipe(final),
    )


def _recipe(final: RunConfig) -> Recipe:
    return Recipe(model=final.model, training=final.training)


def _raced(final: RunConfig) -> Recipe:
    """For a race, which ends when nothing improves any more: steps enough for what is learnt slowly.

    With batches of 64, ReLU and Sine at 20 targets were solved in two thirds of the time that batches of 128 take, and
    6-digit addition in about the same.
    """
    changes = {"steps": 40_000, "batch_size": 64}
    return Recipe(model=final.model, training=final.training.model_copy(update=changes))


class DiscoveryConfig(BaseModel):
    """All of a discovery: exploration, race and final training."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    samples: SampleSizes
    mining: MiningConfig
    profiler: ProfilerConfig
    any_order: AnyOrderConfig
    race: RaceConfig
    final: Recipe

    def final_run(self) -> RunConfig:
        return RunConfig(samples=self.samples, model=self.final.model, training=self.final.training)

    def profiling_run(self) -> RunConfig:
        return RunConfig(samples=self.samples, model=self.profiler.model, training=self.profiler.training)


_SEARCH_STEPS = 1_500  # of one profiling run of a search, at most: it has many of them


def _discovery(preset: str) -> Callable[[int | None], DiscoveryConfig]:
    """The exploration and the final training of a preset, of the same training samples."""

    def combined(train_samples: int | None = None) -> DiscoveryConfig:
        final = PRESETS[preset](train_samples)
        exploration = EXPLORATIONS[preset](final.samples.train)
        profiler = exploration.profiler
        steps = min(profiler.training.steps, _SEARCH_STEPS)
        return DiscoveryConfig(
            samples=final.samples,
            mining=MiningConfig(),
            # A search profiles many candidates in many runs: those that are surely worse are dropped early.
            profiler=profiler.model_copy(
                update={
                    "exact": False,
                    "curve_points": 0,
                    "training": profiler.training.model_copy(update={"steps": steps}),
                }
            ),
            any_order=AnyOrderConfig(),
            race=exploration.race,
            final=_raced(final) if exploration.race.enabled else _recipe(final),
        )

    return combined


PRESETS: dict[str, Callable[[int | None], RunConfig]] = {
    "cpu": cpu,
    "paper": paper,
    "paper-prod": paper_prod,
    "paper-delay": paper_delay,
}
EXPLORATIONS: dict[str, Callable[[int | None], ExplorationConfig]] = {
    "cpu": cpu_exploration,
    "paper": paper_exploration,
    "paper-prod": paper_prod_exploration,
    "paper-delay": paper_delay_exploration,
}
DISCOVERIES: dict[str, Callable[[int | None], DiscoveryConfig]] = {name: _discovery(name) for name in PRESETS}
