"""The user's own names of columns: on the screen, in the JSON and in the report; they change no result."""

import json
from pathlib import Path

import pytest
from cli_helpers import TINY, Genorder
from test_discover import EXPLORING, FINAL, changes

HOSTILE = ["<script>alert(1)</script>", "\x1b[31mred", "new\nline", "n" * 500]
WIDE = ("wide.csv", "--input-column", "mass..wind", "--target-column", "first step..end")
SMALL = ("--threads", "1", *changes({**EXPLORING, **FINAL}))


@pytest.fixture(autouse=True)
def wide() -> Path:
    path = Path("wide.csv")
    rows = [[n % 7, n % 5, n % 11, n % 7, (n % 7 + n % 5) % 9, n % 3] for n in range(400)]
    path.write_text("\n".join(["mass,speed,wind,first step,sum,end", *(",".join(map(str, row)) for row in rows)]))
    return path


def test_a_table_names_its_columns(genorder: Genorder) -> None:
    shown = genorder("discover", *WIDE, *SMALL, "--out", "r", "--json")
    result = shown.result()
    assert result["input_names"] == ["mass", "speed", "wind"]
    assert result["target_names"] == ["first step", "sum", "end"]
    assert result["order_in_names"] == [result["target_names"][column] for column in result["order"]]
    again = genorder("discover", *WIDE, *SMALL, "--out", "r")
    names = ", ".join(result["order_in_names"])
    assert f"by name: {names}\n" in again.err
    assert names in Path("r/report.html").read_text()
    assert genorder("evaluate", "r", "--json", "--threads", 1).result()["success_rate"] == result["success_rate"]


def test_names_change_nothing_and_may_be_changed(genorder: Genorder) -> None:
    command = ("train", *WIDE, *TINY, "--steps", 4, "--order", "2,0,1", "--json")
    plain = genorder(*command).result()
    Path("names.txt").write_text("a\nb\nc\n")
    named = genorder(*command, "--target-names", "@names.txt").result()
    assert Path(named["run_dir"]) == Path(plain["run_dir"])  # not another run
    assert named["weights_sha256"] == plain["weights_sha256"]
    assert (named["target_names"], named["order_in_names"]) == (["a", "b", "c"], ["c", "a", "b"])
    assert named["input_names"] == ["mass", "speed", "wind"]
    page = (Path(plain["run_dir"]) / "report.html").read_text()
    assert "Trained in the order c a b" in page
    assert json.loads((Path(plain["run_dir"]) / "result.json").read_text()) == named
    elsewhere = genorder(*command, "--out", "other", "--target-names", "a,b,c").result()
    assert elsewhere["weights_sha256"] == plain["weights_sha256"]
    assert genorder(*command, "--out", "other", "--seed", 1).code == 2


def test_names_stay_when_a_run_goes_on_without_them(genorder: Genorder) -> None:
    genorder("generate", "--task", "relu", "--length", 3, "--samples", 400, "--out", "plain.jsonl")
    command = ("train", "plain.jsonl", *TINY, "--steps", 4, "--out", "r")
    assert genorder(*command, "--target-names", "a,b,c", "--input-names", "p,q,r").code == 0
    assert genorder(*command, "--json").result()["target_names"] == ["a", "b", "c"]
    Path("r/result.json").unlink()
    again = genorder(*command, "--input-names", "s,t,u", "--json").result()
    assert (again["input_names"], again["target_names"]) == (["s", "t", "u"], ["a", "b", "c"])


def test_rank_and_analyze(genorder: Genorder) -> None:
    names = ("--target-names", "a,b,c")
    exploring = ("--threads", 1, *changes(EXPLORING))
    ranked = genorder("rank", *WIDE, *exploring, *names, "--candidates", "reverse", "--out", "ranked")
    assert "the first, by name: c b a" in ranked.err
    assert "the first is c b a" in Path("ranked/report.html").read_text()
    looked = genorder("analyze", "attention", *WIDE, *TINY, *names, "--steps", 2, "--out", "looked", "--json")
    assert looked.result()["target_names"] == ["a", "b", "c"]
    page = Path("looked/report.html").read_text()
    assert '"speed","wind","SEP","a","b","c"' in page
    assert '"SEP","c","b","a"' in page


def test_hostile_names_are_text(genorder: Genorder) -> None:
    data = Path("four.jsonl")
    genorder("generate", "--task", "relu", "--length", 4, "--samples", 400, "--out", data)
    header = [f'"{name}"' for name in HOSTILE]
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    lines = [",".join(map(str, [" ".join(map(str, row["input"])), *row["target"]])) for row in rows]
    Path("hostile.csv").write_text("\n".join([",".join(["input", *header]), *lines]))
    table = ("hostile.csv", "--target-column", f"{HOSTILE[0]}..{HOSTILE[3]}")
    shown = genorder("discover", *table, *SMALL, "--out", "r")
    assert shown.code == 0, shown.err
    assert "\x1b" not in shown.err
    assert "\\u001b[31mred" in shown.err
    assert "new\\nline" in shown.err
    assert "n" * 50 not in shown.err
    assert json.loads(Path("r/result.json").read_text())["target_names"] == HOSTILE
    page = Path("r/report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page


@pytest.mark.parametrize("verb", ["discover", "train", "analyze attention", "rank --candidates forward"])
def test_a_wrong_number_of_names_leaves_nothing(genorder: Genorder, verb: str) -> None:
    refused = genorder(*verb.split(), *WIDE, "--target-names", "a,b", "--out", "r").error()
    assert refused == "received 2 target names; the data has 3 targets: give one name for each"
    assert not Path("r").exists()


def test_files_of_ones_own_have_the_same_columns(genorder: Genorder) -> None:
    """A range is what stands between its ends in each file: in another sequence, these may be other columns."""
    rows = [line.split(",") for line in Path("wide.csv").read_text().splitlines()[:50]]
    for name, sequence in (("moved", (3, 4, 5, 0, 1, 2)), ("other", (0, 1, 2, 3, 5, 4))):
        Path(f"{name}.csv").write_text("\n".join(",".join(row[column] for column in sequence) for row in rows))
    command = ("train", *WIDE, *TINY, "--steps", 4, "--out", "r", "--json", "--test")
    said = genorder(*command, "other.csv").error()
    assert "the test samples have the inputs mass, speed, wind and the targets first step, end; expected those" in said
    assert genorder(*command, "moved.csv").result()["target_names"] == ["first step", "sum", "end"]


def test_predict_reads_a_key_for_each_token(genorder: Genorder) -> None:
    columns = ("--input-column", "mass,speed,wind", "--target-column", "sum,end")
    assert genorder("train", "wide.csv", *columns, *TINY, "--steps", 4, "--out", "r").code == 0
    predict = ("predict", "--model", "r", "--threads", 1)
    objects = b'{"wind": 3, "mass": 1, "speed": "2", "end": 0}\n'
    assert genorder(*predict, stdin=objects).out == genorder(*predict, stdin=b"1 2 3\n").out
    assert "no 'mass,speed,wind' among the keys" in genorder(*predict, stdin=b'{"mass": 1, "speed": 2}\n').error()
