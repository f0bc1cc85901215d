"""The verbs on data files of every format, and on hostile ones."""

import json
from pathlib import Path

import pytest
from cli_helpers import RELU_3, TINY, Genorder, program

from genorder.data import SequenceDataset, write_dataset
from genorder.store import read_status

SMALL = (*TINY, "--steps", "2")
HOSTILE = "\x1b]0;owned\x07\x1b[31m<script>alert(1)</script>\x9b2J\u202e"


@pytest.fixture(autouse=True)
def _files(genorder: Genorder, _nothing_leaks: None) -> None:
    for name in ("relu.jsonl", "relu.csv", "relu.txt.gz", "relu.parquet"):
        assert genorder("generate", *RELU_3, "--samples", 60, "--out", name).code == 0


def data_of(run: str) -> dict[str, object]:
    data = read_status(Path(run)).config["data"]
    assert isinstance(data, dict)
    return data


def test_the_same_run_from_every_format(genorder: Genorder) -> None:
    weights = set()
    for number, name in enumerate(("relu.jsonl", "relu.csv", "relu.txt.gz", "relu.parquet")):
        result = genorder("train", name, *SMALL, "--out", f"run{number}", "--json").result()
        assert genorder("evaluate", f"run{number}", "--json").result()["success_rate"] == result["success_rate"]
        assert genorder("evaluate", f"run{number}", name, "--json").result()["samples"] == 60
        assert data_of(f"run{number}").keys() == {"path", "samples", "fingerprint"}
        weights.add(result["weights_sha256"])
    assert len(weights) == 1


def test_what_was_understood_is_said_before_a_run(genorder: Genorder) -> None:
    said = genorder("train", "relu.csv", *SMALL, "--out", "run").err.splitlines()
    assert said[0].startswith("relu.csv (csv): 60 samples, inputs of 3 and targets of 3 tokens, ")
    assert said[1].startswith("the first one: ")
    assert any(line.startswith("note: targets that repeat an input: y0 = x0") for line in said)
    assert "relu.csv (csv)" in genorder("train", "relu.csv", *SMALL, "--dry-run").err


def test_options_are_kept_with_the_run_and_a_change_is_noticed(genorder: Genorder) -> None:
    Path("mine.dat").write_text("".join(f"{n} {n % 7} | {n % 5}\n" for n in range(60)))
    reading = ("--format", "text", "--separator", "|")
    first = genorder("train", "mine.dat", *reading, *SMALL, "--out", "run", "--json").result()
    assert data_of("run")["reading"] == {"format": "text", "separator": "|"}
    assert genorder("evaluate", "run", "--json").result()["success_rate"] == first["success_rate"]
    assert "holds the finished run" in genorder("train", "mine.dat", *reading, *SMALL, "--out", "run").err
    changed = genorder("train", "mine.dat", *reading, "--split", "character", *SMALL, "--out", "run")
    assert changed.code == 2
    assert "data.reading.split: not in the run directory" in changed.err


def test_other_data_is_evaluated_as_that_of_the_run_was_read(genorder: Genorder) -> None:
    text = "".join(f"{n},{n % 7}=>{n % 5},{n % 3}\n" for n in range(60))
    for name in ("mine.txt", "more.txt", "odd.dat"):
        Path(name).write_text(text)
    Path("more.jsonl").write_text('{"input": "3,3", "target": "3,0"}\n{"input": [4, 4], "target": [4, 1]}\n')
    genorder("train", "mine.txt", "--separator", "=>", "--split", "comma", *SMALL, "--out", "run")
    for name, samples in (("more.txt", 60), ("more.jsonl", 2)):
        assert genorder("evaluate", "run", name, "--json").result()["samples"] == samples
    assert "odd.dat: the file name does not tell the format" in genorder("evaluate", "run", "odd.dat").error()
    assert genorder("evaluate", "run", "odd.dat", "--format", "text", "--json").result()["samples"] == 60
    said = genorder("evaluate", "run", "more.txt", "--split-tokens", "whitespace").error()
    assert "more.txt: token '0,0' is not in" in said
    assert genorder("evaluate", "run", "--separator", "=>").error() == (
        "--separator: how DATA is read, and no DATA is given; name a file, or leave it out"
    )
    assert (
        "--split train selects from the run's own data"
        in genorder("evaluate", "run", "more.txt", "--split", "train").error()
    )


def test_a_first_column_without_a_name_is_no_input(genorder: Genorder) -> None:
    Path("pandas.csv").write_text(",question,answer\n0,1 2,3\n1,2 2,4\n")
    assert "pandas.csv:1: no 'input' among the columns" in genorder("inspect", "pandas.csv").error()


def test_an_unknown_extension_is_not_written(genorder: Genorder) -> None:
    said = genorder("generate", *RELU_3, "--samples", 10, "--out", "x.xlsx").error()
    assert said.startswith("x.xlsx: the file name does not tell the format; give --format, one of jsonl, ")
    assert not Path("x.xlsx").exists()
    assert genorder("generate", *RELU_3, "--samples", 10, "--out", "x.xlsx", "--format", "csv").code == 0


def test_an_option_that_says_what_the_name_says_changes_nothing(genorder: Genorder) -> None:
    assert genorder("train", "relu.csv", *SMALL, "--out", "run").code == 0
    again = genorder("train", "relu.csv", "--format", "csv", *SMALL, "--out", "run")
    assert "holds the finished run" in again.err


def test_standard_input_cannot_be_read_again(genorder: Genorder) -> None:
    content = Path("relu.csv").read_bytes()
    assert genorder("train", "-", "--format", "csv", *SMALL, "--out", "run", stdin=content).code == 0
    assert "came from standard input" in genorder("evaluate", "run").error()
    assert genorder("evaluate", "run", "relu.csv", "--json").result()["samples"] == 60


def test_rank_and_discover_take_the_options(genorder: Genorder) -> None:
    Path("mine.dat").write_text("".join(f"{n},{n % 7}\t{n % 5},{n % 3}\n" for n in range(60)))
    reading = ("mine.dat", "--format", "int2int", "--split", "comma")
    assert genorder("discover", *reading, "--dry-run", "--threads", 1, "--json").result()["data"]["reading"] == {
        "format": "int2int",
        "split": "comma",
    }
    tiny = ("--set", "profiler.training.steps=2", "--set", "profiler.model.width=16", "--threads", 1)
    assert len(genorder("rank", *reading, "--candidates", "random:2", *tiny, "--json").result()["ranking"]) == 2


def test_inspect(genorder: Genorder) -> None:
    result = genorder("inspect", "relu.csv", "--json").result()
    assert (result["samples"], result["format"], result["inputs"]["histogram"]) == (60, "csv", [[3, 3, 60]])
    assert [finding["name"] for finding in result["findings"]] == ["copied_inputs", "few_samples"]
    said = genorder("inspect", "relu.csv")
    assert (said.code, said.out) == (0, "")
    for expected in ("60 samples", "input lengths, 3.0 on average:", "most frequent tokens:", "note: "):
        assert expected in said.err


def test_all_bad_lines_are_told_in_one_error(genorder: Genorder) -> None:
    Path("bad.csv").write_text("input,target\n1,2\n" + "1\n" * 25)
    refused = genorder("train", "bad.csv", *SMALL)
    assert (refused.code, refused.out) == (2, "")
    lines = refused.err.splitlines()
    assert lines[0] == "error: bad.csv: 25 lines cannot be used; correct or remove them"
    assert lines[1] == "  bad.csv:3: 1 columns; expected 2 as in the header"
    assert (len(lines), lines[-1]) == (22, "  and 5 more")


@pytest.mark.parametrize("name", ["hostile.jsonl", "hostile.csv", "hostile.tsv", "hostile.txt", "hostile.parquet"])
def test_hostile_tokens_are_harmless_on_the_terminal(genorder: Genorder, name: str) -> None:
    rows = [[HOSTILE, str(n)] for n in range(60)]
    name = f"\x1b[31m {name}"
    write_dataset(name, SequenceDataset.from_sequences(rows, rows))
    for verb in (("inspect", name), ("train", name, *SMALL, "--out", "run"), ("evaluate", "run", name)):
        said = genorder(*verb)
        assert said.code == 0, said.err
        assert all(line.isprintable() for line in said.err.splitlines())
    assert "\\x1b" in genorder("inspect", name).err


def test_bad_lines_are_harmless_on_the_terminal(genorder: Genorder) -> None:
    for name in ("bad.jsonl", "bad.csv", "bad.tsv", "bad.txt"):
        Path(name).write_text(f"{HOSTILE}\n{HOSTILE}\n")
        said = genorder("inspect", name)
        assert said.code == 2
        assert all(line.isprintable() for line in said.err.splitlines())


def test_predictions_of_hostile_tokens(genorder: Genorder) -> None:
    rows = "".join(json.dumps({"input": [n % 9, n], "target": [HOSTILE, "\ud800"]}) + "\n" for n in range(60))
    Path("odd.jsonl").write_text(rows)
    assert genorder("train", "odd.jsonl", *TINY, "--steps", 30, "--out", "run").code == 0
    predicted = genorder("predict", "--model", "run", stdin=b"1 1\n")
    assert predicted.code == 0, predicted.err
    assert genorder("predict", "--model", "run", "--json", stdin=b"1 1\n").code == 0


def test_options_of_a_file_with_a_task(genorder: Genorder) -> None:
    message = genorder("train", *RELU_3, "--split", "comma", "--input-column", "x").error()
    assert message == "--input-column, --split: how a DATA file is read; leave it out with --task"


def test_generate_refuses_what_it_cannot_write(genorder: Genorder) -> None:
    message = genorder("generate", *RELU_3, "--out", "x.csv", "--split-tokens", "character").error()
    assert message.startswith("the token '")
    assert not Path("x.csv").exists()


def test_a_pipe_into_the_program() -> None:
    said = program("inspect", "-", "--format", "text", "--json", stdin=b"1 2 # 3\n4 5 # 6\n")
    assert said.result()["samples"] == 2
