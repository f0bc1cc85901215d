"""Each example can be imported; the slow suite runs it as a user does, with tiny settings."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from genorder.tasks import registry

EXAMPLES = Path(__file__).parent.parent / "examples"
TINY = {
    "samples.train": 300, "samples.validation": 30, "samples.test": 30, "race.first_rung": 2,
    "profiler.training.steps": 2, "any_order.training.steps": 2, "any_order.training.batch_size": 16,
    "final.training.steps": 2,
}  # fmt: skip
SETTINGS = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]


def run_example(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments, *SETTINGS],
        capture_output=True, text=True, cwd=folder, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_can_be_imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # an example's task is not for other tests
    assert callable(runpy.run_path(str(path))["main"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("own_file.py", (), ["20000 samples; the first: ", "write the targets in the order ", "success rate 0.0"]),
        (
            "own_task.py",
            ("--length", "4"),
            ["hidden: stored column c holds", "times the operations of the best order", "success rate"],
        ),
        ("own_search.py", (), ["found: ", "  0-7"]),
    ],
)
def test_example(name: str, arguments: tuple[str, ...], said: list[str], tmp_path: Path) -> None:
    done = run_example(name, tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    for text in said:
        assert text in done.stdout
    run_dir = tmp_path / "runs" / name.removesuffix(".py").replace("_", "-")
    assert (run_dir / "result.json").exists()


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = run_example("own_file.py", tmp_path, "absent.jsonl")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "cannot read absent.jsonl: No such file or directory\n"


def test_a_search_of_ones_own_takes_twenty_lines() -> None:
    text = (EXAMPLES / "own_search.py").read_text()
    body = text[text.index("class Rotations") : text.index("def main")]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
