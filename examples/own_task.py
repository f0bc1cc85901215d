"""Your own task in one line: its target columns are hidden, and the order is found again.

    python examples/own_task.py [--length 12] [--out RUN_DIR] [--set NAME=VALUE ...]

For a task, genorder knows what each target is computed from, so it can print the cost ratio of the order found; 1.0 is
optimal. If you interrupt the program and start it again, it continues.
"""

import argparse
import sys
from pathlib import Path

import genorder
from genorder.tasks import Lengths


@genorder.register_task("checksum", summary="y_i = x_i + y_(i-1)^2 mod 10")
def checksum(lengths: Lengths) -> genorder.Task:
    return genorder.RecurrenceTask("checksum", lengths, low=0, high=9, step=lambda x, y: (x + y * y) % 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", default="12")
    parser.add_argument("--out", type=Path, default=Path("runs/own-task"))
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()

    task = genorder.make_task("checksum", options.length)
    data = genorder.task_splits(task, train=20_000, validation=1_000, test=1_000, hidden_order_seed=3)
    found = genorder.discover(data, out=options.out, settings=options.settings)
    about = found.to_dict()
    print(f"hidden: stored column c holds the true target {data.true_of_column.short()}")
    print(f"found: {found.order.short()}, in true indices {genorder.Order.of(about['order_in_true_indices']).short()}")
    print(f"it costs {about['cost_ratio']:.2f} times the operations of the best order")
    print(f"success rate {found.success_rate}, in the given order {found.success_rate_given_order}")


if __name__ == "__main__":
    try:
        main()
    except genorder.GenorderError as error:
        sys.exit(f"{error}")
