from collections import Counter
from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.errors import InputError
from genorder.orders import CandidateSource, DependencyGraph, Order, parse_candidates, relative_to
from genorder.orders.candidates import (
    BLOCK,
    block_orders,
    deduplicated,
    random_orders,
    sort_orders,
    topological_sorts,
    within_time_orders,
)
from genorder.tasks import make_task

Maker = Callable[[Order, int, np.random.Generator], list[Order]]

MAKERS: dict[str, Maker] = {
    "random": lambda reference, count, rng: random_orders(len(reference), count, rng),
    "sort": sort_orders,
    "sort-reverse": lambda reference, count, rng: sort_orders(reference, count, rng, towards_reverse=True),
    "block": block_orders,
    "block-without": lambda reference, count, rng: block_orders(reference, count, rng, with_reference=False),
    "topo": lambda reference, count, rng: topological_sorts(
        make_task("delay-relu", len(reference)).dependencies().relabelled(reference), count, rng
    ),
}
every_maker = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
HIDDEN = Order.random(36, np.random.default_rng(5))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def in_steps_of(reference: Order, order: Order) -> list[int]:
    """At which step the reference emits each of the order's targets."""
    return [reference.indices.index(target) for target in order]


def inversions(steps: list[int]) -> int:
    return sum(early > late for place, early in enumerate(steps) for late in steps[place:])


def bubble_sort_states(steps: list[int]) -> list[list[int]]:
    """The plain textbook sort: passes from the left until nothing is out of place."""
    states = [list(steps)]
    while any(left > right for left, right in pairwise(steps)):
        for place in range(len(steps) - 1):
            if steps[place] > steps[place + 1]:
                steps = [*steps[:place], steps[place + 1], steps[place], *steps[place + 2 :]]
                states.append(steps)
    return states


def all_topological_sorts(graph: DependencyGraph) -> set[tuple[int, ...]]:
    return {
        order
        for order in permutations(range(graph.targets))
        if all(graph.target_parents(target) <= set(order[:step]) for step, target in enumerate(order))
    }


@st.composite
def graphs(draw: st.DrawFn) -> DependencyGraph:
    """Any acyclic graph over a few targets and latents, with node ids unrelated to the direction of edges."""
    targets = draw(st.integers(1, 4))
    nodes = targets + draw(st.integers(0, 2))
    ranking = draw(st.permutations(range(nodes)))
    parents = [
        tuple(earlier for earlier in ranking[: ranking.index(node)] if draw(st.booleans())) for node in range(nodes)
    ]
    return DependencyGraph(targets, tuple(parents), ((0,),) * nodes)


@every_maker
@pytest.mark.parametrize("count", [1, 2, 7, 128])
def test_as_many_different_orders_as_asked_for(maker: Maker, count: int) -> None:
    orders = maker(HIDDEN, count, generator())
    assert len(orders) == len(set(orders)) == count
    assert all(sorted(order) == list(range(36)) for order in orders)


@every_maker
def test_the_generator_alone_decides(maker: Maker) -> None:
    orders = maker(HIDDEN, 20, generator(1))
    assert orders == maker(HIDDEN, 20, generator(1))
    assert orders != maker(HIDDEN, 20, generator(2))


@pytest.mark.parametrize(("name", "expected"), [("random", 1), ("sort", 1), ("sort-reverse", 1), ("block-without", 0)])
@pytest.mark.parametrize("count", [1, 10])
def test_a_single_target_has_a_single_order(name: str, expected: int, count: int) -> None:
    assert len(MAKERS[name](Order.forward(1), count, generator())) == expected


@pytest.mark.parametrize(("length", "count", "expected"), [(2, 9, 2), (3, 6, 6), (3, 5, 5), (4, 24, 24), (5, 999, 120)])
@pytest.mark.parametrize("name", ["random", "sort", "sort-reverse"])
def test_all_there_are_when_fewer_exist(name: str, length: int, count: int, expected: int) -> None:
    reference = Order.random(length, generator(3))
    orders = MAKERS[name](reference, count, generator())
    assert len(orders) == len(set(orders)) == expected


@pytest.mark.parametrize("length", [3, 9, 30])
def test_random_orders_are_uniform(length: int) -> None:
    firsts = Counter(random_orders(length, 1, generator(seed))[0][0] for seed in range(40 * length))
    assert len(firsts) == length
    assert max(firsts.values()) < 80


@pytest.mark.parametrize("towards_reverse", [False, True])
@pytest.mark.parametrize("count", [1, 2, 10, 128])
def test_sort_takes_evenly_spaced_snapshots_of_one_bubble_sort(count: int, towards_reverse: bool) -> None:
    orders = sort_orders(HIDDEN, count, generator(), towards_reverse=towards_reverse)
    goal = relative_to(HIDDEN, Order.reverse(36)) if towards_reverse else HIDDEN
    steps = [in_steps_of(goal, order) for order in orders]
    left = [inversions(one) for one in steps]
    assert orders[0] == goal
    assert left[0] == 0
    gaps = np.diff(left)
    assert all(gaps > 0)
    assert count == 1 or max(gaps) - min(gaps) <= 1
    path = bubble_sort_states(steps[-1])
    assert all(one in path for one in steps)


def test_sort_goes_on_with_further_starts() -> None:
    orders = sort_orders(Order.forward(4), 20, generator())
    assert len(set(orders)) == 20
    left = [inversions(list(order)) for order in orders]
    assert orders[0] == Order.forward(4)
    assert left[:3] == [0, 1, 2]


@pytest.mark.parametrize("name", ["sort", "sort-reverse", "block", "block-without"])
def test_a_hidden_reference_moves_the_whole_set(name: str) -> None:
    plain = MAKERS[name](Order.forward(36), 40, generator(8))
    hidden = MAKERS[name](HIDDEN, 40, generator(8))
    assert hidden == [relative_to(HIDDEN, order) for order in plain]
    assert hidden != plain


@pytest.mark.parametrize(
    ("length", "block", "expected"),
    [(1, 5, 1), (2, 5, 1), (3, 5, 1), (6, 5, 2), (10, 5, 2), (12, 5, 6), (20, 5, 24), (30, 5, 128), (7, 2, 24)],
)  # fmt: skip
@pytest.mark.parametrize("with_reference", [True, False])
def test_block_shuffles_whole_blocks(length: int, block: int, expected: int, with_reference: bool) -> None:
    reference = Order.random(length, generator(1))
    orders = block_orders(reference, 128, generator(), block=block, with_reference=with_reference)
    assert len(set(orders)) == len(orders) == min(128, expected - (not with_reference and expected < 128))
    assert (reference in orders) == with_reference
    whole = [list(range(start, min(start + block, length))) for start in range(0, length, block)]
    for order in orders:
        steps = in_steps_of(reference, order)
        while steps:
            first = whole[steps[0] // block]
            assert steps[: len(first)] == first
            steps = steps[len(first) :]


def test_the_papers_block_size_is_the_default() -> None:
    assert BLOCK == 5
    assert len(block_orders(Order.forward(15), 99, generator())) == 6


@settings(max_examples=25, deadline=None)
@given(graphs(), st.integers(0, 1000))
def test_topo_finds_the_valid_sorts_and_no_others(graph: DependencyGraph, seed: int) -> None:
    found = topological_sorts(graph, 99, generator(seed))
    assert len(set(found)) == len(found)
    assert {order.indices for order in found} == all_topological_sorts(graph)


@pytest.mark.parametrize("task", ["delay-hidden-cause", "delay-mixed", "relu"])
def test_topo_on_hidden_columns_respects_every_dependency(task: str) -> None:
    graph = make_task(task, 36).dependencies().relabelled(HIDDEN)
    for order in topological_sorts(graph, 30, generator()):
        step_of = order.inverse()
        assert all(step_of[p] < step_of[t] for t in range(36) for p in graph.target_parents(t))


def test_topo_breaks_ties_uniformly() -> None:
    two = DependencyGraph(2, ((), ()), ((0,), (0,)))
    first = Counter(topological_sorts(two, 1, generator(seed))[0].indices for seed in range(400))
    assert 160 < first[0, 1] < 240
    # 2 needs 0. Of the two available at first each has an even chance, and so have 1 and 2 after 0.
    three = DependencyGraph(3, ((), (), (0,)), ((0,), (0,), (0,)))
    first = Counter(topological_sorts(three, 1, generator(seed))[0].indices for seed in range(800))
    assert set(first) == {(1, 0, 2), (0, 1, 2), (0, 2, 1)}
    assert 340 < first[1, 0, 2] < 460
    assert 150 < first[0, 1, 2] < 250


def test_vars_permutes_all_time_steps_alike() -> None:
    orders = within_time_orders(HIDDEN, 4)
    assert len(set(orders)) == len(orders) == 24
    assert HIDDEN in orders
    for order in orders:
        steps = np.array(in_steps_of(HIDDEN, order)).reshape(9, 4)
        assert (steps // 4 == np.arange(9)[:, None]).all()
        assert (steps % 4 == steps[0] % 4).all()


def test_vars_needs_whole_time_steps() -> None:
    with pytest.raises(ValueError, match="6 targets are not a whole number of time steps of 4 variables"):
        within_time_orders(Order.forward(6), 4)


def test_relative_to_composes() -> None:
    assert relative_to(Order((2, 0, 1)), Order((1, 2, 0))) == Order((0, 1, 2))
    assert relative_to(HIDDEN, Order.forward(36)) == HIDDEN


def test_the_first_of_duplicates_stays() -> None:
    a, b, c = Order((0, 1)), Order((1, 0)), Order((0, 1))
    assert deduplicated([b, a, c, b]) == [b, a]


# -- Sets by name.

FILE = CandidateSource(Order.forward(10))
TASK = make_task("delay-relu", 12)
COLUMNS = Order.random(12, np.random.default_rng(7))
DELAY = CandidateSource(
    reference=COLUMNS,
    graph=TASK.dependencies().relabelled(COLUMNS.inverse()),
    variables=4,
    hand_designed={name: relative_to(COLUMNS, order) for name, order in TASK.hand_designed_orders().items()},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("random:9", random_orders(12, 9, generator())),
        ("sort:9", sort_orders(COLUMNS, 9, generator())),
        ("sort-reverse:9", sort_orders(COLUMNS, 9, generator(), towards_reverse=True)),
        ("block:4", block_orders(COLUMNS, 4, generator())),
        ("topo:9", topological_sorts(DELAY.graph, 9, generator()) if DELAY.graph else []),
        ("vars", within_time_orders(COLUMNS, 4)),
        ("hand", list(DELAY.hand_designed.values())),
        ("forward", [COLUMNS]),
        ("reverse", [relative_to(COLUMNS, Order.reverse(12))]),
        ("given", [Order.forward(12)]),
        ("random:0009", random_orders(12, 9, generator())),
    ],
)
def test_one_set(text: str, expected: list[Order]) -> None:
    assert parse_candidates(text, DELAY, generator()) == expected


def test_sets_follow_each_other_without_duplicates() -> None:
    orders = parse_candidates(" reverse, forward ,random:20,,forward,sort:3", FILE, generator())
    assert orders[:2] == [Order.reverse(10), Order.forward(10)]
    assert len(set(orders)) == len(orders) == 2 + 20 + 2  # the goal of the sort is the forward order


def test_two_random_sets_differ() -> None:
    assert len(parse_candidates("random:20,random:20", FILE, generator())) == 40


def test_a_files_reference_is_the_given_order() -> None:
    assert parse_candidates("forward,given", FILE, generator()) == [Order.forward(10)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "no candidates were named; expected a list of random:N, sort:N, sort-reverse:N, block:N, topo:N, forward"),
        (" , ,", "no candidates were named"),
        ("nosuch", "candidates 'nosuch': expected one of random:N, "),
        ("nosuch:5", "candidates 'nosuch:5': expected one of random:N, "),
        ("Random:5", "candidates 'Random:5': expected one of random:N, "),
        ("forward:3", "candidates 'forward:3': expected one of random:N, "),
        ("forward:", "candidates 'forward:': expected one of random:N, "),
        ("random", "candidates 'random': expected random:N with a number of orders, such as random:64"),
        ("random:", "candidates 'random:': expected random:N with a number of orders"),
        ("random:0", "candidates 'random:0': expected random:N with a number of orders"),
        ("sort:-1", "candidates 'sort:-1': expected sort:N with a number of orders"),
        ("block:1.5", "candidates 'block:1.5': expected block:N with a number of orders"),
        ("random:1e3", "candidates 'random:1e3': expected random:N with a number of orders"),
        ("random:²", "candidates 'random:²': expected random:N with a number of orders"),
        ("random:" + "9" * 5000, "candidates 'random:999"),
        ("forward,sort:x", "candidates 'sort:x': expected sort:N with a number of orders"),
        ("topo:5", "candidates topo need a dependency graph, which only built-in tasks have"),
        ("vars", "candidates vars need a time series of several variables, such as a delay network"),
        ("hand", "there are no hand-designed orders for this data; the delay networks have five each"),
    ],
)
def test_bad_sets(text: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_candidates(text, FILE, generator())
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)
