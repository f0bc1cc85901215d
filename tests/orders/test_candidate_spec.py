import json
from pathlib import Path

import numpy as np
import pytest

from genorder.errors import InputError
from genorder.orders import CandidateSource, Order, parse_candidates, read_orders, relative_to
from genorder.orders.candidates import block_orders, random_orders, sort_orders, topological_sorts, within_time_orders
from genorder.tasks import make_task

FILE = CandidateSource(Order.forward(10))
TASK = make_task("delay-relu", 12)
COLUMNS = Order.random(12, np.random.default_rng(7))
DELAY = CandidateSource(
    reference=COLUMNS,
    graph=TASK.dependencies().relabelled(COLUMNS.inverse()),
    variables=4,
    hand_designed={name: relative_to(COLUMNS, order) for name, order in TASK.hand_designed_orders().items()},
)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


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


@pytest.mark.parametrize(
    "content",
    [
        [[0, 1, 2], [2, 1, 0]],
        [{"order": [0, 1, 2]}, {"order": [2, 1, 0], "loss": 0.5}],
        [[0, 1, 2], {"order": [2, 1, 0]}, [0, 1, 2]],
        {"orders": [[0, 1, 2], [2, 1, 0]], "note": "mine"},
        {"orders": [{"order": [0, 1, 2]}, {"order": [2, 1, 0]}]},
    ],
)
def test_forms_of_files(tmp_path: Path, content: object) -> None:
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(content))
    assert read_orders(path, 3) == [Order((0, 1, 2)), Order((2, 1, 0))]


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ([0, 1, 1], "entry 2: not an order: index 1 appears twice, 2 is missing"),
        ([0, 1, 3], "entry 2: not an order: holds 3, but a length-3 order has only 0..2"),
        ([0, 1, -1], "entry 2: not an order: holds -1"),
        ([0, 1, 2, 3], "entry 2 has 4 indices; the data has 3 targets"),
        ([0], "entry 2 has 1 indices; the data has 3 targets"),
        ([], "entry 2: an order needs at least one index, received none"),
        ([0, 1, 2.0], "entry 2: an order holds integers only, received float 2.0"),
        ([0, 1, True], "entry 2: an order holds integers only, received bool True"),
        ([0, 1, "2"], "entry 2: an order holds integers only, received str '2'"),
        ([0, 1, None], "entry 2: an order holds integers only, received NoneType None"),
        ([[0, 1, 2]], "entry 2: an order holds integers only, received list [0, 1, 2]"),
        ({"order": [0, 0, 1]}, "entry 2: not an order: index 0 appears twice, 2 is missing"),
        ({"orders": [0, 1, 2]}, "entry 2 is not an order; expected a list of target indices"),
        ({"order": 5}, "entry 2 is not an order; expected a list of target indices"),
        ("012", "entry 2 is not an order; expected a list of target indices"),
        (None, "entry 2 is not an order; expected a list of target indices"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_broken_entry_is_named(tmp_path: Path, entry: object, complaint: str, wrapped: bool) -> None:
    path = tmp_path / "orders.json"
    entries = [[0, 1, 2], entry, [2, 1, 0], [9, 9, 9]]
    path.write_text(json.dumps({"orders": entries} if wrapped else entries))
    with pytest.raises(InputError) as refused:
        read_orders(path, 3)
    assert str(refused.value).startswith(f"{path}: {complaint}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"[[0, 1, 2],\n[2, 1, 0", ":2: not JSON (Expecting ',' delimiter)"),
        (b"", ":1: not JSON (Expecting value)"),
        (b"\xff\xfe", " is not a JSON text file"),
        (b"[" * 100_000, " is not a JSON text file"),
        (b"[[" + b"1" * 5000 + b"]]", " is not a JSON text file"),
        (b"[]", ": expected a list of orders, such as [[0, 1, 2], [2, 1, 0]]"),
        (b"{}", ": expected a list of orders, such as"),
        (b'{"orders": 5}', ": expected a list of orders, such as"),
        (b'"012"', ": expected a list of orders, such as"),
        (b"5", ": expected a list of orders, such as"),
        (b"[0, 1, 2]", ": entry 1 is not an order; expected a list of target indices"),
    ],
)
def test_broken_files(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "orders.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_orders(path, 3)
    assert str(refused.value).startswith(f"{path}{complaint}")
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nosuch\.json: No such file or directory"):
        read_orders(tmp_path / "nosuch.json", 3)
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        read_orders(tmp_path, 3)
