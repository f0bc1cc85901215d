"""A sort that repeats itself, of graphs that repeat themselves and of any others."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder import make_task
from genorder.search.regular_sort import irregularity, regular_sequence


def is_sort(nodes: list[int], parents: list[list[int]]) -> bool:
    step_of = {node: step for step, node in enumerate(nodes)}
    return sorted(nodes) == list(range(len(parents))) and all(
        step_of[parent] < step_of[node] for node, own in enumerate(parents) for parent in own
    )


graphs = st.integers(1, 6).flatmap(
    lambda nodes: st.tuples(
        *(st.sets(st.integers(0, max(0, node - 1)), max_size=min(node, 3)) for node in range(nodes))
    )
)


@settings(max_examples=60)
@given(graphs)
def test_it_is_a_sort_and_of_all_sorts_a_regular_one(graph: tuple[set[int], ...]) -> None:
    parents = [sorted(own) for own in graph]
    found = regular_sequence(parents)
    assert is_sort(found, parents)
    sorts = [list(nodes) for nodes in permutations(range(len(parents))) if is_sort(list(nodes), parents)]
    least = min(irregularity(nodes, parents) for nodes in sorts)
    assert irregularity(found, parents) <= irregularity(list(range(len(parents))), parents)
    assert irregularity(found, parents) <= least + 3  # at most one kind more than the best of all


def test_the_price_of_a_sort() -> None:
    """0 1 from nothing, 2 of both, 3 of 2: distances (1, 2) and (1)."""
    assert irregularity([0, 1, 2, 3], [[], [], [0, 1], [2]]) == 3 * 2 - 2
    assert irregularity([0, 1], [[], []]) == 0


@pytest.mark.parametrize(("network", "kinds", "next_to"), [("delay-relu", 9, 22), ("delay-mixed", 11, 22)])
def test_a_network_over_time_goes_on_as_it_began(network: str, kinds: int, next_to: int) -> None:
    """No worse than by hand: variables first has 11 kinds of distances, and 17 targets next to a parent."""
    graph = make_task(network, "36").dependencies()
    parents = [sorted(graph.target_parents(target)) for target in range(36)]
    nodes = regular_sequence(parents)
    step_of = {node: step for step, node in enumerate(nodes)}
    found = [tuple(sorted(step_of[node] - step_of[parent] for parent in parents[node])) for node in nodes]
    assert is_sort(nodes, parents)
    assert len({kind for kind in found if kind}) <= kinds
    assert sum(1 in kind for kind in found) >= next_to


@pytest.mark.parametrize("parents", [[[]] * 256, [[node - 1] if node else [] for node in range(256)]])
def test_without_a_choice_the_numbers_decide(parents: list[list[int]]) -> None:
    assert regular_sequence(parents) == list(range(256))
