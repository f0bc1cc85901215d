"""The commands and the code of docs/export.md and docs/python_api.md are run as they stand."""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from genorder.cli.app import run

DOCS = Path(__file__).parent.parent / "docs"
SMALL = [
    *("--threads", "1", "--steps", "2", "--set", "model.width=16", "--set", "model.heads=2"),
    *("--set", "samples.train=300", "--set", "samples.validation=20", "--set", "samples.test=20"),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    yield
    torch.set_num_threads(threads)


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.S)


def test_commands_of_export(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (console,) = blocks("export.md", "console")
    for line in console.splitlines():
        said, _, command = line.removeprefix("$ ").split("#")[0].rpartition(" | ")
        given = " ".join(shlex.split(said)[1:]) + "\n"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        words = shlex.split(command)
        assert words[0] == "genorder"
        assert run([*words[1:], *(SMALL if words[1] == "train" else [])]) == 0, capsys.readouterr().err
    for path in ("four-model", "four.jsonl", "train_raw.txt", "four.test"):
        assert Path(path).exists()


def test_code_of_python_api() -> None:
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks("python_api.md", "python")):
        exec(compile(block, f"python_api.md, block {number}", "exec"), names)
    assert names["trained"].order == names["genorder"].Order.reverse(5)
    assert Path("sums-model/model.safetensors").exists()


def test_links() -> None:
    for name in ("export.md", "python_api.md"):
        text = (DOCS / name).read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!http)([^)]+)\)", text):
            assert (DOCS / link).exists(), link
