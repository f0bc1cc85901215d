"""The parts of a report, top to bottom: what applies to the run at hand, each with its figures and its tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from genorder.reports import figures
from genorder.reports.attention import attention_section_parts
from genorder.reports.figures import Drawing
from genorder.reports.findings import NOT_SETTLED
from genorder.reports.graph import dependency_graph
from genorder.reports.path import configuration_table, path_table, versions_table
from genorder.reports.run import TRAINED, ReportedRun
from genorder.reports.samples import Sample, samples_of
from genorder.reports.tables import (
    Curve,
    Table,
    above_diagonal,
    candidate_curves,
    curve_table,
    dependency_matrix,
    dependency_table,
    order_table,
    position_table,
    race_curves,
    ranked_rows,
    ranking_table,
    time_table,
    training_curves,
)
from genorder.reports.wording import listed, number

_MOST_UNREAD = 20  # inputs that are named
_MOST_STRIP = 200  # targets of an order that are shown one by one


@final
@dataclass(frozen=True)
class Part:
    """A figure, if any, and the table under it."""

    table: Table | None
    caption: str
    drawing: Drawing | None = None
    open: bool = False  # shown without asking
    wide: bool = False  # on its own line, above what stands side by side


@final
@dataclass(frozen=True)
class Section:
    name: str  # of the anchor
    heading: str
    prose: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    strip: list[tuple[str, str]] = field(default_factory=list)  # target and, where known, its true index
    samples: list[tuple[str, list[Sample]]] = field(default_factory=list)  # by the order that was trained


def sections_of(run: ReportedRun) -> list[Section]:
    makers: list[Callable[[ReportedRun], Section | None]] = [
        _order, _dependencies, _attention, _ranking, _curves, _positions, _samples, _path, _time, _configuration,
    ]  # fmt: skip
    return [section for make in makers if (section := make(run)) is not None]


def _order(run: ReportedRun) -> Section | None:
    table = order_table(run)
    if table is None or run.order is None:
        return None
    names = [run.target(column) for column in range(len(run.order))]
    true = run.true_of_column
    strip = [(run.target(column), f"true {true[column]}" if run.shuffled else "") for column in run.order[:_MOST_STRIP]]
    prose = ["Read from left to right: the target that is emitted first, second, and so on."]
    if len(run.order) > _MOST_STRIP:
        prose.append(f"The first {_MOST_STRIP} of {len(run.order)} targets; the table has them all.")
    drawing = figures.order_drawing(run.order, names)
    return Section("order", _order_heading(run), prose, [Part(table, "Order of emission", drawing)], strip)


def _order_heading(run: ReportedRun) -> str:
    if run.verb != "discover":
        return {"rank": "The order that ranks first", "train": "The order"}.get(run.verb, "The order found")
    if run.findings.verdict == NOT_SETTLED:
        return "The best order so far"
    if not run.findings.keeps_given:
        return "The order found"
    if run.in_given_order:
        return "The given order, which is kept"
    return "The given order, repaired" if run.findings.repaired else "The order of search and race"


def _dependencies(run: ReportedRun) -> Section | None:
    table = dependency_table(run)
    if table is None or run.order is None:
        return None
    heading = "What each target is computed from"
    found = run.findings
    title = "given" if run.in_given_order else "found" if not found.keeps_given else "shown"
    orders = [("dependencies-found", run.order, title)]
    if not run.in_given_order and any(dependency.targets for dependency in found.dependencies):
        orders.append(("dependencies-given", list(range(len(run.order))), "given"))
    drawings = [_dependency_drawing(run, *one) for one in orders]
    parts = [
        Part(table, "Recipe, in the order of emission", open=True, wide=True),
        *(Part(None, "", one) for one in drawings),
    ]
    prose = []
    if any(dependency.found_by == "counting" for dependency in found.dependencies):
        prose.append(
            "Found by counting: two samples that agree on the tokens right of the arrow agree on the target. "
            "Violations are pairs of samples that agree on these tokens and differ in the target."
        )
    if found.found_by_model:
        prose.append(
            "Found by a trained model: the loss of the target rises when one of these tokens is shuffled among the "
            "samples."
        )
        if not found.keeps_given and run.order != _first_proposal(run):
            prose.append("Measured in the order that the search put first, which is not this one.")
    read = {position for dependency in found.dependencies for position in dependency.inputs}
    inputs = range(len(run.config.get("labels", {}).get("input_names") or ()))
    if unread := [run.input(position) for position in inputs if position not in read]:
        more = " …" if len(unread) > _MOST_UNREAD else ""
        prose.append(f"Inputs that no target is computed from: {listed(unread[:_MOST_UNREAD])}{more}.")
    if variables := run.result.get("proposed", {}).get("details", {}).get("variables"):
        lines = "; ".join(listed([run.target(column) for column in line]) for line in variables)
        prose.append(
            f"The targets are {len(variables)} variables over {len(variables[0])} times: each reads what the "
            f"one before it in its line did. They are {lines}."
        )
    if dependency_graph(run, run.order):
        prose.append(
            "In the figure, squares are inputs and circles are targets, the first to be emitted on top. Lines come "
            "from inputs, arcs from other targets. A dashed arc comes from a target that is emitted later: its token "
            "is not known yet when it is needed."
        )
    else:
        prose.append(
            "In the figure, a row is a target, a column a target that it is computed from. In a good order nothing "
            "stands right of the diagonal: everything that a target is computed from was emitted before it."
        )
    return Section("dependencies", heading, prose, parts)


def _first_proposal(run: ReportedRun) -> list[int] | None:
    proposals = run.result.get("proposed", {}).get("proposals") or [{}]
    first: list[int] | None = proposals[0].get("order")
    return first


def _dependency_drawing(run: ReportedRun, name: str, order: list[int], title: str) -> Drawing:
    """A graph of inputs and targets; of too many, the matrix of targets by targets."""
    graph = dependency_graph(run, order)
    if graph is not None:
        return figures.graph_drawing(name, f"In the {title} order: {graph.told}", graph)
    matrix = dependency_matrix(run, order)
    assert matrix is not None
    later, between = above_diagonal(matrix), sum(value > 0 for row in matrix.values for value in row)
    told = f"{later} of {between} dependencies point to later targets"
    description = f"Matrix of targets by targets; a mark where the row's target is computed from the column's. {told}."
    return figures.matrix_drawing(name, f"In the {title} order: {told}", description, matrix, "dependency")


def _attention(run: ReportedRun) -> Section | None:
    if not run.attention:
        return None
    table, drawings = attention_section_parts(run)
    prose = [
        "Rows are the positions that read, columns those that are read, mean over test samples: first the inputs x, "
        "then the separator, then the targets in the order of emission. S is the mean entropy of the rows, in nats: "
        "the smaller, the fewer tokens are read."
    ]
    parts = [Part(table, "Sparsity by order", open=True), *(Part(None, "", drawing) for drawing in drawings)]
    return Section("attention", "Attention", prose, parts)


def _ranking(run: ReportedRun) -> Section | None:
    table = ranking_table(run)
    if table is None:
        return None
    rows = ranked_rows(run)
    raced = "losses" in rows[0]
    prose = ["Bars are standard errors. Orders that are tied with the best cannot be told apart from it by these data."]
    if raced:
        prose.append("Losses are means over target tokens on the validation samples.")
        if (unigram := run.result.get("unigram_loss")) is not None:
            prose.append(f"The unigram baseline, which guesses each target by its frequencies, is {number(unigram)}.")
        if run.findings.keeps_given:
            prose.append(
                "The race did not decide: the verdict is that no order was shown to be better than the given one."
            )
    if all(row["loss"] is None for row in rows):
        return Section("ranking", "The ranking", ["No order has a finite loss."], [Part(table, "All orders")])
    drawing = figures.ranking_drawing(rows)
    heading = "The race" if run.verb == "discover" else "The ranking"
    return Section("ranking", heading, prose, [Part(table, "The orders", drawing)])


def _curves(run: ReportedRun) -> Section | None:
    parts: list[Part] = []
    raced = race_curves(run)
    sources: list[tuple[str, str, list[Curve], str]] = [
        ("curves-race", "Trainings of the race", raced, "training loss"),
        ("curves-candidates", "Candidates of the mixture run", candidate_curves(run), "validation loss"),
        ("curves-final", "Training to the end", training_curves(run), "training loss"),
    ]
    for name, caption, curves, what in sources:
        if curves:
            drawing = figures.curves_drawing(name, caption, curves, what)
            parts.append(Part(curve_table(curves[:60]), caption, drawing))
    return Section("curves", "How the loss falls", [], parts) if parts else None


def _positions(run: ReportedRun) -> Section | None:
    table = position_table(run)
    if table is None:
        return None
    both = "error rate, given order" in [column.name for column in table.columns]
    first = "this order" if both else "error rate"
    errors = {"error rate": first, **({"error rate, given order": "given order"} if both else {})}
    losses = {"loss": "this order" if both else "loss", **({"loss, given order": "given order"} if both else {})}
    drawings = (
        figures.bars_drawing("errors", "Error rate by target", table, "target", errors, "wrong, %", scale=100),
        figures.bars_drawing("losses", "Loss by target", table, "target", losses, "loss, nats"),
    )
    prose = ["On the test samples: errors by greedy generation, losses with the true targets before it fed in."]
    parts = [Part(table, "By target", drawings[0]), Part(None, "", drawings[1])]
    return Section("positions", "Where the errors are", prose, parts)


def _samples(run: ReportedRun) -> Section | None:
    found = [(run.trained_title(name), samples) for name in TRAINED if (samples := samples_of(run, name))]
    if not found:
        return None
    if run.verb == "train":
        found = [("this order", samples) for _, samples in found]
    prose = [
        "The first test samples that came out wrong, then some that came out right, in the order of emission. A wrong "
        "token is marked and underlined, with the right one below it. After a first error the model goes on from it."
    ]
    return Section("samples", "Some test samples", prose, samples=found)


def _path(run: ReportedRun) -> Section | None:
    table = path_table(run)
    if table is None:
        return None
    prose = []
    details = run.result.get("proposed", {}).get("details", {})
    if run.findings.verdict:
        prose.append(f"Verdict: {run.findings.verdict}. {run.findings.advice or ''}".rstrip())
    losses: dict[str, Any] = details.get("losses", {})
    if losses:
        told = [
            f"{name} {losses[key]:.3f}"
            for key, name in (
                ("best", "the best order"),
                ("reverse", "its reverse"),
                ("random", "random orders"),
                ("without_order", "from the inputs alone or in random orders"),
                ("blind", "unigram baseline"),
            )
            if key in losses
        ]
        prose.append(f"Loss under the profiler: {', '.join(told)}.")
    return Section("path", "The path of the search", prose, [Part(table, "Stages", open=True)])


def _time(run: ReportedRun) -> Section | None:
    table = time_table(run)
    if not table.rows:
        return None
    drawing = figures.time_drawing(table, "part", "Seconds by part")
    return Section("time", "Where the time went", [], [Part(table, "Seconds", drawing)])


def _configuration(run: ReportedRun) -> Section:
    versions = versions_table(run)
    parts = [Part(configuration_table(run), "All settings")]
    if versions:
        parts.append(Part(versions, "Machine and versions"))
    return Section("configuration", "To repeat it", [], parts)
