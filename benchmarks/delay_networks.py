"""On delay networks, is the order found from the data alone as good as the best designed by hand?

    python benchmarks/delay_networks.py [--tasks delay-modular ...] [--explore-only] [-- further options of discover]

For each network (T = 11, 36 targets, columns shuffled in secret) runs `genorder discover --explore-only`, then
`genorder train` on the order found and on each of the five hand-designed orders, with the same model, steps and samples
(continuing what is there), and prints the success rates with the losses on the test split, the cost of the order found
and how much of the graph was found. The race trains a model of one layer, as these trainings do, with the same batches
and learning rate, and no longer.
"""

import argparse

from program import explore, own_and_further, train

from genorder import make_task
from genorder.store import fingerprint
from genorder.tasks import hidden_order

TASKS = ("relu", "hidden-cause", "coupled-ring", "modular", "sine", "mixed", "square")
LENGTH = 36  # T = 11
RATE = "training.learning_rate=1e-3"
PAPER = {  # success rates in percent of the five, in the sequence of `hand_designed_orders`
    "delay-relu": (73.3, 100.0, 84.6, 63.0, 0.0),
    "delay-hidden-cause": (63.8, 96.3, 83.8, 40.0, 0.5),
    "delay-coupled-ring": (99.8, 99.5, 99.8, 99.9, 32.6),
    "delay-modular": (100.0, 0.0, 100.0, 0.0, 0.0),
    "delay-sine": (98.6, 99.9, 100.0, 99.2, 0.0),
    "delay-mixed": (4.8, 1.4, 64.5, 10.7, 0.0),
}


def main() -> None:
    own, further = own_and_further()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=[f"delay-{name}" for name in TASKS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--explore-only", action="store_true")
    parser.add_argument("--steps", type=int, default=3_000, help="of each training")
    parser.add_argument("--orders", nargs="+", help="that are trained: found, or of the five; default: all")
    parser.add_argument("--batch-size", type=int, default=128, help="of each training")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(own)
    names = list(make_task("delay-relu", str(LENGTH)).hand_designed_orders())
    print(f"| network | found | {' | '.join(names)} | paper's best | cost ratio | edges | verdict | propose | race |")
    print(f"|{'---|' * (len(names) + 8)}")
    for task in options.tasks:
        out = f"runs/{task}-{options.seed}"
        recipe = (
            "model.layers=1",
            RATE,
            f"training.batch_size={options.batch_size}",
            f"training.steps={options.steps}",
        )
        settings = [part for setting in recipe for part in ("--set", f"final.{setting}")]
        found = explore(task, LENGTH, options.seed, out, "--threads", options.threads, *settings, *further)
        rates = [""] * (len(names) + 1) if options.explore_only else success_rates(task, found, options)
        paper = f"{max(PAPER[task])} %" if task in PAPER else ""
        right, extra, missed = edges(task, options.seed, found["proposed"]["details"].get("dependencies", []))
        print(
            f"| {task} | {' | '.join(rates)} | {paper} "
            f"| {found['cost_ratio']:.3f} | {right} right, {extra} extra, {missed} missed "
            f"| {found['proposed']['details'].get('verdict', '')} "
            f"| {found['seconds']['propose']:.0f} s | {found['seconds']['race']:.0f} s |",
            flush=True,
        )


def success_rates(task: str, found: dict, options: argparse.Namespace) -> list[str]:
    """Of the order found, then of the five."""
    orders = {"found": found["order_in_true_indices"], **make_task(task, str(LENGTH)).hand_designed_orders()}
    settings = ["model.layers=1", RATE, f"training.steps={options.steps}", f"training.batch_size={options.batch_size}"]
    rates = []
    for name, order in orders.items():
        if options.orders and name not in options.orders:
            rates.append("not trained")
            continue
        out = f"runs/{task}-{options.seed}-{name}-{options.steps}x{options.batch_size}-{fingerprint(list(order))[:6]}"
        trained = train(task, LENGTH, order, out, settings, "--seed", options.seed, "--threads", options.threads)
        rates.append(f"{100 * trained['success_rate']:.1f} % ({trained['loss']:.3f})")
    return rates


def edges(task: str, seed: int, found: list[dict]) -> tuple[int, int, int]:
    """Edges of the graph found that are right, that are none of the network's, and those that were missed."""
    made = make_task(task, str(LENGTH))
    graph = made.dependencies().relabelled(hidden_order(made.lengths, seed))
    true = {("y", parent, target) for target in range(LENGTH) for parent in graph.target_parents(target)}
    true |= {("x", position, target) for target in range(LENGTH) for position in graph.input_parents[target]}
    read = {("y", parent, row["target"]) for row in found for parent in row["targets"]}
    read |= {("x", position, row["target"]) for row in found for position in row["inputs"]}
    return len(read & true), len(read - true), len(true - read)


if __name__ == "__main__":
    main()
