"""The paper's search: permutations of ever more blocks, then refinement within and between ever larger blocks.

The functions on blocks give orders over steps: compose a parent with them.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from genorder.errors import InputError
from genorder.orders import Order, deduplicated, distinct_orders
from genorder.profiling import Profile
from genorder.search.base import (
    MOST_PROPOSALS,
    PlannedRun,
    Proposal,
    Search,
    SearchProblem,
    SearchResult,
    proposals_of,
)
from genorder.search.initial_pool import check_initial_pool, initial_pool
from genorder.seeding import derive_seed, numpy_generator

CANDIDATE_LIMIT = 20_000  # of one profiling run, unless the budget has another limit


@final
@dataclass(frozen=True)
class GlobalLocal(Search):
    """`depth` is the paper's K: the global stage profiles 2 K! candidates in each of its K runs."""

    name: ClassVar[str] = "global-local"

    depth: int = 6
    init: str = "random"
    local: bool = True
    local_candidates: int = 720  # the most in one run of the local stage; a random sample if there are more

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError(f"--depth {self.depth}: expected a number of blocks, at least 1")
        if self.local_candidates < 2:
            raise InputError(f"local candidates {self.local_candidates}: expected at least 2")

    def check(self, problem: SearchProblem) -> None:
        check_initial_pool(self.init, problem.source, problem.constraints)
        limit = problem.budget.candidates or CANDIDATE_LIMIT
        depth = self._depth(problem.length)
        needed = 2 * math.factorial(depth)
        if needed > limit:
            raise InputError(
                f"--depth {self.depth} profiles 2 x {depth}! = {needed:,} candidates in one run, above the limit "
                f"of {limit:,}; take a smaller --depth, or allow more with --max-candidates"
            )

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        length, steps = problem.length, problem.profiler.training.steps
        if problem.only_order:
            return []
        depth = self._depth(length)
        largest = problem.count_orders(2 * math.factorial(depth))
        runs = [PlannedRun(f"global {k}", largest, steps) for k in range(1, depth + 1)]
        for size in self._local_sizes(length):
            inner = sum(math.factorial(len(block)) - 1 for block in sized_blocks(length, size)) + 1
            whole = math.factorial(length // size)
            for kind, candidates in (("within", inner), ("between", whole)):
                most = problem.count_orders(min(candidates, self._most_local(problem)))
                runs.append(PlannedRun(f"local {size} {kind}", most, steps))
        return runs[: problem.budget.runs]

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.only_order:
            return SearchResult([Proposal(problem.only_order)], [])
        found = self._global_stage(problem)
        after_global = found.best
        for size in self._local_sizes(problem.length):
            for kind in ("within", "between"):
                if problem.may_profile():
                    found = self._local_run(problem, found.best, size, kind) or found
        proposals = proposals_of(found)
        if all(proposal.order != after_global for proposal in proposals):
            proposals = [*proposals[: MOST_PROPOSALS - 1], Proposal(after_global)]
        return SearchResult(proposals, problem.stages)

    def _global_stage(self, problem: SearchProblem) -> Profile:
        depth = self._depth(problem.length)
        rng = numpy_generator(derive_seed(problem.seed, "initial pool"))
        survivors = initial_pool(self.init, math.factorial(depth), problem.source, rng, problem.constraints)
        found: Profile | None = None
        for blocks in range(1, depth + 1):
            if not problem.may_profile():
                break
            kept = max(1, math.factorial(depth) // math.factorial(blocks + 1))
            found = problem.profile(f"global {blocks}", block_family(survivors, blocks), kept)
            survivors = [found.orders[index] for index in found.ranking[:kept].tolist()]
        assert found is not None  # a budget allows at least one run
        return found

    def _local_run(self, problem: SearchProblem, parent: Order, size: int, kind: str) -> Profile | None:
        """The profile of one run of the local stage; None if the constraints leave nothing to change."""
        name = f"local {size} {kind}"
        rng = numpy_generator(derive_seed(problem.seed, name))
        blocks = sized_blocks(problem.length, size)
        most = self._most_local(problem)
        if kind == "within":
            arrangements = some_inner_arrangements(blocks, most, rng)
        else:
            remainder = 1 if problem.length % size else 0
            arrangements = some_block_arrangements(blocks, remainder, most, rng)
        family = problem.allowed([parent.compose(arrangement) for arrangement in arrangements])
        return problem.profile(name, family) if len(family) > 1 else None

    def _depth(self, length: int) -> int:
        return min(self.depth, length)

    def _local_sizes(self, length: int) -> range:
        return range(2, length // 2 + 1) if self.local else range(0)

    def _most_local(self, problem: SearchProblem) -> int:
        return min(self.local_candidates, problem.budget.candidates or self.local_candidates)


def even_blocks(length: int, count: int) -> list[list[int]]:
    """The steps in `count` blocks; the first ones are longer by one if `count` does not divide the length."""
    return [part.tolist() for part in np.array_split(np.arange(length), count)]


def sized_blocks(length: int, size: int) -> list[list[int]]:
    """The steps in blocks of `size`; the last block may be shorter."""
    return [list(range(start, min(start + size, length))) for start in range(0, length, size)]


def block_arrangements(blocks: Sequence[Sequence[int]], fixed: int = 0) -> Iterator[Order]:
    """Every sequence of the blocks, the unchanged one first; the last `fixed` blocks stay at the end."""
    moving, staying = blocks[: len(blocks) - fixed], blocks[len(blocks) - fixed :]
    for arranged in itertools.permutations(moving):
        yield Order.of(itertools.chain(*arranged, *staying))


def block_family(parents: Sequence[Order], count: int) -> list[Order]:
    """The candidates of one run of the global stage: every arrangement of each parent's blocks, and its reversal."""
    length = len(parents[0])
    arrangements = list(block_arrangements(even_blocks(length, count)))
    reversal = Order.reverse(length)
    return deduplicated(
        order
        for parent in parents
        for arranged in (parent.compose(arrangement) for arrangement in arrangements)
        for order in (arranged, arranged.compose(reversal))
    )


def some_block_arrangements(
    blocks: Sequence[Sequence[int]], fixed: int, count: int, rng: np.random.Generator
) -> list[Order]:
    """All block arrangements, or `count` of them if there are more: the unchanged one and a random sample."""
    moving, staying = blocks[: len(blocks) - fixed], blocks[len(blocks) - fixed :]
    if math.factorial(len(moving)) <= count:
        return list(block_arrangements(blocks, fixed))

    def draw() -> list[Order]:
        shuffled = [moving[index] for index in rng.permutation(len(moving)).tolist()]
        return [Order.of(itertools.chain(*shuffled, *staying))]

    return distinct_orders(draw, count, first=[Order.of(itertools.chain(*blocks))])


def some_inner_arrangements(blocks: Sequence[Sequence[int]], count: int, rng: np.random.Generator) -> list[Order]:
    """Every order of the steps within one block at a time, the unchanged one first; or `count` of them at random."""
    unchanged = Order.of(itertools.chain(*blocks))
    if sum(math.factorial(len(block)) for block in blocks) <= count:
        found = [
            Order.of(itertools.chain(*blocks[:number], inner, *blocks[number + 1 :]))
            for number, block in enumerate(blocks)
            for inner in itertools.permutations(block)
        ]
        return deduplicated([unchanged, *found])

    def draw() -> list[Order]:
        number = int(rng.integers(len(blocks)))
        inner = rng.permutation(blocks[number]).tolist()
        return [Order.of(itertools.chain(*blocks[:number], inner, *blocks[number + 1 :]))]

    return distinct_orders(draw, count, first=[unchanged])
