import json
from pathlib import Path

import pytest

from genorder.errors import InputError
from genorder.orders import Order, parse_order, read_orders


def test_named_forms() -> None:
    assert parse_order("forward", 4) == Order.forward(4)
    assert parse_order(" reverse ", 4) == Order.reverse(4)
    assert parse_order("0,3, 1,2", 4) == Order((0, 3, 1, 2))
    assert parse_order("0", 1) == Order((0,))


def test_random_depends_on_the_seed_only() -> None:
    assert parse_order("random:7", 30) == parse_order("random:7", 30)
    assert parse_order("random:7", 30) != parse_order("random:8", 30)


@pytest.mark.parametrize("content", ["[2, 0, 1]", '{"order": [2, 0, 1], "loss": 0.5}'])
def test_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "order.json"
    path.write_text(content)
    assert parse_order(str(path), 3) == Order((2, 0, 1))


def test_file_without_suffix_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("best").write_text("[1, 0]")
    assert parse_order("best", 2) == Order((1, 0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[2,\n 0,\n 1", r"bad\.json:3: not JSON"),
        ('{"orders": [0]}', r'bad\.json: .*no key "order"'),
        ("7", r"bad\.json: expected a JSON list"),
        ('{"order": "0,1"}', r"bad\.json: expected a JSON list"),
        ("[0, 0, 1]", r"bad\.json: .*index 0 appears twice"),
        ("[0, 1.5]", r"bad\.json: .*integers only"),
        ("[0, 1]", r"bad\.json: the order has length 2, expected 3"),
        ("[" * 100_000, r"bad\.json: "),
    ],
)
def test_file_errors_name_the_file(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        parse_order(str(path), 3)


def test_file_errors_from_the_file_system(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such order file"):
        parse_order(str(tmp_path / "missing.json"), 3)
    with pytest.raises(InputError, match="cannot be read"):
        parse_order(str(tmp_path), 3)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.json: not a JSON text"):
        parse_order(str(tmp_path / "binary.json"), 3)


@pytest.mark.parametrize("text", ["0,1", "0,1,2,3"])
def test_wrong_length_says_both(text: str) -> None:
    with pytest.raises(InputError, match=rf"length {text.count(',') + 1}, expected 3"):
        parse_order(text, 3)


@pytest.mark.parametrize("text", ["", "backward", "0;1;2", "0,1,", "Forward", "random", "x" * 5000, "a\0b"])
def test_garbage_names_the_accepted_forms(text: str) -> None:
    with pytest.raises(InputError, match="forward, reverse, random:SEED") as caught:
        parse_order(text, 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["random:", "random:x", "random:1.5"])
def test_random_needs_an_integer_seed(text: str) -> None:
    with pytest.raises(InputError, match="integer seed"):
        parse_order(text, 3)


@pytest.mark.parametrize("text", ["0,1,1", "0,1,3", "0,-1,1", "9" * 5000])
def test_indices_that_are_no_order(text: str) -> None:
    with pytest.raises(InputError, match="order"):
        parse_order(text, 3)


@pytest.mark.parametrize("text", ["forward", "reverse", "random:1"])
def test_length_zero_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="at least one index"):
        parse_order(text, 0)


# -- Files of orders.


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
