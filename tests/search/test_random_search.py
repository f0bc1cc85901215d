import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genorder.errors import InputError
from genorder.profiling import Profile
from genorder.search import Budget, RandomSearch, SearchProblem

MakeProblem = Callable[..., SearchProblem]


def profiles(problem: SearchProblem) -> list[Profile]:
    return [Profile.from_dict(job.result) for job in problem.journal.jobs()]


def test_winners_and_ties_meet_in_the_last_run(make_problem: MakeProblem) -> None:
    problem = make_problem()
    search = RandomSearch(runs=4, candidates=6)
    plan = search.plan(problem)
    result = search.propose(problem)
    assert [run.name for run in plan] == ["random 1", "random 2", "random 3", "random last"]
    assert [run.candidates for run in plan] == [6, 6, 6, 6]
    *firsts, last = profiles(problem)
    assert [stage.name for stage in result.stages] == [run.name for run in plan]
    drawn = [order for profile in firsts for order in profile.orders]
    assert len(set(drawn)) == len(drawn) == 18
    assert last.orders[:3] == [profile.best for profile in firsts]
    assert len(last.orders) == 6
    assert result.proposals[0].order == last.best
    assert {proposal.order for proposal in result.proposals} == set(last.orders)


def test_no_more_than_the_winners_the_seconds_and_the_ties(make_problem: MakeProblem) -> None:
    problem = make_problem()
    RandomSearch(runs=3, candidates=12).propose(problem)
    first, second, last = profiles(problem)
    allowed = {
        profile.orders[index]
        for profile in (first, second)
        for place, index in enumerate(profile.ranking.tolist())
        if place < 2 or profile.tied[index]
    }
    assert set(last.orders) <= allowed
    assert len(last.orders) == min(len(allowed), 12)


def test_the_same_again(make_problem: MakeProblem) -> None:
    search = RandomSearch(runs=3, candidates=4)
    results = [search.propose(make_problem()) for _ in range(2)]
    assert results[0].to_dict() == results[1].to_dict()
    problem = make_problem(seed=1)
    assert [p.order for p in search.propose(problem).proposals] != [p.order for p in results[0].proposals]
    assert len(problem.journal.jobs()) == 6


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_the_budget_is_kept(make_problem: MakeProblem, runs: int) -> None:
    problem = make_problem(budget=Budget(runs=runs, candidates=5))
    search = RandomSearch()
    plan = search.plan(problem)
    result = search.propose(problem)
    assert len(plan) == len(result.stages) == problem.runs == runs
    assert all(stage.candidates <= 5 for stage in result.stages)
    assert result.proposals[0].order == profiles(problem)[-1].best


def test_many_runs_of_few_candidates_leave_room_for_their_winners(make_problem: MakeProblem) -> None:
    problem = make_problem(budget=Budget(runs=9, candidates=2))
    result = RandomSearch().propose(problem)
    *firsts, last = profiles(problem)
    assert [stage.candidates for stage in result.stages] == [2, 2, 2]
    assert last.orders == [profile.best for profile in firsts]


def test_by_default(make_problem: MakeProblem) -> None:
    assert [run.candidates for run in RandomSearch().plan(make_problem(8))] == [1440] * 14
    assert len(RandomSearch().plan(make_problem(8, budget=Budget(runs=20)))) == 20
    assert len(RandomSearch(runs=3).plan(make_problem(8, budget=Budget(runs=20)))) == 3


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_targets(make_problem: MakeProblem, length: int) -> None:
    problem = make_problem(length)
    orders = math.factorial(problem.length)
    plan = RandomSearch().plan(problem)
    result = RandomSearch().propose(problem)
    assert [run.candidates for run in plan] == ([] if orders == 1 else [orders])
    assert len(result.stages) == len(plan)
    assert len({proposal.order for proposal in result.proposals}) == orders


def test_orders_run_out(make_problem: MakeProblem) -> None:
    problem = make_problem()
    search = RandomSearch(candidates=10)
    plan = search.plan(problem)
    result = search.propose(problem)
    assert [run.candidates for run in plan] == [8, 8, 8, 10]
    assert len(result.stages) == 4
    assert len({order for profile in profiles(problem)[:3] for order in profile.orders}) == 24


@pytest.mark.parametrize(("count", "stages"), [(1, 0), (3, 1), (5, 3)])
def test_orders_of_a_file(make_problem: MakeProblem, tmp_path: Path, count: int, stages: int) -> None:
    orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 2, 3], [0, 2, 1, 3], [2, 1, 0, 3]][:count]
    (tmp_path / "orders.json").write_text(json.dumps(orders))
    search = RandomSearch(candidates=4, init=str(tmp_path / "orders.json"))
    problem = make_problem()
    plan = search.plan(problem)
    result = search.propose(problem)
    assert len(plan) == len(result.stages) == stages
    assert list(result.proposals[0].order) in orders


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"runs": 0}, "runs 0: expected at least 1"),
        ({"candidates": 1}, "candidates 1: expected at least 2 per run"),
        ({"init": "nowhere"}, "initial pool 'nowhere': expected one of"),
    ],
)
def test_bad_settings(make_problem: MakeProblem, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RandomSearch(**settings).check(make_problem())
