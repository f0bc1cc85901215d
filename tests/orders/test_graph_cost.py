from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.errors import InputError
from genorder.orders import DependencyGraph, Order, cost_ratio, order_cost


def chain(length: int, *, copy: bool = True) -> DependencyGraph:
    return DependencyGraph(
        targets=length,
        parents=((), *((i - 1,) for i in range(1, length))),
        input_parents=tuple((i,) for i in range(length)),
        input_copies=frozenset({0}) if copy else frozenset(),
    )


@st.composite
def graphs(draw: st.DrawFn, most_targets: int = 5) -> DependencyGraph:
    """Any acyclic graph over a few targets and latents, with node ids unrelated to the direction of edges."""
    targets = draw(st.integers(1, most_targets))
    nodes = targets + draw(st.integers(0, 3))
    ranking = draw(st.permutations(range(nodes)))
    parents = [
        tuple(earlier for earlier in ranking[:place] if draw(st.booleans()))
        for place in (ranking.index(node) for node in range(nodes))
    ]
    copies = frozenset(node for node in range(targets) if not parents[node] and draw(st.booleans()))
    return DependencyGraph(targets, tuple(parents), ((0,),) * nodes, copies)


def slow_cost(order: tuple[int, ...], graph: DependencyGraph) -> int:
    """By recursion over the set of nodes that one step must evaluate."""

    def needed(node: int, emitted: frozenset[int]) -> frozenset[int]:
        found = frozenset({node})
        for parent in graph.parents[node]:
            if parent in emitted or parent in graph.input_copies:
                continue
            found |= needed(parent, emitted)
        return found

    return sum(len(needed(order[k], frozenset(order[:k]))) for k in range(len(order)))


@given(graphs(), st.randoms(use_true_random=False))
def test_cost_agrees_with_plain_recursion(graph: DependencyGraph, random: object) -> None:
    order = list(range(graph.targets))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert order_cost(Order.of(order), graph) == slow_cost(tuple(order), graph)


@given(graphs(most_targets=4))
def test_ratio_is_one_for_just_the_cheapest_orders(graph: DependencyGraph) -> None:
    costs = {order: slow_cost(order, graph) for order in permutations(range(graph.targets))}
    cheapest = min(costs.values())
    for order, cost in costs.items():
        assert cost_ratio(Order(order), graph) == cost / cheapest
        assert (cost_ratio(Order(order), graph) == 1.0) == (cost == cheapest)


def test_five_targets_by_brute_force() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        names = rng.permutation(7)  # five targets and two latents
        parents: list[tuple[int, ...]] = [()] * 7
        for place, node in enumerate(names):
            parents[node] = tuple(int(n) for n in names[:place] if rng.random() < 0.4)
        graph = DependencyGraph(5, tuple(parents), ((),) * 7)
        cheapest = min(slow_cost(order, graph) for order in permutations(range(5)))
        topological = graph.topological_order()
        assert order_cost(topological, graph) == cheapest
        assert cost_ratio(topological, graph) == 1.0


@pytest.mark.parametrize("length", [1, 2, 5, 256])
def test_chain_forward_and_reverse(length: int) -> None:
    graph = chain(length)
    assert order_cost(Order.forward(length), graph) == length
    assert order_cost(Order.reverse(length), graph) == 1 + sum(range(1, length))


def test_chain_without_copy_counts_the_first_target_as_intermediate() -> None:
    assert order_cost(Order.reverse(4), chain(4, copy=False)) == 4 + 3 + 2 + 1


def test_an_input_copy_may_stand_anywhere() -> None:
    graph = chain(4)
    for order in ((0, 1, 2, 3), (1, 0, 2, 3), (1, 2, 0, 3), (1, 2, 3, 0)):
        assert cost_ratio(Order(order), graph) == 1.0
    assert cost_ratio(Order((0, 2, 1, 3)), graph) == 5 / 4


def test_latents_are_evaluated_anew_at_each_step() -> None:
    # 0 -> latent 2 -> latent 3 -> 1, and 0 itself needs latent 4.
    graph = DependencyGraph(2, ((4,), (3,), (0,), (2,), ()), ((),) * 5)
    assert order_cost(Order((0, 1)), graph) == 2 + 3
    assert order_cost(Order((1, 0)), graph) == 5 + 2
    assert cost_ratio(Order((1, 0)), graph) == 7 / 5


def test_shared_ancestors_count_once_per_step() -> None:
    diamond = DependencyGraph(4, ((), (0,), (0,), (1, 2)), ((),) * 4)
    assert order_cost(Order((3, 0, 1, 2)), diamond) == 4 + 1 + 1 + 1


def test_target_parents_see_through_latents() -> None:
    graph = DependencyGraph(3, ((), (), (1, 3), (4, 0), (0,)), ((),) * 5)
    assert graph.target_parents(2) == {0, 1}
    assert graph.target_parents(0) == frozenset()
    with pytest.raises(InputError, match="target 3"):
        graph.target_parents(3)


def test_topological_order_takes_the_smallest_index_first() -> None:
    graph = DependencyGraph(5, ((4,), (), (1,), (), ()), ((),) * 5)
    assert graph.topological_order() == Order((1, 2, 3, 4, 0))


@given(graphs(), st.data())
def test_relabelling_keeps_the_cost_of_every_order(graph: DependencyGraph, data: st.DataObject) -> None:
    shuffles = st.permutations(range(graph.targets)).map(Order.of)
    true_of_column, stored = data.draw(shuffles), data.draw(shuffles)
    true = Order(tuple(true_of_column[column] for column in stored))
    assert order_cost(stored, graph.relabelled(true_of_column)) == order_cost(true, graph)


def test_relabelled_names_columns() -> None:
    graph = chain(3).relabelled(Order((2, 0, 1)))  # columns hold y_2, y_0, y_1
    assert graph.parents == ((2,), (), (1,))
    assert graph.input_parents == ((2,), (0,), (1,))
    assert graph.input_copies == {1}


@pytest.mark.parametrize(
    ("targets", "parents", "inputs", "copies", "message"),
    [
        (0, (), (), set(), "at least one target"),
        (3, ((), ()), ((), ()), set(), "each node"),
        (1, ((),), ((), ()), set(), "each node"),
        (2, ((1,), (0,)), ((), ()), set(), "no cycle"),
        (1, ((0,),), ((),), set(), "no cycle"),
        (1, ((1,), (2,), (1,)), ((), (), ()), set(), "no cycle, found"),
        (2, ((), (2,)), ((), ()), set(), r"parent 2, but nodes are 0\.\.1"),
        (2, ((), (0, 0)), ((), ()), set(), "twice"),
        (1, ((),), ((-1,),), set(), "negative position"),
        (1, ((),), ((0,),), {1}, "input copy 1"),
        (2, ((), (0,)), ((0,), (1,)), {1}, "target 1 is said to repeat"),
    ],
)
def test_refuses_broken_graphs(
    targets: int,
    parents: tuple[tuple[int, ...], ...],
    inputs: tuple[tuple[int, ...], ...],
    copies: set[int],
    message: str,
) -> None:
    with pytest.raises(InputError, match=message):
        DependencyGraph(targets, parents, inputs, frozenset(copies))


def test_lengths_must_agree() -> None:
    with pytest.raises(InputError, match="length 3, but the graph has 2"):
        order_cost(Order.forward(3), chain(2))
    with pytest.raises(InputError, match="cannot relabel"):
        chain(2).relabelled(Order.forward(3))
