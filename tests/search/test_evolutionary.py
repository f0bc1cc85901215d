import math
from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.errors import InputError, Interrupted
from genorder.execution import StopRequest
from genorder.orders import Order, random_orders
from genorder.search import Budget, Evolutionary, SearchProblem, SearchResult
from genorder.search.evolutionary import next_generation, partially_mapped
from genorder.seeding import numpy_generator
from genorder.store import Journal

RACE = import_module("genorder.race.race")
MakeProblem = Callable[..., SearchProblem]


def told(result: SearchResult) -> dict[str, Any]:
    return {**result.to_dict(), "stages": [{**stage.to_dict(), "seconds": None} for stage in result.stages]}


@st.composite
def crossings(draw: st.DrawFn) -> tuple[Order, Order, int, int]:
    length = draw(st.integers(1, 9))
    first, second = (Order(tuple(draw(st.permutations(range(length))))) for _ in range(2))
    start, stop = sorted(draw(st.tuples(st.integers(0, length), st.integers(0, length))))
    return first, second, start, stop


def renamed(order: Order, names: Order) -> Order:
    return Order(tuple(names[index] for index in order))


@given(crossings())
def test_a_crossing_keeps_the_segment_and_what_does_not_conflict(crossing: tuple[Order, Order, int, int]) -> None:
    first, second, start, stop = crossing
    child = partially_mapped(first, second, start, stop)
    segment = first.indices[start:stop]
    assert sorted(child) == list(range(len(first)))
    assert child.indices[start:stop] == segment
    for step in [*range(start), *range(stop, len(first))]:
        # A conflicting index is replaced by one that the segment pushed out.
        assert child[step] == second[step] if second[step] not in segment else child[step] in second.indices[start:stop]


@given(crossings(), st.randoms(use_true_random=False))
def test_a_crossing_does_not_depend_on_the_names_of_columns(crossing: tuple[Order, Order, int, int], rng: Any) -> None:
    first, second, start, stop = crossing
    names = Order(tuple(rng.sample(range(len(first)), len(first))))
    child = partially_mapped(renamed(first, names), renamed(second, names), start, stop)
    assert child == renamed(partially_mapped(first, second, start, stop), names)


def test_crossing_by_hand() -> None:
    first, second = Order((0, 1, 2, 3, 4, 5, 6, 7, 8)), Order((8, 2, 6, 7, 1, 5, 4, 0, 3))
    # 3 -> 7, 4 -> 1, 5 -> 5, 6 -> 4 -> 1: what the segment took from `second` is replaced along these.
    assert partially_mapped(first, second, 3, 7) == Order((8, 2, 1, 3, 4, 5, 6, 0, 7))


@given(length=st.integers(1, 6), size=st.integers(1, 12), seed=st.integers(0, 99))
def test_a_generation_has_its_elites_and_no_duplicates(length: int, size: int, seed: int) -> None:
    ranked = random_orders(length, size, numpy_generator(seed))
    settings = Evolutionary(elite_share=0.3)
    children = next_generation(ranked, settings, numpy_generator(seed + 1))
    assert len(set(children)) == len(children) == len(ranked)
    elites = math.ceil(0.3 * len(ranked))
    assert children[:elites] == ranked[:elites]


@given(length=st.integers(2, 6), size=st.integers(2, 40), seed=st.integers(0, 99))
def test_a_generation_does_not_depend_on_the_names_of_columns(length: int, size: int, seed: int) -> None:
    ranked = random_orders(length, size, numpy_generator(seed))
    names = Order.random(length, numpy_generator(seed + 100))
    children = next_generation(ranked, Evolutionary(), numpy_generator(seed))
    again = next_generation([renamed(order, names) for order in ranked], Evolutionary(), numpy_generator(seed))
    assert again == [renamed(order, names) for order in children]


def test_without_variation_open_places_go_to_fresh_orders() -> None:
    ranked = random_orders(7, 30, numpy_generator(0))
    settings = Evolutionary(crossover_probability=0, mutation_probability=0, tournament=30)
    children = next_generation(ranked, settings, numpy_generator(0))
    assert len(set(children)) == 30
    assert len(set(children) - set(ranked)) > 10


def inversions(order: Order) -> int:
    return sum(one > other for one, other in combinations(order, 2))


@pytest.mark.parametrize("settings", [Evolutionary(), Evolutionary(crossover_probability=0, mutation_probability=1)])
def test_selection_drives_a_population_towards_low_losses(settings: Evolutionary) -> None:
    population = random_orders(10, 60, numpy_generator(0))
    best = []
    for generation in range(25):
        ranked = sorted(population, key=inversions)
        best.append(inversions(ranked[0]))
        population = next_generation(ranked, settings, numpy_generator(generation))
    at_random = min(inversions(order) for order in random_orders(10, 25 * 60, numpy_generator(1)))
    assert best == sorted(best, reverse=True)  # the elites see to that
    assert min(map(inversions, population)) <= 2 < at_random
    assert np.median([inversions(order) for order in population]) < 10  # 22.5 at random


def test_a_search_by_mixture(make_problem: MakeProblem) -> None:
    search = Evolutionary(population=10, generations=3, elite_share=0.2)
    problem = make_problem()
    plan = search.plan(problem)
    result = search.propose(problem)
    assert [(run.name, run.candidates, run.steps) for run in plan] == [(f"generation {n}", 10, 6) for n in (1, 2, 3)]
    assert [(stage.name, stage.candidates, stage.kept) for stage in result.stages] == [
        ("generation 1", 10, 2),
        ("generation 2", 10, 2),
        ("generation 3", 10, 1),
    ]
    assert problem.runs == 3
    assert len(result.proposals) == 8
    assert result.proposals[0].tied
    losses = [proposal.loss for proposal in result.proposals]
    assert losses == sorted(losses)
    # The next generation starts with the best of the one before.
    for stage, job in zip(result.stages[:-1], problem.journal.jobs()[1:], strict=True):
        assert job.result["orders"][:2] == [list(proposal.order) for proposal in stage.best[:2]]


@pytest.mark.parametrize("fitness", ["mixture", "separate"])
def test_a_second_search_finds_all_in_the_journal(make_problem: MakeProblem, fitness: Any) -> None:
    search = Evolutionary(population=4, generations=2, fitness=fitness, separate_steps=3)
    results = []
    for _ in range(2):
        problem = make_problem()
        results.append(search.propose(problem))
        rows = len(problem.journal.jobs())
        assert rows == (2 if fitness == "mixture" else 2 + len(_trained(problem)))
    assert results[0].to_dict() == results[1].to_dict()
    assert told(search.propose(make_problem(seed=1))) != told(results[0])


def _trained(problem: SearchProblem) -> list[Any]:
    return [job for job in problem.journal.jobs() if job.name.startswith("race")]


def test_separate_trainings(make_problem: MakeProblem) -> None:
    search = Evolutionary(population=4, generations=2, fitness="separate", separate_steps=3, elite_share=0.5)
    problem = make_problem()
    plan = search.plan(problem)
    told_stages: list[str] = []
    problem.on_stage = lambda stage: told_stages.append(stage.name)
    result = search.propose(problem)
    assert [(run.name, run.candidates, run.steps) for run in plan] == [("generation 1", 4, 12), ("generation 2", 4, 12)]
    assert told_stages == ["generation 1", "generation 2"]
    assert problem.runs == 2
    # The elites keep their losses and are not trained again.
    first, second = ({p.order: p.loss for p in stage.best} for stage in result.stages)
    elites = [proposal.order for proposal in result.stages[0].best[:2]]
    assert [first[order] for order in elites] == [second[order] for order in elites]
    assert len(_trained(problem)) == len({*first, *second}) <= 6
    assert all(stage.seconds["train"] > 0 for stage in result.stages)
    assert [p.order for p in result.proposals] == sorted(second, key=lambda order: second[order])


@pytest.mark.parametrize("jobs", [1, 5, 8])
def test_interrupted_separate_trainings_continue(
    make_problem: MakeProblem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, jobs: int
) -> None:
    search = Evolutionary(population=5, generations=4, fitness="separate", separate_steps=3)
    with Journal(tmp_path / "whole.sqlite") as journal:
        whole = search.propose(make_problem(journal=journal))
    done: list[tuple[int, ...]] = []
    original, stop = RACE.run_job, StopRequest()

    def counted(job: Any, **options: Any) -> Any:
        done.append((job.seed, *job.order))
        stop.requested = len(done) == jobs
        return original(job, **{**options, "stop": None})  # stops are heeded between jobs too

    monkeypatch.setattr(RACE, "run_job", counted)
    with pytest.raises(Interrupted):
        search.propose(make_problem(stop=stop))
    assert len(done) == jobs
    assert told(search.propose(make_problem())) == told(whole)
    assert len(set(done)) == len(done)  # nothing was trained twice


@pytest.mark.parametrize("fitness", ["mixture", "separate"])
def test_the_budget_is_kept(make_problem: MakeProblem, fitness: Any) -> None:
    search = Evolutionary(generations=5, fitness=fitness, separate_steps=2)
    problem = make_problem(budget=Budget(runs=2, candidates=5))
    plan = search.plan(problem)
    result = search.propose(problem)
    assert len(plan) == len(result.stages) == problem.runs == 2
    assert all(stage.candidates == 5 for stage in result.stages)
    with pytest.raises(InputError, match="budget of 2 profiling runs is spent"):
        search.propose(problem)


def test_generations_and_population_by_default(make_problem: MakeProblem) -> None:
    assert len(Evolutionary(population=3).plan(make_problem())) == 14
    assert len(Evolutionary(population=3).plan(make_problem(budget=Budget(runs=20)))) == 20
    assert [run.candidates for run in Evolutionary().plan(make_problem(8))] == [1440] * 14
    assert [run.candidates for run in Evolutionary(fitness="separate").plan(make_problem(8))] == [16] * 14


@pytest.mark.parametrize("fitness", ["mixture", "separate"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_targets(make_problem: MakeProblem, length: int, fitness: Any) -> None:
    search = Evolutionary(fitness=fitness, separate_steps=2)
    problem = make_problem(length)
    orders = math.factorial(problem.length)
    plan = search.plan(problem)
    result = search.propose(problem)
    assert [run.candidates for run in plan] == ([] if orders == 1 else [orders])
    assert len({proposal.order for proposal in result.proposals}) == orders


def test_almost_all_orders(make_problem: MakeProblem) -> None:
    result = Evolutionary(population=5, generations=4).propose(make_problem(3))
    assert [stage.candidates for stage in result.stages] == [5] * 4


def test_a_small_initial_pool_is_filled_with_random_orders(make_problem: MakeProblem, tmp_path: Path) -> None:
    pool = tmp_path / "orders.json"
    pool.write_text("[[3, 2, 1, 0], [1, 0, 2, 3]]")
    problem = make_problem()
    Evolutionary(population=6, generations=1, init=str(pool)).propose(problem)
    orders = [tuple(order) for order in problem.journal.jobs()[0].result["orders"]]
    assert orders[:2] == [(3, 2, 1, 0), (1, 0, 2, 3)]
    assert len(set(orders)) == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population": 1}, "population 1: expected at least 2 orders"),
        ({"generations": 0}, "generations 0: expected at least 1"),
        ({"tournament": 0}, "tournament 0: expected at least 1"),
        ({"separate_steps": 0}, "separate steps 0: expected at least 1"),
        ({"crossover_probability": 1.5}, "crossover probability 1.5: expected a number from 0 to 1"),
        ({"mutation_probability": math.nan}, "mutation probability nan: expected a number from 0 to 1"),
        ({"elite_share": 1.0}, "elite share 1.0: expected a number from 0 to below 1"),
        ({"fitness": "both"}, "fitness 'both': expected one of mixture, separate"),
        ({"init": "nowhere"}, "initial pool 'nowhere': expected one of"),
        ({"init": "topo"}, "initial pool topo needs a dependency graph"),
    ],
)
def test_bad_settings(make_problem: MakeProblem, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evolutionary(**settings).check(make_problem())
