"""benchmarks/attention.py makes its table; what it measures is not tested."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "attention.py"
TINY = [
    "samples.train=200", "samples.validation=10", "samples.test=10", "training.steps=2", "training.batch_size=8",
    "model.width=16", "model.feedforward=32",
]  # fmt: skip


def table(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = [part for setting in TINY for part in ("--set", setting)]
    return subprocess.run(
        [sys.executable, str(PROGRAM), *settings, *arguments, "--out", str(folder)],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "task", "paper"),
    [
        ("index:d=4-13", "index:d=4 | 13", ("0.887", "1.486")),
        pytest.param("relu-20", "relu | 20", ("1.160", "1.640"), marks=pytest.mark.slow),
    ],
)
def test_rows_beside_the_papers_numbers(tmp_path: Path, row: str, task: str, paper: tuple[str, str]) -> None:
    done = table(tmp_path, "--only", row)
    assert done.returncode == 0, done.stderr
    head, line, *rows = done.stdout.splitlines()
    assert {text.count("|") for text in (head, line, *rows)} == {10}
    forward, reverse = (rf"\d\.\d{{3}} \| {re.escape(number)}" for number in paper)
    end = r"(forward|reverse) \| \d+\.\d % \| \d+\.\d % \|"
    assert re.fullmatch(rf"\| {re.escape(task)} \| {forward} \| {reverse} \| {end}", rows[0])
    assert (tmp_path / f"attention-{row.replace(':', '-')}" / "report.html").exists()
    assert table(tmp_path, "--only", row).stdout == done.stdout  # continued: the same


def test_a_failure_is_reported(tmp_path: Path) -> None:
    done = table(tmp_path, "--only", "relu-20", "--set", "model.width=-1")
    assert done.returncode == 1
    assert "model.width" in done.stderr
    unknown = table(tmp_path, "--only", "relu-21")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no row 'relu-21'; there are: relu-20, relu-50" in unknown.stderr
