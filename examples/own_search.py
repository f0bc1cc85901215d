"""A search of your own: propose orders, and let the race decide.

    python examples/own_search.py [--length 8] [--out RUN_DIR] [--set NAME=VALUE ...]

`Rotations` profiles every rotation of the given order and of its reverse in one short run on their mixture. The journal
keeps each finished profiling run: if you interrupt the program and start it again, it continues.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import genorder
from genorder.search import PlannedRun, Search, SearchProblem, SearchResult, proposals_of


@final
@dataclass(frozen=True)
class Rotations(Search):
    name: ClassVar[str] = "rotations"

    def check(self, problem: SearchProblem) -> None:
        if problem.length < 2:
            raise genorder.InputError("rotations need two targets or more")

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        return [PlannedRun("rotations", 2 * problem.length, problem.profiler.training.steps)]

    def propose(self, problem: SearchProblem) -> SearchResult:
        ways = [list(range(problem.length)), list(range(problem.length))[::-1]]
        turned = [genorder.Order.of(way[start:] + way[:start]) for way in ways for start in range(problem.length)]
        profile = problem.profile("rotations", list(dict.fromkeys(turned)))
        return SearchResult(proposals_of(profile), problem.stages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", default="8")
    parser.add_argument("--out", type=Path, default=Path("runs/own-search"))
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()

    task = genorder.make_task("relu", options.length)
    data = genorder.task_splits(task, train=20_000, validation=1_000, test=1_000)
    found = genorder.discover(data, strategy=Rotations(), explore_only=True, out=options.out, settings=options.settings)
    print(f"found: {found.order.short()}")
    for row in found.rows():
        print(f"{row['loss']:.4f}  {genorder.Order.of(row['order']).short()}")


if __name__ == "__main__":
    try:
        main()
    except genorder.GenorderError as error:
        sys.exit(f"{error}")
