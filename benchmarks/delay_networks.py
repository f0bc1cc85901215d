"""Claim: on delay networks the order found is as good as the best designed by hand. Cost: 5 to 20 minutes a row.

    python benchmarks/delay_networks.py [--tasks delay-modular ...] [--seeds 0 1] [-- further options of discover]

For each network (T = 11, 36 targets, columns shuffled in secret) the orders found and the five designed by hand race,
trained alike (`genorder discover --also hand --no-baseline`), and the winner is trained to its end. Prints the winner
and its success rate; for the best order found and the best designed by hand the validation loss and the success rate
after the last rung that they trained in, with its steps; the cost ratio of the best order found, how much of the graph
was found, and the wall time. An order that is both counts as found. An interrupted benchmark continues.
"""

import argparse
import time
from pathlib import Path

from program import genorder, own_and_further

from genorder import make_task
from genorder.tasks import hidden_order

TASKS = ("relu", "hidden-cause", "coupled-ring", "modular", "sine", "mixed", "square")
LENGTH = 36  # T = 11


def main() -> None:
    own, further = own_and_further()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=[f"delay-{name}" for name in TASKS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], help="of the hidden columns and of the run")
    options = parser.parse_args(own)
    print(
        "| network | seed | winner | success | best found | best by hand | cost ratio | edges | verdict | wall time |"
    )
    print(f"|{'---|' * 10}")
    for task in options.tasks:
        for seed in options.seeds:
            print(row(task, seed, further), flush=True)


def row(task: str, seed: int, further: list[str]) -> str:
    out = Path(f"runs/{task}-{seed}-hand")
    kept = out.with_suffix(".seconds")  # of the first call that came to the end
    started = time.monotonic()
    result = genorder(
        "discover", "--task", task, "--length", LENGTH, "--hidden-order-seed", seed, "--seed", seed, "--also", "hand",
        "--no-baseline", "--out", out, *further,
    )  # fmt: skip
    if not kept.exists():
        kept.write_text(str(time.monotonic() - started), encoding="utf-8")
    seconds = float(kept.read_text(encoding="utf-8"))
    names = {tuple(order): name for name, order in make_task(task, str(LENGTH)).hand_designed_orders().items()}
    proposed = [one["order"] for one in result["proposed"]["proposals"]]
    found = [one for one in result["race"] if one["order"] in proposed]
    others = [one for one in result["race"] if one["order"] not in proposed]
    by_hand = [one for one in others if tuple(one["order_in_true_indices"]) in names]
    winner = names.get(tuple(result["order_in_true_indices"]), "no other")
    if result["order"] in proposed:
        winner = f"found ({winner})"
    cost = found[0]["cost_ratio"] if found else result["cost_ratio"]
    right, extra, missed = edges(task, seed, result["dependencies"])
    return (
        f"| {task} | {seed} | {winner} | {100 * result['success_rate']:.1f} % | {reached(found)} | {reached(by_hand)} "
        f"| {cost:.3f} | {right} right, {extra} extra, {missed} missed | {result['verdict']} | {seconds:.0f} s |"
    )


def reached(raced: list[dict]) -> str:
    if not raced:
        return "none other"
    best = raced[0]
    loss = "diverged" if best["diverged"] else f"{best['losses'][-1]:.4f}"
    return f"{loss}, {100 * best['success_rates'][-1]:.1f} % ({best['steps'][-1]:,} steps)"


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
