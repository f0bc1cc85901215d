"""Validation and test samples from files of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import RELU_3, TINY, Genorder, files_under

MODEL = TINY[:2] + TINY[8:]  # without the numbers of samples
OWN = ("--validation", "v.jsonl", "--test", "t.jsonl")


@pytest.fixture(autouse=True)
def _files(genorder: Genorder) -> None:
    for name, split, samples in (("d", "train", 400), ("v", "validation", 30), ("t", "test", 50)):
        genorder("generate", *RELU_3, "--samples", samples, "--split", split, "--out", f"{name}.jsonl")


def samples_of(run: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(Path(run, "config.json").read_text())["data"]["samples"]
    return found


def test_files_are_taken_whole(genorder: Genorder) -> None:
    shown = genorder("train", "d.jsonl", *OWN, *MODEL, "--steps", 3, "--out", "r", "--json")
    result = shown.result()
    assert result["samples"] == 50
    assert samples_of("r") == {"train": 400, "validation": 30, "test": 50}
    assert "v.jsonl (jsonl): 30 samples for validation\nt.jsonl (jsonl): 50 samples for test\n" in shown.err
    assert genorder("evaluate", "r", "--threads", 1, "--json").result()["loss"] == pytest.approx(result["loss"])
    alone = genorder("evaluate", "r", "t.jsonl", "--threads", 1, "--json").result()
    assert alone["loss"] == pytest.approx(result["loss"])
    Path("t.jsonl").write_text("".join(Path("t.jsonl").read_text().splitlines(keepends=True)[1:]))
    assert "has changed since the run" in genorder("evaluate", "r", "--threads", 1).error()


def test_fewer_if_they_are_asked_for(genorder: Genorder) -> None:
    few = ("--set", "samples.test=7", "--set", "samples.validation=5", "--set", "samples.train=90")
    assert genorder("train", "d.jsonl", *OWN, *MODEL, *few, "--steps", 3, "--out", "r").code == 0
    assert samples_of("r") == {"train": 90, "validation": 5, "test": 7}
    assert genorder("evaluate", "r", "--threads", 1, "--json").result()["samples"] == 7


def test_one_alone(genorder: Genorder) -> None:
    """The other is cut off DATA, as ever."""
    assert genorder("train", "d.jsonl", *OWN[2:], *MODEL, "--steps", 3, "--out", "r").code == 0
    found = samples_of("r")
    assert (found["validation"], found["test"]) == (40, 50)
    assert 340 <= found["train"] <= 360  # some of its inputs stand in validation too


def test_discover_and_rank(genorder: Genorder) -> None:
    short = ("--threads", 1, "--set", "race.first_rung=2", "--set", "final.training.steps=4")
    small = (*short, "--set", "any_order.training.steps=3")
    genorder("discover", "d.jsonl", *OWN, *small, "--explore-only", "--out", "r")
    assert samples_of("r") == {"train": 400, "validation": 30, "test": 50}
    ranking = ("--candidates", "forward", "--judge", "race", *short)
    (row,) = genorder("rank", "d.jsonl", *OWN[:2], *ranking, "--json").result()["ranking"]
    assert row["samples"] == 30


def test_inputs_of_the_test_file_are_not_trained_on(genorder: Genorder) -> None:
    lines = Path("d.jsonl").read_text().splitlines(keepends=True)
    Path("t.jsonl").write_text("".join(lines[:20]))
    shown = genorder("train", "d.jsonl", *OWN[2:], *MODEL, "--steps", 3, "--out", "r")
    found = samples_of("r")
    assert found["test"] == 20
    assert found["train"] + found["validation"] <= 380
    dropped = 400 - found["train"] - found["validation"]
    assert f"{dropped} samples dropped: same input in another split\n" in shown.err
    assert genorder("evaluate", "r", "--threads", 1).code == 0


def test_the_same_format_options(genorder: Genorder) -> None:
    for name, rows in (("d", 60), ("t", 10)):
        texts = (f"{n % 13 + 10}{n // 13} | {n % 10}" for n in range(rows) if name == "d" or n % 3)
        Path(f"{name}.txt").write_text("\n".join(texts))
    read = ("--separator", "|", "--split", "character")
    assert genorder("train", "d.txt", "--test", "t.txt", *read, *MODEL, "--steps", 3, "--out", "r").code == 0
    assert samples_of("r")["test"] == 6
    assert genorder("evaluate", "r", "--threads", 1).code == 0


def test_tokens_that_training_lacks_are_told(genorder: Genorder) -> None:
    """They may be rare: what is cut off a file at random, or drawn from a task, can hold such tokens too."""
    rows = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    rows[1]["target"][0] = rows[1]["target"][1] = rows[9]["input"][2] = 12345
    rows[9]["target"][2] = "what?"
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = genorder("train", "d.jsonl", *OWN, *MODEL, "--steps", 3, "--out", "r", "--json")
    assert (
        "t.jsonl (jsonl): 50 samples for test\nnote: 2 of them hold tokens that do not occur in d.jsonl, so that no "
        "model can learn them: 12345 what?\n"
    ) in shown.err
    assert shown.result()["samples"] == 50
    assert shown.err.count("do not occur in") == 1  # validation has none
    again = genorder("evaluate", "r", "--threads", 1, "--json").result()
    assert again["loss"] == pytest.approx(shown.result()["loss"])


def test_a_file_without_a_sample_of_known_tokens_is_refused(genorder: Genorder, tmp_path: Path) -> None:
    Path("v.jsonl").write_text('{"input": "a b", "target": "c"}\n{"input": "1 2", "target": "d"}\n')
    before = files_under(tmp_path)
    assert genorder("train", "d.jsonl", *OWN, *MODEL, "--steps", 3).error() == (
        "every sample of the validation split holds a token that no training sample has, such as 'a'; "
        "expected samples of the same kind, split into tokens in the same way"
    )
    assert files_under(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--task", "relu", "--test", "t.jsonl"), "--test: for a DATA file; a task draws all its splits itself"),
        (("--task", "relu", *OWN), "--validation and --test: for a DATA file; a task draws all its splits itself"),
        (("d.jsonl", "--test", "no.jsonl"), "cannot read no.jsonl: No such file or directory"),
        (("d.jsonl", "--test", "-"), "--test -: expected a file; only DATA is read from standard input"),
        (
            ("d.jsonl", "--test", "long.jsonl"),
            "the test split has a target of 4 tokens; those of the training samples have at most 3",
        ),
        (("d.jsonl", "--validation", "empty.jsonl"), "empty.jsonl holds no samples; expected one JSON object*"),
    ],
)
@pytest.mark.parametrize("verb", ["discover", "train", "rank"])
def test_refused(genorder: Genorder, tmp_path: Path, verb: str, arguments: tuple[Any, ...], line: str) -> None:
    Path("long.jsonl").write_text('{"input": [1, 2, 3], "target": [1, 2, 3, 1]}\n')
    Path("empty.jsonl").write_text("\n")
    before = files_under(tmp_path)
    more = ("--candidates", "forward") if verb == "rank" else ()
    refused = genorder(verb, *arguments, *more, "--threads", 1).error()
    assert refused.startswith(line.removesuffix("*"))
    assert files_under(tmp_path) == before


def test_duplicates_do_not_make_the_data_seem_changed(genorder: Genorder) -> None:
    """Validation loses the samples whose inputs stand in the test split; the run's data is found again all the same."""
    rows = [{"input": [n % 9, n * 7 % 8], "target": [n % 9, n * 7 % 8]} for n in range(300)]
    Path("twice.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert genorder("train", "twice.jsonl", *MODEL, "--steps", 3, "--out", "r").code == 0
    assert samples_of("r")["validation"] < 30
    assert genorder("evaluate", "r", "--threads", 1, "--split", "validation").code == 0


def test_a_format_that_only_the_other_files_need_is_kept(genorder: Genorder) -> None:
    Path("t.jsonl").rename("t.odd")
    own = ("--test", "t.odd", "--format", "jsonl")
    result = genorder("train", "d.jsonl", *own, *MODEL, "--steps", 3, "--out", "r", "--json").result()
    assert genorder("evaluate", "r", "--threads", 1, "--json").result()["loss"] == pytest.approx(result["loss"])


def test_an_export_replaces_none_of_them(genorder: Genorder) -> None:
    genorder("train", "d.jsonl", *OWN, *MODEL, "--steps", 3, "--out", "r")
    before = Path("t.jsonl").read_bytes()
    for name in ("d.jsonl", "v.jsonl", "t.jsonl"):
        said = genorder("export", "r", "--to", "dataset", name, "--force").error()
        assert said == f"{name} is the data of the run itself; choose another file"
    assert Path("t.jsonl").read_bytes() == before
