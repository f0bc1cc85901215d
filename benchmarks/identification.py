"""Claim: one short run on a mixture puts the right order first of 128. Cost: about two minutes per run on one core.

    python benchmarks/identification.py [--seeds 3] [--tasks relu square ...] [--judge guessing|race] [--threads 1]

Runs `genorder rank --task T --length 30 --candidates random:127,forward` with the target columns hidden, for every task
and seed (continuing what is there), and prints where the forward order came, beside the paper's rates for the same kind
of set, which are over 27 model sizes. The model is told which target comes next; with `--judge guessing` it is not, as
in the paper (and has one head, which served it best), and `--judge race` asks the race of fixed-order runs instead,
among 16 orders (forward, reverse, 14 random; 2 to 15 minutes per run).

The last column is what misleads a guessing model where it fails: the correlation of a candidate's loss with the
logarithm of how many candidates emit y_1 at the same step as it does. y_1 = x_1 is distributed unlike the other
targets, and who must guess when it comes finds it cheaper in company, whatever the rest of the order is.
"""

import argparse

import numpy as np
from program import genorder

from genorder.analysis import identification_rates

PAPER = {  # random set, L = 30: top-1, top-5 in percent, median rank
    "relu": (85.2, 92.6, 1),
    "square": (77.8, 85.2, 4),
    "triangle": (48.2, 51.9, 2),
    "sine": (37.0, 44.4, 14),
    "mlp": (22.2, 25.9, 26),
    "cubic": (18.5, 22.2, 83),
}

MIXTURE = ["--judge", "mixture", "--candidates", "random:127,forward"]
JUDGES = {
    "told": MIXTURE,
    "guessing": [*MIXTURE, "--set", "profiler.order_conditioned=false", "--set", "profiler.model.heads=1"],
    "race": ["--judge", "race", "--candidates", "forward,reverse,random:14"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--judge", default="told", choices=list(JUDGES))
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--tasks", nargs="+", default=list(PAPER), choices=list(PAPER))
    options = parser.parse_args()
    print("| task | ranks of forward | tied | top-1 | paper | top-5 | paper | median | paper | s per run | y_1 |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for task in options.tasks:
        runs = [rank(task, seed, options.judge, options.threads) for seed in range(options.seeds)]
        ranks = [row["rank"] for row, _, _ in runs]
        tied = sum(row["tied_with_best"] for row, _, _ in runs)
        rates = identification_rates(ranks)
        seconds, company = (sum(values) / len(runs) for values in zip(*(run[1:] for run in runs), strict=True))
        top_1, top_5, median = PAPER[task]
        print(
            f"| {task} | {', '.join(map(str, ranks))} | {tied} of {len(runs)} | {100 * rates['top_1']:.0f} % "
            f"| {top_1:.0f} % | {100 * rates['top_5']:.0f} % | {top_5:.0f} % | {rates['median_rank']:g} | {median} "
            f"| {seconds:.0f} | {company:.2f} |",
            flush=True,
        )


def rank(task: str, seed: int, judge: str, threads: int | None) -> tuple[dict, float, float]:
    """The forward order's row, the seconds of the run, and the correlation of loss and company of y_1."""
    result = genorder(
        "rank", "--task", task, "--length", 30, *JUDGES[judge], "--hidden-order-seed", seed, "--seed", seed,
        "--out", f"runs/identification-{judge}-{task}-{seed}", *([] if threads is None else ["--threads", threads]),
    )  # fmt: skip
    ranking = result["ranking"]
    row = next(row for row in ranking if row["order_in_true_indices"] == list(range(30)))
    return row, sum(result["seconds"].values()), _company(ranking)


def _company(ranking: list[dict]) -> float:
    step = np.array([row["order_in_true_indices"].index(0) for row in ranking])
    company = np.bincount(step)[step]
    return float(np.corrcoef(np.log(company), [row["loss"] for row in ranking])[0, 1])


if __name__ == "__main__":
    main()
