"""A run as plain tables, one per part of its report. Nothing is drawn or worded here that a test could not read.

Axes of matrices: targets in the sequence of `order`, read across by the targets they are computed from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, final

import numpy as np

from genorder.reports.findings import recipe
from genorder.reports.run import TRAINED, ReportedRun
from genorder.reports.wording import listed, visible

Cell = str | int | float | bool | None
Kind = Literal["text", "count", "number", "rate", "seconds", "mark"]

_FOUND_BY = {"counting": "counting", "model": "a trained model", "none": "–"}
RANKING_ROWS = 200  # shown; the run directory has them all
_CURVE_POINTS = 200  # of a loss curve; the mean of the steps between them


@final
@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind = "text"


@final
@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    note: str = ""

    def column(self, name: str) -> list[Cell]:
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]


@final
@dataclass(frozen=True)
class Matrix:
    names: list[str]  # of rows and columns alike
    values: list[list[float]]


@final
@dataclass(frozen=True)
class Curve:
    name: str
    group: str
    steps: list[int]
    losses: list[float]


def order_table(run: ReportedRun) -> Table | None:
    """Which target is emitted at which step."""
    if run.order is None:
        return None
    true = (Column("true index", "count"),) if run.true_of_column else ()
    rows = [
        (step, run.target(column), column, *((run.true_of_column[column],) if true else ()))
        for step, column in enumerate(run.order)
    ]
    columns = (Column("step", "count"), Column("target"), Column("place in the given order", "count"), *true)
    return Table(columns, rows)


def dependency_table(run: ReportedRun) -> Table | None:
    """What each target is computed from, with the evidence, in the sequence of the run's order."""
    by_target = {dependency.target: dependency for dependency in run.findings.dependencies}
    if not by_target or run.order is None:
        return None
    known = by_target.values()
    counted = any(dependency.found_by == "counting" for dependency in known)
    noisy = any(dependency.violations for dependency in known)
    by_model = any(dependency.loss is not None for dependency in known)
    columns = [Column("step", "count"), Column("recipe"), Column("found by")]
    columns += [Column("pairs compared", "count"), Column("violations", "count")] if counted else []
    columns += [Column("violation rate", "rate")] if noisy else []
    columns += [Column("loss given those", "number")] if by_model else []
    rows: list[tuple[Cell, ...]] = []
    for step, target in enumerate(run.order):
        if (dependency := by_target.get(target)) is None:
            continue
        row: list[Cell] = [step, recipe(dependency, run.target, run.input), _FOUND_BY[dependency.found_by]]
        row += [dependency.pairs, dependency.violations] if counted else []
        row += [dependency.violation_rate] if noisy else []
        row += [dependency.loss] if by_model else []
        rows.append(tuple(row))
    return Table(tuple(columns), rows)


def dependency_matrix(run: ReportedRun, order: Sequence[int]) -> Matrix | None:
    """How much the loss of the row's target rises when the column's target is broken; 0 where it is not read.

    1 for every dependency where some were found by counting, which measures no loss.
    """
    dependencies = run.findings.dependencies
    if not dependencies:
        return None
    measured = all(dependency.found_by == "model" for dependency in dependencies)
    place = {column: step for step, column in enumerate(order)}
    values = np.zeros((len(order), len(order)))
    for dependency in dependencies:
        for parent in dependency.targets:
            rise = dependency.loss_without.get(f"y{parent}", 0.0) if measured else 1.0
            values[place[dependency.target], place[parent]] = rise
    return Matrix([run.target(column) for column in order], values.round(4).tolist())


def above_diagonal(matrix: Matrix) -> int:
    """Dependencies on targets that come later: none where the order can be computed step by step."""
    return int((np.triu(np.array(matrix.values), 1) > 0).sum())


def ranked_rows(run: ReportedRun) -> list[dict[str, Any]]:
    """The judged orders from best to worst: the ranking of `rank`, the race of `discover`."""
    if "ranking" in run.result:
        ranking: list[dict[str, Any]] = run.result["ranking"]
        return ranking
    return [
        {
            **row,
            "rank": place,
            "loss": row["losses"][-1],
            "standard_error": row["standard_errors"][-1],
        }
        for place, row in enumerate(run.result.get("race", []), start=1)
    ]


def ranking_table(run: ReportedRun, most: int = RANKING_ROWS) -> Table | None:
    rows = ranked_rows(run)
    if not rows:
        return None
    raced = "losses" in rows[0]
    true = bool(run.true_of_column)
    columns = [Column("rank", "count"), Column("order"), Column("known as")]
    columns += [Column("loss", "number"), Column("± error", "number"), Column("tied with the best", "mark")]
    columns += [Column("steps", "count")] if raced else [Column("validation samples", "count")]
    columns += [Column("in true indices"), Column("cost ratio", "number")] if true else []
    table: list[tuple[Cell, ...]] = [
        (
            row["rank"],
            run.order_text(row["order"], 12),
            known_as(run, row["order"]),
            row["loss"],
            row["standard_error"],
            bool(row["tied_with_best"]),
            row["steps"][-1] if raced else row["samples"],
            *((run.true_text(row["order"]), row.get("cost_ratio")) if true else ()),
        )
        for row in rows[:most]
    ]
    note = "" if len(rows) <= most else f"The first {most:,} of {len(rows):,}; all of them are in ranking.csv."
    return Table(tuple(columns), table, note)


def known_as(run: ReportedRun, order: list[int]) -> str:
    """`found`, `given`, `given, reversed`, or nothing."""
    given = list(range(len(order)))
    names = ["found"] if run.verb == "discover" and order == run.order and not run.findings.keeps_given else []
    names += ["given"] if order == given else ["given, reversed"] if order == given[::-1] else []
    return ", ".join(names)


def _curve_name(run: ReportedRun, row: dict[str, Any]) -> str:
    """Short, for a legend."""
    first = listed([run.target(column) for column in row["order"][:4]])
    return f"{row['rank']}: {known_as(run, row['order']) or f'{first} …'}"


def race_curves(run: ReportedRun) -> list[Curve]:
    """Training losses of the raced orders, over all rungs."""
    rows = ((row, [loss for rung in row.get("curves") or [] for loss in rung]) for row in ranked_rows(run))
    return [Curve(_curve_name(run, row), str(row["rank"]), *thinned(losses)) for row, losses in rows if losses]


def candidate_curves(run: ReportedRun) -> list[Curve]:
    """Validation losses of the candidates of one mixture run at some steps and at the last, best candidate first."""
    steps = run.result.get("curve_steps")
    if not steps:
        return []
    last = run.config["config"]["profiler"]["training"]["steps"]
    curves = [
        Curve(
            _curve_name(run, row), str(row["rank"]), [*steps, last],
            [*row["curve"], row["loss"]],
        )
        for row in ranked_rows(run)
    ]  # fmt: skip
    return [curve for curve in curves if None not in curve.losses]


def training_curves(run: ReportedRun) -> list[Curve]:
    """Of the final trainings, or of the one model of `train`."""
    names = [*(name for name in TRAINED if name in run.training_losses), *sorted(run.training_losses.keys() - TRAINED)]
    attended = {f"model-{place}": row["name"] for place, row in enumerate(run.attention)}
    return [
        Curve(attended.get(name) or run.trained_title(name), name, *thinned(run.training_losses[name]))
        for name in names
    ]


def curve_table(curves: Sequence[Curve]) -> Table:
    """Each curve at four moments."""
    rows: list[tuple[Cell, ...]] = []
    for curve in curves:
        places = [round(share * (len(curve.losses) - 1)) for share in (0, 1 / 3, 2 / 3, 1)]
        rows.append((curve.name, curve.steps[-1], *(curve.losses[place] for place in places)))
    moments = ("first loss", "after a third", "after two thirds", "last loss")
    columns = (Column("order"), Column("steps", "count"))
    return Table((*columns, *(Column(moment, "number") for moment in moments)), rows)


def thinned(losses: Sequence[float], points: int = _CURVE_POINTS) -> tuple[list[int], list[float]]:
    """Steps and losses, each the mean of the steps since the point before. Steps count from 1."""
    edges = np.unique(np.linspace(0, len(losses), min(points, len(losses)) + 1).round().astype(int))
    means = [float(np.mean(losses[start:end])) for start, end in pairwise(edges)]
    return edges[1:].tolist(), [float(f"{mean:.5g}") for mean in means]


def position_table(run: ReportedRun) -> Table | None:
    """Error rate and loss of every target on the test split, in the sequence of the found order."""
    if run.order is None or "error_rate_by_target" not in run.result:
        return None
    given = run.result.get("given") if run.order != list(range(len(run.order))) else None
    columns = [Column("step", "count"), Column("target"), Column("error rate", "rate"), Column("loss", "number")]
    columns += [Column("error rate, given order", "rate"), Column("loss, given order", "number")] if given else []
    rows: list[tuple[Cell, ...]] = [
        (
            step,
            run.target(column),
            run.result["error_rate_by_target"][column],
            run.result["loss_by_target"][column],
            *((given["error_rate_by_target"][column], given["loss_by_target"][column]) if given else ()),
        )
        for step, column in enumerate(run.order)
    ]
    return Table(tuple(columns), rows)


def time_table(run: ReportedRun) -> Table:
    """Of the parts of a finished run; of the finished jobs of another."""
    parts = _finished_parts(run)
    if not parts:
        totals: dict[str, float] = {}
        for job in run.jobs:
            totals[job.name] = totals.get(job.name, 0.0) + job.seconds
        parts = list(totals.items())
    whole = sum(seconds for _, seconds in parts) or 1.0
    rows: list[tuple[Cell, ...]] = [(visible(name), seconds, seconds / whole) for name, seconds in parts]
    return Table((Column("part"), Column("seconds", "seconds"), Column("share", "rate")), rows)


def _finished_parts(run: ReportedRun) -> list[tuple[str, float]]:
    spent = run.result.get("seconds")
    if isinstance(spent, dict):
        return [(name, seconds) for name, seconds in spent.items() if name != "total"]
    if spent is None:
        return []
    return [("train", spent), ("evaluate", run.result.get("evaluation_seconds", 0.0))]
