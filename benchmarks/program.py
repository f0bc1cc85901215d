"""What the benchmarks share: the program that they run, and options that they hand on to it."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def genorder(*arguments: object) -> dict:
    """The JSON object that `genorder ... --json` prints. What it says of a failure ends the benchmark."""
    command = [str(Path(sys.executable).parent / "genorder"), *map(str, arguments), "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def explore(task: str, length: int, seed: int, out: str, *further: object) -> dict:
    """What `genorder discover` says of a task whose columns are shuffled in secret, without the final training."""
    return genorder(
        "discover", "--task", task, "--length", length, "--hidden-order-seed", seed, "--seed", seed,
        "--explore-only", "--out", out, *further,
    )  # fmt: skip


def train(task: str, length: int, order: Iterable[int], out: str, settings: Iterable[str], *further: object) -> dict:
    """What `genorder train` says of a model that emits the task's targets in this order."""
    changes = (part for setting in settings for part in ("--set", setting))
    return genorder(
        "train", "--task", task, "--length", length, "--order", ",".join(map(str, order)), "--out", out,
        *changes, *further,
    )  # fmt: skip


def own_and_further() -> tuple[list[str], list[str]]:
    """The arguments of the benchmark, and behind `--` those that it hands on."""
    arguments = sys.argv[1:]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]
