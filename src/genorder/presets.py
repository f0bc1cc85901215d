"""Complete, named configurations: `cpu` for a laptop; `paper`, `paper-prod` and `paper-delay` for a GPU.

Each preset is a function of the size of the data alone and returns the whole configuration; nothing is filled in later.
No preset knows which task or file the samples come from: the user chooses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from pydantic import BaseModel, ConfigDict, Field

from genorder.dependencies.mining import MiningConfig
from genorder.models import GPTConfig
from genorder.profiling import AnyOrderConfig, ProfilerConfig
from genorder.race import RaceConfig, Recipe
from genorder.training import TrainingConfig


@final
@dataclass(frozen=True)
class DataSize:
    """What a preset may know of the data."""

    samples: int | None = None  # for training; None: as many as the preset says
    positions: int | None = None  # tokens of a sample: inputs, SEP and targets; None: not known yet


_UNKNOWN = DataSize()


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


def cpu(size: DataSize = _UNKNOWN) -> RunConfig:
    """Teaches the same lesson as `paper` in minutes on two CPU cores."""
    return RunConfig(
        samples=SampleSizes(train=size.samples or 100_000, validation=1_000, test=1_000),
        model=GPTConfig(layers=2, heads=4, width=128, feedforward=512, activation="gelu", initialisation="fan_in"),
        training=TrainingConfig(
            steps=1_000, batch_size=128, learning_rate=1e-3, warmup_steps=50, beta2=0.98, clip_norm=1.0
        ),
    )


def paper(size: DataSize = _UNKNOWN) -> RunConfig:
    """The paper's final training for its recurrences: ten epochs of 100,000 samples."""
    return _paper_run(
        size.samples or 100_000,
        GPTConfig(layers=6, heads=8, width=512, feedforward=2048, dropout=0.1),
        epochs=10,
        learning_rate=5e-5,
    )


def paper_prod(size: DataSize = _UNKNOWN) -> RunConfig:
    """The paper's final training for the multiplication of integers: thirty epochs of 1,000,000 samples."""
    return _paper_run(
        size.samples or 1_000_000,
        GPTConfig(layers=12, heads=12, width=768, feedforward=3072, dropout=0.1),
        epochs=30,
        learning_rate=5e-5,
    )


def paper_delay(size: DataSize = _UNKNOWN) -> RunConfig:
    """The paper's final training for its delay networks: ten epochs of 100,000 samples, a small model."""
    return _paper_run(
        size.samples or 100_000,
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


def cpu_exploration(size: DataSize = _UNKNOWN) -> ExplorationConfig:
    """A one-layer model conditioned on the order; many small steps. Measured: benchmarks/RESULTS.md."""
    final = cpu(size)
    return ExplorationConfig(
        samples=SampleSizes(train=size.samples or 100_000, validation=1_000, test=1),
        profiler=ProfilerConfig(
            order_conditioned=True,
            model=GPTConfig(layers=1, heads=4, width=128, feedforward=512, activation="gelu"),
            training=TrainingConfig(steps=2_000, batch_size=32, learning_rate=1e-3, warmup_steps=50, beta2=0.98),
        ),
        race=RaceConfig(),
        final=_raced(final, size),
    )


def paper_exploration(size: DataSize = _UNKNOWN) -> ExplorationConfig:
    """One epoch of a one-layer GPT-2, as in the paper for its recurrences."""
    return _paper_exploration(paper(size), size, batch_size=128, learning_rate=5e-5)


def paper_prod_exploration(size: DataSize = _UNKNOWN) -> ExplorationConfig:
    """The same, before the final training for multiplication."""
    return _paper_exploration(paper_prod(size), size, batch_size=128, learning_rate=5e-5)


def paper_delay_exploration(size: DataSize = _UNKNOWN) -> ExplorationConfig:
    """One epoch of a one-layer GPT-2, as in the paper for its delay networks."""
    return _paper_exploration(paper_delay(size), size, batch_size=32, learning_rate=5e-4)


def _paper_exploration(final: RunConfig, size: DataSize, *, batch_size: int, learning_rate: float) -> ExplorationConfig:
    samples = size.samples or 100_000
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


_MOST_STEPS, _MOST_TOKENS = 40_000, 100_000_000


def _raced(final: RunConfig, size: DataSize) -> Recipe:
    """For a race, which ends when nothing improves any more: the model, the batch and the most steps.

    Model, batch and rate are the same for all data. How weights are drawn was chosen on random programs (RESULTS.md).
    A training reads 100 million tokens at most, whatever the length of a sample: about an hour on one CPU core.
    """
    batch = min(64, final.samples.train)
    steps = min(_MOST_STEPS, math.ceil(_MOST_TOKENS / batch / (size.positions or 1)))
    return Recipe(model=final.model, training=final.training.model_copy(update={"steps": steps, "batch_size": batch}))


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


def _discovery(preset: str) -> Callable[[DataSize], DiscoveryConfig]:
    """The exploration and the final training of a preset, of the same training samples."""

    def combined(size: DataSize = _UNKNOWN) -> DiscoveryConfig:
        final = PRESETS[preset](size)
        exploration = EXPLORATIONS[preset](DataSize(final.samples.train, size.positions))
        profiler = exploration.profiler
        steps = min(profiler.training.steps, _SEARCH_STEPS)
        return DiscoveryConfig(
            samples=final.samples,
            mining=MiningConfig(),
            # A search profiles many candidates in many runs: clearly worse ones are dropped early.
            profiler=profiler.model_copy(
                update={
                    "exact": False,
                    "curve_points": 0,
                    "training": profiler.training.model_copy(update={"steps": steps}),
                }
            ),
            any_order=AnyOrderConfig(),
            race=exploration.race,
            final=exploration.final,
        )

    return combined


PRESETS: dict[str, Callable[[DataSize], RunConfig]] = {
    "cpu": cpu,
    "paper": paper,
    "paper-prod": paper_prod,
    "paper-delay": paper_delay,
}
EXPLORATIONS: dict[str, Callable[[DataSize], ExplorationConfig]] = {
    "cpu": cpu_exploration,
    "paper": paper_exploration,
    "paper-prod": paper_prod_exploration,
    "paper-delay": paper_delay_exploration,
}
DISCOVERIES: dict[str, Callable[[DataSize], DiscoveryConfig]] = {name: _discovery(name) for name in PRESETS}
