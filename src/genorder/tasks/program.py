"""Programs over tokens, and a builder that accepts only programs whose dependencies can be identified from samples.

Positions are inputs (x0, x1, ...) and targets (y0, y1, ...), the targets in a topological order. A target's
*determinant* is the set of positions that it reads. The builder rejects a target for which samples allow another
determinant as simple as the true one, so the determinants of an accepted program are its ground truth.

Axes: N samples, W inputs, L targets, M pairs of samples, P positions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, final

import numpy as np

from genorder.orders import DependencyGraph
from genorder.tasks.base import IntArray
from genorder.tasks.operations import Copy, Operation, Pointer, joint_code

MOST_INPUTS = 48
# The most combinations of tokens that a determinant may have: 100,000 samples contain each of them often enough.
LARGEST_DETERMINANT = 4_096
_SAMPLES = 4_000  # the samples on which a program is checked
_LARGEST_SHARE = 0.85  # of the most frequent token of a target
_LEAST_EFFECT = 0.03  # the smallest share of samples in which each token read must matter
_FEWEST_INPUT_ROWS = 4_096  # the fewest possible inputs: enough for three disjoint splits


class Rejected(Exception):
    """This program cannot be identified from its samples: draw another."""


class Position(NamedTuple):
    kind: str  # "x" or "y"
    column: int

    def __str__(self) -> str:
        return f"{self.kind}{self.column}"


@final
@dataclass(frozen=True)
class InputColumn:
    """An input with the tokens 0..n-1; `cumulative[t]` is the probability of a token up to t."""

    cumulative: tuple[float, ...]

    @property
    def tokens(self) -> int:
        return len(self.cumulative)

    def draw(self, uniform_N: np.ndarray) -> IntArray:
        """Tokens for numbers that are uniform in 0..1."""
        return np.searchsorted(np.array(self.cumulative[:-1]), uniform_N, side="right").astype(np.int64)


@final
@dataclass(frozen=True)
class Node:
    """A target: an operation, the positions that it reads, and the tokens of its result."""

    reads: tuple[Position, ...]
    operation: Operation
    alphabet: tuple[int, ...]

    def columns(self, kind: str) -> tuple[int, ...]:
        return tuple(sorted(position.column for position in self.reads if position.kind == kind))


@final
@dataclass(frozen=True)
class Program:
    inputs: tuple[InputColumn, ...]
    nodes: tuple[Node, ...]

    def draw_inputs(self, samples: int, rng: np.random.Generator) -> IntArray:
        uniform_NW = rng.random((samples, len(self.inputs)))
        columns = [column.draw(uniform_NW[:, index]) for index, column in enumerate(self.inputs)]
        return np.stack(columns, axis=1)

    def run(self, inputs_NW: IntArray) -> IntArray:
        """The targets (N, L)."""
        values = {Position("x", index): x_N for index, x_N in enumerate(np.ascontiguousarray(inputs_NW.T))}
        for index, node in enumerate(self.nodes):
            values[Position("y", index)] = node.operation.apply([values[read] for read in node.reads])
        return np.stack([values[Position("y", index)] for index in range(len(self.nodes))], axis=1)

    def input_width(self, targets: int) -> int:
        """The number of inputs that the first targets need; all inputs for the whole program."""
        if targets == len(self.nodes):
            return len(self.inputs)
        return 1 + max((max(node.columns("x"), default=0) for node in self.nodes[:targets]), default=0)

    def dependencies(self) -> DependencyGraph:
        return DependencyGraph(
            targets=len(self.nodes),
            parents=tuple(node.columns("y") for node in self.nodes),
            input_parents=tuple(node.columns("x") for node in self.nodes),
            input_copies=frozenset(i for i, node in enumerate(self.nodes) if isinstance(node.operation, Copy)),
        )

    def describe(self) -> list[str]:
        """A line such as `y3 = (2 y1 + x4) mod 7` for each target; indices count from 0."""
        return [
            f"y{index} = {node.operation.describe([str(read) for read in node.reads])}"
            for index, node in enumerate(self.nodes)
        ]


class Builder:
    """Adds inputs and targets to a program, checking each target on samples. Raises Rejected."""

    def __init__(self, rng: np.random.Generator, *, skewed: bool = False, reuse_inputs: bool = False) -> None:
        self.rng = rng
        self._skewed = skewed
        self.reuse_inputs = reuse_inputs
        self._inputs: list[InputColumn] = []
        self._nodes: list[Node] = []
        self._values: dict[Position, IntArray] = {}  # (N,) each
        self._sizes: dict[Position, int] = {}

    def input(self, tokens: int) -> Position:
        """A new input with the tokens 0..tokens-1, or sometimes an existing one if inputs may be reused."""
        alike = [position for position, size in self._sizes.items() if position.kind == "x" and size == tokens]
        if self.reuse_inputs and alike and self.rng.random() < 0.3:
            return alike[self.rng.integers(len(alike))]
        if len(self._inputs) == MOST_INPUTS:
            raise Rejected
        weights = np.exp(self.rng.normal(0, 0.7, size=tokens)) if self._skewed else np.ones(tokens)
        column = InputColumn(tuple((np.cumsum(weights) / weights.sum()).tolist()))
        position = Position("x", len(self._inputs))
        self._inputs.append(column)
        self._values[position] = column.draw(self.rng.random(_SAMPLES))
        self._sizes[position] = tokens
        return position

    def copy(self, read: Position) -> Position:
        """A target that repeats an input."""
        return self._add((read,), Copy(), self._sizes[read])

    def point(self, pointers: Sequence[Position], table: Sequence[Position], shift: int) -> Position:
        """A target that repeats the input of `table` to which the tokens of `pointers` point."""
        return self._add((*pointers, *table), Pointer(len(table), shift), max(self._sizes[x] for x in table))

    def target(self, reads: Sequence[Position], draw: Callable[[], Operation], *, attempts: int = 1) -> Position:
        """A target with an operation from `draw`: the first of `attempts` draws that makes it identifiable."""
        sizes = [self._sizes[read] for read in reads]
        if len(set(map(self._original, reads))) < len(reads) or prod(sizes) > LARGEST_DETERMINANT:
            raise Rejected
        if any(set(node.reads) == set(reads) for node in self._nodes) or self._has_other_cut(reads):
            raise Rejected
        for _ in range(attempts):
            try:
                return self._add(tuple(reads), draw(), sizes[0])
            except Rejected:
                continue
        raise Rejected

    def finish(self, idle_inputs: int) -> Program:
        """The program with `idle_inputs` inputs that no target reads, and with more if there are too few input rows."""
        for index, node in enumerate(self._nodes):
            if self._has_alternative(node, self._values[Position("y", index)], self._not_after(index)):
                raise Rejected
        self.reuse_inputs = False
        tokens = self._inputs[-1].tokens
        while idle_inputs > 0 or prod(column.tokens for column in self._inputs) < _FEWEST_INPUT_ROWS:
            self.input(tokens)
            idle_inputs -= 1
        return Program(tuple(self._inputs), tuple(self._nodes))

    def _add(self, reads: tuple[Position, ...], operation: Operation, size: int) -> Position:
        result_N = operation.apply([self._values[read] for read in reads])
        counts = np.bincount(result_N)
        if not isinstance(operation, Copy) and counts.max() > _LARGEST_SHARE * _SAMPLES:
            raise Rejected
        if isinstance(operation, Pointer | Copy):
            subsets: list[tuple[Position, ...]] = []
        else:
            subsets = [tuple(read for read in reads if read != omitted) for omitted in reads if len(reads) > 1]
        subsets += [(position,) for position in self._values if reads != (position,)]
        if any(self._unexplained(result_N, subset) < _LEAST_EFFECT for subset in subsets):
            raise Rejected
        node = Node(reads, operation, tuple(np.flatnonzero(counts).tolist()))
        if self._has_alternative(node, result_N, list(self._values)):
            raise Rejected
        position = Position("y", len(self._nodes))
        self._values[position], self._sizes[position] = result_N, size
        earlier = [self._values[Position("y", index)] for index in range(len(self._nodes))]
        mirrored = not isinstance(operation, Pointer | Copy) and self._has_mirror_image(reads, position)
        if mirrored or any(self._unexplained(values_N, (position,)) < _LEAST_EFFECT for values_N in earlier):
            del self._values[position], self._sizes[position]
            raise Rejected
        self._nodes.append(node)
        return position

    def _has_mirror_image(self, reads: Sequence[Position], target: Position) -> bool:
        """Whether positions without some ancestor determine the target, and are no more than the ancestor reads.

        Then the program could also compute the target first and solve for the ancestor. For instance, in
        y0 = x0 + x1 + x2, y1 = y0 + x2, both are sums of three inputs, and each is the other plus or minus x2.
        """
        ancestors: set[Position] = set()  # those that can be solved for, step by step
        waiting = [(target, tuple(reads))]
        while waiting:
            position, of_position = waiting.pop()
            for read in of_position:
                node = self._nodes[read.column] if read.kind == "y" else None
                if node is None or read in ancestors or isinstance(node.operation, Pointer | Copy):
                    continue
                solved = [position, *(other for other in of_position if other != read)]
                if self._unexplained(self._values[read], solved) == 0:
                    ancestors.add(read)
                    waiting.append((read, node.reads))
        larger = [p for p in ancestors if len(self._nodes[p.column].reads) > len(reads)]
        if not larger:
            return False
        free = [{*self._not_after(ancestor.column)} for ancestor in larger]
        positions = [position for position in set.union(*free) if position != target]
        most = max(prod(self._sizes[read] for read in self._nodes[p.column].reads) for p in larger)
        return any(
            any(
                len(found) <= len(self._nodes[p.column].reads) and without >= found
                for p, without in zip(larger, free, strict=True)
            )
            for found in self._determinants(self._values[target], sorted(positions), 2 * most, 3)
        )

    def _unexplained(self, result_N: IntArray, positions: Sequence[Position]) -> float:
        """The share of samples whose token is not the most frequent one given the tokens of `positions`."""
        sizes = [self._sizes[position] for position in positions]
        tokens = int(result_N.max()) + 1
        code_N = joint_code([self._values[position] for position in positions], sizes)
        counts = np.bincount(code_N * tokens + result_N, minlength=prod(sizes) * tokens)
        return float(1 - counts.reshape(-1, tokens).max(axis=1).sum() / len(result_N))

    def _original(self, position: Position) -> Position:
        """The input of which this position is a copy, or the position itself."""
        node = self._nodes[position.column] if position.kind == "y" else None
        return node.reads[0] if node is not None and isinstance(node.operation, Copy) else position

    def _has_other_cut(self, reads: Sequence[Position]) -> bool:
        """Whether another set of positions, not larger than `reads`, cuts all paths from the inputs to the target.

        Then the target is also a function of that set. By Menger's theorem there is such a set without the position p
        exactly if at most len(reads) paths are disjoint except for p.
        """
        from scipy.sparse import csr_array  # slow to import
        from scipy.sparse.csgraph import maximum_flow

        sources = [self._original(read) for read in reads]
        node_of = {position: index for index, position in enumerate(self._values)}
        origin, sink, many = 2 * len(node_of), 2 * len(node_of) + 1, len(reads) + 1
        edges = [(2 * node, 2 * node + 1, 1) for node in node_of.values()]
        for position, node in node_of.items():
            if position.kind == "x":
                edges.append((origin, 2 * node, many))
            else:
                read_by = self._nodes[position.column].reads
                edges += [(2 * node_of[self._original(read)] + 1, 2 * node, many) for read in read_by]
        edges += [(2 * node_of[source] + 1, sink, many) for source in sources]
        tails, heads, capacities = np.array(edges, dtype=np.int32).T
        for source in sources:
            if source.kind == "y":
                free = np.where(tails == 2 * node_of[source], many, capacities)
                network = csr_array((free, (tails, heads)), shape=(sink + 1, sink + 1), dtype=np.int32)
                if maximum_flow(network, origin, sink).flow_value <= len(reads):
                    return True
        return False

    def _not_after(self, target: int) -> list[Position]:
        """All positions except the target and those computed from it."""
        after = {Position("y", target)}
        for index in range(target + 1, len(self._nodes)):
            if after & set(self._nodes[index].reads):
                after.add(Position("y", index))
        return [position for position in self._values if position not in after]

    def _has_alternative(self, node: Node, result_N: IntArray, positions: Sequence[Position]) -> bool:
        """Whether two or three other `positions` determine the target, with about as few combinations of tokens.

        A set of positions does not determine a target if two samples agree on the set, but not on the target.
        `positions` exclude all that is computed from the target, because it is not known before the target.
        """
        if isinstance(node.operation, Pointer | Copy):
            return False
        reads = {self._original(read) for read in node.reads}
        largest = 2 * prod(self._sizes[read] for read in reads)
        return any(found != reads for found in self._determinants(result_N, positions, largest, min(len(reads), 3)))

    def _determinants(
        self, result_N: IntArray, positions: Sequence[Position], largest: int, size: int
    ) -> Iterator[set[Position]]:
        """The sets of 2 to `size` positions with up to `largest` combinations of tokens that determine the result."""
        positions = [position for position in positions if self._original(position) == position]
        pairs = min(max(20 * largest, 2_000), 40_000)
        first_M, second_M = self.rng.integers(_SAMPLES, size=(2, pairs))
        differs_M = result_N[first_M] != result_N[second_M]
        first_M, second_M = first_M[differs_M], second_M[differs_M]
        agree_MP = np.stack([self._values[p][first_M] == self._values[p][second_M] for p in positions], axis=1)
        sizes_P = np.array([self._sizes[p] for p in positions])
        for chosen in _never_agreeing(agree_MP.astype(np.float32), sizes_P, largest, size):
            found = [positions[index] for index in chosen]
            if self._unexplained(result_N, found) == 0:
                yield set(found)


def _never_agreeing(agree_MP: np.ndarray, sizes_P: IntArray, largest: int, positions: int) -> list[tuple[int, ...]]:
    """The sets of 2 to `positions` positions with up to `largest` combinations on which no pair of samples agrees."""
    found: list[tuple[int, ...]] = []
    if positions >= 2:
        joint_PP = agree_MP.T @ agree_MP
        allowed_PP = np.triu(np.outer(sizes_P, sizes_P) <= largest, k=1)
        found += [(int(a), int(b)) for a, b in np.argwhere((joint_PP == 0) & allowed_PP)]
    if positions == 3:
        for c in range(2, agree_MP.shape[1]):
            rest = agree_MP[agree_MP[:, c] > 0, :c]
            joint_PP = rest.T @ rest
            allowed_PP = np.triu(np.outer(sizes_P[:c], sizes_P[:c]) * sizes_P[c] <= largest, k=1)
            found += [(int(a), int(b), c) for a, b in np.argwhere((joint_PP == 0) & allowed_PP)]
    return found
