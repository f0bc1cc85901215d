"""Names of positions from options, files, programs and the headers of tables."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from genorder.data import Names, ReadOptions, names_from_lists, parse_names, read_dataset, split_dataset
from genorder.data.dataset import share_vocabulary
from genorder.errors import InputError

HEADER = ["row", "x0", "x1", "sea level", "up", "y,z"]
ROWS = [[n, n % 3, n % 5, n % 7, n % 2, n % 4] for n in range(20)]
WIDE = ReadOptions(input_column="x0..x1", target_column="sea level..y,z")


def write_csv(path: Path, rows: list[list[object]] = ROWS) -> Path:
    lines = [",".join(f'"{name}"' for name in HEADER), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path: Path) -> Path:
    columns = {name: [row[place] for row in ROWS] for place, name in enumerate(HEADER)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [(None, ()), ("a", ("a",)), ("mass, sea level,y", ("mass", "sea level", "y")), ("a,,b", ("a", "", "b"))],
)
def test_names_of_an_option(text: str | None, names: tuple[str, ...]) -> None:
    assert parse_names(text) == names


def test_names_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "names"
    file.write_bytes("\ufeffa,b\r\nsea level\n\u2028\x0bü\n".encode())
    assert parse_names(f"@{file}") == ("a,b", "sea level", "ü")
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="expected one name per line, in UTF-8"):
        parse_names(f"@{file}")
    with pytest.raises(InputError, match="cannot read absent: No such file"):
        parse_names("@absent")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (Names(targets=("a", "b")), "received 2 target names; the data has 3 targets: give one name for each"),
        (Names(inputs=("a",)), "received 1 input names; the data has 2 inputs: give one name for each"),
        (Names(targets=("a", " ", "b")), "target name 1 is empty; expected text"),
        (Names(targets=("a", "b", "a")), "the target name 'a' occurs twice; expected distinct names"),
    ],
)
def test_wrong_names(names: Names, message: str) -> None:
    with pytest.raises(InputError) as refused:
        names.check(2, 3)
    assert str(refused.value) == message


@pytest.mark.parametrize("names", ["abc", [1, 2], {"a": 1}, 3])
def test_names_from_a_program_are_lists(names: Any) -> None:
    with pytest.raises(InputError, match=r"target_names are .*; expected a list of strings"):
        names_from_lists(None, names)


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_column_for_each_token(write: Any, tmp_path: Path) -> None:
    path = write(tmp_path / f"wide.{'csv' if write is write_csv else 'parquet'}")
    dataset = read_dataset(path, WIDE)
    assert dataset.names == Names(("x0", "x1"), ("sea level", "up", "y,z"))
    assert [dataset.input(n) for n in (0, 8)] == [["0", "0"], ["2", "3"]]
    assert [dataset.target(n) for n in (0, 8)] == [["0", "0", "0"], ["1", "0", "0"]]
    splits = split_dataset(dataset, validation=2, test=2, seed=0)
    assert splits.test.names == share_vocabulary([*splits.all])[0].names == dataset.names
    assert dataset.fingerprint() == read_dataset(path, WIDE).fingerprint()


def test_columns_may_be_named_in_any_order(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "wide.csv")
    dataset = read_dataset(path, ReadOptions(input_column="x1", target_column="up, x0..x1,sea level"))
    assert dataset.names == Names(targets=("up", "x0", "x1", "sea level"))
    assert (dataset.input(8), dataset.target(8)) == (["3"], ["0", "2", "3", "1"])


def test_keys_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    path.write_text("".join(json.dumps({"b": 2 * n, "a": n, "c": "d"}) + "\n" for n in range(3)))
    dataset = read_dataset(path, ReadOptions(input_column="a,b", target_column="c,b"))
    assert dataset.names == Names(("a", "b"), ("c", "b"))
    assert (dataset.input(2), dataset.target(2)) == (["2", "4"], ["d", "4"])
    with pytest.raises(InputError, match=r"'b\.\.c' is a range, which only tables have; list all names"):
        read_dataset(path, ReadOptions(input_column="a,b", target_column="b..c"))
    with path.open("a") as file:
        file.write('{"a": 1, "b": null, "c": 3}\n')
    with pytest.raises(InputError, match=r":4: 'b,c' holds None"):
        read_dataset(path, ReadOptions(input_column="a,c", target_column="b,c"))


def test_empty_cells_end_a_sequence(tmp_path: Path) -> None:
    rows = [[0, 1, "", 1, 2, ""], [1, 2, 3, 1, "", " "]]
    dataset = read_dataset(write_csv(tmp_path / "wide.csv", rows), WIDE)
    assert [dataset.input(0), dataset.target(0), dataset.target(1)] == [["1"], ["1", "2"], ["1"]]
    rows = [[0, 1, "", "", 2, 3], [1, 2, 3, "", "", ""]]
    with pytest.raises(InputError) as refused:
        read_dataset(write_csv(tmp_path / "holes.csv", rows), WIDE)
    assert "holes.csv:2: 'sea level..y,z' holds None" in str(refused.value)
    assert "holes.csv:3: the target is empty" in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("x1..x0", "'x1..x0' is a range in reverse column order; swap its ends"),
        ("x0,x0..x1", "names a column twice; expected each once"),
        ("x0..nonsense", "no 'x0..nonsense' among the columns"),
        ("x0,", "no 'x0,' among the columns"),
    ],
)
def test_wrong_columns(columns: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"wide\.csv:1: ") as refused:
        read_dataset(write_csv(tmp_path / "wide.csv"), ReadOptions(input_column=columns, target_column="up"))
    assert message in str(refused.value)


def test_a_column_with_exactly_that_name_comes_first(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "wide.csv")
    dataset = read_dataset(path, ReadOptions(input_column="x0", target_column="y,z"))
    assert not dataset.names
    assert dataset.target(7) == ["3"]
