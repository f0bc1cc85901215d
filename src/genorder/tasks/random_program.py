"""Random programs whose true dependency graph is known and can be identified from samples: `random:seed=7`.

A seed defines one program: a family (below), an alphabet, operations, a number of targets, and noise or none. The
programs are for the development and the tests of methods that find dependencies. Seeds of 1,000,000 and above are
reserved for an independent check: do not use them in development or in tests.

A program is redrawn until `Builder` accepts every target: none is nearly constant, each position read matters, and no
other set of positions of the same size determines the target before its descendants are known.

Axes: N samples, W inputs, L targets.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from types import MappingProxyType
from typing import TypeVar, final

import numpy as np

from genorder.errors import InputError
from genorder.orders import DependencyGraph
from genorder.seeding import derive_seed, mix64, numpy_generator
from genorder.tasks import operations
from genorder.tasks.base import DrawnInputs, IntArray, Lengths, Split, Task, row_hashes, within
from genorder.tasks.operations import Operation, OperationSampler
from genorder.tasks.program import LARGEST_DETERMINANT, MOST_INPUTS, Builder, Position, Program, Rejected
from genorder.tasks.registry import register_task

T = TypeVar("T")

_FEWEST_TOKENS, _MOST_TOKENS = 2, 20
_MOST_TARGETS = 40  # so that the inputs suffice, one for each target and a few more
_OPERATIONS_PER_TARGET = 12  # drawn before the whole program is rejected
_READS_PER_TARGET = 30  # the same if the positions read are drawn too, with fewer operations for each draw
_OPERATIONS_PER_READS = 3
_PROGRAMS = 400  # drawn before the seed is rejected
_NOISY_SHARE, _LEAST_NOISE, _MOST_NOISE = 0.2, 0.02, 0.1
_GENERAL_KINDS: tuple[OperationSampler, ...] = (
    operations.modular_sum,
    operations.lookup,
    operations.polynomial,
    operations.clipped_sum,
    operations.extreme,
    operations.absolute_difference,
    operations.comparison,
)


class _Part:
    """One family's share of a program: one alphabet, and operations drawn from the same kinds."""

    def __init__(
        self, builder: Builder, tokens: int | None, *, reads: int, kinds: Sequence[OperationSampler] = ()
    ) -> None:
        """`tokens` is the size of the alphabet; if None, it is drawn for targets that read up to `reads` positions."""
        self.rng = builder.rng
        self.builder = builder
        most = min(_MOST_TOKENS, int(LARGEST_DETERMINANT ** (1 / reads) + 1e-9))
        self.tokens = tokens or int(np.exp(self.rng.uniform(np.log(_FEWEST_TOKENS), np.log(most + 1))))
        drawn_kinds = _GENERAL_KINDS if self.rng.random() < 0.4 else (self.pick(_GENERAL_KINDS),)
        self._kinds = tuple(kinds) or drawn_kinds
        self._one_rule = self.rng.random() < 0.4
        self._rules: dict[Hashable, Operation] = {}

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def number(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most, endpoint=True))

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def input(self) -> Position:
        return self.builder.input(self.tokens)

    def row(self, inputs: int) -> list[Position]:
        return [self.input() for _ in range(inputs)]

    def target(self, *reads: Position, rule: Hashable = None, attempts: int = _OPERATIONS_PER_TARGET) -> Position:
        """A target with a new operation, or with the operation of the earlier targets with the same `rule`."""
        key = (rule, len(reads)) if rule is not None or self._one_rule else None
        if key in self._rules:
            return self.builder.target(reads, lambda: self._rules[key])
        tried: list[Operation] = []

        def draw() -> Operation:
            tried.append(self.pick(self._kinds)(self.rng, len(reads), self.tokens))
            return tried[-1]

        position = self.builder.target(reads, draw, attempts=attempts)
        if key is not None:
            self._rules[key] = tried[-1]
        return position

    def free_target(self, propose: Callable[[], Sequence[Position]]) -> Position:
        """A target that reads the positions from `propose`: the first proposal that can be identified."""
        for _ in range(_READS_PER_TARGET):
            try:
                return self.target(*propose(), attempts=_OPERATIONS_PER_READS)
            except Rejected:
                continue
        raise Rejected


Family = Callable[[Builder, int, int | None], Iterator[Position]]


def chain(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """A recurrence: each target from the one before it and one or two new inputs."""
    per_step = 2 if builder.rng.random() < 0.3 and 2 * targets <= MOST_INPUTS else 1
    part = _Part(builder, tokens, reads=1 + per_step)
    yield from _recurrence(part, iter(part.input, None), targets, per_step, copies=part.chance())


def _recurrence(
    part: _Part, row: Iterator[Position], targets: int, per_step: int, *, copies: bool
) -> Iterator[Position]:
    """The first target copies the first input (`copies`), or reads it in place of an earlier target."""
    previous = next(row)
    if copies:
        previous = part.builder.copy(previous)
        yield previous
    for _ in range(targets - copies):
        previous = part.target(previous, *islice(row, per_step))
        yield previous


def opposed(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """Chains over rows of inputs, some from left to right, some from right to left, that may join at the end."""
    part = _Part(builder, tokens, reads=3)
    chains = part.number(min(2, targets), max(min(targets // 2, 4), min(2, targets)))
    meet = chains <= 3 and targets > 2 * chains and part.chance()
    lengths = [len(share) for share in np.array_split(range(targets - meet), chains)]
    shared_row = part.row(lengths[0] + 1) if part.chance(0.4) or targets + chains > MOST_INPUTS else None
    ends: list[Position] = []

    def run(index: int) -> Iterator[Position]:
        row = (shared_row or part.row(lengths[index] + 1))[: lengths[index] + 1]
        steps = iter(row if index % 2 else row[::-1])
        position = None
        for position in _recurrence(part, steps, lengths[index], 1, copies=shared_row is None and part.chance()):
            yield position
        if position is not None:
            ends.append(position)

    yield from _interleaved(part.rng, [run(index) for index in range(chains)])
    if meet:
        yield part.target(*ends)


def _interleaved(rng: np.random.Generator, parts: list[Iterator[Position]]) -> Iterator[Position]:
    running = list(parts)
    while running:
        index = rng.integers(len(running))
        position = next(running[index], None)
        if position is None:
            del running[index]
        else:
            yield position


def tree(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """A reduction: leaves read two or three inputs, other targets combine two or three that are not yet used."""
    arity = 3 if builder.rng.random() < 0.4 and 2 * targets < MOST_INPUTS else 2
    part = _Part(builder, tokens, reads=arity)
    leaves = 1 + (targets - 1) * (arity - 1) // arity
    open_ends: list[Position] = []
    for made in range(targets):
        combines = len(open_ends) >= 2 and (leaves == 0 or part.chance(0.4) or made == targets - 1)
        leaves -= not combines
        count = min(arity, len(open_ends)) if combines else 0
        children = [open_ends.pop(part.number(0, len(open_ends) - 1)) for _ in range(count)]
        open_ends.append(part.target(*children, *part.row(arity - count)))
        yield open_ends[-1]


def grid(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """A dynamic-programming table: a cell from its left and upper neighbours, sometimes a diagonal one and an input."""
    diagonal = builder.rng.random() < 0.3
    cell_input = builder.rng.random() < 0.6 and 2 * targets <= MOST_INPUTS
    part = _Part(builder, tokens, reads=2 + diagonal + cell_input)
    width = part.number(2, max(2, int(targets**0.5) + 1))
    cells: dict[tuple[int, int], Position] = {}

    def cell(row: int, column: int) -> Position:
        if (row, column) not in cells:
            cells[row, column] = part.input()  # the border
        return cells[row, column]

    for index in range(targets):
        row, column = divmod(index, width)
        reads = [cell(row, column - 1), cell(row - 1, column)]
        reads += [cell(row - 1, column - 1)] * diagonal
        cells[row, column] = part.target(*reads, *part.row(int(cell_input)))
        yield cells[row, column]


def lagged(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """An unrolled time series: 2-6 variables, each a function of 1-3 variables at lags 1-3. X is the first times."""
    part = _Part(builder, tokens, reads=3)
    variables = part.number(2, min(6, max(2, targets // 3)))
    longest_lag = part.number(1 if variables > 3 else 2, 3)
    choices = [(variable, lag) for variable in range(variables) for lag in range(1, longest_lag + 1)]
    counts = part.rng.choice([1, 2, 3], p=[0.1, 0.6, 0.3], size=variables).tolist()
    reads_of = [[choices[index] for index in part.rng.permutation(len(choices))[:count]] for count in counts]
    series = [part.row(longest_lag) for _ in range(variables)]
    for index in range(targets):
        time, variable = divmod(index, variables)
        reads = [series[source][longest_lag + time - lag] for source, lag in reads_of[variable]]
        series[variable].append(part.target(*reads, rule=variable))
        yield series[variable][-1]


def _network(builder: Builder, targets: int, tokens: int | None, kind: OperationSampler) -> Iterator[Position]:
    """Targets that read two or three inputs or earlier targets, mostly with at least one target among them."""
    part = _Part(builder, tokens, reads=3, kinds=(kind,))
    inputs = part.row(part.number(4, max(5, min(16, targets))))
    made: list[Position] = []

    def propose() -> list[Position]:
        reads = part.number(2, 3)
        from_targets = min(len(made), part.number(0 if part.chance(0.2) else 1, reads))
        recent = made[-8:]
        chosen = [recent[i] for i in part.rng.permutation(len(recent))[:from_targets]]
        chosen += [inputs[i] for i in part.rng.permutation(len(inputs))[: reads - len(chosen)]]
        return chosen

    for _ in range(targets):
        made.append(part.free_target(propose))
        yield made[-1]


def gates(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """A logic circuit."""
    del tokens  # bits
    return _network(builder, targets, 2, operations.gate)


def sums(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """Modular sums of two or three terms."""
    return _network(builder, targets, tokens, operations.modular_sum)


def carry(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """Digits of a + b or a - b in a small base, least significant first, sometimes with the last carry.

    The first carry follows from the inputs, so the second digit reads no target.
    """
    part = _Part(builder, tokens, reads=5)
    overflow = targets > 3 and part.chance()
    sign = 1 if part.chance() else -1
    places = targets - overflow
    a, b = part.row(places), part.row(places)
    if part.chance():
        a, b = a[::-1], b[::-1]  # most significant first, as numbers are written
    digits: list[Position] = []
    for place in range(targets):
        reads = [] if place == places else [a[place], b[place]]
        if place > 0:
            reads += [a[place - 1], b[place - 1]] + digits[-1:] * (place > 1)
        rule = partial(operations.digit_operation, part.tokens, sign=sign, reads=len(reads), overflow=place == places)
        digits.append(builder.target(reads, rule))
        yield digits[-1]


def pointer(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """y = x[p], where p is the sum of the last one or two targets plus a constant."""
    del tokens  # a token for each place of the table
    places = int(builder.rng.integers(5, 13))
    part = _Part(builder, places, reads=1)
    table = part.row(places)
    last = part.number(1, 2)
    if part.chance():
        recent = [part.builder.copy(table[0])]
        yield recent[0]
    else:
        recent = [part.input()]
    for _ in range(targets - (recent[0].kind == "y")):
        recent.append(builder.point(recent[-last:], table, part.number(0, places - 1)))
        yield recent[-1]


def shared(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """One common input for all targets; each target also reads an earlier target and a separate input."""
    part = _Part(builder, tokens, reads=3)
    common = part.input()
    made: list[Position] = []
    for _ in range(targets):
        earlier = part.pick(made[-3:]) if made else part.input()
        made.append(part.target(common, earlier, part.input()))
        yield made[-1]


def mixed(builder: Builder, targets: int, tokens: int | None) -> Iterator[Position]:
    """Two or three other families side by side, their columns interleaved."""
    part = _Part(builder, tokens, reads=4)
    choices = [chain, tree, grid, lagged, sums, shared, *([] if builder.reuse_inputs else [gates, pointer, opposed])]
    shares = [len(share) for share in np.array_split(range(targets), part.number(2, 3 if targets > 8 else 2))]
    alphabet = part.tokens if builder.reuse_inputs else None
    families: list[Family] = [part.pick(choices) for _ in shares]
    parts = [family(builder, share, alphabet) for family, share in zip(families, shares, strict=True) if share]
    return _interleaved(part.rng, parts)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.__name__: family
        for family in (chain, opposed, tree, grid, lagged, gates, sums, carry, pointer, shared, mixed)
    }
)


@lru_cache(maxsize=256)
def random_program(seed: int, family: str, targets: int) -> Program:
    """The first identifiable program drawn for this seed. Raises InputError if there is none among many draws."""
    for attempt in range(_PROGRAMS):
        rng = numpy_generator(derive_seed(seed, "random-program", family, targets, attempt))
        builder = Builder(rng, skewed=rng.random() < 0.3, reuse_inputs=family == "mixed" and rng.random() < 0.4)
        idle_inputs = int(rng.integers(1, 5)) if rng.random() < 0.3 else 0
        try:
            for _ in FAMILIES[family](builder, targets, None):
                pass
            return builder.finish(idle_inputs)
        except Rejected:
            continue
    raise InputError(
        f"task random: no program of family {family} with {targets} targets can be identified among {_PROGRAMS} "
        f"drawn with seed {seed}: use another seed or a length from 6 to 24"
    )


@final
@dataclass(frozen=True)
class RandomProgramTask(Task):
    """The samples of one program. A sample of n targets has the first n, and the inputs up to the last one read.

    After the program has run, a share `noise` of the targets is replaced by uniform tokens from the alphabet of the
    target. A hash of the input selects them, so that equal inputs have equal targets.
    """

    seed: int
    family: str
    noise: float
    program: Program

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {"seed": self.seed, "family": self.family, "noise": self.noise}

    def draw_inputs(self, samples: int, split: Split, rng: np.random.Generator) -> DrawnInputs:
        lengths = self.lengths.draw(samples, rng)
        inputs = self.program.draw_inputs(samples, rng)
        input_lengths = np.array([self.program.input_width(n) for n in range(self.longest + 1)])[lengths]
        return DrawnInputs(np.where(within(input_lengths, inputs.shape[1]), inputs, 0), input_lengths, lengths)

    def solve(self, inputs: IntArray, target_lengths: IntArray) -> IntArray:
        targets_NL = self.program.run(inputs)
        if self.noise > 0:
            self._add_noise(targets_NL, row_hashes(inputs, np.full(len(inputs), inputs.shape[1])))
        return np.where(within(target_lengths, self.longest), targets_NL, 0)

    def _add_noise(self, targets_NL: IntArray, hashes_N: np.ndarray) -> None:
        for index, node in enumerate(self.program.nodes):
            decides_N = mix64(hashes_N + np.uint64(index + 1))
            replaced_N = decides_N < np.uint64(int(self.noise * 2**64))
            drawn_N = mix64(decides_N) >> np.uint64(32)
            token_N = np.array(node.alphabet)[(drawn_N % np.uint64(len(node.alphabet))).astype(np.int64)]
            targets_NL[replaced_N, index] = token_N[replaced_N]

    def dependencies(self) -> DependencyGraph:
        return self.program.dependencies()


@register_task(
    "random", default_length=None, summary="a random program of known, identifiable dependencies, one for each seed"
)
def random(lengths: Lengths | None, seed: int = 0, family: str = "", noise: float = -1.0) -> RandomProgramTask:
    """The seed draws the family, 6 to 24 targets, and noise for a fifth of the seeds, unless they are set."""
    if seed < 0:
        raise InputError(f"task random: the seed must be 0 or more, received {seed}")
    if family not in ("", *FAMILIES):
        raise InputError(f"task random: no family {family!r}: use one of {', '.join(FAMILIES)}")
    if noise > 0.5 or np.isnan(noise):
        raise InputError(f"task random: noise must be from 0 to 0.5, or negative to draw it, received {noise}")
    rng = numpy_generator(derive_seed(seed, "random-program"))
    drawn_family = str(rng.choice(list(FAMILIES)))
    drawn_length = int(rng.integers(6, 24, endpoint=True))
    drawn_noise = round(float(rng.uniform(_LEAST_NOISE, _MOST_NOISE)), 3) if rng.random() < _NOISY_SHARE else 0.0
    family = family or drawn_family
    lengths = lengths or Lengths(drawn_length, drawn_length)
    most = MOST_INPUTS // 2 if family == "carry" else _MOST_TARGETS
    if not 2 <= lengths.longest <= most:
        raise InputError(f"task random: family {family} has from 2 to {most} targets, received length {lengths}")
    program = random_program(seed, family, lengths.longest)
    return RandomProgramTask("random", lengths, seed, family, drawn_noise if noise < 0 else noise, program)
