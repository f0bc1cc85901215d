"""Targets that are variables over time are found to be, from what they read alone; others are not."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from any_order_helpers import task_data

from genorder.orders import DependencyGraph, Order
from genorder.orders.candidates import topological_sorts
from genorder.profiling.agreement import AgreementConfig
from genorder.profiling.determination import determine
from genorder.profiling.lines import Lines, Reads, _kind, find_lines, places
from genorder.tasks import hidden_order, make_task

DELAYS = ("relu", "coupled-ring", "modular", "sine", "square", "mixed", "asymmetric")


def read(*targets: int, inputs: int = 0) -> Reads:
    return Reads(frozenset(targets), inputs)


def sources_of(graph: DependencyGraph) -> list[list[Reads]]:
    return [
        [Reads(frozenset(graph.target_parents(target)), len(graph.input_parents[target]))]
        for target in range(graph.targets)
    ]


def a_sort(graph: DependencyGraph, seed: int = 0) -> Order:
    return topological_sorts(graph, 1, np.random.default_rng(seed))[0]


def go_on(lines: Lines) -> bool:
    """Beyond the first levels, does each target read what the one before it in its line did?"""
    place_of = places(lines.rows)

    def seen(target: int) -> set[tuple[int, int]]:
        return {(place_of[target][0] - place_of[p][0], place_of[p][1]) for p in lines.reads[target].targets}

    rows = lines.rows[2:]
    return all(seen(one) == seen(other) for row, after in pairwise(rows) for one, other in zip(row, after, strict=True))


@pytest.mark.parametrize("network", DELAYS)
@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_the_variables_of_a_delay_network(network: str, hidden: int) -> None:
    task = make_task(f"delay-{network}", "36")
    true_of_column = hidden_order(task.lengths, hidden)
    graph = task.dependencies().relabelled(true_of_column)
    lines = find_lines(sources_of(graph), a_sort(graph, hidden))
    assert lines is not None
    assert sorted(target for row in lines.rows for target in row) == list(range(36))
    assert go_on(lines)
    if network != "coupled-ring":  # there, any turn of the ring does as well
        variables = [{true_of_column[row[line]] % 4 for row in lines.rows} for line in range(4)]
        assert sorted(variables, key=min) == [{0}, {1}, {2}, {3}]


@pytest.mark.parametrize("network", DELAYS)
def test_lines_that_are_as_good(network: str) -> None:
    """In a ring they may run on from each variable to the next, or the one after it, or back; elsewhere nowhere."""
    task = make_task(f"delay-{network}", "36")
    true_of_column = hidden_order(task.lengths, 0)
    graph = task.dependencies().relabelled(true_of_column)
    lines = find_lines(sources_of(graph), a_sort(graph))
    assert lines is not None
    turned = lines.as_good()
    assert turned[0] == lines
    assert all(go_on(each) for each in turned)
    along = [{tuple(true_of_column[t] % 4 for t in line) for line in zip(*each.rows, strict=True)} for each in turned]
    by_step = {step: {tuple((v + step * t) % 4 for t in range(9)) for v in range(4)} for step in range(4)}
    steps = [step for lines in along for step, expected in by_step.items() if lines == expected]
    assert sorted(steps) == ([0, 1, 2, 3] if network == "coupled-ring" else [0])
    assert len(turned) == len(steps)


def coupled(
    width: int, seen: Callable[[int], list[tuple[int, int]]], inputs: Callable[[int], int], levels: int
) -> Lines:
    """Line l reads what `seen` says, so many levels back in another line, and so many inputs beside it."""
    reads = [
        Reads(
            frozenset(width * (t - back) + line % width for back, line in seen(own) if t >= back),
            inputs(own) + sum(t < back for back, _ in seen(own)),
        )
        for t in range(levels)
        for own in range(width)
    ]
    return Lines(tuple(tuple(range(width * t, width * (t + 1))) for t in range(levels)), tuple(reads))


def to_all(width: int) -> Callable[[int], list[tuple[int, int]]]:
    return lambda own: [(1, line) for line in range(width)]


def to_itself_sooner(width: int) -> Callable[[int], list[tuple[int, int]]]:
    return lambda own: [(1 if line == own else 2, line) for line in range(width)]


def test_lines_with_other_inputs_do_not_change_places() -> None:
    lines = coupled(3, to_all(3), lambda own: own, levels=8)
    assert lines.as_good() == [lines]


@pytest.mark.parametrize(
    ("width", "kinds"),
    [(2, 2), (3, 3), (4, 5), (5, 7)],  # as many as there are ways to split the number into a sum
)
def test_as_good_are_one_of_each_kind_whichever_of_them_was_found(width: int, kinds: int) -> None:
    """All lines may change places, in any way: 120 for five of them, of which most are alike but for names."""
    lines = coupled(width, to_itself_sooner(width), lambda own: 0, levels=7)
    found = lines.as_good()
    assert found[0] == lines
    assert len(found) == kinds
    assert all(go_on(each) for each in found)
    for other in found[-1:]:
        again = other.as_good()
        assert again[0] == other
        assert {_kind(each.usual()) for each in again} == {_kind(each.usual()) for each in found}


@pytest.mark.parametrize("network", DELAYS)
def test_the_graph_that_is_counted_is_the_networks(network: str) -> None:
    """On ReLU three late targets have a simpler source than those of their kind."""
    data, train, _ = task_data(f"delay-{network}", "36", 1, train=60_000)
    determination = determine(train, AgreementConfig())
    assert determination is not None
    assert determination.lines is not None
    order = determination.order()
    assert order is not None
    chosen = determination.along(order)
    assert chosen is not None
    graph = data.graph_of_columns()
    inputs = determination.inputs
    assert [set(source.positions) for source in chosen] == [
        {inputs + parent for parent in graph.target_parents(target)} | set(graph.input_parents[target])
        for target in range(36)
    ]


def test_a_variable_that_is_never_shown() -> None:
    """Of Hidden cause, c(9) and d(11) are the same in every sample: which is which, nothing tells."""
    data, train, _ = task_data("delay-hidden-cause", "36", 1, train=60_000)
    determination = determine(train, AgreementConfig())
    assert determination is not None
    assert determination.lines is not None
    rows = [{data.true_of_column[target] for target in row} for row in determination.lines.rows]
    twins = {26, 35}
    assert [row - twins for row in rows] == [set(range(4 * t, 4 * t + 4)) - twins for t in range(9)]


def two_lines(levels: int) -> list[list[Reads]]:
    """u(t) from v(t - 1), v(t) from u(t - 1) and v(t - 1), as targets 0, 1, 2, ...; the first from inputs."""
    first = [[read(inputs=1)], [read(inputs=2)]]
    return first + [own for t in range(1, levels) for own in ([[read(2 * t - 1)], [read(2 * t - 2, 2 * t - 1)]])]


def test_of_several_sources_that_of_its_kind_is_taken() -> None:
    sources = two_lines(6)
    sources[8] = [read(4), read(3), read(7)]  # u(4), the first two in a roundabout way
    lines = find_lines(sources, Order.forward(12))
    assert lines is not None
    assert lines.rows == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11))
    assert lines.reads[8] == read(7)


def test_one_may_need_less_than_its_kind() -> None:
    sources = two_lines(6)
    sources[11] = [read(9)]
    lines = find_lines(sources, Order.forward(12))
    assert lines is not None
    assert lines.rows[-1] == (10, 11)
    assert lines.reads[11] == read(9)


def test_an_input_that_becomes_a_target() -> None:
    """u(t) from u(t - 4) and v(t - 1): the former is an input at first."""
    sources: list[list[Reads]] = [[read(inputs=2)], [read(inputs=1)]]
    for t in range(1, 8):
        sources += [[read(2 * t - 1, inputs=1) if t < 4 else read(2 * t - 8, 2 * t - 1)], [read(2 * t - 2)]]
    sources[12] = [read(7), read(4, 11)]
    lines = find_lines(sources, Order.forward(16))
    assert lines is not None
    assert lines.rows == tuple((2 * t, 2 * t + 1) for t in range(8))
    assert lines.reads[12] == read(4, 11)


@pytest.mark.parametrize(
    "sources",
    [
        [[read(inputs=1)], *([read(t)] for t in range(7))],  # a chain
        [[read(inputs=1)]] * 6,  # no edges
        two_lines(2),  # too few levels
        two_lines(3),  # no more than any three levels have
        [[read(inputs=1)], [read(inputs=2)], [read(1)], [read(0, 1)], [read(2)], [read(3)], [read(4, 5)], [read(4)]],
        [*two_lines(5), [read(0)]],  # one too many
        [*two_lines(4), [read(0, 1)], [read(5)]],  # that does not go on
        [[read(inputs=1)] for _ in range(6)] + [[read(t)] for t in range(12)],  # too many lines
    ],
)
def test_where_there_are_no_lines(sources: list[list[Reads]]) -> None:
    assert find_lines(sources, Order.forward(len(sources))) is None


def layered(width: int, levels: int, rng: np.random.Generator) -> list[list[Reads]]:
    """Each target reads one or two of the level before, whichever."""
    first = [[read(inputs=1)] for _ in range(width)]
    drawn = [
        [read(*(width * (level - 1) + rng.permutation(width)[: rng.integers(1, 3)]).tolist())]
        for level in range(1, levels)
        for _ in range(width)
    ]
    return first + drawn


def test_layers_that_read_what_they_like_are_hardly_ever_taken_for_lines() -> None:
    rng = np.random.default_rng(0)
    for width, levels in ((2, 3), (2, 4), (2, 6), (3, 4), (3, 6), (4, 5)):
        drawn = [layered(width, levels, rng) for _ in range(100)]
        assert sum(find_lines(sources, Order.forward(width * levels)) is not None for sources in drawn) <= 5


def with_more_sources(width: int, levels: int, rng: np.random.Generator) -> list[list[Reads]]:
    """What each variable reads is drawn once; some late targets have a second source, which may come first."""
    usual = [{(1, int(rng.integers(width))), (int(rng.integers(1, 3)), int(rng.integers(width)))} for _ in range(width)]
    sources: list[list[Reads]] = []
    for target in range(width * levels):
        level, line = divmod(target, width)
        own = {width * (level - back) + other for back, other in usual[line] if back <= level}
        sources.append([Reads(frozenset(own), len(usual[line]) - len(own))])
        if level >= 5 and rng.random() < 0.4:
            sources[-1].insert(int(rng.integers(2)), read(*rng.permutation(target)[:2].tolist()))
    return sources


def test_lines_among_sources_that_mean_nothing() -> None:
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(100):
        sources = with_more_sources(int(rng.integers(2, 5)), int(rng.integers(6, 10)), rng)
        lines = find_lines(sources, Order.forward(len(sources)))
        if lines is None:
            continue
        found += 1
        assert sorted(target for row in lines.rows for target in row) == list(range(len(sources)))
        level_of = {target: level for level, row in enumerate(lines.rows) for target in row}
        for target, reads in enumerate(lines.reads):
            assert reads in sources[target]
            assert all(level_of[parent] < level_of[target] for parent in reads.targets)
    assert found >= 90
