"""Variables take turns, no target before what it is computed from, and as many as can be right behind a parent."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from genorder.orders import Constraints, DependencyGraph, Order, cost_ratio
from genorder.orders.candidates import topological_sorts
from genorder.profiling.lines import Lines, Reads, find_lines
from genorder.search.periodic_sorts import periodic_sorts
from genorder.tasks import hidden_order, make_task

DELAYS = ("relu", "coupled-ring", "modular", "sine", "square", "mixed", "asymmetric")


def lines_of(graph: DependencyGraph, sort: Order) -> Lines:
    reads = (Reads(frozenset(graph.target_parents(t)), len(graph.input_parents[t])) for t in range(graph.targets))
    lines = find_lines([[own] for own in reads], sort)
    assert lines is not None
    return lines


def delay_lines(network: str, hidden: int) -> tuple[Lines, DependencyGraph, Order]:
    task = make_task(f"delay-{network}", "36")
    columns = hidden_order(task.lengths, hidden)
    graph = task.dependencies().relabelled(columns)
    return lines_of(graph, topological_sorts(graph, 1, np.random.default_rng(hidden))[0]), graph, columns


def right_behind(order: Order, lines: Lines) -> int:
    return sum(one in lines.reads[other].targets for one, other in pairwise(order))


@pytest.mark.parametrize("network", DELAYS)
@pytest.mark.parametrize("hidden", [0, 1])
def test_they_are_sorts_of_the_graph(network: str, hidden: int) -> None:
    lines, graph, _ = delay_lines(network, hidden)
    found = periodic_sorts(lines, Constraints())
    assert 3 <= len(found) == len(set(found)) <= 4
    assert {cost_ratio(order, graph) for order in found} == {1.0}
    behind = [right_behind(order, lines) for order in found]
    assert behind == sorted(behind, reverse=True)


@pytest.mark.parametrize("network", ["relu", "modular", "mixed", "asymmetric"])
def test_the_last_is_the_best_time_after_time(network: str) -> None:
    """None of the 24 sequences of the variables has more targets right behind a parent."""
    lines, _, columns = delay_lines(network, 0)
    found = columns.compose(periodic_sorts(lines, Constraints())[-1])
    assert [target // 4 for target in found] == sorted(target // 4 for target in found)
    by_time = [Order.of(4 * time + v for time in range(9) for v in turns) for turns in permutations(range(4))]
    most = max(right_behind(columns.inverse().compose(order), lines) for order in by_time)
    assert right_behind(columns.inverse().compose(found), lines) == most > 0


def ring_turns(network: str) -> range:
    return range(4 if network == "coupled-ring" else 1)


def renamed(target: int, turn: int) -> int:
    return target - target % 4 + (target + turn) % 4


@pytest.mark.parametrize("network", ["relu", "mixed", "asymmetric", "coupled-ring"])
@pytest.mark.parametrize("hidden", [0, 1])
def test_the_best_designed_by_hand_is_among_them(network: str, hidden: int) -> None:
    """Variable first: no other of the five has as many targets right behind a parent."""
    lines, _, columns = delay_lines(network, hidden)
    by_hand = make_task(f"delay-{network}", "36").hand_designed_orders()["variable_first_topological"]
    found = [columns.compose(order) for order in periodic_sorts(lines, Constraints())]
    # In a ring, it does not matter which variable is called the first.
    assert by_hand in [Order.of(renamed(t, turn) for t in o) for o in found for turn in ring_turns(network)]


@pytest.mark.parametrize("network", DELAYS)
def test_no_two_have_the_same_distances(network: str) -> None:
    """In a ring, to begin with another of the variables changes nothing."""
    lines, _, _ = delay_lines(network, 0)
    kinds = set()
    found = periodic_sorts(lines, Constraints())
    for order in found:
        step_of = order.inverse()
        late = lines.rows[len(lines.rows) // 2]
        kinds.add(tuple(sorted(tuple(sorted(step_of[t] - step_of[p] for p in lines.reads[t].targets)) for t in late)))
    assert len(kinds) == len(found)


@pytest.mark.parametrize("width", [2, 3])
def test_which_variable_is_right_behind_a_parent_stays_open(width: int) -> None:
    """All read all one level back: the distances are the same whoever comes first, the functions not."""
    levels = 6
    reads = tuple(
        Reads(frozenset(range(t - t % width - width, t - t % width)) if t >= width else frozenset(), 2)
        for t in range(width * levels)
    )
    lines = Lines(tuple(tuple(range(width * level, width * (level + 1))) for level in range(levels)), reads)
    first = {order[0] for order in periodic_sorts(lines, Constraints())}
    assert first == set(range(width))


def test_other_lines_that_are_as_good_make_nothing_worse() -> None:
    """A ring of five: with few ways to take turns tried, 27 targets are right behind a parent."""
    width, levels = 5, 10
    seen = [[(1, own + 1), (3, own), (3, own + 4)] for own in range(width)]
    parents = [
        {width * (t - back) + line % width for back, line in seen[own] if t >= back}
        for t in range(levels)
        for own in range(width)
    ]
    lines = Lines(
        tuple(tuple(range(width * t, width * (t + 1))) for t in range(levels)),
        tuple(Reads(frozenset(own), 3 - len(own)) for own in parents),
    )
    assert len(lines.as_good()) > 1
    assert right_behind(periodic_sorts(lines, Constraints())[0], lines) >= 29


def test_none_has_more_right_behind_a_parent_by_brute_force() -> None:
    """Three variables: u from w and v before it, v from u, w from v two levels back and u."""
    levels = 6
    parents: list[set[int]] = []
    for t in range(levels):
        reads = [(1, 2), (1, 1)], [(1, 0)], [(2, 1), (1, 0)]
        parents += [{3 * (t - back) + line for back, line in own if t >= back} for own in reads]
    lines = Lines(
        tuple((3 * t, 3 * t + 1, 3 * t + 2) for t in range(levels)),
        tuple(Reads(frozenset(own), 2 - len(own)) for own in parents),
    )
    best = 0
    for begins in product(range(-9, 10), repeat=2):
        starts = (0, *begins)
        steps = [3 * (t // 3) + starts[t % 3] for t in range(3 * levels)]
        if len(set(steps)) == len(steps) and all(steps[p] < steps[t] for t in range(len(steps)) for p in parents[t]):
            sequence = sorted(range(len(steps)), key=steps.__getitem__)
            best = max(best, sum(one in parents[other] for one, other in pairwise(sequence)))
    found = periodic_sorts(lines, Constraints())
    assert best > 0
    assert right_behind(found[0], lines) == best


def test_lines_that_do_not_read_each_other_take_no_turns() -> None:
    two_chains = tuple(Reads(frozenset([t - 2] if t > 1 else []), 1) for t in range(14))
    lines = find_lines([[own] for own in two_chains], Order.forward(14))
    assert lines is not None
    assert len(lines.as_good()) == 2
    for same in lines.as_good():  # lines that cross, from one chain to the other and back, are of the same chains
        assert periodic_sorts(same, Constraints()) == []


def by_hand(constraints: Constraints, lines: Lines) -> list[Order]:
    """All ways to take turns that are allowed, by brute force, with some target right behind a parent."""
    width = lines.width
    found = set()
    for begins in product(range(16), repeat=width):
        if len({begin % width for begin in begins}) == width:
            steps = {
                t: width * level + begins[line] for level, row in enumerate(lines.rows) for line, t in enumerate(row)
            }
            if all(steps[parent] < steps[t] for t in steps for parent in lines.reads[t].targets):
                found.add(Order.of(sorted(steps, key=steps.__getitem__)))
    return [order for order in found if constraints.allows(order) and right_behind(order, lines) >= len(lines.rows) - 3]


@pytest.mark.parametrize(
    "constraints", [Constraints(keep_first=1), Constraints(keep_last=1), Constraints(before=((9, 8),))]
)
def test_whatever_the_constraints_allow_is_found(constraints: Constraints) -> None:
    """u from v and u before it, v from u and v: of two variables all is known, by trying everything."""
    parents = [{t - 2, t - 1} if t % 2 == 0 else {t - 3, t - 2} for t in range(16)]
    reads = tuple(Reads(frozenset(p for p in own if p >= 0), 0) for own in parents)
    lines = Lines(tuple((t, t + 1) for t in range(0, 16, 2)), reads)
    assert bool(periodic_sorts(lines, constraints)) == bool(by_hand(constraints, lines))


def test_what_is_forbidden_is_not_proposed() -> None:
    lines, _, columns = delay_lines("relu", 0)
    free = periodic_sorts(lines, Constraints())
    one, other = free[0][-1], free[0][-2]
    constraints = Constraints(before=((one, other),))
    found = periodic_sorts(lines, constraints)
    assert free[0] not in found
    assert all(constraints.allows(order) for order in found)
    assert periodic_sorts(lines, Constraints(keep_first=len(columns) - 1)) == []


@pytest.mark.parametrize("network", ["relu", "modular", "mixed", "asymmetric"])
def test_the_sequence_of_the_lines_does_not_matter(network: str) -> None:
    lines, _, _ = delay_lines(network, 0)
    expected = set(periodic_sorts(lines, Constraints()))
    for places in ((1, 2, 3, 0), (3, 2, 1, 0), (1, 0, 3, 2), (0, 2, 1, 3)):
        other = Lines(tuple(tuple(row[place] for place in places) for row in lines.rows), lines.reads)
        assert set(periodic_sorts(other, Constraints())) == expected


def test_however_the_lines_of_a_ring_run_the_sorts_are_the_same() -> None:
    """But for which variable is called the first."""
    lines, _, columns = delay_lines("coupled-ring", 0)
    turned = lines.as_good()
    assert len(turned) == 4

    def kinds(found: list[Order]) -> list[frozenset[Order]]:
        true = [columns.compose(order) for order in found]
        return [frozenset(Order.of(renamed(t, turn) for t in order) for turn in range(4)) for order in true]

    expected = kinds(periodic_sorts(lines, Constraints()))
    assert [set(kinds(periodic_sorts(each, Constraints()))) for each in turned] == [set(expected)] * 4


@pytest.mark.parametrize("network", ["relu", "coupled-ring"])
def test_other_names_of_the_columns_give_the_same_sorts(network: str) -> None:
    graph = make_task(f"delay-{network}", "36").dependencies()
    sort = topological_sorts(graph, 1, np.random.default_rng(0))[0]
    names = Order.random(36, np.random.default_rng(1))  # column c holds target names[c]
    here = periodic_sorts(lines_of(graph, sort), Constraints())
    there = periodic_sorts(lines_of(graph.relabelled(names), names.inverse().compose(sort)), Constraints())
    assert [names.compose(order) for order in there] == here
