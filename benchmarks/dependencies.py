"""Claim: counting finds the order of data that a program made, in seconds, and says so only where it is right.

    python benchmarks/dependencies.py [--groups recurrences long arithmetic ...] [--out FILE.jsonl]

Runs the default strategy (`dependencies`) alone, without race and training, on hidden columns of many tasks. Prints a
row for each: the cost ratio of the first proposal and the worst of all (the race chooses among them), the edges of the
graph, the verdict, the seconds to propose, the peak memory. Each row is a process of its own. All groups but `long`
take about 15 minutes on two cores; `long` up to half an hour.

The samples are those that `genorder discover --task NAME` takes; the strategy sees tokens alone, no task.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from genorder import Order, cost_ratio, make_task
from genorder.data import SequenceDataset, Splits, encode_for_exploring
from genorder.orders import CandidateSource, DependencyGraph
from genorder.presets import DISCOVERIES, DataSize
from genorder.search import Dependencies, SearchProblem, SearchResult
from genorder.store import RunDirectory
from genorder.tasks import task_splits

RECURRENCES = ("relu", "square", "triangle", "mlp", "sine", "cubic")
DELAYS = ("relu", "hidden-cause", "coupled-ring", "modular", "sine", "mixed", "square")
NOISE = 0.1

# Rows are (task, length, hidden order seed, training samples, kind).
GROUPS: dict[str, list[tuple[str, str | None, int, int, str]]] = {
    "recurrences": [(task, "20", seed, 100_000, "") for task in RECURRENCES for seed in range(5)],
    "arithmetic": [
        *(("addition", "13", seed, 100_000, "") for seed in range(3)),
        *(("multiply:digits=6,by=1", None, seed, 100_000, "") for seed in range(3)),
    ],
    "pointers": [
        *((f"index:d={d}", "13", seed, 100_000, "") for d in (2, 4) for seed in range(2)),
        *(("linked-list", "12", seed, 100_000, "") for seed in range(2)),
    ],
    "delay": [(f"delay-{name}", "36", seed, 100_000, "") for name in DELAYS for seed in range(2)],
    "noise": [(task, "20", 0, 100_000, "noise") for task in RECURRENCES],
    "few": [
        *((task, "20", 0, samples, "") for samples in (5_000, 1_000) for task in RECURRENCES),
        *(("running-sum", "6", seed, 160, "") for seed in range(5)),
    ],
    "no order": [("relu", "20", 0, 100_000, kind) for kind in ("independent", "random")],
    "prod": [("prod", "10", 0, 100_000, ""), ("prod", "12", 0, 100_000, ""), ("prod", "6", 0, 100_000, "")],
    "long": [
        (task, length, 0, 100_000, "") for length in ("100", "256", "1000") for task in ("square", "relu", "sine")
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--groups", nargs="+", default=[name for name in GROUPS if name != "long"], choices=list(GROUPS)
    )
    parser.add_argument("--out", type=Path, help="rows as JSON Lines, too")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(run(*json.loads(options.row))))
        return
    print("| data | samples | cost ratio | worst | edges: right, extra, missed | verdict | propose | memory |")
    print("|---|---|---|---|---|---|---|---|")
    for group in options.groups:
        for row in GROUPS[group]:
            command = [sys.executable, __file__, "--row", json.dumps(row)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            found = json.loads(done.stdout.splitlines()[-1])
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps({"group": group, **found}) + "\n")
            edges = ", ".join(map(str, found["edges"]))
            print(
                f"| {found['data']} | {found['samples']:,} | {found['cost_ratio']:.3f} | {found['worst']:.3f} "
                f"| {edges} | {found['verdict']} | {found['seconds']:.1f} s | {found['gigabytes']:.1f} GB |",
                flush=True,
            )


def run(task: str, length: str | None, seed: int, samples: int, kind: str) -> dict:
    splits, graph = data(task, length, seed, samples, kind)
    config = DISCOVERIES["cpu"](DataSize(samples))
    with (
        tempfile.TemporaryDirectory() as folder,
        RunDirectory.open(Path(folder) / "run", {}, command=(), environment={}) as directory,
    ):
        problem = SearchProblem(
            *encode_for_exploring(splits, torch.device("cpu")),
            source=CandidateSource(Order.forward(splits.target_width)),
            profiler=config.profiler,
            any_order=config.any_order,
            mining=config.mining,
            seed=0,
            journal=directory.journal,
            folder=Path(folder),
        )
        started = time.monotonic()
        result = Dependencies().propose(problem)
        seconds = time.monotonic() - started
    costs = [cost_ratio(proposal.order, graph) for proposal in result.proposals]
    return {
        "data": f"{task} {length or ''} hidden {seed} {kind}".strip(),
        "samples": samples,
        "cost_ratio": costs[0],
        "worst": max(costs),
        "costs": costs,
        "edges": edges(result, graph),
        "verdict": result.details.verdict,
        "found_by": [one.found_by for one in result.details.dependencies].count("counting"),
        "targets": graph.targets,
        "orders": [list(proposal.order) for proposal in result.proposals],
        "seconds": seconds,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def data(task: str, length: str | None, seed: int, samples: int, kind: str) -> tuple[Splits, DependencyGraph]:
    if task == "running-sum":
        return running_sum(int(length or 6), samples, seed)
    made = task_splits(make_task(task, length), train=samples, validation=1_000, test=1, hidden_order_seed=seed)
    if not kind:
        return made.splits, made.graph_of_columns()
    rng = np.random.default_rng(seed)
    changed = []
    for split in made.splits.all:
        inputs = split.inputs.padded(made.splits.input_width, 0)
        targets = split.targets.padded(made.splits.target_width, 0)
        if kind == "noise":
            replaced = rng.random(targets.shape) < NOISE
            targets[replaced] = rng.choice(np.unique(targets), int(replaced.sum()))
        elif kind == "independent":
            targets = (3 * inputs + np.arange(inputs.shape[1])) % (inputs.max() + 1)
        else:
            targets = rng.integers(0, 19, targets.shape)
        widths = (np.full(len(split), matrix.shape[1]) for matrix in (inputs, targets))
        input_lengths, target_lengths = widths
        changed.append(SequenceDataset.from_integers(inputs, input_lengths, targets, target_lengths))
    return Splits.of(*changed), made.graph_of_columns()


def running_sum(length: int, samples: int, seed: int) -> tuple[Splits, DependencyGraph]:
    """y_k = x_0 + ... + x_k of digits, the columns of Y shuffled."""
    rng = np.random.default_rng(seed)
    column_of = rng.permutation(length)
    splits = []
    for size in (samples, 20, 20):
        inputs = rng.integers(0, 10, (size, length))
        targets = np.empty_like(inputs)
        targets[:, column_of] = np.cumsum(inputs, axis=1)
        lengths = np.full(size, length)
        splits.append(SequenceDataset.from_integers(inputs, lengths, targets, lengths))
    parents: list[tuple[int, ...]] = [()] * length
    reads: list[tuple[int, ...]] = [()] * length
    for k, column in enumerate(column_of.tolist()):
        parents[column] = (int(column_of[k - 1]),) if k else ()
        reads[column] = (k,)
    copies = frozenset({int(column_of[0])})
    return Splits.of(*splits), DependencyGraph(length, tuple(parents), tuple(reads), copies)


def edges(result: SearchResult, graph: DependencyGraph) -> tuple[int, int, int]:
    """Between targets: right, extra, missed. A copy of an input may be read in its place."""
    found = {(parent, one.target) for one in result.details.dependencies for parent in one.targets}
    true = {(parent, target) for target in range(graph.targets) for parent in graph.target_parents(target)}
    copied = {(parent, target) for parent, target in true if parent in graph.input_copies}
    return len(found & true), len(found - true), len(true - copied - found)


if __name__ == "__main__":
    main()
