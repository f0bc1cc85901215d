"""The paper's search: block permutations of ever more blocks, then refinement within ever larger blocks."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from genorder.errors import InputError
from genorder.orders import Order
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
from genorder.search.blocks import (
    block_family,
    sized_blocks,
    some_block_arrangements,
    some_inner_arrangements,
)
from genorder.search.initial_pool import check_initial_pool, initial_pool
from genorder.seeding import derive_seed, numpy_generator

CANDIDATE_LIMIT = 20_000  # of one profiling run, unless the budget allows more


@final
@dataclass(frozen=True)
class GlobalLocal(Search):
    """`depth` is the paper's K: the global stage profiles 2 K! candidates in each of its K runs."""

    name: ClassVar[str] = "global-local"

    depth: int = 6
    init: str = "random"
    local: bool = True
    local_candidates: int = 720  # of one run of the local stage; above it a random sample is profiled

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
        """None where the constraints leave nothing to change."""
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
