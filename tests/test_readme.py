"""The commands and the code of the README, and of every page in docs/, are run as they stand, with smaller sizes."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from genorder.cli.app import run
from genorder.tasks import registry

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
FEW = ["--threads", "1", "--set", "samples.train=300", "--set", "samples.validation=20", "--set", "samples.test=20"]
TINY = ["width=16", "feedforward=32", "heads=2"]
SMALL = {
    "train": ["--steps", "2", *FEW, *(part for size in TINY for part in ("--set", f"model.{size}"))],
    "discover": [
        *("--set", "race.round_steps=[2]", "--set", "final.training.steps=2", *FEW),
        *("--set", "profiler.training.steps=2", "--set", "any_order.training.steps=2"),
        *("--set", "any_order.training.batch_size=16"),
        *(part for size in TINY for part in ("--set", f"final.model.{size}", "--set", f"race.model.{size}")),
    ],
    "analyze": ["--steps", "2", *FEW, "--set", "model.width=16", "--set", "model.feedforward=32"],
    "rank": [
        *("--set", "profiler.training.steps=2", *FEW),
        *(part for size in TINY for part in ("--set", f"profiler.model.{size}")),
    ],
}


def commands(page: str) -> list[str]:
    lines = [line for block in re.findall(r"```console\n(.*?)```", page, re.S) for line in block.splitlines()]
    return [line.removeprefix("$ ").split("#")[0].strip() for line in lines if "genorder " in line]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # the README's own task is not for other tests


def run_line(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    said, _, command = line.rpartition(" | ")
    if said:
        program, *words = shlex.split(said)
        assert program in ("echo", "cat")
        given = Path(words[0]).read_bytes() if program == "cat" else (" ".join(words) + "\n").encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    words = shlex.split(command)
    assert words[0] == "genorder"
    return run(words[1:] + SMALL.get(words[1], []))


def test_console_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sample = re.search(r"`(\{\"input\".*?\})`", README)
    assert sample
    rows = [re.sub(r"\d+", str(number), sample[1], count=1) for number in range(50)]
    Path("mydata.jsonl").write_text("\n".join(rows) + "\n")
    listed = commands(README)
    assert len(listed) >= 3
    for line in listed:
        assert run_line(line, monkeypatch) == 0, f"{line}: {capsys.readouterr().err}"


def test_verbs_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = re.findall(r"^\| `(genorder [^`]*)`", README, re.M)
    for line in verbs:
        assert run([line.split()[1], "--help"]) == 0
        if "RUN_DIR" not in line and len(line.split()) > 2 and "bench" not in line:
            assert run_line(line, monkeypatch) == 0


def test_a_task_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.S)
    command = re.search(r"then `(genorder train [^`]*)`", README)
    assert code
    assert command
    assert len([line for line in code[1].splitlines() if line.strip()]) <= 5
    Path("my_tasks.py").write_text(code[1])
    assert run_line(command[1], monkeypatch) == 0


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The files that a page shows are written as shown; then its commands and its code run in their sequence."""
    text = PAGES[page]
    for name, content in re.findall(r"^`([\w.]+)`:\n\n```text\n(.*?)```", text, re.S | re.M):
        Path(name).write_text(content, encoding="utf-8")
    listed = commands(text)
    assert listed
    for line in listed:
        assert run_line(line, monkeypatch) == 0, f"{line}: {capsys.readouterr().err}"
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(code, page, "exec"), {})
