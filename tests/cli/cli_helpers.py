"""Running the command line, and what its answers must look like."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from genorder.cli.app import run

PROGRAM = str(Path(sys.executable).with_name("genorder"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}

RELU_3 = ("--task", "relu", "--length", "3")
TINY = (
    "--threads", "1",
    "--set", "samples.train=300", "--set", "samples.validation=20", "--set", "samples.test=20",
    "--set", "model.layers=1", "--set", "model.heads=2", "--set", "model.width=16",
    "--set", "model.feedforward=32", "--set", "training.batch_size=16",
)  # fmt: skip

RUNNING_XOR = """
from genorder.tasks import RecurrenceTask, register_task

@register_task("running-xor", summary="y_i = x_i xor y_(i-1)")
def running_xor(lengths):
    return RecurrenceTask("running-xor", lengths, low=0, high=7, step=lambda x, y: x ^ y)
"""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def result(self) -> dict[str, Any]:
        """The one JSON object that stdout must hold, and nothing else."""
        assert self.code == 0, self.err
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        found = json.loads(self.out, parse_constant=_refuse_constant)
        assert isinstance(found, dict)
        return found

    def error(self) -> str:
        """The one clear line that bad input must give, without its lead."""
        assert self.code == 2, (self.code, self.err)
        assert self.out == ""
        assert self.err.startswith("error: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.removeprefix("error: ").rstrip("\n")


class Genorder:
    """Runs verbs in this process, which has paid for importing torch."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Outcome:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Outcome(code, captured.out, captured.err)


def program(*arguments: object, stdin: bytes = b"") -> Outcome:
    """The installed program, as a user runs it."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, env=ENVIRONMENT, timeout=120
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def files_under(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b""
        for path in sorted(directory.rglob("*"))
    }


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")
