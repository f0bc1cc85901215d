"""What is found for tasks whose targets need many others at once: digits of a product, and pointers into the input.

    python benchmarks/prod_and_index.py [--tasks prod:10 index:d=2:13 ...] [--steps N] [-- further options of discover]

For each task and length (columns shuffled in secret) runs `genorder discover --explore-only`, then `genorder train` on
the order found, the forward one and the reverse, with the preset `cpu` and the same steps (continuing what is there),
and prints the success rates, the losses on the test split, and what was found.
"""

import argparse

from program import explore, own_and_further, train

TASKS = ("prod:10", "prod:20", "index:d=2:13", "index:d=4:13", "index:d=8:13")


def main() -> None:
    own, further = own_and_further()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), help="TASK:LENGTH")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--explore-only", action="store_true")
    parser.add_argument("--steps", type=int, default=3_000, help="of each training")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(own)
    names = ("found", "forward", "reverse")
    columns = f"task | L | {' | '.join(names)} | cost ratio | verdict | propose | race | order"
    print(f"| {columns} |\n|{'---|' * (columns.count('|') + 1)}")
    for named in options.tasks:
        task, _, length = named.rpartition(":")
        out = f"runs/{task}-{length}-{options.seed}"
        found = explore(task, int(length), options.seed, out, "--threads", options.threads, *further)
        forward = list(range(int(length)))
        orders = dict(zip(names, (found["order_in_true_indices"], forward, forward[::-1]), strict=True))
        cells = [
            "" if options.explore_only else trained(task, int(length), name, order, options)
            for name, order in orders.items()
        ]
        cost = f"{found['cost_ratio']:.3f}" if found.get("cost_ratio") else ""
        print(
            f"| {task} | {length} | {' | '.join(cells)} | {cost} | {found['proposed']['details'].get('verdict', '')} "
            f"| {found['seconds']['propose']:.0f} s | {found['seconds']['race']:.0f} s "
            f"| {' '.join(map(str, orders['found']))} |",
            flush=True,
        )


def trained(task: str, length: int, name: str, order: list[int], options: argparse.Namespace) -> str:
    out = f"runs/{task}-{length}-{options.seed}-{name}-{options.steps}"
    settings = [f"training.steps={options.steps}"]
    result = train(task, length, order, out, settings, "--seed", options.seed, "--threads", options.threads)
    return f"{100 * result['success_rate']:.1f} % (loss {result['loss']:.3f})"


if __name__ == "__main__":
    main()
