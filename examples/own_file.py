"""Your own file: in which order should the remainders of a long division be written?

    python examples/own_file.py [FILE.jsonl] [--out RUN_DIR] [--set NAME=VALUE ...]

Without a FILE, the program writes one: numbers of ten digits, and the remainders of their long division by 12, the last
remainder first. Each remainder is computed from the one to its right, so this order is the wrong way round. genorder
finds that out from the samples alone. If you interrupt the program and start it again, it continues.
"""

import argparse
import json
import random
import sys
from pathlib import Path

import genorder

_DIGITS, _DIVISOR = 10, 12


def write_divisions(path: Path, samples: int = 20_000) -> None:
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(samples):
            digits = [rng.randrange(10) for _ in range(_DIGITS)]
            remainders = [0]
            for digit in digits:
                remainders.append((10 * remainders[-1] + digit) % _DIVISOR)
            file.write(json.dumps({"input": digits, "target": remainders[:0:-1]}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=Path("runs/own-file"))
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()

    file = options.file or Path("divisions.jsonl")
    if options.file is None and not file.exists():
        write_divisions(file)
    dataset = genorder.load_dataset(file)
    print(f"{len(dataset)} samples; the first: {' '.join(dataset.input(0))} gives {' '.join(dataset.target(0))}")
    found = genorder.discover(dataset, out=options.out, settings=options.settings)
    print(f"write the targets in the order {found.order.short()}")
    print(f"success rate {found.success_rate}, in the given order {found.success_rate_given_order}")
    print(f"{' '.join(dataset.input(0))} gives {' '.join(found.predict([dataset.input(0)])[0])}")


if __name__ == "__main__":
    try:
        main()
    except genorder.GenorderError as error:
        sys.exit(f"{error}")
