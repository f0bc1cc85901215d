"""Claim: which strategy finds the order of a task whose columns were shuffled in secret. Cost: by strategy, see below.

    python benchmarks/discovery.py --strategy any-order --length 20 --seeds 5             half a minute per run, 2 cores
    python benchmarks/discovery.py --strategy global-local --length 10 --seeds 3 --tasks relu square triangle
                                                                                       about ten minutes per run
    python benchmarks/discovery.py ... --train          also the final training and its success rate
    python benchmarks/discovery.py ... -- --init block --depth 7                         any further options of discover

Runs `genorder discover` for every task and hidden-order seed (continuing what is there) and prints one line each: the
cost of the order found, relative to the best (1.0 is optimal), what the search itself put first, the verdict, the
success rate, the seconds, and the most memory that any run so far has held. The paper's rates are those of its Table 2
for the same kind of start: the best of four model sizes each.
"""

import argparse
import resource

from program import genorder, own_and_further

from genorder.store import fingerprint

TASKS = ("relu", "square", "triangle", "mlp", "sine", "cubic")
PAPER = {  # start, length: success rates in percent; those in OPTIMAL came from the forward order
    ("random", 10): (99.6, 100.0, 100.0, 38.2, 54.2, 0.3),
    ("random", 13): (99.2, 5.6, 7.4, 10.8, 26.3, 0.2),
    ("random", 20): (24.2, 10.4, 0.8, 5.9, 8.2, 0.0),
    ("sort", 20): (99.6, 100.0, 100.0, 89.4, 100.0, 1.9),
    ("sort", 30): (97.6, 100.0, 100.0, 100.0, 100.0, 3.8),
    ("sort", 40): (3.4, 0.0, 0.0, 0.4, 1.2, 0.0),
    ("block", 20): (99.6, 100.0, 100.0, 100.0, 100.0, 100.0),
    ("block", 30): (97.6, 100.0, 100.0, 100.0, 1.7, 0.7),
    ("block", 40): (96.0, 2.1, 1.2, 100.0, 0.0, 0.0),
}


def main() -> None:
    own, further = own_and_further()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", default="any-order")
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args(own)
    start = further[further.index("--init") + 1] if "--init" in further else "random"
    paper = dict(zip(TASKS, PAPER.get((start, options.length), ()), strict=False))
    columns = "task | seed | cost ratio | first proposal | verdict | success | paper | propose | race | memory | order"
    print(f"| {columns} |\n|{'---|' * (columns.count('|') + 1)}")
    optimal = runs = 0
    for task in options.tasks:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            result = discover(task, seed, options, further)
            runs += 1
            optimal += result["cost_ratio"] == 1.0
            print(line(task, seed, result, paper.get(task)), flush=True)
    print(f"\noptimal in {optimal} of {runs}")


def discover(task: str, seed: int, options: argparse.Namespace, further: list[str]) -> dict:
    end = [] if options.train else ["--explore-only"]
    asked = [options.strategy, str(options.length), *end, *further]
    return genorder(
        "discover", "--task", task, "--length", options.length, "--strategy", options.strategy,
        "--hidden-order-seed", seed, "--seed", seed, *end,
        "--out", f"runs/discovery-{task}-{seed}-{options.strategy}-{fingerprint(asked)[:6]}", *further,
    )  # fmt: skip


def line(task: str, seed: int, result: dict, paper: float | None) -> str:
    first = result["proposed"]["proposals"][0]["cost_ratio"]
    success = f"{100 * result['success_rate']:.1f} %" if "success_rate" in result else ""
    verdict = result["proposed"]["details"].get("verdict", "")
    order = " ".join(map(str, result["order_in_true_indices"]))
    seconds = result["seconds"]
    published = "" if paper is None else f"{paper} %"
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return (
        f"| {task} | {seed} | {result['cost_ratio']:.3f} | {first:.3f} | {verdict} | {success} "
        f"| {published} | {seconds['propose']:.0f} s | {seconds['race']:.0f} s | {memory:.2f} GB "
        f"| {order if len(order) < 60 else order[:57] + '...'} |"
    )


if __name__ == "__main__":
    main()
