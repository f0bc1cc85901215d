"""Claim: models trained in the forward order attend to fewer tokens than in reverse. Cost: 2 to 9 min a row, one core.

    python benchmarks/attention.py [--long] [--only relu-20] [--set training.steps=2000]

Runs `genorder analyze attention --task T --length L` in both orders, by a model of one layer and one head of
`--preset cpu` (continuing what is there), and prints a Markdown table beside the paper's table of S: the mean entropy
of the rows of the attention map, in nats; smaller is sparser. `--long` adds L = 100.

A row of a causal map reads at most all that is before it, so that S is at most log(T!) / T for T tokens: 3.65 at
L = 50 with one token a number. The paper's 4.319 lies above it.
"""

import argparse
from pathlib import Path

from program import genorder

PAPER = {  # task and length: S of forward, of reverse
    ("relu", 20): (1.160, 1.640),
    ("relu", 50): (1.462, 4.319),
    ("relu", 100): (1.687, 3.195),
    ("square", 20): (1.117, 1.531),
    ("square", 50): (1.773, 1.914),
    ("square", 100): (1.407, 1.990),
    ("index:d=2", 13): (0.848, 2.574),
    ("index:d=4", 13): (0.887, 1.486),
    ("index:d=8", 13): (1.116, 1.596),
}
LONG = 100
ORDERS = ("forward", "reverse")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="also L = 100")
    parser.add_argument(
        "--only", action="append", metavar="TASK-LENGTH", help="a row, such as index:d=4-13; repeat for more"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="as in genorder analyze")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of the run directories")
    options = parser.parse_args()
    rows = {f"{task}-{length}": (task, length) for task, length in PAPER}
    names = options.only or [name for name, (_, length) in rows.items() if options.long or length < LONG]
    if unknown := [name for name in names if name not in rows]:
        parser.error(f"no row {unknown[0]!r}; there are: {', '.join(rows)}")
    print("| task | L | forward S | paper | reverse S | paper | sparser | success rate, forward | reverse |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        task, length = rows[name]
        found = analyze(task, length, options.out / f"attention-{name.replace(':', '-')}", options.set)
        print(row(task, length, PAPER[task, length], found), flush=True)


def analyze(task: str, length: int, out: Path, settings: list[str]) -> dict:
    found = genorder(
        "analyze", "attention", "--task", task, "--length", length,
        *(part for order in ORDERS for part in ("--order", order)), "--preset", "cpu", "--out", out,
        *(part for setting in settings for part in ("--set", setting)),
    )  # fmt: skip
    return {one["name"]: one for one in found["attention"]}


def row(task: str, length: int, paper: tuple[float, float], found: dict) -> str:
    forward, reverse = (found[order] for order in ORDERS)
    sparser = ORDERS[0] if forward["sparsity"] < reverse["sparsity"] else ORDERS[1]
    rates = " | ".join(f"{100 * one['success_rate']:.1f} %" for one in (forward, reverse))
    sparsities = f"{forward['sparsity']:.3f} | {paper[0]:.3f} | {reverse['sparsity']:.3f} | {paper[1]:.3f}"
    return f"| {task} | {length} | {sparsities} | {sparser} | {rates} |"


if __name__ == "__main__":
    main()
