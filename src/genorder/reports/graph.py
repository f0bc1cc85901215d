"""Which tokens each target is computed from, as a graph laid out along the order of emission. Nothing is drawn here.

Targets stand in a column, first step on top; the inputs that they read stand in another one, left of it. Lines lead
from inputs to targets, arcs from target to target.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from genorder.reports.findings import recipe
from genorder.reports.run import ReportedRun
from genorder.reports.wording import shortened

MOST_ROWS = 80  # targets, or inputs, of a graph that can still be read
NAME_WIDTH = 12  # signs of a name beside its node
_SIGN = 0.04  # width of a sign; the columns are 1 apart
_ARC = 0.8  # width of the widest arc
_WIDE = 12  # rows that an arc spans to be that wide, where none spans more
_ARC_POINTS = 17

EdgeKind = Literal["input", "pointer", "earlier", "later"]


@final
@dataclass(frozen=True)
class DrawnNode:
    name: str
    told: str  # the recipe of a target; who reads an input
    x: float
    y: float


@final
@dataclass(frozen=True)
class DrawnEdge:
    kind: EdgeKind  # later: from a target that is emitted after the one that reads it
    x: list[float]
    y: list[float]


@final
@dataclass(frozen=True)
class DrawnGraph:
    inputs: list[DrawnNode]  # those that are read
    targets: list[DrawnNode]
    edges: list[DrawnEdge]
    rows: int
    left: float
    right: float

    def count(self, *kinds: EdgeKind) -> int:
        return sum(edge.kind in kinds for edge in self.edges)

    @property
    def told(self) -> str:
        """`2 of 4 dependencies point to later targets`."""
        later, between = self.count("later"), self.count("earlier", "later")
        if not between:
            return "no target is computed from another"
        if not later:
            return "every dependency points to an earlier target"
        return f"{later} of {between} dependencies point to later targets"


def dependency_graph(run: ReportedRun, order: list[int]) -> DrawnGraph | None:
    """None where no dependencies are known, or they are too many for a graph."""
    dependencies = run.findings.dependencies
    read = sorted({position for dependency in dependencies for position in dependency.inputs})
    rows = max(len(order), len(read))
    if not dependencies or rows > MOST_ROWS:
        return None
    y_of = {column: (step + 0.5) * rows / len(order) - 0.5 for step, column in enumerate(order)}
    readers = {i: [one.target for one in dependencies if i in one.inputs] for i in read}
    y_of_input = _placed({i: float(np.mean([y_of[target] for target in readers[i]])) for i in read}, rows)
    names = {column: shortened(run.target(column), NAME_WIDTH) for column in order}
    anchor = 1.08 + _SIGN * max(map(len, names.values()))  # right of the targets' names, where arcs begin and end
    spans = [abs(y_of[parent] - y_of[one.target]) for one in dependencies for parent in one.targets]
    longest = max([_WIDE, *spans])

    edges = []
    for dependency in dependencies:
        to = y_of[dependency.target]
        kind: EdgeKind = "pointer" if dependency.pointer else "input"
        edges += [DrawnEdge(kind, [0.04, 0.96], [y_of_input[i], to]) for i in dependency.inputs]
        for parent in dependency.targets:
            start = y_of[parent]
            width = _ARC * (abs(to - start) / longest) ** 0.6
            turn = np.linspace(0, np.pi, _ARC_POINTS)
            x, y = anchor + width * np.sin(turn), (start + to) / 2 + (start - to) / 2 * np.cos(turn)
            edges.append(DrawnEdge("earlier" if start < to else "later", x.round(3).tolist(), y.round(3).tolist()))

    told = {dependency.target: recipe(dependency, run.target, run.input) for dependency in dependencies}
    inputs = [
        DrawnNode(
            shortened(run.input(i), NAME_WIDTH), f"{run.input(i)} -> {', '.join(map(run.target, readers[i]))}", 0.0, y
        )
        for i, y in y_of_input.items()
    ]
    targets = [DrawnNode(names[column], told.get(column, names[column]), 1.0, y) for column, y in y_of.items()]
    left = -0.12 - _SIGN * max(len(node.name) for node in inputs) if inputs else 0.9
    right = max([anchor, *(x for edge in edges for x in edge.x)]) + 0.05
    return DrawnGraph(inputs, targets, edges, rows, left, right)


def _placed(wanted: dict[int, float], rows: int) -> dict[int, float]:
    """Each near its wanted place, at least one row apart, within the rows."""
    inputs = sorted(wanted, key=lambda i: (wanted[i], i))
    places = [wanted[i] for i in inputs]
    for k in range(len(places)):
        places[k] = max(places[k], places[k - 1] + 1 if k else 0.0)
    for k in reversed(range(len(places))):
        places[k] = min(places[k], places[k + 1] - 1 if k + 1 < len(places) else rows - 1.0)
    return dict(zip(inputs, places, strict=True))
