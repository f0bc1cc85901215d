"""One-dimensional recurrences: y_1 = x_1, then y_i = f(x_i, y_(i-1))."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks.base import DrawnInputs, IntArray, Lengths, Split, Task, within
from genorder.tasks.registry import register_task

Step = Callable[[IntArray, IntArray], IntArray]

_MODULUS = 19  # Square and Cubic
_TOKENS = 32  # MLP and Sine
_HIDDEN_UNITS = 64


@final
@dataclass(frozen=True)
class RecurrenceTask(Task):
    """x_i uniform in low..high; `step(x_i, y_prev)` maps integer arrays over samples to y_i.

    A sample of length n is the first n steps. `settings` are the parameters inside `step`, if any.
    """

    low: int
    high: int
    step: Step
    settings: tuple[tuple[str, int | float | str], ...] = ()

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InputError(f"task {self.name}: inputs from {self.low} to {self.high} is an empty range")

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {"low": self.low, "high": self.high, **dict(self.settings)}

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        inputs = rng.integers(self.low, self.high, size=(samples, self.longest), endpoint=True)
        return DrawnInputs(np.where(within(lengths, self.longest), inputs, 0), lengths, lengths)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        x_WN = np.ascontiguousarray(inputs.T)
        y_LN = np.empty_like(x_WN)
        y_LN[0] = x_WN[0]
        for position in range(1, len(y_LN)):
            y_LN[position] = self._stepped(x_WN[position], y_LN[position - 1])
        return np.where(within(target_lengths, self.longest), y_LN.T, 0)

    def _stepped(self, x: IntArray, y: IntArray) -> IntArray:
        result = np.asarray(self.step(x, y))
        if result.shape != x.shape or result.dtype.kind not in "iu":
            raise InputError(
                f"task {self.name}: step must return integers of shape {x.shape}, "
                f"returned {result.dtype} of shape {result.shape}"
            )
        return result

    def dependencies(self) -> DependencyGraph:
        return DependencyGraph(
            targets=self.longest,
            parents=((), *((index - 1,) for index in range(1, self.longest))),
            input_parents=tuple((index,) for index in range(self.longest)),
            input_copies=frozenset({0}),
        )


def relu_step(x: IntArray, y: IntArray) -> IntArray:
    result: IntArray = np.maximum(x + y, 0)
    return result


def square_step(x: IntArray, y: IntArray) -> IntArray:
    # The shift by 9 is in the samples of the paper, but not in its formula.
    return (x * x + y * y) % _MODULUS - 9


def triangle_step(x: IntArray, y: IntArray) -> IntArray:
    result: IntArray = np.abs((y + x) % 40 - 20)
    return result


def cubic_step(x: IntArray, y: IntArray) -> IntArray:
    return (y * y * y + x) % _MODULUS


@final
@dataclass(frozen=True)
class SineStep:
    """floor(100 sin(2 pi / period (y + x))) mod 32."""

    period: int

    def __call__(self, x: IntArray, y: IntArray) -> IntArray:
        # A table made by the scalar sine: where the true value is an integer, the last bit of the sine decides the
        # token, and numpy's vectorised sine may round that bit differently on another processor.
        total = x + y
        first, last = int(total.min()), int(total.max())
        turn = 2 * math.pi / self.period
        table = [math.floor(100 * math.sin(turn * value)) % _TOKENS for value in range(first, last + 1)]
        result: IntArray = np.array(table, dtype=np.int64)[total - first]
        return result


@final
@dataclass(frozen=True)
class MlpStep:
    """floor(MLP(x, y)) mod 32 with a fixed random network."""

    seed: int

    def __call__(self, x: IntArray, y: IntArray) -> IntArray:
        result: IntArray = _mlp_table(self.seed)[x, y]
        return result


@lru_cache(maxsize=16)
def _mlp_table(seed: int) -> IntArray:
    """(32, 32) over x and y: a 2-64-1 ReLU network, all weights normal with variance 2 / fan-in (He)."""
    rng = numpy_generator(derive_seed(seed, "mlp-task"))
    first_H2 = rng.normal(0.0, 1.0, size=(_HIDDEN_UNITS, 2))
    first_bias_H = rng.normal(0.0, 1.0, size=_HIDDEN_UNITS)
    second_H = rng.normal(0.0, math.sqrt(2 / _HIDDEN_UNITS), size=_HIDDEN_UNITS)
    second_bias = rng.normal(0.0, math.sqrt(2 / _HIDDEN_UNITS))
    x_XY, y_XY = np.meshgrid(np.arange(_TOKENS), np.arange(_TOKENS), indexing="ij")
    output_XY = np.full(x_XY.shape, second_bias)
    for (u, v), bias, weight in zip(first_H2, first_bias_H, second_H, strict=True):
        output_XY += weight * np.maximum(u * x_XY + v * y_XY + bias, 0.0)
    table_XY: IntArray = np.floor(output_XY).astype(np.int64) % _TOKENS
    table_XY.flags.writeable = False  # shared by all tasks with this seed
    return table_XY


@register_task("relu", summary="y_i = max(x_i + y_(i-1), 0)")
def relu(lengths: Lengths) -> RecurrenceTask:
    return RecurrenceTask("relu", lengths, low=-9, high=9, step=relu_step)


@register_task("square", summary="y_i = (x_i^2 + y_(i-1)^2) mod 19 - 9")
def square(lengths: Lengths) -> RecurrenceTask:
    return RecurrenceTask("square", lengths, low=-9, high=9, step=square_step)


@register_task("triangle", summary="y_i = |((y_(i-1) + x_i) mod 40) - 20|")
def triangle(lengths: Lengths, high: int = 19) -> RecurrenceTask:
    """The paper's parameter table has inputs up to 19, its samples up to 20."""
    return RecurrenceTask("triangle", lengths, low=0, high=high, step=triangle_step)


@register_task("mlp", summary="y_i = floor(MLP(x_i, y_(i-1))) mod 32, a fixed random network")
def mlp(lengths: Lengths, seed: int = 2) -> RecurrenceTask:
    """Seed 2: many random networks forget y_(i-1) within a few steps or use few tokens, this one does not."""
    return RecurrenceTask("mlp", lengths, low=0, high=31, step=MlpStep(seed), settings=(("seed", seed),))


@register_task("sine", summary="y_i = floor(100 sin(2 pi / period (y_(i-1) + x_i))) mod 32")
def sine(lengths: Lengths, period: int = 16) -> RecurrenceTask:
    """Period 16 reproduces the paper's samples; the 10 of its parameter table does not."""
    if period < 1:
        raise InputError(f"task sine: the period must be 1 or more, received {period}")
    settings = (("period", period),)
    return RecurrenceTask("sine", lengths, low=0, high=31, step=SineStep(period), settings=settings)


@register_task("cubic", summary="y_i = (y_(i-1)^3 + x_i) mod 19")
def cubic(lengths: Lengths) -> RecurrenceTask:
    return RecurrenceTask("cubic", lengths, low=0, high=18, step=cubic_step)
