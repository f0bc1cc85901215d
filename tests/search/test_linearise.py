"""Sorts of a dependency graph: topological, within the constraints, and those of the highest learnability score."""

from collections.abc import Collection, Sequence
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order
from genorder.search.linearise import learnability, linearise
from genorder.training import ProgressReporter

Parents = Sequence[Collection[int]]
FREE = Constraints()


def sorts_of(
    parents: Parents, order: Order | None = None, constraints: Constraints = FREE, *, seed: int = 0, most: int = 3
) -> list[Order]:
    order = order or Order.forward(len(parents))
    return linearise(parents, order, constraints, np.random.default_rng(seed), most=most)


def keeps(sort: Order, parents: Parents) -> bool:
    step = sort.inverse()
    return all(step[parent] < step[target] for target, own in enumerate(parents) for parent in own)


def all_sorts(parents: Parents) -> list[Order]:
    orders = (Order(indices) for indices in permutations(range(len(parents))))
    return [order for order in orders if keeps(order, parents)]


@st.composite
def graphs(draw: st.DrawFn, longest: int) -> list[set[int]]:
    """Parents are among the columns before."""
    targets = draw(st.integers(1, longest))
    return [draw(st.sets(st.integers(0, target - 1), max_size=3)) if target else set() for target in range(targets)]


@st.composite
def constrained(draw: st.DrawFn) -> tuple[list[set[int]], Order, Constraints]:
    """Parents that come before in an order at hand, and constraints that some order meets."""
    targets = 6
    order = draw(st.permutations(range(targets)))
    parents: list[set[int]] = [set() for _ in range(targets)]
    for place, target in enumerate(order[1:], start=1):
        parents[target] = draw(st.sets(st.sampled_from(order[:place]), max_size=2))
    first, last = draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (1, 1)]))
    groups = draw(st.sampled_from([1, 2] if (first + last) % 2 == 0 else [1]))
    wished = draw(st.permutations(range(first, targets - last)))
    pairs = draw(st.sets(st.sampled_from(list(combinations(wished, 2))), max_size=3)) if groups == 1 else set()
    constraints = Constraints(keep_first=first, keep_last=last, groups=groups, before=tuple(sorted(pairs)))
    return parents, Order.of(order), constraints


@settings(max_examples=80)
@given(constrained())
def test_sorts_are_topological_and_allowed(made: tuple[list[set[int]], Order, Constraints]) -> None:
    """If any allowed order keeps to the whole graph, all sorts do."""
    parents, order, constraints = made
    sorts = sorts_of(parents, order, constraints, most=5)
    assert 1 <= len(sorts) <= 5
    assert len(set(sorts)) == len(sorts)
    assert all(constraints.allows(sort) for sort in sorts)
    if any(keeps(each, parents) for each in constraints.all_orders(6)):
        assert all(keeps(sort, parents) for sort in sorts)


def test_an_edge_that_constraints_forbid_is_left_out_alone() -> None:
    parents: Parents = [[], [0], [1], [2]]
    sorts = sorts_of(parents, constraints=Constraints(before=((3, 0),)))
    for sort in sorts:
        step = sort.inverse()
        assert step[3] < step[0] < step[1] < step[2]


@settings(max_examples=40)
@given(graphs(6), st.integers(0, 3))
def test_the_first_is_as_good_as_the_order_at_hand(parents: list[set[int]], seed: int) -> None:
    sorts = sorts_of(parents, seed=seed)
    assert all(keeps(sort, parents) for sort in sorts)
    scores = [learnability(sort, parents) for sort in sorts]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] >= learnability(Order.forward(len(parents)), parents)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_topological_sorts_comes_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents = [set(rng.integers(target, size=rng.integers(4)).tolist()) if target else set() for target in range(6)]
    best = max(learnability(order, parents) for order in all_sorts(parents))
    assert learnability(sorts_of(parents)[0], parents) == best


def test_the_score() -> None:
    """Targets that stand next to a parent, less three for each pattern of offsets."""
    parents: Parents = [[], [0], [0], [1, 2], [3]]
    assert learnability(Order((0, 1, 2, 3, 4)), parents) == 3 - 3 * 3  # 1; 2; 1 and 2; 1 again
    assert learnability(Order((0, 2, 1, 3, 4)), parents) == 3 - 3 * 3
    assert learnability(Order((0, 1, 2, 4, 3)), parents) == 1 - 3 * 4  # 1; 2; 2 and 3; -1
    assert learnability(Order.forward(4), [[], [0], [1], [2]]) == 3 - 3
    assert learnability(Order.forward(3), [[], [], []]) == 0


@given(st.permutations(range(7)))
def test_a_chain_comes_out_as_the_chain(columns: list[int]) -> None:
    parents: list[list[int]] = [[] for _ in columns]
    for parent, target in pairwise(columns):
        parents[target] = [parent]
    assert sorts_of(parents, Order.of(columns)) == [Order.of(columns)]


def test_two_chains_are_not_mixed() -> None:
    """One after the other, each target stands next to its parent; in turns, none does."""
    parents: Parents = [[], [], [0], [1], [2], [3]]
    assert set(sorts_of(parents, most=2)) == {Order((0, 2, 4, 1, 3, 5)), Order((1, 3, 5, 0, 2, 4))}


def test_offsets_repeat_in_a_regular_graph() -> None:
    """Two variables over nine times, a(t) from b(t - 1) and a(t - 1), b(t) from a(t - 1): by time, and in turns."""
    times = range(1, 9)
    parents: list[list[int]] = [[] for _ in range(18)]
    for time in times:
        parents[time], parents[9 + time] = [9 + time - 1, time - 1], [time - 1]
    drawn = Order.of(sorted(range(18), key=lambda target: (target % 9, (target * 7) % 5)))
    step = sorts_of(parents, drawn)[0].inverse()
    patterns = {tuple(sorted(step[t] - step[p] for p in own)) for t, own in enumerate(parents) if own}
    assert len(patterns) == 2


@given(graphs(7), st.integers(0, 5))
@settings(max_examples=20)
def test_the_same_seed_gives_the_same_sorts(parents: list[set[int]], seed: int) -> None:
    assert sorts_of(parents, seed=seed) == sorts_of(parents, seed=seed)


@given(st.permutations(range(6)))
@settings(max_examples=20)
def test_renamed_columns_give_the_renamed_sorts(names: list[int]) -> None:
    parents: list[list[int]] = [[], [], [0], [1, 0], [2], [3]]
    renamed: list[list[int]] = [[] for _ in parents]
    for target, own in enumerate(parents):
        renamed[names[target]] = [names[parent] for parent in own]
    order = [1, 0, 3, 2, 5, 4]
    plain = sorts_of(parents, Order.of(order), most=5)
    other = sorts_of(renamed, Order.of(names[column] for column in order), most=5)
    assert [[names[column] for column in sort] for sort in plain] == [list(sort) for sort in other]


def test_it_tells_how_far_it_is_and_hears_of_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genorder.training.progress._REPORT_SECONDS", 0.0)
    stop, told = StopRequest(), []

    def happened(name: str, progress: object) -> None:
        told.append(name)
        stop.requested = len(told) == 3

    with pytest.raises(Interrupted, match="stopped while sorting the graph"):
        linearise(
            [[]] * 6, Order.forward(6), FREE, np.random.default_rng(0), most=3, report=ProgressReporter(happened, stop)
        )
    assert told == ["sorting the graph"] * 3
