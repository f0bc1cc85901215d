"""Runs to export, and the model card's own program."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from genorder.cli.app import run

SMALL = {
    "samples.validation": 20, "samples.test": 50, "model.layers": 2, "model.heads": 2, "model.width": 32,
    "model.feedforward": 64, "training.learning_rate": 0.005, "training.batch_size": 64,
}  # fmt: skip


def trained(path: Path, *arguments: object, steps: int, **settings: object) -> Path:
    changes = {**SMALL, **{name.replace("__", "."): value for name, value in settings.items()}}
    given = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
    command = ["train", *arguments, *given, "--steps", steps, "--threads", 1, "--device", "cpu", "--out", path]
    assert run([str(word) for word in command]) == 0
    return path


def program_of_card(folder: Path) -> tuple[str, Callable[[list[list[str]]], list[list[str]]]]:
    """Run the model card's program as it stands; what it did, and its `predict`."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", card, re.S)
    names: dict[str, Any] = {}
    exec(compile(program, "README.md", "exec"), names)
    return program, names["predict"]
