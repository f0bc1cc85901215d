"""Claim: most programs are learnt in fewer steps with weights drawn by fan-in. Cost: about 15 minutes on two cores.

    python benchmarks/recipes.py [--seeds 6000-6007] [--recipes NAME ...] [--most 1500] [--workers 2]

Trains each random program (`--task random:seed=N`, programs without noise and of at most 20 targets; others are passed
over) in its own order by each recipe, at a constant rate. Prints the steps until 99 % of 500 validation samples are
right, looked at every 50 steps, and the milliseconds of a step on one thread. `> 1,500` means that it was not reached.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import geometric_mean

import torch

from genorder.data import encode
from genorder.execution.machine import start_threads
from genorder.models import GPTConfig, fresh_gpt
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.race.jobs import solves
from genorder.seeding import derive_seed
from genorder.settings import resolve_discovery
from genorder.tasks import RandomProgramTask, make_task, task_splits
from genorder.training import BatchPlan, TrainingConfig, fit

CHECK_STEPS, SOLVED, MOST_TARGETS = 50, 0.99, 20
RECIPES: dict[str, tuple[dict[str, object], dict[str, object]]] = {  # changes of the preset's model, of its training
    "preset": ({}, {}),
    "GPT-2's weights": ({"initialisation": "gpt2"}, {}),
    "gelu_new": ({"activation": "gelu_new"}, {}),
    "8 heads": ({"heads": 8}, {}),
    "1 layer": ({"layers": 1}, {}),
    "3 layers": ({"layers": 3}, {}),
    "width 64": ({"width": 64, "feedforward": 256}, {}),
    "batch 32": ({}, {"batch_size": 32}),
    "batch 128": ({}, {"batch_size": 128}),
    "rate 5e-4": ({}, {"learning_rate": 5e-4}),
    "rate 2e-3": ({}, {"learning_rate": 2e-3}),
}


@dataclass(frozen=True)
class Outcome:
    seed: int
    recipe: str
    steps: int
    solved: bool
    milliseconds: float


def suitable(seed: int) -> bool:
    task = make_task(f"random:seed={seed}", None)
    assert isinstance(task, RandomProgramTask)
    return not task.noise and task.longest <= MOST_TARGETS


def run(seed: int, recipe: str, most: int) -> Outcome:
    start_threads(1)
    splits = task_splits(make_task(f"random:seed={seed}", None), train=100_000, validation=500, test=2).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    final = resolve_discovery("cpu").final
    of_model, of_training = RECIPES[recipe]
    config = GPTConfig.model_validate({**final.model.model_dump(), **of_model})
    changes = {"steps": most, "stable_steps": most, **of_training}
    training = TrainingConfig.model_validate({**final.training.model_dump(), **changes})
    model = fresh_gpt(config, train, derive_seed(seed, "model"))
    order = Order.forward(splits.target_width)
    batch_at = BatchPlan(train, torch.tensor([list(order)]), training.batch_size, derive_seed(seed, "batches"))
    looking = 0.0
    solved = False

    def is_solved(done: int) -> bool:
        nonlocal looking, solved
        if not done or done % CHECK_STEPS:
            return False
        started = time.monotonic()
        solved = solves(model, validation, order, SOLVED)
        model.train()
        looking += time.monotonic() - started
        return solved

    fitted = fit(model, lambda step: mean_loss(model, batch_at(step)), training, seed=seed, end_early=is_solved)
    steps = len(fitted.losses)
    return Outcome(seed, recipe, steps, solved, 1000 * (fitted.seconds - looking) / steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="6000-6007", help="first-last")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--most", type=int, default=1_500, help="steps")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = [seed for seed in range(int(first), int(last or first) + 1) if suitable(seed)]
    print(f"| recipe | {' | '.join(map(str, seeds))} | geometric mean | ms a step |\n|{'---|' * (len(seeds) + 3)}")
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        pending = {name: [pool.submit(run, seed, name, options.most) for seed in seeds] for name in options.recipes}
        for name, jobs in pending.items():
            outcomes = [job.result() for job in jobs]
            cells = [f"{one.steps:,}" if one.solved else f"> {one.steps:,}" for one in outcomes]
            mean = geometric_mean(one.steps for one in outcomes)
            speed = sum(one.milliseconds for one in outcomes) / len(outcomes)
            print(f"| {name} | {' | '.join(cells)} | {mean:,.0f} | {speed:.0f} |", flush=True)


if __name__ == "__main__":
    main()
