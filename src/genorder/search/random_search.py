"""The baseline of equal cost: the same number of profiling runs, of independent random orders."""

import math
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, final

from genorder.errors import InputError
from genorder.orders import Order, deduplicated
from genorder.profiling import Profile
from genorder.search.base import PlannedRun, Proposal, Search, SearchProblem, SearchResult, proposals_of
from genorder.search.initial_pool import check_initial_pool, initial_pool
from genorder.seeding import derive_seed, numpy_generator

DEFAULT_RUNS = 14
_LAST = "random last"


@final
@dataclass(frozen=True)
class RandomSearch(Search):
    """All runs but the last profile new orders; the last run profiles their winners.

    Losses of different runs are those of different models, so the winners cannot be compared without the last run.
    """

    name: ClassVar[str] = "random"

    runs: int | None = None  # None: those of the budget, or else DEFAULT_RUNS
    candidates: int = 1_440  # per run: 2 x 6!, as in the global-local search at depth 6
    init: str = "random"

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InputError(f"runs {self.runs}: expected at least 1")
        if self.candidates < 2:
            raise InputError(f"candidates {self.candidates}: expected at least 2 per run")

    def check(self, problem: SearchProblem) -> None:
        check_initial_pool(self.init, problem.source, problem.constraints)

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        steps, candidates = problem.profiler.training.steps, self._candidates(problem)
        pool = self._pool(problem)
        if len(pool) == 1:
            return []
        groups = _groups(pool, candidates)
        runs = [PlannedRun(_name(number), len(group), steps) for number, group in enumerate(groups, start=1)]
        # The number of ties is not known yet, so the plan holds the most candidates that may take part.
        last = PlannedRun(_LAST, problem.count_orders(candidates), steps)
        return [*runs, last] if self._has_last_run(problem, pool) else runs

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        candidates, pool = self._candidates(problem), self._pool(problem)
        if len(pool) == 1:
            return SearchResult([Proposal(pool[0])], [])
        has_last_run = self._has_last_run(problem, pool)
        survivors: list[list[Order]] = []
        for number, group in enumerate(_groups(pool, candidates), start=1):
            found = problem.profile(_name(number), group, keep=2 if has_last_run else 1)
            survivors.append(_survivors(found))
        if has_last_run:
            # All winners, then the second of each run, and so on: there may not be room for all.
            by_place = [order for places in zip_longest(*survivors) for order in places if order is not None]
            found = problem.profile(_LAST, by_place[:candidates])
        return SearchResult(proposals_of(found), problem.stages)

    def _pool(self, problem: SearchProblem) -> list[Order]:
        """The orders of all runs but the last, without duplicates; fewer if the initial pool has no more."""
        candidates = self._candidates(problem)
        runs = min(max(1, self._runs(problem) - 1), candidates)  # the last run must have room for all winners
        rng = numpy_generator(derive_seed(problem.seed, "initial pool"))
        return deduplicated(initial_pool(self.init, runs * candidates, problem.source, rng, problem.constraints))

    def _has_last_run(self, problem: SearchProblem, pool: list[Order]) -> bool:
        """Whether there is a last run; not if a single run has all orders."""
        return self._runs(problem) > 1 and len(pool) >= self._candidates(problem)

    def _runs(self, problem: SearchProblem) -> int:
        allowed = problem.budget.runs
        wanted = self.runs or allowed or DEFAULT_RUNS
        return min(wanted, allowed or wanted)

    def _candidates(self, problem: SearchProblem) -> int:
        return min(self.candidates, problem.budget.candidates or self.candidates)


def _groups(pool: list[Order], candidates: int) -> list[list[Order]]:
    """The pool in groups of at most `candidates` orders, whose sizes differ by at most one."""
    runs = math.ceil(len(pool) / candidates)
    return [pool[number::runs] for number in range(runs)]


def _survivors(found: Profile) -> list[Order]:
    """The best two, then all others that are tied with the best."""
    ranking = found.ranking.tolist()
    return [found.orders[index] for place, index in enumerate(ranking) if place < 2 or found.tied[index]]


def _name(number: int) -> str:
    return f"random {number}"
