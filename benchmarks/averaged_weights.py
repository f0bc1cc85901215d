"""Claim: the mean of the last weights solves a task sooner than the weights themselves. Cost: 10 minutes on two cores.

    python benchmarks/averaged_weights.py [--seeds 7014 7015 7023 7036] [--most 1600] [--workers 2]

Trains random programs (`--task random:seed=N`) in their own order by the recipe of preset `cpu`, at a constant rate.
Every 200 steps it prints the success rate on 500 validation samples of the weights, and of their mean over the last 5,
10 and 20 % of the steps; it ends when the weights themselves solve 99 %.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from genorder.data import encode
from genorder.execution.machine import start_threads
from genorder.models import fresh_gpt
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.race.jobs import validate
from genorder.settings import resolve_discovery
from genorder.tasks import make_task, task_splits
from genorder.training import BatchPlan, WeightAverage, fit

CHECK_STEPS, SOLVED, SHARES = 200, 0.99, (0.05, 0.1, 0.2)


def run(seed: int, most: int) -> list[str]:
    """A row of the table for each look at the success rates."""
    start_threads(1)
    splits = task_splits(make_task(f"random:seed={seed}", None), train=100_000, validation=500, test=2).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    final = resolve_discovery("cpu").final
    training = final.training.model_copy(update={"steps": most, "stable_steps": most})
    model = fresh_gpt(final.model, train, 1)
    averages = [WeightAverage(model, share) for share in SHARES]
    order = Order.forward(splits.target_width)
    batch_at = BatchPlan(train, torch.tensor([list(order)]), training.batch_size, 2)
    rows = []

    def look(done: int) -> bool:
        if not done:
            return False
        for average in averages:
            average.update(model, done)
        if done % CHECK_STEPS:
            return False
        models = (model, *(average.model for average in averages))
        rates = [float(validate(each, validation, order)[1].mean()) for each in models]
        model.train()
        rows.append(f"| {seed} | {done:,} | {' | '.join(f'{100 * rate:.1f} %' for rate in rates)} |")
        return rates[0] >= SOLVED

    fit(model, lambda step: mean_loss(model, batch_at(step)), training, seed=1, end_early=look)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[7014, 7015, 7023, 7036], help="of the programs")
    parser.add_argument("--most", type=int, default=1_600, help="steps")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(
        "| program | steps | weights | mean of 5 % | mean of 10 % | mean of 20 % |\n|---|---|---|---|---|---|",
        flush=True,
    )
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for job in [pool.submit(run, seed, options.most) for seed in options.seeds]:
            print("\n".join(job.result()), flush=True)


if __name__ == "__main__":
    main()
