"""Claim: from a file to a proven answer with one training per order. Cost: 1 to 15 minutes a row on two cores.

    python benchmarks/one_training.py [--groups recurrences arithmetic delay "no order"] [--out FILE.jsonl]
                                      [--folder runs/one_training] [-- further options of discover]

Each row writes a file of 102,000 samples (`genorder generate`), runs `genorder discover FILE` on it as a user would
(the seed that hides the columns is the run's seed too), and prints the success rate of the order found and of the given
order, the steps of the winner's training, why the race ended, and the wall time of the whole command. Runs that are
there already are not done again; their wall time is that of the first time.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from program import own_and_further

from genorder import Order, cost_ratio, make_task

RECURRENCES = ("relu", "square", "triangle", "mlp", "sine", "cubic")
DELAYS = ("relu", "hidden-cause", "coupled-ring", "modular", "sine", "square", "mixed")
SAMPLES = 102_000

# Rows are (task, length, hidden order seed or None for the task's own columns, kind of targets).
GROUPS: dict[str, list[tuple[str, str | None, int | None, str]]] = {
    "recurrences": [(task, "20", seed, "") for task in RECURRENCES for seed in range(3)],
    "arithmetic": [
        ("addition", "7", None, ""),  # most significant digit first
        ("multiply:digits=6,by=1", None, None, ""),
        ("prod", "6", None, ""),
        ("addition", "13", None, ""),
    ],
    "delay": [(f"delay-{name}", "36", 0, "") for name in DELAYS],
    "no order": [("relu", "20", 0, kind) for kind in ("random", "independent")],
}


def main() -> None:
    own, further = own_and_further()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--out", type=Path, help="rows as JSON Lines, too")
    parser.add_argument("--folder", type=Path, default=Path("runs/one_training"))
    options = parser.parse_args(own)
    print("| data | cost ratio | verdict | success | given order | steps | race ended | shown | wall time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for group in options.groups:
        for row in GROUPS[group]:
            found = run(options.folder, *row, further)
            print(line(found), flush=True)
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"group": group, **found}) + "\n")


def run(folder: Path, task: str, length: str | None, seed: int | None, kind: str, further: list[str]) -> dict[str, Any]:
    name = "-".join(filter(None, (task.replace(":", "-").replace("=", ""), length, str(seed or 0), kind)))
    folder.mkdir(parents=True, exist_ok=True)
    data, kept = folder / f"{name}.jsonl", folder / f"{name}.result.json"
    if kept.exists():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    columns = write(data, task, length, seed, kind)
    command = ["discover", str(data), "--seed", str(seed or 0), "--out", str(folder / name), "--json", *further]
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "genorder", *command], check=False, capture_output=True)
    seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(done.stderr.decode())
    result = json.loads(done.stdout)
    true = Order(tuple(columns[column] for column in result["order"]))
    keys = (
        "verdict",
        "success_rate",
        "success_rate_given_order",
        "steps",
        "race_ended",
        "shown_by_training",
        "seconds",
    )
    found = {
        "data": " ".join(filter(None, (task, length, "" if seed is None else f"hidden {seed}", kind))),
        "cost_ratio": None if kind else cost_ratio(true, make_task(task, length).dependencies()),
        "order": list(true),
        **{key: result[key] for key in keys},
        "race": [{k: v for k, v in one.items() if k != "curves"} for one in result["race"]],
        "wall": seconds,
    }
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def write(path: Path, task: str, length: str | None, seed: int | None, kind: str) -> list[int]:
    """The file; returns the true index of each of its target columns."""
    command = ["generate", "--task", task, "--samples", str(SAMPLES), "--out", str(path), "--json"]
    command += ["--length", length] if length else []
    command += [] if seed is None else ["--hidden-order-seed", str(seed)]
    done = subprocess.run([sys.executable, "-m", "genorder", *command], check=True, stdout=subprocess.PIPE)
    columns: list[int] = json.loads(done.stdout)["order_in_true_indices"]
    if kind:
        rng = np.random.default_rng(0)
        rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            size = len(row["target"])
            drawn = rng.integers(19, size=size).tolist()
            own = [(3 * int(token) + place) % 19 for place, token in enumerate(row["input"])]
            row["target"] = [str(token) for token in (drawn if kind == "random" else own)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return columns


def line(found: dict[str, Any]) -> str:
    ratio = "" if found["cost_ratio"] is None else f"{found['cost_ratio']:.3f}"
    given = found["success_rate_given_order"]
    return (
        f"| {found['data']} | {ratio} | {found['verdict']} | {100 * found['success_rate']:.1f} % "
        f"| {'' if given is None else f'{100 * given:.1f} %'} | {found['steps']:,} | {found['race_ended']} "
        f"| {'yes' if found['shown_by_training'] else 'no'} | {found['wall']:.0f} s |"
    )


if __name__ == "__main__":
    main()
