"""Real processes, killed at random moments: the weights come out bit for bit as without a kill."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from genorder.cli.app import run

GENORDER = [sys.executable, "-c", "from genorder.cli.app import main; main()"]
STEPS = 350
SETTINGS = {
    "samples.train": 2000,
    "samples.validation": 100,
    "samples.test": 100,
    "model.layers": 1,
    "model.width": 32,
    "model.feedforward": 64,
    "model.heads": 2,
    "model.dropout": 0.1,
}
TRAIN = [
    *("train", "--task", "relu", "--length", "6", "--steps", str(STEPS)),
    *("--threads", "1", "--checkpoint-every", "0.2", "--json"),
    *(word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")),
]
PATIENCE = 120.0
INTERRUPTED = 130


def start(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*GENORDER, *TRAIN, "--out", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(directory: Path) -> dict[str, Any]:
    with start(directory) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    result: dict[str, Any] = json.loads(output)
    return result


@contextmanager
def training(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process and wait until it has reported a step, not one that an earlier process reported."""
    before = last_progress(directory)
    with start(directory) as process:
        deadline = time.monotonic() + PATIENCE
        while last_progress(directory) == before:
            assert process.poll() is None, "the run ended before it could be stopped"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        yield process


def last_progress(directory: Path) -> int:
    try:
        return (directory / "progress.json").stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def checkpoints(directory: Path) -> list[int]:
    found = directory.glob("checkpoints/*/step-*.json")
    return sorted(json.loads(path.read_bytes())["step"] for path in found)


@dataclass(frozen=True)
class Whole:
    """A run without interruptions."""

    result: dict[str, Any]
    losses: list[float]
    seconds: float  # of the whole process
    training_seconds: float

    def assert_equals(self, directory: Path, result: dict[str, Any]) -> None:
        assert result["weights_sha256"] == self.result["weights_sha256"]
        assert result["loss"] == self.result["loss"]
        assert json.loads((directory / "model" / "training_losses.json").read_bytes()) == self.losses
        assert checkpoints(directory) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    directory = tmp_path_factory.mktemp("whole") / "run"
    begun = time.monotonic()
    result = finish(directory)
    seconds = time.monotonic() - begun
    losses = json.loads((directory / "model" / "training_losses.json").read_bytes())
    return Whole(result, losses, seconds, result["seconds"])


def stop_politely(directory: Path, number: signal.Signals) -> None:
    """Send the signal once training goes on; the run is to end with a checkpoint and say so."""
    with training(directory) as process:
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED
    assert output == ""
    assert "Traceback" not in errors
    stopped_at = checkpoints(directory)[-1]
    assert f"stopped at step {stopped_at} of {STEPS}; the same command continues" in errors
    with redirect_stdout(StringIO()) as shown:
        assert run(["status", str(directory), "--json"]) == 0
    status = json.loads(shown.getvalue())
    assert status["state"] == "interrupted"
    assert status["result"] is None
    assert status["progress"]["step"] == stopped_at


def test_killed_three_times_in_training_then_interrupted(whole: Whole, tmp_path: Path) -> None:
    moments = random.Random(0)
    directory = tmp_path / "run"
    left: list[int] = []
    for _ in range(3):
        with training(directory) as process:
            time.sleep(moments.uniform(0.05, 0.2) * whole.training_seconds)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        left.append(max(checkpoints(directory), default=0))
    assert left[-1] > 0, "no kill left a checkpoint behind"
    assert left == sorted(left)
    stop_politely(directory, signal.SIGINT)
    whole.assert_equals(directory, finish(directory))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(whole: Whole, tmp_path: Path, number: signal.Signals) -> None:
    for _ in range(2):
        stop_politely(tmp_path / "run", number)
    whole.assert_equals(tmp_path / "run", finish(tmp_path / "run"))


@pytest.fixture(scope="module")
def left_behind() -> Iterator[list[int]]:
    """How many checkpoints each kill left; in all, some must have hit the training."""
    counts: list[int] = []
    yield counts
    if len(counts) >= 10:
        assert sum(count > 0 for count in counts) >= len(counts) // 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_moment(whole: Whole, left_behind: list[int], tmp_path: Path, seed: int) -> None:
    directory = tmp_path / "run"
    with start(directory) as process:
        try:
            process.wait(timeout=random.Random(seed).random() * whole.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    left_behind.append(len(checkpoints(directory)))
    whole.assert_equals(directory, finish(directory))
