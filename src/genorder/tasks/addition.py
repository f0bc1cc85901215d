"""Integer addition, digit by digit."""

from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph
from genorder.tasks.base import DrawnInputs, Lengths, Task
from genorder.tasks.partition import IntArray, Split, within
from genorder.tasks.registry import register_task


@final
@dataclass(frozen=True)
class AdditionTask(Task):
    """X = digits of a, then of b; Y = digits of a + b; a sample of n targets has n - 1 digits per summand.

    All numbers are written most significant digit first, so the friendly order is the reverse. Digits are
    uniform in 0..9; the first target, the last carry, is 0 or 1.
    """

    def __post_init__(self) -> None:
        if self.lengths.shortest < 2:
            raise InputError(
                f"task {self.name} needs lengths of 2 or more (one digit and the carry), received {self.lengths}"
            )

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        width = 2 * (self.longest - 1)
        inputs = rng.integers(0, 10, size=(samples, width))
        return DrawnInputs(np.where(within(2 * (lengths - 1), width), inputs, 0), 2 * (lengths - 1), lengths)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        targets = np.zeros((len(inputs), self.longest), dtype=np.int64)
        for length in np.unique(target_lengths).tolist():
            chosen = target_lengths == length
            digits = length - 1
            sums = inputs[chosen, :digits] + inputs[chosen, digits : 2 * digits]
            carry = np.zeros(len(sums), dtype=np.int64)
            for column in reversed(range(digits)):
                carry += sums[:, column]
                targets[chosen, column + 1] = carry % 10
                carry //= 10
            targets[chosen, 0] = carry
        return targets

    def dependencies(self) -> DependencyGraph:
        """Each digit follows from its less significant neighbour and both summands' digits at these two places.

        The carry out of a place is a function of the two digits added there and of the digit of the sum there:
        together they tell what was carried in. The last digit reads the last digits of a and b alone. For the
        digit above it, the neighbour adds nothing to the inputs; it is a parent by the same rule as all others.
        """
        digits = self.longest - 1
        columns = [[column for column in (target - 1, target) if 0 <= column < digits] for target in range(digits + 1)]
        return DependencyGraph(
            targets=self.longest,
            parents=(*((target + 1,) for target in range(digits)), ()),
            input_parents=tuple((*read, *(digits + column for column in read)) for read in columns),
        )


@register_task("addition", default_length=13, summary="digits of a + b, most significant first")
def addition(lengths: Lengths) -> AdditionTask:
    return AdditionTask("addition", lengths)
