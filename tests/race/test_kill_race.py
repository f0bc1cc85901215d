"""A race in real processes, killed at random moments: the weights come out bit for bit as without a kill."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

KILLS = 20
SETTINGS = {
    "samples.train": 3000, "samples.validation": 200, "samples.test": 100, "race.first_rung": 60, "race.solved": 1.0,
    "final.training.steps": 1000, "final.training.batch_size": 32, "final.model.layers": 1, "final.model.width": 32,
    "final.model.feedforward": 64, "final.model.heads": 2, "final.model.dropout": 0.1,
}  # fmt: skip
COMMAND = [
    *(sys.executable, "-m", "genorder", "discover", "--task", "delay-modular", "--length", "12"),
    *("--threads", "2", "--json", *(word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}"))),
]


def start(directory: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, "--out", str(directory)], text=True, env=environment, **pipes)


def finish(directory: Path) -> dict[str, Any]:
    output, errors = start(directory).communicate(timeout=300)
    assert output, errors
    result: dict[str, Any] = json.loads(output)
    return result


def without_time(result: dict[str, Any]) -> dict[str, Any]:
    kept = ("order", "race", "weights_sha256", "steps", "success_rate", "race_ended", "tied_orders")
    return {name: result[name] for name in kept} | {"given": result["given"]["weights_sha256"]}


@pytest.mark.slow
def test_a_race_that_is_killed_again_and_again_ends_the_same(tmp_path: Path) -> None:
    begun = time.monotonic()
    whole = finish(tmp_path / "whole")
    seconds = time.monotonic() - begun
    assert len(whole["race"]) > 2
    assert len(whole["race"][0]["steps"]) > 2
    rng = random.Random(0)
    for _ in range(KILLS):
        process = start(tmp_path / "killed")
        try:
            process.wait(timeout=rng.uniform(2.0, max(4.0, seconds / 2)))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        assert process.returncode in (0, -signal.SIGKILL)
    assert without_time(finish(tmp_path / "killed")) == without_time(whole)
