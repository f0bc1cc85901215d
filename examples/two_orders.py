"""The same model on the same data, in two target orders: one learns, the other does not.

    python examples/two_orders.py [--task square] [--length 20] [--steps N] [--picture FILE.svg]

Trains the forward and the reverse order of a built-in task with the `cpu` preset, tests both by greedy generation,
and prints the results side by side. If you interrupt the program and start it again, it continues.
"""

import argparse
import json
import sys
from pathlib import Path

from genorder import (
    FixedOrderRun,
    GenorderError,
    Order,
    RunDirectory,
    make_task,
    resolve,
    task_splits,
    train_and_evaluate,
)
from genorder.cli.console import duration, percent, say, show_warnings, training_progress
from genorder.execution import StopRequest, choose_device, describe_machine, set_threads
from genorder.outcomes import TrainedModel

_BAR = " ▁▂▃▄▅▆▇█"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="square")
    parser.add_argument("--length", default="20")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--out", type=Path, help="run directory")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    show_warnings()
    set_threads(None)

    settings = [f"training.steps={options.steps}"] if options.steps is not None else []
    config = resolve("cpu", settings=settings)
    task = make_task(options.task, options.length)
    data = task_splits(task, **config.samples.model_dump())
    orders = {"forward": Order.forward(task.longest), "reverse": Order.reverse(task.longest)}
    described = {"example": "two orders", "data": data.splits.fingerprint(), "config": config.model_dump()}
    sizes = f"{len(data.splits.train)} training and {len(data.splits.test)} test samples"
    say(f"{task.name}, {task.longest} targets, {sizes}; two trainings of {config.training.steps} steps")
    path = options.out or Path("runs") / f"two-orders-{task.name}-L{task.lengths}"
    results: dict[str, TrainedModel] = {}
    with (
        RunDirectory.open(path, described, command=sys.argv, environment=describe_machine()) as directory,
        StopRequest() as stop,
    ):
        for name, order in orders.items():
            run = FixedOrderRun(data.splits, order, config, seed=0, device=choose_device("auto"))
            with training_progress(f"training, {name} order", config.training.steps) as show:
                results[name] = train_and_evaluate(run, directory, name=name, on_progress=show, stop=stop)
        print(report(results, task.longest))
        if options.picture:
            draw(results, directory.path, f"{task.name}, {task.longest} targets", options.picture)


def report(results: dict[str, TrainedModel], length: int) -> str:
    heading = f"{'order':<9}{'success rate':<28}{'test loss':<11}{'training':<13}"
    lines = ["", f"{heading}errors at targets 0 to {length - 1}"]
    for name, model in results.items():
        tested = model.evaluation
        low, high = tested.success_rate_interval
        rate = f"{percent(tested.success_rate)} ({percent(low)} to {percent(high)})"
        bars = "".join(_BAR[round(error * (len(_BAR) - 1))] for error in tested.error_rate_by_target)
        lines.append(f"{name:<9}{rate:<28}{tested.loss:<11.4f}{duration(model.seconds or 0.0):<13}|{bars}|")
    return "\n".join(lines)


def draw(results: dict[str, TrainedModel], folder: Path, title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "genorder"  # the same picture from the same run
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    colours = {"forward": "#0072b2", "reverse": "#d55e00"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name, model in results.items():
        losses = np.array(json.loads((folder / name / "training_losses.json").read_text()))
        smooth = np.convolve(losses, np.ones(20) / 20, mode="valid")
        left.plot(np.arange(20, len(losses) + 1), smooth, color=colours[name], label=f"{name} order")
        errors = 100 * np.array(model.evaluation.error_rate_by_target)
        label = f"{name} order: {percent(model.evaluation.success_rate)} exact matches"
        right.plot(errors, color=colours[name], marker="o", markersize=3, label=label)
    left.set(xlabel="training step", ylabel="training loss", ylim=(0, None), title=title)
    right.set(xlabel="target index", ylabel="generated wrongly (%)", ylim=(-3, 103), title="test samples")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    try:
        main()
    except GenorderError as error:
        sys.exit(f"{error}")
