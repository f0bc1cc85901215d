"""Datasets with the targets in the found order, as other programs read them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import SequenceDataset, read_dataset, read_jsonl
from genorder.errors import InputError
from genorder.export import export_run
from genorder.export.datasets import reordered, write_reordered
from genorder.orders import Order
from genorder.runs import read_finished_run

ORDER = Order((2, 0, 5, 3, 1, 4))  # of the run of variable length


@settings(deadline=None)
@given(st.permutations(range(5)), st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1))
def test_reordered_is_the_plain_computation(indices: list[int], targets: list[list[int]]) -> None:
    dataset = SequenceDataset.from_sequences([[0]] * len(targets), targets)
    found = reordered(dataset, Order(tuple(indices)))
    for row, target in enumerate(targets):
        assert found.target(row) == [str(target[index]) for index in indices if index < len(target)]
        assert found.input(row) == ["0"]
    assert [dataset.target(row) for row in range(len(targets))] == [list(map(str, target)) for target in targets]


def expected_rows(run: Path, split: str) -> list[tuple[list[str], list[str]]]:
    splits = read_finished_run(run).source.splits
    chosen = splits.all if split == "all" else [getattr(splits, split)]
    return [
        (part.input(row), ORDER.restrict(len(part.target(row))).apply(part.target(row)))
        for part in chosen
        for row in range(len(part))
    ]


@pytest.mark.parametrize("split", ["all", "train", "validation", "test"])
def test_json_lines(variable_run: Path, split: str) -> None:
    exported = export_run(variable_run, "dataset", "new/data.jsonl", split=split)
    expected = expected_rows(variable_run, split)
    read = read_jsonl("new/data.jsonl")
    assert [(read.input(row), read.target(row)) for row in range(len(read))] == expected
    assert {len(target) for _, target in expected} == {3, 4, 5, 6}
    assert exported.to_dict() == {
        "path": "new/data.jsonl", "kind": "dataset", "files": ["new/data.jsonl"], "order": list(ORDER),
        "samples": {"all": 4070, "train": 4000, "validation": 20, "test": 50}[split],
    }  # fmt: skip


def test_calt(variable_run: Path) -> None:
    export_run(variable_run, "calt", "test.txt", split="test")
    rows = []
    for line in Path("test.txt").read_text(encoding="utf-8").splitlines():  # as CALT reads it
        problem, answer = line.strip().split("#", 1)
        rows.append((problem.strip().split(), answer.strip().split()))
        assert line == f"{' '.join(rows[-1][0])} # {' '.join(rows[-1][1])}"
    assert rows == expected_rows(variable_run, "test")


def test_int2int(variable_run: Path) -> None:
    export_run(variable_run, "int2int", "test.txt", split="test")
    lines = Path("test.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.rstrip().split("\t") for line in lines]  # as Int2Int reads them
    assert all(len(pair) == 2 for pair in pairs)
    assert [(x.split(), y.split()) for x, y in pairs] == expected_rows(variable_run, "test")


def written(dataset: SequenceDataset, kind: str) -> str:
    write_reordered(dataset, Order.forward(1), Path("out.txt"), kind)
    return Path("out.txt").read_text()


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("a b", "the token 'a b' cannot be written"),
        ("", "the token '' cannot be written"),
        ("x\n", "cannot be written"),
        ("c#", "holds the separator '#' among its tokens"),
        ("\ud800", "cannot be written"),
    ],
)
def test_tokens_that_would_be_read_otherwise_are_refused(token: str, said: str) -> None:
    dataset = SequenceDataset.from_sequences([["1", token]], [["2"]])
    with pytest.raises(InputError) as caught:
        written(dataset, "calt")
    assert said in str(caught.value)
    assert "write .jsonl" in str(caught.value)
    assert list(Path().iterdir()) == []
    if token == "c#":
        assert written(dataset, "int2int") == "1 c#\t2\n"


@pytest.mark.parametrize("kind", ["calt", "int2int"])
def test_an_empty_input_is_refused(kind: str) -> None:
    dataset = SequenceDataset.from_sequences([["1"], []], [["2"], ["2"]])
    with pytest.raises(InputError, match=f"a sample has an empty input, which {kind} cannot hold"):
        written(dataset, kind)


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz", "parquet"])
def test_the_ending_of_a_dataset_says_its_format(variable_run: Path, ending: str) -> None:
    export_run(variable_run, "dataset", f"data.{ending}", split="test")
    read = read_dataset(f"data.{ending}")
    assert [(read.input(row), read.target(row)) for row in range(len(read))] == expected_rows(variable_run, "test")


def test_integers_stay_integers(fixed_run: Path) -> None:
    export_run(fixed_run, "dataset", "data.jsonl", split="test")
    first = json.loads(Path("data.jsonl").read_text().splitlines()[0])
    assert all(type(token) is int for token in first["input"] + first["target"])


def test_the_given_order_leaves_targets_as_they_were(variable_run: Path) -> None:
    exported = export_run(variable_run, "dataset", "data.jsonl", split="test", given=True)
    assert exported.order == list(range(6))
    test = read_finished_run(variable_run).source.splits.test
    read = read_jsonl("data.jsonl").with_vocabulary(test.vocabulary)
    assert np.array_equal(read.targets.tokens, test.targets.tokens)


def test_existing_files(fixed_run: Path) -> None:
    Path("data.jsonl").write_text("mine")
    with pytest.raises(InputError, match=r"data.jsonl exists; .* --force"):
        export_run(fixed_run, "dataset", "data.jsonl")
    assert Path("data.jsonl").read_text() == "mine"
    assert export_run(fixed_run, "dataset", "data.jsonl", split="test", force=True).samples == 50
    assert len(read_jsonl("data.jsonl")) == 50
    with pytest.raises(InputError, match="is a directory"):
        export_run(fixed_run, "calt", ".", force=True)
