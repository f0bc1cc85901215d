"""Delay networks: four coupled variables whose next state depends on the last two.

The state is s(t) = (a, b, c, d)(t). X = s(1), s(2), each value uniform in -25..25; Y = s(3), ..., s(T), time step by
time step, so L = 4 (T - 2). A network declares for each variable which values it reads, and the rule that maps exactly
these values to the next one. The dependency graph comes from the same declaration, so rule and graph cannot disagree.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph, Order
from genorder.tasks.base import DrawnInputs, IntArray, Lengths, Split, Task, within
from genorder.tasks.registry import register_task

OBSERVED = "abcd"
INPUT_TIMES = 2  # s(1) and s(2) are the input
_BOUND = 25
# Larger numbers are useless as tokens, and their squares would soon exceed 64 bits.
_LARGEST_VALUE = 2**31 - 1


@final
@dataclass(frozen=True)
class Update:
    """variable(t) = rule(values read), where a read ("b", 1) means b(t - 1)."""

    variable: str
    reads: tuple[tuple[str, int], ...]
    rule: Callable[..., IntArray]


@final
@dataclass(frozen=True)
class DelayNetwork:
    """Updates in the order of their evaluation within a time step.

    Variables other than a, b, c, d are latent: 0 at the times in X, and not part of the samples.
    """

    updates: tuple[Update, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """a, b, c, d, then the latent ones."""
        return (*OBSERVED, *(u.variable for u in self.updates if u.variable not in OBSERVED))

    def advance(self, history: Mapping[str, list[IntArray]]) -> None:
        """Append the next value of every variable to its history, oldest first."""
        now = len(history[OBSERVED[0]])
        for update in self.updates:
            values = [history[variable][now - lag] for variable, lag in update.reads]
            history[update.variable].append(update.rule(*values))


@final
@dataclass(frozen=True)
class DelayTask(Task):
    network: DelayNetwork

    split_seeds: ClassVar[Mapping[Split, int]] = MappingProxyType(
        {Split.TRAIN: 42, Split.VALIDATION: 84, Split.TEST: 1337}
    )

    def __post_init__(self) -> None:
        if any(length % len(OBSERVED) for length in self.lengths.possible):
            raise InputError(f"task {self.name} needs multiples of 4 as lengths, received {self.lengths}")

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        width = INPUT_TIMES * len(OBSERVED)
        inputs = rng.integers(-_BOUND, _BOUND, size=(samples, width), endpoint=True)
        return DrawnInputs(inputs, np.full(samples, width, dtype=np.int64), self.lengths.draw(samples, rng))

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        history = {
            name: [inputs[:, time * len(OBSERVED) + index] for time in range(INPUT_TIMES)]
            for index, name in enumerate(OBSERVED)
        }
        for latent in self.network.variables[len(OBSERVED) :]:
            history[latent] = [np.zeros(len(inputs), dtype=np.int64)] * INPUT_TIMES
        columns: list[IntArray] = []
        for _ in range(self.longest // len(OBSERVED)):
            self.network.advance(history)
            columns += [history[name][-1] for name in OBSERVED]
            if max(int(np.abs(column).max()) for column in columns[-len(OBSERVED) :]) > _LARGEST_VALUE:
                raise InputError(
                    f"task {self.name}: values exceed {_LARGEST_VALUE} at target {len(columns)}: "
                    f"use a length below that"
                )
        return np.where(within(target_lengths, self.longest), np.stack(columns, axis=1), 0)

    @property
    def variables_per_step(self) -> int | None:
        return len(OBSERVED)

    def hand_designed_orders(self) -> Mapping[str, Order]:
        """The five orders of the paper. All but the second and the last go through the time steps in sequence."""
        times = range(self.longest // len(OBSERVED))

        def time_major(variables: str) -> Order:
            return Order.of(time * len(OBSERVED) + OBSERVED.index(name) for time in times for name in variables)

        return {
            "time_first": time_major("abcd"),
            "variable_first_topological": self._variable_first(),
            "dependency_sorted": time_major("badc"),
            "causal_depth": time_major("adbc"),
            "reverse": Order.reverse(self.longest),
        }

    def _variable_first(self) -> Order:
        """The topological order that prefers a to b to c to d, and then the earlier time step."""
        graph = self.dependencies()
        parents = [graph.target_parents(target) for target in range(self.longest)]
        emitted: list[int] = []
        waiting = set(range(self.longest))
        while waiting:
            available = [target for target in waiting if not parents[target] & waiting]
            chosen = min(available, key=lambda target: (target % len(OBSERVED), target))
            emitted.append(chosen)
            waiting.remove(chosen)
        return Order.of(emitted)

    def dependencies(self) -> DependencyGraph:
        times = self.longest // len(OBSERVED)
        reads_of = {update.variable: update.reads for update in self.network.updates}
        latents = self.network.variables[len(OBSERVED) :]
        nodes = [(name, time) for time in range(INPUT_TIMES, INPUT_TIMES + times) for name in OBSERVED]
        nodes += [(name, time) for time in range(INPUT_TIMES, INPUT_TIMES + times) for name in latents]
        node_ids = {node: node_id for node_id, node in enumerate(nodes)}
        positions = {
            (name, time): time * len(OBSERVED) + index
            for time in range(INPUT_TIMES)
            for index, name in enumerate(OBSERVED)
        }
        read_nodes = [[(variable, time - lag) for variable, lag in reads_of[name]] for name, time in nodes]
        return DependencyGraph(
            targets=self.longest,
            parents=tuple(tuple(node_ids[read] for read in reads if read in node_ids) for reads in read_nodes),
            input_parents=tuple(tuple(positions[read] for read in reads if read in positions) for reads in read_nodes),
        )


def relu(z: IntArray) -> IntArray:
    return np.maximum(z, 0)


def mod19(z: IntArray) -> IntArray:
    return z % 19


def sq19(z: IntArray) -> IntArray:
    return z * z % 19 - 9


def sine32(z: IntArray) -> IntArray:
    # From a table made by the scalar sine: at multiples of 5 the last bit of the sine decides the token, and numpy's
    # vectorised sine may round that bit differently on another processor.
    first, last = int(z.min()), int(z.max())
    table = [(math.floor(15 * math.sin(2 * math.pi * v / 10)) + 16) % 32 for v in range(first, last + 1)]
    return np.array(table, dtype=np.int64)[z - first]


# The couplings of the first network, which Modular, Sine and Square share (except for one product in Modular).
_READS_A = (("b", 1), ("d", 2))
_READS_B = (("a", 1), ("c", 1))
_READS_C = (("b", 2), ("d", 1))
_READS_D = (("a", 1), ("c", 2))

RELU = DelayNetwork(
    (
        Update("a", _READS_A, lambda b, d: relu(b + d)),
        Update("b", _READS_B, lambda a, c: a - c),
        Update("c", _READS_C, lambda b, d: b + d),
        Update("d", _READS_D, lambda a, c: relu(a + c)),
    )
)

HIDDEN_CAUSE = DelayNetwork(
    (
        Update("h", (("a", 1), ("d", 2)), lambda a, d: relu(a - d)),
        Update("a", (("b", 1), ("h", 1)), lambda b, h: relu(b + h)),
        Update("b", _READS_B, lambda a, c: a - c),
        Update("c", _READS_C, lambda b, d: b + d),
        Update("d", (("h", 0), ("c", 2)), lambda h, c: relu(h + c)),
    )
)

COUPLED_RING = DelayNetwork(
    (
        Update("a", (("b", 1), ("d", 2)), lambda b, d: relu(b - d)),
        Update("b", (("c", 1), ("a", 2)), lambda c, a: relu(c - a)),
        Update("c", (("d", 1), ("b", 2)), lambda d, b: relu(d - b)),
        Update("d", (("a", 1), ("c", 2)), lambda a, c: relu(a - c)),
    )
)

MODULAR = DelayNetwork(
    (
        Update("a", _READS_A, lambda b, d: mod19(b + d)),
        Update("b", _READS_B, lambda a, c: mod19(a - c)),
        Update("c", _READS_C, lambda b, d: mod19(b * d)),
        Update("d", _READS_D, lambda a, c: mod19(a + c)),
    )
)

SINE = DelayNetwork(
    (
        Update("a", _READS_A, lambda b, d: sine32(b + d)),
        Update("b", _READS_B, lambda a, c: sine32(a - c)),
        Update("c", _READS_C, lambda b, d: sine32(b + d)),
        Update("d", _READS_D, lambda a, c: sine32(a + c)),
    )
)

MIXED = DelayNetwork(
    (
        Update("a", (("b", 1), ("d", 2), ("c", 2)), lambda b, d, c: relu(b - d + sq19(c))),
        Update("b", (("a", 1), ("c", 1), ("d", 2)), lambda a, c, d: mod19(a * a + c - d)),
        Update("c", (("b", 2), ("d", 1), ("a", 2)), lambda b, d, a: sq19(b + d) - relu(a)),
        Update("d", (("a", 1), ("c", 2), ("b", 1)), lambda a, c, b: relu(a + c - mod19(b))),
    )
)

SQUARE = DelayNetwork(
    (
        Update("a", _READS_A, lambda b, d: sq19(b + d)),
        Update("b", _READS_B, lambda a, c: sq19(a - c)),
        Update("c", _READS_C, lambda b, d: sq19(b + d)),
        Update("d", _READS_D, lambda a, c: sq19(a + c)),
    )
)

# The paper names an "Asymmetric square-mod-ReLU" network without defining it: this is our definition. It has squares,
# mod and ReLU, and no two variables have the same rule. It stays bounded for every T: from s(7) on, -9 <= a <= 9,
# 0 <= b <= 18, 0 <= c <= 36 and -18 <= d <= 45.
ASYMMETRIC = DelayNetwork(
    (
        Update("a", (("b", 1), ("d", 2)), lambda b, d: sq19(b + d)),
        Update("b", (("a", 1), ("c", 1), ("c", 2)), lambda a, c, c2: mod19(a * a - 2 * c + c2)),
        Update("c", (("b", 2), ("d", 1)), lambda b, d: relu(b - d)),
        Update("d", (("a", 1), ("c", 2), ("b", 1)), lambda a, c, b: relu(a + c) - mod19(b)),
    )
)

_NETWORKS = {
    "delay-relu": (RELU, "a = ReLU(b + d), b = a - c, c = b + d, d = ReLU(a + c), delayed by 1 or 2"),
    "delay-hidden-cause": (HIDDEN_CAUSE, "a latent variable, never shown, drives a and d"),
    "delay-coupled-ring": (COUPLED_RING, "each variable is the ReLU of a difference of its neighbours"),
    "delay-modular": (MODULAR, "sums, a difference and a product mod 19"),
    "delay-sine": (SINE, "sums and a difference through a sine with 32 tokens"),
    "delay-mixed": (MIXED, "ReLU, mod 19 and squares mod 19 in one network"),
    "delay-square": (SQUARE, "sums and a difference, squared mod 19"),
    "delay-asymmetric": (ASYMMETRIC, "squares, mod 19 and ReLU, asymmetric (this project's definition)"),
}


def _register(name: str, network: DelayNetwork, summary: str) -> None:
    @register_task(name, default_length=36, length_step=len(OBSERVED), summary=summary)
    def delay(lengths: Lengths) -> DelayTask:
        return DelayTask(name, lengths, network)


for _name, (_network, _summary) in _NETWORKS.items():
    _register(_name, _network, _summary)
