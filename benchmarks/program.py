"""What the benchmarks share: the program that they run, and options that they hand on to it."""

import json
import subprocess
import sys
from pathlib import Path


def genorder(*arguments: object) -> dict:
    """The JSON object that `genorder ... --json` prints. What it says of a failure ends the benchmark."""
    command = [str(Path(sys.executable).parent / "genorder"), *map(str, arguments), "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def own_and_further() -> tuple[list[str], list[str]]:
    """The arguments of the benchmark, and behind `--` those that it hands on."""
    arguments = sys.argv[1:]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]
