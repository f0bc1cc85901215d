"""What each target is computed from, for the screen and the report: recipes, evidence, a table, a matrix, a graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from genorder.dependencies.graph import FoundBy, TargetDependency
from genorder.orders import Order
from genorder.reports.run import ReportedRun
from genorder.reports.tables import Cell, Column, Matrix, Table
from genorder.reports.wording import count_of, cut_short, percent

_SHORTEST_RANGE = 4  # consecutive inputs that are written as a range: x0-x3
_RARE = 0.0005  # share of pairs that `percent` would round to zero
_FOUND_BY = {"counting": "mining", "model": "a trained model", "none": "–"}

MOST_ROWS = 80  # targets, or inputs, in a readable graph
_NODE_NAME_WIDTH = 12  # characters of a name beside its node
_CHARACTER = 0.04  # width of a character; the distance of the two columns of nodes is 1
_ARC = 0.8  # width of the widest arc
_WIDE = 12  # rows that an arc of this width spans, unless a longer one exists
_ARC_POINTS = 17

EdgeKind = Literal["input", "pointer", "earlier", "later"]


# Recipes and evidence


def recipe(dependency: TargetDependency, target: Callable[[int], str], source: Callable[[int], str]) -> str:
    """`s2 <- q2, s1`; `target` and `source` give the names of targets and inputs."""
    inputs, targets = _input_names(dependency.inputs, source), [target(column) for column in dependency.targets]
    if dependency.found_by == "none":
        text = "not determined by other tokens"
    elif dependency.pointer:
        choosers = [*(source(position) for position in dependency.choosers), *targets]
        text = f"one of {', '.join(inputs)}, chosen by {', '.join(choosers) or 'the others'}"
    else:
        nothing = "nothing: constant" if dependency.found_by == "counting" else "nothing"
        text = ", ".join([*inputs, *targets]) or nothing
    return f"{target(dependency.target)} <- {text}"


def _input_names(positions: Sequence[int], source: Callable[[int], str]) -> list[str]:
    """Names of inputs; consecutive ones as a range, unless the user has named them."""
    names: list[str] = []
    start = 0
    while start < len(positions):
        end = start + 1
        while end < len(positions) and positions[end] == positions[end - 1] + 1:
            end += 1
        run = [source(position) for position in positions[start:end]]
        plain = all(name == f"x{position}" for name, position in zip(run, positions[start:end], strict=True))
        names += [f"{run[0]}-{run[-1]}"] if plain and len(run) >= _SHORTEST_RANGE else run
        start = end
    return names


def evidence_line(dependencies: Sequence[TargetDependency]) -> str:
    """`mined: 20 of 20 targets determined, 99,639 or more pairs of samples each, no counterexample`."""
    mined, read_off, open_ = _by_source(dependencies)
    parts = []
    if mined:
        facts = [f"mined: {len(mined)} of {count_of(len(dependencies), 'target')} determined", *_pairs(mined)]
        parts.append(", ".join([*facts, *_violations(mined, "no counterexample")]))
    if read_off:
        parts.append(f"{count_of(len(read_off), 'target')} by a trained model")
    if open_:
        parts.append(f"{count_of(len(open_), 'target')} not determined")
    return "; ".join(parts)


def mined_evidence(dependencies: Sequence[TargetDependency], order: Order) -> list[str]:
    """Sentences about the mined dependencies; empty if there are none."""
    mined, *_ = _by_source(dependencies)
    if not mined:
        return []
    which = "every target is" if len(mined) == len(dependencies) else _some(mined, dependencies)
    step = order.inverse()
    earlier = all(step[parent] < step[one.target] for one in mined for parent in one.targets)
    size = max((len(one.inputs) + len(one.targets) for one in mined if not one.pointer), default=0)
    tokens = f" by at most {count_of(size, 'earlier token' if earlier else 'other token')}" if size else ""
    facts = [*(f"in {pairs}" for pairs in _pairs(mined)), *_violations(mined, "without a counterexample")]
    sentences = [f"Mined: {', '.join([f'{which} determined{tokens}', *facts])}."]
    if pointers := sum(one.pointer for one in mined):
        copies = "copies one of the inputs" if pointers == 1 else "copy one of the inputs each"
        sentences.append(f"{count_of(pointers, 'target')} {copies}, chosen by other tokens (pointer).")
    return sentences


def other_evidence(dependencies: Sequence[TargetDependency]) -> list[str]:
    """Sentences about the dependencies that were not mined."""
    _, read_off, open_ = _by_source(dependencies)
    sentences = []
    if read_off:
        sentences.append(f"What {_some(read_off, dependencies)} computed from was read off a trained model.")
    if open_:
        sentences.append(f"{_some(open_, dependencies)} not determined by other tokens, as far as could be found.")
    return sentences


def _by_source(dependencies: Sequence[TargetDependency]) -> tuple[list[TargetDependency], ...]:
    kinds: tuple[FoundBy, ...] = ("counting", "model", "none")
    return tuple([one for one in dependencies if one.found_by == kind] for kind in kinds)


def _some(part: Sequence[TargetDependency], whole: Sequence[TargetDependency]) -> str:
    """`3 of 20 targets are`."""
    return f"{len(part)} of {count_of(len(whole), 'target')} {'is' if len(part) == 1 else 'are'}"


def _pairs(mined: Sequence[TargetDependency]) -> list[str]:
    known = [one.pairs for one in mined if one.pairs is not None]
    return [f"{min(known):,} or more pairs of samples each"] if known else []


def _violations(mined: Sequence[TargetDependency], none: str) -> list[str]:
    known = [(one.violations, one.pairs) for one in mined if one.violations is not None and one.pairs]
    violations, pairs = sum(differ for differ, _ in known), sum(compared for _, compared in known)
    if not known:
        return []
    if not violations:
        return [none]
    share = f"{violations:,} of {pairs:,}" if violations / pairs < _RARE else f"{percent(violations / pairs)} of the"
    return [f"{share} pairs differ (noise)"]


# Table and matrix


def dependency_table(run: ReportedRun) -> Table | None:
    """What each target is computed from, with the evidence, in the sequence of the run's order."""
    by_target = {one.target: one for one in _dependencies(run)}
    if not by_target or run.order is None:
        return None
    mined = any(one.found_by == "counting" for one in by_target.values())
    noisy = any(one.violations for one in by_target.values())
    by_model = any(one.loss is not None for one in by_target.values())
    columns = [Column("step", "count"), Column("recipe"), Column("found by")]
    columns += [Column("pairs compared", "count"), Column("violations", "count")] if mined else []
    columns += [Column("violation rate", "rate")] if noisy else []
    columns += [Column("loss given these", "number")] if by_model else []
    rows: list[tuple[Cell, ...]] = []
    for step, target in enumerate(run.order):
        if (one := by_target.get(target)) is None:
            continue
        row: list[Cell] = [step, recipe(one, run.target, run.input), _FOUND_BY[one.found_by]]
        row += [one.pairs, one.violations] if mined else []
        row += [one.violation_rate] if noisy else []
        row += [one.loss] if by_model else []
        rows.append(tuple(row))
    return Table(tuple(columns), rows)


def dependency_matrix(run: ReportedRun, order: Order) -> Matrix | None:
    """For each target (row), the rise of its loss when another target (column) is shuffled; 0 if it is not a parent.

    1 for every dependency if some were mined, which measures no loss. Targets are in the sequence of `order`.
    """
    dependencies = _dependencies(run)
    if not dependencies:
        return None
    measured = all(one.found_by == "model" for one in dependencies)
    step = order.inverse()
    values = np.zeros((len(order), len(order)))
    for one in dependencies:
        for parent in one.targets:
            values[step[one.target], step[parent]] = one.loss_without.get(f"y{parent}", 0.0) if measured else 1.0
    return Matrix([run.target(column) for column in order], values.round(4).tolist())


def _dependencies(run: ReportedRun) -> list[TargetDependency]:
    return run.discovery.shown_dependencies if run.discovery else []


def direction_text(run: ReportedRun, order: Order) -> str:
    """`2 of 4 dependencies point to later targets`, in this order."""
    step = order.inverse()
    parents = [(one.target, parent) for one in _dependencies(run) for parent in one.targets]
    later = sum(step[parent] > step[target] for target, parent in parents)
    if not parents:
        return "no target is computed from another"
    if not later:
        return "every dependency points to an earlier target"
    return f"{later} of {len(parents)} dependencies point to later targets"


# Graph


@final
@dataclass(frozen=True)
class DrawnNode:
    name: str
    hover: str  # the recipe of a target; the targets that read an input
    x: float
    y: float


@final
@dataclass(frozen=True)
class DrawnEdge:
    kind: EdgeKind  # later: to a target that is emitted after the one that is computed from it
    x: list[float]
    y: list[float]


@final
@dataclass(frozen=True)
class DrawnGraph:
    """Targets in a column, first step on top; left of it the inputs that they are computed from.

    Lines lead from inputs to targets, arcs from target to target.
    """

    inputs: list[DrawnNode]
    targets: list[DrawnNode]
    edges: list[DrawnEdge]
    rows: int
    left: float
    right: float


def dependency_graph(run: ReportedRun, order: Order) -> DrawnGraph | None:
    """The dependencies, laid out along the order. None if none are known, or too many for a graph."""
    dependencies = _dependencies(run)
    read = sorted({position for one in dependencies for position in one.inputs})
    rows = max(len(order), len(read))
    if not dependencies or rows > MOST_ROWS:
        return None
    y_of = {column: (step + 0.5) * rows / len(order) - 0.5 for step, column in enumerate(order)}
    readers = {i: [one.target for one in dependencies if i in one.inputs] for i in read}
    y_of_input = _placed({i: float(np.mean([y_of[target] for target in readers[i]])) for i in read}, rows)
    names = {column: cut_short(run.target(column), _NODE_NAME_WIDTH) for column in order}
    anchor = 1.08 + _CHARACTER * max(map(len, names.values()))  # right of the targets' names, where arcs begin and end
    spans = [abs(y_of[parent] - y_of[one.target]) for one in dependencies for parent in one.targets]
    longest = max([_WIDE, *spans])

    edges = []
    for one in dependencies:
        to = y_of[one.target]
        kind: EdgeKind = "pointer" if one.pointer else "input"
        edges += [DrawnEdge(kind, [0.04, 0.96], [y_of_input[i], to]) for i in one.inputs]
        for parent in one.targets:
            start = y_of[parent]
            width = _ARC * (abs(to - start) / longest) ** 0.6
            turn = np.linspace(0, np.pi, _ARC_POINTS)
            x, y = anchor + width * np.sin(turn), (start + to) / 2 + (start - to) / 2 * np.cos(turn)
            edges.append(DrawnEdge("earlier" if start < to else "later", x.round(3).tolist(), y.round(3).tolist()))

    recipes = {one.target: recipe(one, run.target, run.input) for one in dependencies}
    inputs = [
        DrawnNode(
            cut_short(run.input(i), _NODE_NAME_WIDTH), f"{run.input(i)} -> {', '.join(map(run.target, readers[i]))}",
            0.0, y,
        )
        for i, y in y_of_input.items()
    ]  # fmt: skip
    targets = [DrawnNode(names[column], recipes.get(column, names[column]), 1.0, y) for column, y in y_of.items()]
    left = -0.12 - _CHARACTER * max(len(node.name) for node in inputs) if inputs else 0.9
    right = max([anchor, *(x for edge in edges for x in edge.x)]) + 0.05
    return DrawnGraph(inputs, targets, edges, rows, left, right)


def _placed(wanted: dict[int, float], rows: int) -> dict[int, float]:
    """The rows of the inputs: each near its wanted row, at least one row apart."""
    inputs = sorted(wanted, key=lambda i: (wanted[i], i))
    places = [wanted[i] for i in inputs]
    for k in range(len(places)):
        places[k] = max(places[k], places[k - 1] + 1 if k else 0.0)
    for k in reversed(range(len(places))):
        places[k] = min(places[k], places[k + 1] - 1 if k + 1 < len(places) else rows - 1.0)
    return dict(zip(inputs, places, strict=True))
