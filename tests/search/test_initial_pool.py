"""The orders that a search starts from, and those that this data cannot have."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.errors import InputError
from genorder.orders import CandidateSource, Order, cost_ratio
from genorder.search.initial_pool import NAMED_POOLS, check_initial_pool, initial_pool
from genorder.seeding import numpy_generator
from genorder.tasks import make_task

REFERENCE = Order((4, 1, 7, 0, 9, 3, 6, 2, 8, 5))
SOURCE = CandidateSource(REFERENCE)


def series(length: int) -> CandidateSource:
    task = make_task("delay-relu", str(length))
    return CandidateSource(Order.forward(length), task.dependencies(), task.variables_per_step)


@pytest.mark.parametrize("spec", ["random", "sort"])
@pytest.mark.parametrize("count", [1, 24, 720])
def test_as_many_as_asked_for(spec: str, count: int) -> None:
    pool = initial_pool(spec, count, SOURCE, numpy_generator(0))
    assert len(set(pool)) == len(pool) == count
    assert pool == initial_pool(spec, count, SOURCE, numpy_generator(0))
    assert pool != initial_pool(spec, count, SOURCE, numpy_generator(1)) or count == 1


@given(
    st.integers(2, 10).flatmap(lambda length: st.permutations(range(length))), st.integers(0, 99), st.integers(1, 40)
)
@settings(max_examples=50, deadline=None)
def test_priors_do_not_hold_the_reference(indices: list[int], seed: int, count: int) -> None:
    source = CandidateSource(Order.of(indices))
    for spec in ("sort", "block") if len(indices) > 5 else ("sort",):
        pool = initial_pool(spec, count, source, numpy_generator(seed))
        assert 1 <= len(set(pool)) == len(pool) <= count
        assert source.reference not in pool


def test_sort_has_all_orders_but_the_reference() -> None:
    source = CandidateSource(Order((2, 0, 1)))
    assert len(initial_pool("sort", 6, source, numpy_generator(0))) == 5
    assert source.reference not in initial_pool("sort", 6, source, numpy_generator(0))


def test_sort_leads_to_the_reverse() -> None:
    pool = initial_pool("sort", 24, SOURCE, numpy_generator(0))
    assert REFERENCE.compose(Order.reverse(10)) in pool


def test_block_is_the_reference_in_blocks_of_five() -> None:
    blocks = initial_pool("block", 720, SOURCE, numpy_generator(0))
    assert [list(order) for order in blocks] == [[*REFERENCE.indices[5:], *REFERENCE.indices[:5]]]


def test_block_needs_more_than_one_block() -> None:
    with pytest.raises(InputError, match="only one block"):
        initial_pool("block", 5, CandidateSource(Order((2, 0, 1))), numpy_generator(0))


def test_pools_of_time_series() -> None:
    source = series(8)
    assert source.graph is not None
    assert source.variables is not None
    topological = initial_pool("topo", 6, source, numpy_generator(0))
    assert all(cost_ratio(order, source.graph) == 1 for order in topological)
    within = initial_pool("vars", 6, source, numpy_generator(0))
    steps = [[list(order)[start : start + source.variables] for start in (0, source.variables)] for order in within]
    assert len(set(within)) == len(within) == 6
    assert all(sorted(first) == list(range(source.variables)) for first, _ in steps)


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    file.write_text(json.dumps({"orders": [[0, 2, 1], {"order": [2, 1, 0]}, [0, 2, 1], [1, 0, 2]]}))
    source = CandidateSource(Order.forward(3))
    check_initial_pool(str(file), source)
    found = [Order((0, 2, 1)), Order((2, 1, 0)), Order((1, 0, 2))]
    assert initial_pool(str(file), 9, source, numpy_generator(0)) == found
    assert initial_pool(str(file), 2, source, numpy_generator(0)) == found[:2]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("topo", "initial pool topo needs a dependency graph, which only built-in tasks have"),
        ("vars", "initial pool vars needs a time series of several variables, such as a delay network"),
        ("nosuch", f"initial pool 'nosuch': expected one of {', '.join(NAMED_POOLS)}, or a JSON file of orders"),
        ("nosuch.json", "initial pool 'nosuch.json': expected*"),
        ("short.json", "short.json: entry 2 has 3 indices; the data has 10 targets"),
        ("broken.json", "broken.json: entry 1: not an order: index 0 appears twice, 2 is missing"),
        ("cut.json", "cut.json:1: not JSON*"),
        ("empty.json", "empty.json: expected a list of orders*"),
    ],
)
def test_refused(spec: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.json").write_text(json.dumps([list(range(10)), [0, 1, 2]]))
    Path("broken.json").write_text("[[0, 1, 0]]")
    Path("cut.json").write_text("[[0, 1")
    Path("empty.json").write_text("[]")
    for refusing in (
        lambda: check_initial_pool(spec, SOURCE),
        lambda: initial_pool(spec, 5, SOURCE, numpy_generator(0)),
    ):
        with pytest.raises(InputError) as refused:
            refusing()
        said = str(refused.value)
        assert said.startswith(message[:-1]) if message.endswith("*") else said == message
