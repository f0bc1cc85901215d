"""How long a discovery will take, and how much of it fits into a time."""

import math
from dataclasses import replace

import pytest

from genorder import estimates as module
from genorder.errors import InputError
from genorder.estimates import Estimate, budget_within, estimated
from genorder.orders import Constraints
from genorder.race import expected_steps
from genorder.search import AnyOrder, Budget, Dependencies, PlannedRun, Search, SearchEstimate, SearchProblem
from test_discovery import SEARCH, small

RACE_SECONDS = 10.0


def estimate_of(
    search: Search, problem: SearchProblem, step_seconds: float, other_seconds: float, more_race: float = 0.0
) -> Estimate:
    """As measured, but for the seconds of a step and of everything else, and of the race."""
    measured = replace(search.estimate(problem), step_seconds=step_seconds, other_seconds=other_seconds)
    return Estimate({"propose": measured.seconds, "race": RACE_SECONDS}, measured, more_race)


@pytest.mark.parametrize("search", [SEARCH, AnyOrder(), Dependencies()], ids=lambda search: search.name)
@pytest.mark.parametrize("constraints", [Constraints(keep_first=1), Constraints(keep_first=3)], ids=str)
def test_estimates_under_constraints(search: Search, constraints: Constraints) -> None:
    """One of them leaves a single order: nothing to propose, and a race of one."""
    free, discovery = small(search), small(search, constraints=constraints)
    problem = discovery.problem
    estimate = estimated(discovery, problem).parts
    assert all(seconds >= 0 and math.isfinite(seconds) for seconds in estimate.values())
    assert (estimate["propose"] == 0) == (constraints.keep_first == 3)
    assert (budget_within(3600, discovery, problem) == Budget()) == (constraints.keep_first == 3)
    assert len(discovery.search.plan(problem)) <= len(free.search.plan(free.problem))


def test_estimates() -> None:
    discovery = small()
    problem = discovery.problem
    whole, alone, exploring = (
        estimated(changed, problem).parts
        for changed in (discovery, replace(discovery, baseline=False), replace(discovery, explore_only=True))
    )
    assert problem.journal.jobs() == []
    assert set(whole) == set(alone) == {"propose", "race", "train"}
    assert set(exploring) == {"propose", "race"}
    assert all(seconds > 0 and math.isfinite(seconds) for seconds in whole.values())


@pytest.mark.parametrize(
    ("seconds", "allowed", "runs"), [(34.0, None, 2), (100.0, None, 9), (100.0, 3, 3), (20.0, None, 1)]
)
def test_runs_that_fit_into_a_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, allowed: int | None, runs: int
) -> None:
    """The race takes 10 seconds here, and each of the four planned runs 10."""
    discovery = small(budget=Budget(runs=allowed, candidates=99))
    problem = replace(discovery, budget=Budget()).problem
    planned = sum(run.steps for run in discovery.search.plan(problem))
    estimate = estimate_of(discovery.search, problem, 30.0 / planned, 10.0)
    monkeypatch.setattr(module, "estimated", lambda *_: estimate)
    assert budget_within(seconds, discovery, problem) == Budget(runs=runs, candidates=99)
    with pytest.raises(InputError, match="--budget 19 s is too small for one profiling run and the race after it"):
        budget_within(19, discovery, problem)


@pytest.mark.parametrize(("seconds", "steps"), [(115.0, 474), (215.0, 1674), (75.5, None), (9.0, None)])
def test_steps_that_fit_into_a_time(monkeypatch: pytest.MonkeyPatch, seconds: float, steps: int | None) -> None:
    """The race takes 10 seconds and what comes beside training 65.5, whatever the steps; twelve steps take one."""
    discovery = small(AnyOrder(rounds=1))
    problem = discovery.problem
    planned = sum(run.steps for run in discovery.search.plan(problem))
    estimate = estimate_of(discovery.search, problem, 1 / 12, 65.5)
    assert estimate.search.steps == planned
    monkeypatch.setattr(module, "estimated", lambda *_: estimate)
    if steps is None:
        with pytest.raises(InputError, match="is too small"):
            budget_within(seconds, discovery, problem)
    else:
        assert budget_within(seconds, discovery, problem).steps == steps


def test_what_converges_late_takes_its_training_longer() -> None:
    runs = [PlannedRun("one", 2, 100, 50), PlannedRun("two", 2, 200)]
    search = SearchEstimate(runs=runs, step_seconds=0.1, other_seconds=10.0, proposals=2, most_proposals=2)
    estimate = Estimate({"propose": search.seconds, "race": 10.0}, search)
    assert (estimate.total, search.steps, search.seconds) == (50.0, 300, 40.0)
    assert estimate.more_seconds == 5.0
    assert replace(estimate, search=replace(search, runs=[])).more_seconds == 0.0
    assert replace(estimate, more_race=3.0).more_seconds == 8.0
    assert replace(estimate, search=replace(search, runs=[]), more_race=3.0, slow=2.0).more_seconds == 5.0


def test_what_may_not_be_trained_at_all_is_no_part_of_the_estimate() -> None:
    """Mining may be enough. If it is not, all steps come on top."""
    discovery = small(Dependencies())
    problem = discovery.problem
    runs = discovery.search.plan(problem)
    estimate = estimated(discovery, problem)
    (planned,) = runs
    alone = AnyOrder().plan(problem)[0]
    assert (planned.steps, planned.more_steps) == (0, alone.steps + alone.more_steps)
    assert estimate.search.steps == 0
    assert estimate.parts["propose"] == estimate.search.other_seconds > 0
    more = estimate.search.step_seconds * planned.more_steps
    assert estimate.more_seconds == pytest.approx(estimate.more_race + estimate.slow + more)


@pytest.mark.parametrize(
    ("search", "asked", "expected"),
    [
        (AnyOrder(), Budget(), (4, 7)),
        (AnyOrder(rounds=1), Budget(), (4, 5)),
        (AnyOrder(), Budget(candidates=3), (3, 3)),
        (AnyOrder(restarts=6), Budget(), (6, 8)),  # the first of each model is raced
        (AnyOrder(), Budget(proposals=2), (2, 2)),
        (Dependencies(), Budget(), (3, 7)),
        (SEARCH, Budget(), (8, 8)),
    ],
    ids=str,
)
def test_orders_that_are_raced(search: Search, asked: Budget, expected: tuple[int, int]) -> None:
    """At 4 targets there are 24 orders; the given one and its reverse are raced too."""
    discovery = small(search, budget=asked)
    estimate = estimated(discovery, discovery.problem)
    race, most = discovery.config.race, discovery.config.final.training.steps
    steps = [expected_steps(race, most, proposals + 2) for proposals in expected]
    assert (estimate.parts["race"] + estimate.more_race) / estimate.parts["race"] == pytest.approx(steps[1] / steps[0])


@pytest.mark.parametrize(
    ("seconds", "steps", "proposals"),
    [
        (100.0, 400, None),  # 7 more seconds of racing, 10 as reckoned with, 83 for proposing
        (37.0, 85, None),
        (36.9, 119.5, 4),  # 26.9 seconds for proposing, not enough less than 20 for more of the race
        (30.0, 85, 4),
    ],
)
def test_orders_that_fit_into_a_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, steps: float, proposals: int | None
) -> None:
    """All orders that may come are raced if what is planned fits in beside them: 20 seconds, 3 of them not training."""
    discovery = small(AnyOrder())
    problem = discovery.problem
    planned = sum(run.steps for run in discovery.search.plan(problem))
    monkeypatch.setattr(
        module,
        "estimated",
        lambda _, problem: estimate_of(discovery.search, problem, 17 / planned, 3.0, more_race=7.0),
    )
    assert budget_within(seconds, discovery, problem) == Budget(steps=int(steps * planned / 85), proposals=proposals)
    fewer = replace(discovery, budget=Budget(proposals=2))
    problem.budget = fewer.budget
    assert budget_within(seconds, fewer, problem).proposals == 2


def test_an_unlimited_number_of_proposals_is_no_part_of_a_run() -> None:
    """Run directories that were begun before there was such a limit can be continued."""
    assert Budget(runs=3).described() == {"runs": 3, "candidates": None, "steps": None}
    assert Budget(proposals=2).described()["proposals"] == 2
