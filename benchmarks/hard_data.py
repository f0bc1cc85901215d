"""Claim: the order is found in data that are less kind than the paper's, or it is said plainly that there is none.

    python benchmarks/hard_data.py [--kinds relabelled noise few independent random] [--tasks ...] [--length 20]

Writes each dataset as a plain file, which says nothing of the task, runs `genorder discover FILE --explore-only` on it
(continuing what is there), and prints one line each: the cost of the order found, relative to the best, the verdict and
the seconds. One to three minutes per run on one core; with noise, five to nine.

relabelled    the input columns are shuffled too, so x_i no longer stands at position i
noise         10 % of the target tokens, training and validation alike, are replaced by random ones
few           5,000 samples instead of 100,000
independent   y_i is a function of x_i alone: no order is better than another
random        the targets have nothing to do with the inputs or with each other
"""

import argparse
from pathlib import Path

import numpy as np
from program import genorder, own_and_further

from genorder import Order, cost_ratio, make_task, write_jsonl
from genorder.data import SequenceDataset
from genorder.tasks import Split, hidden_order, hide

TASKS = ("relu", "square", "triangle", "mlp", "sine", "cubic")
KINDS = ("relabelled", "noise", "few", "independent", "random")
WITHOUT_ORDER = ("independent", "random")
NOISE, FEW, SAMPLES = 0.1, 5_000, 100_000


def main() -> None:
    own, further = own_and_further()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(own)
    print("| data | task | cost ratio | verdict | propose | race |")
    print("|---|---|---|---|---|---|")
    for kind in options.kinds:
        # Without an order the task only lends its alphabet: one of them is enough.
        for task in options.tasks if kind not in WITHOUT_ORDER else options.tasks[:1]:
            result = discover(kind, task, options.length, options.seed, further)
            cost = "" if kind in WITHOUT_ORDER else f"{cost_of(result, task, options.length, options.seed):.3f}"
            seconds = result["seconds"]
            print(
                f"| {kind} | {task} | {cost} | {result['proposed']['details'].get('verdict', '')} "
                f"| {seconds['propose']:.0f} s | {seconds['race']:.0f} s |",
                flush=True,
            )


def discover(kind: str, task: str, length: int, seed: int, further: list[str]) -> dict:
    path = Path("runs") / f"hard-{kind}-{task}-L{length}-{seed}.jsonl"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        write_jsonl(dataset(kind, task, length, seed), path)
    out = path.with_suffix("")
    return genorder("discover", path, "--explore-only", "--seed", seed, "--out", out, *further)


def dataset(kind: str, task: str, length: int, seed: int) -> SequenceDataset:
    made = make_task(task, str(length))
    drawn = hide(made.generate(FEW if kind == "few" else SAMPLES, Split.TRAIN, seed=seed), columns(task, length, seed))
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    alphabet = np.unique(drawn.targets)
    inputs, targets = drawn.inputs.copy(), drawn.targets.copy()
    if kind == "relabelled":
        inputs = inputs[:, rng.permutation(inputs.shape[1])]
    elif kind == "noise":
        replaced = rng.random(targets.shape) < NOISE
        targets[replaced] = rng.choice(alphabet, int(replaced.sum()))
    elif kind == "independent":
        values, codes = np.unique(inputs, return_inverse=True)
        tables = np.array([rng.permutation(len(values)) for _ in range(length)])  # a function per column
        codes = codes.reshape(inputs.shape)[:, -length:]
        targets = values[tables[np.arange(length), codes]]
    elif kind == "random":
        targets = rng.choice(alphabet, targets.shape)
    return SequenceDataset.from_integers(*drawn._replace(inputs=inputs, targets=targets))


def columns(task: str, length: int, seed: int) -> Order:
    return hidden_order(make_task(task, str(length)).lengths, seed)


def cost_of(result: dict, task: str, length: int, seed: int) -> float:
    graph = make_task(task, str(length)).dependencies().relabelled(columns(task, length, seed))
    return cost_ratio(Order(tuple(result["order"])), graph)


if __name__ == "__main__":
    main()
