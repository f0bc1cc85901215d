"""Claim: neither torch.compile nor flat buffers make a step much faster. Cost: 2 minutes on two cores.

    python benchmarks/step_speed.py

One layer, width 128, L = 20, batches of 128, as in `genorder bench training`. All run in one process, in
turns; medians of five turns of 20 steps. "no optimiser" computes gradients only: no optimiser can be faster than that.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from genorder.bench.training import SIZES, batch_plan, random_data, trainer_loop
from genorder.models import GPT
from genorder.models.losses import mean_loss
from genorder.seeding import torch_generator

SIZE, DEVICE, STEPS, TURNS = SIZES[1], torch.device("cpu"), 20, 6
DATA = random_data(SIZE, DEVICE)
PLAN = batch_plan(SIZE, DATA)
Run = Callable[[], float]


def timed(step: Callable[[int], None]) -> Run:
    def run() -> float:
        started = time.perf_counter()
        for number in range(STEPS):
            step(number)
        return (time.perf_counter() - started) / STEPS

    return run


def new_model() -> GPT:
    return GPT(SIZE.model, vocabulary=DATA.model_vocabulary, positions=2 * SIZE.length + 1, rng=torch_generator(1))


def one_step(loss: Callable[..., Tensor] = mean_loss) -> Run:
    model = new_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(number: int) -> None:
        loss(model, PLAN(number)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return timed(step)


def flat() -> Run:
    """All parameters are views of one tensor, and so are their gradients: one product clips, one AdamW updates."""
    model = new_model()
    parameters = list(model.parameters())
    values = torch.cat([parameter.data.flatten() for parameter in parameters])
    gradients = torch.zeros_like(values)
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, value, gradient in zip(parameters, values.split(sizes), gradients.split(sizes), strict=True):
        parameter.data, parameter.grad = value.view_as(parameter), gradient.view_as(parameter)
    whole = nn.Parameter(values)
    whole.grad = gradients
    optimizer = torch.optim.AdamW([whole], lr=1e-3, fused=True)

    def step(number: int) -> None:
        gradients.zero_()
        mean_loss(model, PLAN(number)).backward()
        gradients.mul_((1.0 / (gradients.norm() + 1e-6)).clamp(max=1.0))
        optimizer.step()

    return timed(step)


def no_optimiser() -> Run:
    model = new_model()

    def step(number: int) -> None:
        mean_loss(model, PLAN(number)).backward()
        model.zero_grad(set_to_none=True)

    return timed(step)


def main() -> None:
    trainer = trainer_loop(SIZE, DATA, DEVICE)
    compiled = one_step(torch.compile(mean_loss))
    started = time.perf_counter()
    compiled()
    print(f"compiling took {time.perf_counter() - started:.0f} s")
    runs: dict[str, Run] = {
        "genorder": one_step(),
        "torch.compile": compiled,
        "flat buffers": flat(),
        "no optimiser": no_optimiser(),
        "transformers Trainer": lambda: trainer(STEPS) / STEPS,
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(TURNS):
        for name, run in runs.items():
            seconds = run()
            if turn:  # the first turn warms up
                times[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    print("| step | ms | against Trainer |\n|---|---|---|")
    for name, seconds in medians.items():
        print(f"| {name} | {1000 * seconds:.1f} | {medians['transformers Trainer'] / seconds:.2f} x |")


if __name__ == "__main__":
    main()
