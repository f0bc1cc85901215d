"""Claim: on random programs the mined order is optimal, and 'order found' is right. Cost: seconds per program.

    python benchmarks/random_tasks.py --seeds 2000-2199 [--workers 1] [--samples 100000]

Each seed stands for one random program (`--task random:seed=N`) with hidden target columns. An order is optimal at a
cost ratio of 1. Prints a row for each program whose order costs more than 1.05 times the least, then the shares by
family and with or without noise. 'Order found' means that every target has a determinant and none is ambiguous.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from statistics import median

import torch

from genorder.data import EncodedDataset, encode
from genorder.dependencies.mining import MiningConfig, mine_dependencies
from genorder.orders import Order, cost_ratio
from genorder.tasks import RandomProgramTask, make_task, task_splits

NEAR = 1.05  # cost ratio


@dataclass(frozen=True)
class Outcome:
    seed: int
    family: str
    noise: float
    targets: int
    ratio: float
    found: bool
    seconds: float


def discovered(train: EncodedDataset, seed: int) -> tuple[Order, bool]:
    """The order, and whether it counts as found."""
    mined = mine_dependencies(train, MiningConfig(), seed=seed)
    return Order((*mined.determinants, *mined.open)), not mined.open and not mined.ambiguous


def run(seed: int, samples: int) -> Outcome:
    torch.set_num_threads(1)
    task = make_task(f"random:seed={seed}", None)
    assert isinstance(task, RandomProgramTask)
    data = task_splits(task, train=samples, validation=2, test=2, hidden_order_seed=seed)
    splits = data.splits
    train = encode(splits.train, input_width=splits.input_width, target_width=splits.target_width)
    start = time.perf_counter()
    order, found = discovered(train, seed)
    seconds = time.perf_counter() - start
    graph = data.graph_of_columns()
    assert graph is not None
    return Outcome(seed, task.family, task.noise, task.longest, cost_ratio(order, graph), found, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="2000-2199", help="first-last")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--samples", type=int, default=100_000)
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    print("| seed | family | noise | targets | cost ratio | order found | s |\n|---|---|---|---|---|---|---|")
    outcomes = []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for one in pool.map(partial(run, samples=options.samples), seeds):
            outcomes.append(one)
            if one.ratio > NEAR:
                said = "yes" if one.found else "no"
                print(
                    f"| {one.seed} | {one.family} | {one.noise:.3f} | {one.targets} | {one.ratio:.3f} | {said} "
                    f"| {one.seconds:.1f} |",
                    flush=True,
                )
    print("\n| programs | number | optimal | within 1.05 | order found | of these right | median s | longest s |")
    print("|---|---|---|---|---|---|---|---|")
    groups: dict[str, Callable[[Outcome], bool]] = {
        "all": lambda one: True,
        "without noise": lambda one: one.noise == 0,
        "with noise": lambda one: one.noise > 0,
    }
    for name, belongs in groups.items():
        print_shares(name, [one for one in outcomes if belongs(one)])
    for family in sorted({one.family for one in outcomes}):
        print_shares(family, [one for one in outcomes if one.family == family])


def print_shares(name: str, outcomes: Sequence[Outcome]) -> None:
    if not outcomes:
        return
    found = [one for one in outcomes if one.found]
    optimal = sum(one.ratio == 1 for one in outcomes)
    near = sum(one.ratio <= NEAR for one in outcomes)
    right = sum(one.ratio <= NEAR for one in found)
    seconds = [one.seconds for one in outcomes]
    print(
        f"| {name} | {len(outcomes)} | {_share(optimal, len(outcomes))} | {_share(near, len(outcomes))} "
        f"| {_share(len(found), len(outcomes))} | {_share(right, len(found))} "
        f"| {median(seconds):.1f} | {max(seconds):.1f} |"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()
