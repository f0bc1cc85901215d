"""Complete, named configurations: `cpu` for a laptop, `paper` for a GPU.

Each preset is a function of the kind of task and the number of training samples, and returns the whole
configuration; nothing is filled in later.
"""

import math
from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from genorder.models import GPTConfig
from genorder.profiling import AnyOrderConfig, ProfilerConfig, RaceConfig
from genorder.training import TrainingConfig

Family = Literal["recurrence", "prod", "delay"]


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


def cpu(family: Family, train_samples: int | None = None) -> RunConfig:
    """Teaches the same lesson as `paper` in minutes on two CPU cores."""
    steps = {"recurrence": 1000, "prod": 4000, "delay": 4000}[family]
    return RunConfig(
        samples=SampleSizes(train=train_samples or 100_000, validation=1_000, test=1_000),
        model=GPTConfig(layers=2, heads=4, width=128, feedforward=512, dropout=0.0),
        training=TrainingConfig(
            steps=steps, batch_size=128, learning_rate=1e-3, warmup_steps=50, beta2=0.98, clip_norm=1.0
        ),
    )


def paper(family: Family, train_samples: int | None = None) -> RunConfig:
    """The sizes of the paper's final training (its table of training configurations)."""
    default_samples, epochs = (1_000_000, 30) if family == "prod" else (100_000, 10)
    samples = train_samples or default_samples
    model = {
        "recurrence": GPTConfig(layers=6, heads=8, width=512, feedforward=2048, dropout=0.1),
        "prod": GPTConfig(layers=12, heads=12, width=768, feedforward=3072, dropout=0.1),
        "delay": GPTConfig(layers=6, heads=1, width=128, feedforward=512, dropout=0.1),
    }[family]
    return RunConfig(
        samples=SampleSizes(train=samples, validation=1_000, test=1_000),
        model=model,
        training=TrainingConfig(
            steps=math.ceil(epochs * samples / 128),
            batch_size=128,
            learning_rate=5e-4 if family == "delay" else 5e-5,
        ),
    )


class ExplorationConfig(BaseModel):
    """How orders are profiled: one short run of a small model on a mixture, or a race of fixed-order runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    samples: SampleSizes
    profiler: ProfilerConfig
    race: RaceConfig


def cpu_exploration(family: Family, train_samples: int | None = None) -> ExplorationConfig:
    """A model of one layer that is told which target comes next; many small steps. Measured: benchmarks/RESULTS.md."""
    return ExplorationConfig(
        samples=SampleSizes(train=train_samples or 100_000, validation=1_000, test=1),
        profiler=ProfilerConfig(
            told=True,
            model=GPTConfig(layers=1, heads=4, width=128, feedforward=512),
            training=TrainingConfig(steps=2_000, batch_size=32, learning_rate=1e-3, warmup_steps=50, beta2=0.98),
        ),
        race=_cpu_race(family),
    )


def _cpu_race(family: Family) -> RaceConfig:
    """Chosen on Sine at 30 targets, the slowest of the recurrences: see benchmarks/RESULTS.md.

    Sorts of a delay network differ in what is learnt in the end, and that shows only in trainings like the final one:
    after 1,000 steps, the sort that is best after 3,000 may be behind.
    """
    batch, rate, rounds = (128, 1e-3, (250, 4_000)) if family == "delay" else (32, 2e-3, (250, 1_000))
    return RaceConfig(
        model=GPTConfig(layers=1, heads=4, width=128, feedforward=512),
        training=TrainingConfig(steps=1, batch_size=batch, learning_rate=rate, warmup_steps=50, beta2=0.98),
        round_steps=rounds,
    )


def paper_exploration(family: Family, train_samples: int | None = None) -> ExplorationConfig:
    """One epoch of a one-layer GPT-2, as in the paper."""
    samples = train_samples or 100_000
    batch = 32 if family == "delay" else 128
    return ExplorationConfig(
        samples=SampleSizes(train=samples, validation=1_000, test=1),
        profiler=ProfilerConfig(
            model=GPTConfig(layers=1, heads=1, width=128, feedforward=512, dropout=0.1),
            training=TrainingConfig(
                steps=math.ceil(samples / batch),
                batch_size=batch,
                learning_rate=5e-4 if family == "delay" else 5e-5,
            ),
        ),
        race=RaceConfig(
            model=GPTConfig(layers=2, heads=2, width=256, feedforward=1024),
            training=TrainingConfig(steps=1, batch_size=128, learning_rate=5e-4, warmup_steps=50),
            round_steps=(400, 800, 1600),
        ),
    )


class FinalConfig(BaseModel):
    """The model that is trained in the discovered order, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: GPTConfig
    training: TrainingConfig


class DiscoveryConfig(BaseModel):
    """All of a discovery: exploration, race and final training."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    samples: SampleSizes
    profiler: ProfilerConfig
    any_order: AnyOrderConfig
    race: RaceConfig
    final: FinalConfig

    def final_run(self) -> RunConfig:
        return RunConfig(samples=self.samples, model=self.final.model, training=self.final.training)

    def profiling_run(self) -> RunConfig:
        return RunConfig(samples=self.samples, model=self.profiler.model, training=self.profiler.training)

    def race_run(self) -> RunConfig:
        return RunConfig(samples=self.samples, model=self.race.model, training=self.race.training)


_SEARCH_STEPS = 1_500  # of one profiling run of a search, at most: it has many of them


def _discovery(preset: str) -> Callable[[Family, int | None], DiscoveryConfig]:
    def combined(family: Family, train_samples: int | None = None) -> DiscoveryConfig:
        final, exploration = PRESETS[preset](family, train_samples), EXPLORATIONS[preset](family, train_samples)
        profiler = exploration.profiler
        steps = min(profiler.training.steps, _SEARCH_STEPS)
        return DiscoveryConfig(
            samples=final.samples,
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
            final=FinalConfig(model=final.model, training=final.training),
        )

    return combined


EXPLORATIONS: dict[str, Callable[[Family, int | None], ExplorationConfig]] = {
    "cpu": cpu_exploration,
    "paper": paper_exploration,
}
PRESETS: dict[str, Callable[[Family, int | None], RunConfig]] = {"cpu": cpu, "paper": paper}
DISCOVERIES: dict[str, Callable[[Family, int | None], DiscoveryConfig]] = {name: _discovery(name) for name in PRESETS}


def family_of(task: str | None) -> Family:
    """The kind of a built-in task, by its name; parameters behind a colon do not matter."""
    name = (task or "").partition(":")[0]
    if name == "prod":
        return "prod"
    return "delay" if name.startswith("delay-") else "recurrence"
