"""`genorder report`, `watch` and `analyze`; what a failed run leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from cli_helpers import ENVIRONMENT, PROGRAM, RELU_3, TINY, Genorder, files_under

DIVERGES = ("--steps", "40", "--set", "training.learning_rate=1e30", "--set", "training.clip_norm=1e30")


def copied(run: Path) -> Path:
    return Path(shutil.copytree(run, Path("run")))


def kept_files(run: Path) -> dict[str, bytes]:
    """Without those that SQLite makes to read a journal."""
    return {name: content for name, content in files_under(run).items() if not name.endswith(("-shm", "-wal"))}


def test_it_writes_the_page_again(genorder: Genorder, tiny_run: Path) -> None:
    path = copied(tiny_run)
    first = (path / "report.html").read_bytes()
    (path / "report.html").unlink()
    shown = genorder("report", path, "--json").result()
    assert shown == {"path": "run/report.html", "states": ["finished"], "bytes": (path / "report.html").stat().st_size}
    tidy = [re.sub(rb'class="place">.*?</p>', b"", page) for page in (first, (path / "report.html").read_bytes())]
    assert tidy[0] == tidy[1]
    assert genorder("report", path, "--out", "elsewhere.html").err == "report in elsewhere.html\n"
    assert Path("elsewhere.html").stat().st_size > 1_000_000


def test_several_runs_are_compared(genorder: Genorder, tiny_run: Path, good_run: Path) -> None:
    before = kept_files(tiny_run)
    assert genorder("report", tiny_run, good_run).err == "report in comparison.html\n"
    page = Path("comparison.html").read_text(encoding="utf-8")
    assert page.count("<tr>") > 6
    assert "tiny0/run" in page
    assert "good0/run" in page
    assert kept_files(tiny_run) == before


def test_figures(genorder: Genorder, tiny_run: Path) -> None:
    written = genorder("report", tiny_run, "--figures", "for the paper", "--json").result()["figures"]
    assert {Path(path).suffix for path in written} == {".svg", ".pdf", ".png"}
    assert all(Path(path).stat().st_size > 1000 for path in written)
    assert "one run; received 2" in genorder("report", tiny_run, tiny_run, "--figures", "x").error()


def test_what_is_no_run_is_refused(genorder: Genorder) -> None:
    for verb in ("report", "watch"):
        assert "no run directory" in genorder(verb, "nothing").error()
    Path("damaged").mkdir()
    Path("damaged/config.json").write_text("{}")
    assert "its config.json does not belong to a run" in genorder("report", "damaged").error()
    Path("damaged/config.json").write_text('{"verb": "train"}')
    Path("damaged/environment.json").write_text("[")
    assert "environment.json" in genorder("report", "damaged").error()


def test_a_failed_run_says_why_until_it_is_started_again(genorder: Genorder) -> None:
    arguments = ("train", *RELU_3, *TINY, *DIVERGES, "--out", "r")
    shown = genorder(*arguments)
    assert shown.code == 1
    reason = re.search(r"failed: (the loss became .*|a weight became .*)", shown.err)
    assert reason
    page = Path("r/report.html").read_text(encoding="utf-8")
    assert "This run failed: the loss became" in page or "This run failed: a weight became" in page
    status = genorder("status", "r", "--json").result()
    assert status["state"] == "failed"
    assert status["failure"] in shown.err.replace("\n", " ")
    assert "it failed: " in genorder("status", "r").err
    assert genorder("report", "r", "--json").result()["states"] == ["failed"]
    assert genorder(*arguments).code == 1
    Path("r/failure.json").unlink()
    assert genorder("status", "r", "--json").result()["state"] == "interrupted"


def test_a_report_is_not_written_again_without_need(genorder: Genorder, tiny_run: Path) -> None:
    path = copied(tiny_run)
    old = (path / "report.html").stat().st_mtime_ns
    config = json.loads((path / "config.json").read_text())
    assert config["verb"] == "train"
    arguments = ("train", *RELU_3, *TINY, "--steps", 5, "--out", path)
    assert "report in" not in genorder(*arguments).err
    assert (path / "report.html").stat().st_mtime_ns == old
    (path / "report.html").unlink()
    assert "report in" in genorder(*arguments).err
    assert (path / "report.html").exists()


def test_attention(genorder: Genorder) -> None:
    orders = ("--order", "forward", "--order", "one-swap", "--order", "2,1,0")
    arguments = ("analyze", "attention", *RELU_3, *TINY, "--set", "model.heads=1", "--steps", 3, *orders, "--out", "r")
    result = genorder(*arguments, "--json").result()
    rows = result["attention"]
    assert [(row["name"], row["order"]) for row in rows] == [
        ("forward", [0, 1, 2]), ("one-swap", [0, 2, 1]), ("2,1,0", [2, 1, 0]),
    ]  # fmt: skip
    for row in rows:
        weights = row["map"]
        assert len(weights) == 3 + 1 + 3
        assert all(sum(line) == pytest.approx(1, abs=1e-3) for line in weights)
        assert all(weight == 0 for at, line in enumerate(weights) for weight in line[at + 1 :])
        assert 0 < row["sparsity"] < 2
    assert genorder(*arguments, "--json").result() == result
    assert "smaller is sparser" in genorder(*arguments).err
    assert Path("r/report.html").exists()
    assert "no analysis 'x'" in genorder("analyze", "x", *RELU_3).error()
    assert (
        "needs 2 targets"
        in genorder("analyze", "attention", "--task", "relu", "--length", 1, "--order", "one-swap").error()
    )


def test_watch(tiny_run: Path) -> None:
    process = subprocess.Popen(
        [PROGRAM, "watch", str(tiny_run)],
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    try:
        assert process.stderr
        said = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert address, said
        with urllib.request.urlopen(address[0], timeout=60) as answer:
            assert b"relu, 3 targets" in answer.read()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert "the run itself is not touched" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        assert process.stderr
        process.stderr.close()
