"""Integer addition and multiplication, digit by digit.

Axes: N samples, F digits of a factor (G of the other), P digits of the product. `places` arrays count digits from the
least significant, so that place p weighs 10^p for every length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph
from genorder.tasks.base import DrawnInputs, IntArray, Lengths, Split, Task, within
from genorder.tasks.registry import register_task


@final
@dataclass(frozen=True)
class AdditionTask(Task):
    """X = digits of a, then of b; Y = digits of a + b; a sample of n targets has n - 1 digits per summand.

    All numbers are written most significant digit first, so the friendly order is the reverse. Digits are uniform in
    0..9; the first target, the last carry, is 0 or 1.
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

        The carry out of a place is a function of the two digits added there and of the digit of the sum there,
        because these determine the carry into the place. The last digit reads only the last digits of a and b. For
        the digit above it, the neighbour adds no information to the inputs; it is a parent by the general rule.
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


@final
@dataclass(frozen=True)
class MultiplicationTask(Task):
    """X = digits of a, then of b; Y = digits of a * b; a sample of n targets has n / 2 digits per factor.

    All numbers are written most significant digit first, padded with zeros on the left, so the friendly
    order is the reverse. Digit counts of a and b are uniform in 1..n/2 for training and for validation
    (which serves the search, on the distribution it trains on), and in n/2-2..n/2 for test, where the
    hard cases are.
    """

    def __post_init__(self) -> None:
        if any(length % 2 for length in self.lengths.possible):
            raise InputError(f"task {self.name} needs even lengths, received {self.lengths}")

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        inputs = np.zeros((samples, self.longest), dtype=np.int64)
        for factor in range(2):
            places_NF = self._draw_factor(lengths // 2, split, rng)
            rows, columns = np.nonzero(within(lengths // 2, self.longest // 2))
            half = lengths[rows] // 2
            inputs[rows, factor * half + columns] = places_NF[rows, half - 1 - columns]
        return DrawnInputs(inputs, lengths, lengths)

    def _draw_factor(self, halves: IntArray, split: Split, rng: np.random.Generator) -> IntArray:
        """(N, F) places: a uniform number of each row's digit count, no leading zero except for the number 0."""
        fewest = np.maximum(halves - 2, 1) if split == Split.TEST else np.ones_like(halves)
        digits = rng.integers(fewest, halves, endpoint=True)
        places_NF = rng.integers(0, 10, size=(len(halves), self.longest // 2))
        rows = np.flatnonzero(digits > 1)
        places_NF[rows, digits[rows] - 1] = rng.integers(1, 10, size=len(rows))
        return np.where(within(digits, places_NF.shape[1]), places_NF, 0)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        places_NP = np.zeros((len(inputs), self.longest), dtype=np.int64)
        for length in np.unique(target_lengths).tolist():
            chosen = target_lengths == length
            half = length // 2
            a_NF = inputs[chosen, :half][:, ::-1]
            b_NF = inputs[chosen, half:length][:, ::-1]
            places_NP[chosen, :length] = multiply_places(a_NF, b_NF)[:, ::-1]
        return places_NP

    def dependencies(self) -> DependencyGraph:
        """Digit j follows from digit j + 1, its less significant neighbour, and from the digits of the factors it sums.

        By convention, the carry into a digit is known once the next lower digit is emitted, which makes the order of
        schoolbook multiplication optimal. Strictly, the carry is not a function of that digit alone.
        """
        half = self.longest // 2
        return DependencyGraph(
            targets=self.longest,
            parents=(*((j + 1,) for j in range(self.longest - 1)), ()),
            input_parents=tuple(
                _contributing_positions(self.longest - 1 - column, half, half) for column in range(self.longest)
            ),
        )


@final
@dataclass(frozen=True)
class UnequalMultiplicationTask(Task):
    """X = digits of a, then of b, which may have another number of digits; Y = digits of a * b.

    All numbers are written most significant digit first. Digits are uniform in 0..9, so numbers may begin with
    zeros. Every split has the same distribution.
    """

    digits: int = 6
    by: int = 1

    def __post_init__(self) -> None:
        if self.digits < 1 or self.by < 1:
            raise InputError(f"task {self.name}: digits and by must be 1 or more, received {self.digits} and {self.by}")
        targets = self.digits + self.by
        if (self.lengths.shortest, self.lengths.longest) != (targets, targets):
            raise InputError(
                f"task {self.name}: a product of {self.digits} by {self.by} digits has {targets} targets, "
                f"received length {self.lengths}: leave the length out, or change digits and by"
            )

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {"digits": self.digits, "by": self.by}

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        return DrawnInputs(rng.integers(0, 10, size=(samples, self.longest)), lengths, lengths)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        return multiply_places(inputs[:, : self.digits][:, ::-1], inputs[:, self.digits :][:, ::-1])[:, ::-1]

    def dependencies(self) -> DependencyGraph:
        """Digit j follows from digit j + 1, its less significant neighbour, and from digits of the factors.

        If a factor has one digit, this is exact: the carry into a place is a function of the digits multiplied one
        place below and of the product's digit there, which determine the carry into that place (at most 8). Longer
        factors follow the convention of `MultiplicationTask`: the carry is known once the next lower digit is emitted,
        and the inputs are the digits that the place itself sums.
        """
        places = [self.longest - 1 - column for column in range(self.longest)]
        reads = [set(_contributing_positions(place, self.digits, self.by)) for place in places]
        if min(self.digits, self.by) == 1:
            reads = [own | below for own, below in zip(reads, [*reads[1:], set[int]()], strict=True)]
        return DependencyGraph(
            targets=self.longest,
            parents=(*((j + 1,) for j in range(self.longest - 1)), ()),
            input_parents=tuple(tuple(sorted(positions)) for positions in reads),
        )


def multiply_places(a_NF: IntArray, b_NG: IntArray) -> IntArray:
    """(N, F + G) places of the products: convolve the digits, then carry place by place."""
    samples, places = len(a_NF), a_NF.shape[1] + b_NG.shape[1]
    columns_NP = np.zeros((samples, places), dtype=np.int64)
    for place in range(a_NF.shape[1]):
        columns_NP[:, place : place + b_NG.shape[1]] += a_NF[:, place : place + 1] * b_NG
    carry = np.zeros(samples, dtype=np.int64)
    for place in range(places):
        carry += columns_NP[:, place]
        columns_NP[:, place] = carry % 10
        carry //= 10
    return columns_NP


def _contributing_positions(place: int, digits_a: int, digits_b: int) -> tuple[int, ...]:
    """Positions in X of the digits a_i and b_k with i + k = place."""
    places_a = [i for i in range(digits_a) if 0 <= place - i < digits_b]
    from_a = sorted(digits_a - 1 - i for i in places_a)
    from_b = sorted(digits_a + digits_b - 1 - (place - i) for i in places_a)
    return (*from_a, *from_b)


@register_task("prod", default_length=10, length_step=2, summary="digits of a * b, most significant first")
def prod(lengths: Lengths) -> MultiplicationTask:
    return MultiplicationTask("prod", lengths)


@register_task(
    "multiply", default_length=None, summary="digits of a * b, most significant first; factors of other sizes"
)
def multiply(lengths: Lengths | None, digits: int = 6, by: int = 1) -> UnequalMultiplicationTask:
    """The length follows from the parameters: digits + by targets."""
    # Parameters below 1 are refused by the task; a length of 1 or more lets it say so.
    longest = max(digits + by, 1)
    return UnequalMultiplicationTask("multiply", lengths or Lengths(longest, longest), digits=digits, by=by)
