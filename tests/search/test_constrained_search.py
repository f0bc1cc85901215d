"""Searches among the orders that a user allows: the best of them is found, and nothing else is tried."""

import json
from pathlib import Path

import pytest
from search_helpers import all_orders, inversions, perfect_problem

from genorder.errors import InputError
from genorder.orders import CandidateSource, Constraints, Order
from genorder.search import AnyOrder, Evolutionary, GlobalLocal, RandomSearch, Search
from genorder.search.initial_pool import NAMED_POOLS, check_initial_pool, initial_pool
from genorder.seeding import numpy_generator
from genorder.tasks import make_task

EVERY_KIND = {
    "keep first": Constraints(keep_first=2),
    "keep last": Constraints(keep_last=1),
    "groups": Constraints(groups=3),
    "before": Constraints(before=((4, 1), (3, 0))),
    "all": Constraints(keep_first=1, keep_last=1, groups=2, before=((4, 2),)),
}
every_kind = pytest.mark.parametrize("constraints", EVERY_KIND.values(), ids=EVERY_KIND)


@every_kind
@pytest.mark.parametrize(
    "search",
    [GlobalLocal(depth=4), Evolutionary(population=40, generations=12), RandomSearch(runs=4, candidates=200)],
    ids=lambda search: search.name,
)
@pytest.mark.parametrize("best", [Order((0, 1, 2, 3, 4, 5)), Order((4, 0, 3, 5, 1, 2))], ids=Order.short)
def test_the_best_allowed_order_is_found(search: Search, constraints: Constraints, best: Order) -> None:
    steps = best.inverse()

    def loss(order: Order) -> float:
        return inversions(steps.compose(order))

    problem, profiled = perfect_problem(6, loss, constraints=constraints)
    planned = {run.name: run.candidates for run in search.plan(problem)}
    found = search.propose(problem).proposals[0].order
    assert constraints.allows(found)
    assert loss(found) == min(loss(order) for order in all_orders(6) if constraints.allows(order))
    for name, orders in profiled.items():
        assert all(constraints.allows(order) for order in orders)
        assert len(set(orders)) == len(orders) <= planned[name]


def test_a_population_of_all_allowed_orders_is_one_generation() -> None:
    problem, profiled = perfect_problem(6, inversions, constraints=Constraints(keep_first=2, before=((5, 2),)))
    search = Evolutionary(population=40, generations=5)
    assert [run.candidates for run in search.plan(problem)] == [12]
    search.propose(problem)
    assert {name: len(orders) for name, orders in profiled.items()} == {"generation 1": 12}


def test_a_population_stays_as_large_as_it_may() -> None:
    """Children that are repaired coincide more often: what they leave open is filled."""
    constraints = Constraints(keep_first=1, before=((5, 2), (4, 3)))
    problem, profiled = perfect_problem(6, inversions, constraints=constraints)
    Evolutionary(population=24, generations=4).propose(problem)
    assert [len(orders) for orders in profiled.values()] == [24, 24, 24, 24]


def test_runs_in_which_nothing_could_change_are_left_out() -> None:
    problem, profiled = perfect_problem(6, inversions, constraints=Constraints(groups=3))
    GlobalLocal(depth=2).propose(problem)
    assert set(profiled) < {run.name for run in GlobalLocal(depth=2).plan(problem)}
    assert "local 2 within" not in profiled
    assert all(len(orders) == 2 for orders in profiled.values())


@pytest.mark.parametrize("search", [AnyOrder(), GlobalLocal(), Evolutionary(), RandomSearch()], ids=lambda s: s.name)
def test_one_allowed_order_costs_nothing(search: Search) -> None:
    problem, profiled = perfect_problem(4, inversions, constraints=Constraints(groups=2, before=((2, 1),)))
    assert search.plan(problem) == []
    (proposal,) = search.propose(problem).proposals
    assert (proposal.order, profiled) == (Order((2, 3, 0, 1)), {})


@every_kind
@pytest.mark.parametrize("spec", [spec for spec in NAMED_POOLS if spec != "vars"])
def test_initial_pools(spec: str, constraints: Constraints) -> None:
    task = make_task("square", "6")
    source = CandidateSource(Order((3, 1, 0, 2, 5, 4)), task.dependencies())
    pool = initial_pool(spec, 12, source, numpy_generator(0), constraints)
    assert 1 <= len(pool) <= 12
    assert len(set(pool)) == len(pool)
    assert all(constraints.allows(order) for order in pool)


def test_of_a_file_the_allowed_orders_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    file.write_text(json.dumps([[2, 1, 0], [0, 2, 1], [1, 0, 2], [0, 1, 2]]))
    source, constraints = CandidateSource(Order((1, 0, 2))), Constraints(keep_first=1)
    found = initial_pool(str(file), 9, source, numpy_generator(0), constraints)
    assert found == [Order((0, 2, 1)), Order((0, 1, 2))]
    assert initial_pool(str(file), 1, source, numpy_generator(0), constraints) == found[:1]
    file.write_text("[[2, 1, 0], [1, 0, 2]]")
    with pytest.raises(InputError, match=r"orders.json: none of its orders meets --keep-first 1; add one that does"):
        check_initial_pool(str(file), source, constraints)
