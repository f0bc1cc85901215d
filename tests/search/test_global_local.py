"""The paper's search, on a profiler that knows every loss: what it profiles, what it keeps, what it finds."""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from search_helpers import all_orders, answered_problem, inversions, perfect_problem

from genorder.errors import InputError
from genorder.orders import CandidateSource, Order, cost_ratio, deduplicated, random_orders
from genorder.search import Budget, GlobalLocal
from genorder.search.global_local import block_arrangements, even_blocks
from genorder.seeding import numpy_generator
from genorder.tasks import make_task


def at_random(order: Order) -> float:
    """A loss that neighbours of an order tell nothing of."""
    return float(numpy_generator(hash(order.indices) % 2**32).random())


def graph_cost(task: str, length: int) -> tuple[CandidateSource, Any]:
    graph = make_task(task, str(length)).dependencies()
    return CandidateSource(Order.forward(length), graph), lambda order: cost_ratio(order, graph)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_global_runs_profile_twice_the_factorial_and_keep_ever_fewer(depth: int, tmp_path: Path) -> None:
    """As long as no two candidates of a run are the same, which their losses and the pool see to."""
    pool = tmp_path / "pool.json"
    pool.write_text(json.dumps([list(order) for order in random_orders(12, math.factorial(depth), numpy_generator(0))]))

    def parents_first(name: str, orders: Sequence[Order]) -> list[float]:
        family = 2 * math.factorial(int(name.split()[1]))  # candidates of one parent, the unchanged first
        return [number if number % family == 0 else 1000 + number for number in range(len(orders))]

    problem, profiled = answered_problem(12, parents_first)
    result = GlobalLocal(depth=depth, local=False, init=str(pool)).propose(problem)
    assert [stage.name for stage in result.stages] == [f"global {blocks}" for blocks in range(1, depth + 1)]
    assert [stage.candidates for stage in result.stages] == [2 * math.factorial(depth)] * depth
    kept = [math.factorial(depth) // math.factorial(blocks + 1) for blocks in range(1, depth)]
    assert [stage.kept for stage in result.stages] == [*kept, 1]
    assert all(len(set(orders)) == len(orders) for orders in profiled.values())


def test_candidates_of_a_global_run(tmp_path: Path) -> None:
    """Every block permutation of every survivor, each forwards and backwards, no order twice."""
    problem, profiled = perfect_problem(7, inversions)
    GlobalLocal(depth=4, local=False).propose(problem)
    assert len(profiled["global 1"]) <= 2 * 24
    for blocks in range(2, 5):
        kept = math.factorial(4) // math.factorial(blocks)
        survivors = sorted(profiled[f"global {blocks - 1}"], key=inversions)[:kept]
        expected = {
            arranged.compose(turned)
            for survivor in survivors
            for arranged in (survivor.compose(q) for q in block_arrangements(even_blocks(7, blocks)))
            for turned in (Order.forward(7), Order.reverse(7))
        }
        assert set(profiled[f"global {blocks}"]) == expected
        assert len(profiled[f"global {blocks}"]) == len(expected) <= 48


def test_an_order_and_its_reverse_in_the_pool_are_profiled_once(tmp_path: Path) -> None:
    pool = tmp_path / "pool.json"
    pool.write_text("[[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]")
    problem, profiled = perfect_problem(5, inversions)
    GlobalLocal(depth=2, local=False, init=str(pool)).propose(problem)
    assert profiled["global 1"] == [Order.forward(5), Order.reverse(5)]


@pytest.mark.parametrize("length", [4, 5, 6, 7, 8, 9])
def test_local_runs(length: int) -> None:
    problem, profiled = perfect_problem(length, inversions)
    result = GlobalLocal(depth=1).propose(problem)
    sizes = range(2, length // 2 + 1)
    assert [stage.name for stage in result.stages[1:]] == [
        f"local {size} {kind}" for size in sizes for kind in ("within", "between")
    ]
    best = min(profiled["global 1"], key=inversions)
    for size in sizes:
        whole, rest = divmod(length, size)
        within, between = profiled[f"local {size} within"], profiled[f"local {size} between"]
        # The unchanged order is one of every block's.
        blocks = [size] * whole + [rest] * (rest > 0)
        assert len(within) == sum(map(math.factorial, blocks)) - len(blocks) + 1
        assert within[0] == best
        best = min(within, key=inversions)
        assert len(between) == math.factorial(whole)
        assert between[0] == best
        assert all(order.indices[length - rest :] == best.indices[length - rest :] for order in between)
        best = min(between, key=inversions)
    assert result.proposals[0].order == best


def test_local_runs_above_the_limit_are_sampled() -> None:
    problem, profiled = perfect_problem(12, inversions)
    search = GlobalLocal(depth=2, local_candidates=50)
    planned = {run.name: run.candidates for run in search.plan(problem)}
    search.propose(problem)
    assert len(profiled["local 6 within"]) == len(profiled["local 2 between"]) == 50
    assert all(len(set(orders)) == len(orders) <= planned[name] for name, orders in profiled.items())
    problem, profiled = perfect_problem(12, inversions, budget=Budget(candidates=20))
    search.propose(problem)
    assert max(map(len, profiled.values())) == 20


@pytest.mark.parametrize("length", [6, 7, 10])
@pytest.mark.parametrize("init", ["random", "sort", "block"])
def test_the_best_so_far_is_never_lost(length: int, init: str) -> None:
    for loss in (inversions, at_random):
        problem, profiled = perfect_problem(length, loss)
        result = GlobalLocal(depth=4, init=init).propose(problem)
        best = [min(map(loss, orders)) for orders in profiled.values()]
        assert best == sorted(best, reverse=True)
        assert result.proposals[0].loss == best[-1]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_up_to_five_targets_the_answer_is_the_best_of_all(length: int) -> None:
    for loss in (inversions, at_random):
        problem, _ = perfect_problem(length, loss)
        answer = GlobalLocal().propose(problem).proposals[0].order
        assert loss(answer) == min(map(loss, all_orders(length)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("length", "depth"), [(6, 5), (7, 5), (8, 5), (8, 6)])
def test_random_pools_lead_to_the_optimum(length: int, depth: int, seed: int) -> None:
    """Though it is not among them. A smaller depth may end where no block permutation helps any more."""
    problem, profiled = perfect_problem(length, inversions, seed=seed)
    result = GlobalLocal(depth=depth).propose(problem)
    assert Order.forward(length) not in profiled["global 1"]
    assert result.proposals[0].order == Order.forward(length)
    assert result.proposals[0].tied


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("length", [6, 8])
def test_random_pools_lead_to_the_cheapest_order_of_a_graph(length: int, seed: int) -> None:
    source, loss = graph_cost("relu", length)
    problem, _ = perfect_problem(length, loss, source=source, seed=seed)
    assert loss(GlobalLocal(depth=5).propose(problem).proposals[0].order) == 1


def test_the_answer_of_the_global_stage_is_always_proposed() -> None:
    def other_than_before(name: str, orders: Sequence[Order]) -> list[float]:
        return [float(-number) for number in range(len(orders))]  # the last is the best, the unchanged the worst

    problem, profiled = answered_problem(8, other_than_before, budget=Budget(runs=5))
    result = GlobalLocal(depth=3).propose(problem)
    assert profiled["global 3"][-1] == result.proposals[-1].order
    assert len(profiled["local 2 between"]) == 24
    assert len(deduplicated(proposal.order for proposal in result.proposals)) == len(result.proposals) == 8


@pytest.mark.parametrize("runs", range(1, 11))
def test_a_budget_of_runs_ends_the_search_early(runs: int) -> None:
    search = GlobalLocal(depth=3)
    names = [f"global {blocks}" for blocks in (1, 2, 3)]
    names += [f"local {size} {kind}" for size, kind in itertools.product((2, 3, 4), ("within", "between"))]
    problem, profiled = perfect_problem(8, inversions, budget=Budget(runs=runs))
    assert [run.name for run in search.plan(problem)] == names[:runs]
    result = search.propose(problem)
    assert list(profiled) == names[:runs]
    assert inversions(result.proposals[0].order) == min(inversions(order) for order in list(profiled.values())[-1])


def test_without_the_local_stage() -> None:
    problem, profiled = perfect_problem(8, inversions)
    GlobalLocal(depth=2, local=False).propose(problem)
    assert list(profiled) == ["global 1", "global 2"]


@pytest.mark.parametrize(
    ("depth", "length", "budget", "needed", "limit"),
    [
        (8, 20, Budget(), "2 x 8! = 80,640", "20,000"),
        (9, 8, Budget(), "2 x 8! = 80,640", "20,000"),
        (6, 20, Budget(candidates=1439), "2 x 6! = 1,440", "1,439"),
    ],
)
def test_too_many_candidates(depth: int, length: int, budget: Budget, needed: str, limit: str) -> None:
    problem, profiled = perfect_problem(length, inversions, budget=budget)
    for refusing in (GlobalLocal(depth=depth).check, GlobalLocal(depth=depth).propose):
        with pytest.raises(InputError) as refused:
            refusing(problem)
        assert str(refused.value) == (
            f"--depth {depth} profiles {needed} candidates in one run, above the limit of {limit}; take a smaller "
            "--depth, or allow more with --max-candidates"
        )
    assert profiled == {}


def test_as_many_candidates_as_allowed() -> None:
    problem, _ = perfect_problem(20, inversions, budget=Budget(candidates=1440))
    GlobalLocal(depth=6).check(problem)
    problem, _ = perfect_problem(20, inversions, budget=Budget(candidates=80_640))
    GlobalLocal(depth=8).check(problem)
    problem, _ = perfect_problem(5, inversions)
    GlobalLocal(depth=100).check(problem)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 0}, "--depth 0: expected a number of blocks, at least 1"),
        ({"local_candidates": 1}, "local candidates 1: expected at least 2"),
        ({"init": "nosuch"}, "initial pool 'nosuch': expected one of"),
        ({"init": "topo"}, "initial pool topo needs a dependency graph"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    problem, _ = perfect_problem(4, inversions)
    with pytest.raises(InputError, match=message):
        GlobalLocal(**settings).check(problem)
