"""The operations of random programs: each maps the tokens that it reads to one token."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.tasks.base import IntArray


class Operation(ABC):
    """A function of several tokens."""

    @abstractmethod
    def apply(self, values: Sequence[IntArray]) -> IntArray:
        """The result (N,) for the tokens read, one array (N,) each."""

    @abstractmethod
    def describe(self, names: Sequence[str]) -> str:
        """The formula, with `names` for the tokens read."""


@final
@dataclass(frozen=True, eq=False)
class Tabulated(Operation):
    """A formula over few tokens, evaluated once for every combination of them.

    `formula` names the arguments {0}, {1}, ... Arguments have the tokens 0..size-1, the table is row-major.
    """

    formula: str
    sizes: tuple[int, ...]
    table: IntArray

    @classmethod
    def of(cls, formula: str, sizes: Sequence[int], function: Callable[..., IntArray]) -> "Tabulated":
        table = np.asarray(function(*np.indices(sizes).reshape(len(sizes), -1)), dtype=np.int64)
        return cls(formula, tuple(sizes), table)

    def apply(self, values: Sequence[IntArray]) -> IntArray:
        return self.table[joint_code(values, self.sizes)]

    def describe(self, names: Sequence[str]) -> str:
        return self.formula.format(*names)


@final
@dataclass(frozen=True)
class Copy(Operation):
    """Repeats the one token that it reads."""

    def apply(self, values: Sequence[IntArray]) -> IntArray:
        return values[0]

    def describe(self, names: Sequence[str]) -> str:
        return names[0]


@final
@dataclass(frozen=True)
class Pointer(Operation):
    """Of the last `places` tokens read, the one with the index (sum of the other tokens + shift) mod places."""

    places: int
    shift: int

    def apply(self, values: Sequence[IntArray]) -> IntArray:
        place_N = (np.sum(values[: -self.places], axis=0) + self.shift) % self.places
        result: IntArray = np.stack(values[-self.places :])[place_N, np.arange(len(place_N))]
        return result

    def describe(self, names: Sequence[str]) -> str:
        pointer = " + ".join([*names[: -self.places], *([str(self.shift)] if self.shift else [])])
        return f"({', '.join(names[-self.places :])})[({pointer}) mod {self.places}]"


def joint_code(values: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """One number below prod(sizes) for each combination of tokens."""
    code = np.zeros_like(values[0])
    for value, size in zip(values, sizes, strict=True):
        code = code * size + value
    return code


# Draws an operation on `reads` tokens of 0..tokens-1, whose result has tokens of the same range.
OperationSampler = Callable[[np.random.Generator, int, int], Operation]


def modular_sum(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    coefficients = rng.integers(1, max(tokens, 2), size=reads)
    offset = int(rng.integers(tokens)) if rng.random() < 0.5 else 0
    terms = [_times(c, f"{{{i}}}") for i, c in enumerate(coefficients.tolist())] + [str(offset)] * (offset > 0)
    return Tabulated.of(
        f"({' + '.join(terms)}) mod {tokens}",
        [tokens] * reads,
        lambda *values: (coefficients @ np.stack(values) + offset) % tokens,
    )


def polynomial(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    """Powers up to the third of each token, and sometimes the product of the first two."""
    coefficients = rng.integers(1, max(tokens, 2), size=reads)
    exponents = rng.integers(1, 4, size=reads)
    product = int(rng.integers(2)) if reads > 1 else 0
    terms = [
        _times(c, f"{{{i}}}" + (f"^{e}" if e > 1 else ""))
        for i, (c, e) in enumerate(zip(coefficients.tolist(), exponents.tolist(), strict=True))
    ] + ["{0} {1}"] * product

    def function(*values: IntArray) -> IntArray:
        powers = coefficients @ (np.stack(values) ** exponents[:, np.newaxis])
        result: IntArray = (powers + product * values[0] * values[min(reads, 2) - 1]) % tokens
        return result

    return Tabulated.of(f"({' + '.join(terms)}) mod {tokens}", [tokens] * reads, function)


def lookup(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    table = rng.integers(tokens, size=tokens**reads)
    name = f"table{int(rng.integers(1000)):03}"
    arguments = ", ".join(f"{{{i}}}" for i in range(reads))
    return Tabulated(f"{name}({arguments})", (tokens,) * reads, table)


def clipped_sum(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    """ReLU with a ceiling, of a sum with signs."""
    signs = rng.choice([-1, 1], size=reads)
    shift = int(rng.integers(tokens)) - (tokens - 1) * int((signs > 0).sum() - 1) // 2
    text = _signed(signs) + (f" {'+' if shift > 0 else '-'} {abs(shift)}" if shift else "")
    return Tabulated.of(
        f"clip({text}, 0, {tokens - 1})",
        [tokens] * reads,
        lambda *values: np.clip(signs @ np.stack(values) + shift, 0, tokens - 1),
    )


def extreme(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    largest = bool(rng.integers(2))
    arguments = ", ".join(f"{{{i}}}" for i in range(reads))
    return Tabulated.of(
        f"{'max' if largest else 'min'}({arguments})",
        [tokens] * reads,
        lambda *values: np.max(values, axis=0) if largest else np.min(values, axis=0),
    )


def absolute_difference(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    signs = rng.permutation(np.where(np.arange(reads) % 2, -1, 1))
    return Tabulated.of(
        f"|{_signed(signs)}| mod {tokens}" if reads > 2 else f"|{_signed(signs)}|",
        [tokens] * reads,
        lambda *values: np.abs(signs @ np.stack(values)) % tokens,
    )


def comparison(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    signs = rng.permutation(np.where(np.arange(reads) % 2, -1, 1))
    threshold = int(rng.integers(tokens)) if signs.sum() else 0
    return Tabulated.of(
        f"[{_signed(signs)} > {threshold}]",
        [tokens] * reads,
        lambda *values: signs @ np.stack(values) > threshold,
    )


def gate(rng: np.random.Generator, reads: int, tokens: int) -> Operation:
    """A logic gate of two or three bits."""
    named: dict[str, Callable[..., IntArray]] = {
        "and": lambda *values: np.min(values, axis=0),
        "or": lambda *values: np.max(values, axis=0),
        "xor": lambda *values: np.sum(values, axis=0) % 2,
    }
    if reads == 3:
        named["mux"] = lambda choice, a, b: choice * a + (1 - choice) * b
        named["majority"] = lambda *values: np.sum(values, axis=0) // 2
    name = str(rng.choice(list(named)))
    negated = rng.integers(2, size=reads) if rng.random() < 0.3 else np.zeros(reads, dtype=np.int64)
    arguments = ", ".join(("not " if flip else "") + f"{{{i}}}" for i, flip in enumerate(negated.tolist()))
    return Tabulated.of(
        f"{name}({arguments})", [2] * reads, lambda *values: named[name](*(np.stack(values) ^ negated[:, np.newaxis]))
    )


def digit_operation(base: int, *, sign: int, reads: int, overflow: bool) -> Operation:
    """A digit of a + b (sign 1) or a - b (sign -1); the carry, or borrow, itself if `overflow` is set.

    Reads, in this order, the digits of a and b at this place (not for the overflow), then at the place below, then the
    digit of the result at the place below. The latter three determine the carry out of the place below: the carry into
    it is (result - a - b) mod base. Without a result digit, the carry into it is 0.
    """
    here = 0 if overflow else 2
    names = [f"{{{i}}}" for i in range(reads)]

    def carry(a: IntArray, b: IntArray, *result: IntArray) -> IntArray:
        into = sign * (result[0] - a - sign * b) % base if result else np.zeros_like(a)
        carried: IntArray = np.minimum(np.abs((a + sign * (b + into)) // base), 1)
        return carried

    def function(*values: IntArray) -> IntArray:
        carried = carry(*values[here:]) if reads > here else np.zeros_like(values[0])
        return carried if overflow else (values[0] + sign * (values[1] + carried)) % base

    carried_text = f"{'carry' if sign > 0 else 'borrow'}({', '.join(names[here:])})"
    terms = names[:here] + [carried_text] * (reads > here)
    formula = carried_text if overflow else f"({(' + ' if sign > 0 else ' - ').join(terms)}) mod {base}"
    return Tabulated.of(formula, [base] * reads, function)


def _times(coefficient: int, name: str) -> str:
    return name if coefficient == 1 else f"{coefficient} {name}"


def _signed(signs: IntArray) -> str:
    text = " ".join(f"{'+' if sign > 0 else '-'} {{{i}}}" for i, sign in enumerate(signs.tolist()))
    return text.removeprefix("+ ").replace("- ", "-", 1) if text.startswith("-") else text.removeprefix("+ ")
