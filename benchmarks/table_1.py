"""Claim: on six recurrences the forward order trains to ~100 %, the reverse fails. Cost: 20 minutes, 2 cores.

    python benchmarks/table_1.py

Runs `genorder train --task T --length 20 --order O --preset cpu` twelve times (continuing what is there) and
prints a Markdown table beside the paper's Table 1. The paper's model has 6 layers and d 512.
"""

from program import genorder

PAPER = {  # success rates in percent: forward, reverse
    "relu": (99.6, 5.6),
    "square": (100.0, 0.1),
    "triangle": (100.0, 0.2),
    "mlp": (100.0, 9.4),
    "sine": (100.0, 6.2),
    "cubic": (100.0, 1.6),
}


def main() -> None:
    print("| task | forward | paper | reverse | paper | seconds of training |")
    print("|---|---|---|---|---|---|")
    for task, (paper_forward, paper_reverse) in PAPER.items():
        forward, reverse = (train(task, order) for order in ("forward", "reverse"))
        print(
            f"| {task} | {cell(forward)} | {paper_forward} % | {cell(reverse)} | {paper_reverse} % "
            f"| {forward['seconds']:.0f} + {reverse['seconds']:.0f} |",
            flush=True,
        )


def train(task: str, order: str) -> dict:
    return genorder(
        "train", "--task", task, "--length", 20, "--order", order, "--preset", "cpu",
        "--out", f"runs/table-1-{task}-{order}",
    )  # fmt: skip


def cell(result: dict) -> str:
    low, high = result["success_rate_interval"]
    return f"{100 * result['success_rate']:.1f} % ({100 * low:.1f}-{100 * high:.1f})"


if __name__ == "__main__":
    main()
