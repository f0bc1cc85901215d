"""The sections of a report, top to bottom: those that apply to the run, each with its figures and tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from genorder.reports import figures
from genorder.reports.dependencies import dependency_graph, dependency_table
from genorder.reports.figures import Figure
from genorder.reports.run import TRAINED, ReportedRun
from genorder.reports.tables import (
    Sample,
    Table,
    candidate_curves,
    configuration_table,
    curve_table,
    order_table,
    path_table,
    position_table,
    race_curves,
    ranking_table,
    samples_of,
    sparsity_table,
    time_table,
    training_curves,
    versions_table,
)
from genorder.reports.wording import joined, number
from genorder.search import NOT_SETTLED

_MOST_UNREAD = 20  # inputs that are named
_MOST_STRIP = 200  # targets of an order that are shown one by one
_MOST_CURVES = 60  # rows of a table of curves


@final
@dataclass(frozen=True)
class Part:
    """A figure and the table under it; one of the two may be missing."""

    table: Table | None
    caption: str
    figure: Figure | None = None
    open: bool = False  # the table is not folded away
    wide: bool = False  # on a line of its own, above the parts in columns


@final
@dataclass(frozen=True)
class Section:
    name: str  # of the anchor
    heading: str
    prose: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    strip: list[tuple[str, str]] = field(default_factory=list)  # each target of the order and its true index, if known
    samples: list[tuple[str, list[Sample]]] = field(default_factory=list)  # by the title of the model


def sections_of(run: ReportedRun) -> list[Section]:
    makers: list[Callable[[ReportedRun], Section | None]] = [
        _order, _dependencies, _attention, _ranking, _curves, _positions, _samples, _path, _time, _configuration,
    ]  # fmt: skip
    return [section for make in makers if (section := make(run)) is not None]


def _order(run: ReportedRun) -> Section | None:
    table = order_table(run)
    if table is None or run.order is None:
        return None
    shown = run.order.indices[:_MOST_STRIP]
    truth = run.outcome.truth if run.outcome and run.shuffled else None
    strip = [(run.target(column), f"true {truth.true_of_column[column]}" if truth else "") for column in shown]
    prose = ["Read from left to right: the target that is emitted first, second, and so on."]
    if len(run.order) > _MOST_STRIP:
        prose.append(f"The first {_MOST_STRIP} of {len(run.order)} targets; the table has all of them.")
    part = Part(table, "Order of emission", figures.order_figure(run))
    return Section("order", _order_heading(run), prose, [part], strip)


def _order_heading(run: ReportedRun) -> str:
    if run.discovery is None:
        return {"rank": "The order that ranks first", "train": "The order"}.get(run.verb, "The order found")
    if run.discovery.verdict == NOT_SETTLED:
        return "The best order so far"
    if not run.keeps_given:
        return "The order found"
    if run.in_given_order:
        return "The given order, which is kept"
    return "The given order, repaired" if run.discovery.repaired else "The order of search and race"


def _dependencies(run: ReportedRun) -> Section | None:
    table, found = dependency_table(run), run.discovery
    if table is None or found is None:
        return None
    title = "given" if run.in_given_order else "shown" if found.keeps_given else "found"
    drawn = [figures.dependency_figure(run, "dependencies-found", found.order, title)]
    if not run.in_given_order and any(one.targets for one in found.shown_dependencies):
        drawn.append(figures.dependency_figure(run, "dependencies-given", found.given_order, "given"))
    parts = [Part(table, "Recipe, in the order of emission", open=True, wide=True)]
    parts += [Part(None, "", figure) for figure in drawn]
    prose = []
    if any(one.found_by == "counting" for one in found.shown_dependencies):
        prose.append(
            "Found by mining: samples that agree on the tokens right of the arrow agree on the target. Violations are "
            "pairs of samples that agree on these tokens and differ in the target."
        )
    if found.read_off_model:
        prose.append(
            "Found by a trained model: the loss of the target rises when one of these tokens is shuffled among the "
            "samples."
        )
        proposals = found.search.proposals
        if not found.keeps_given and not (proposals and proposals[0].order == found.order):
            prose.append("Measured in the order of the first proposal, which is another order.")
    read = {position for one in found.shown_dependencies for position in one.inputs}
    inputs = range(len(run.config.get("labels", {}).get("input_names") or ()))
    if unread := [run.input(position) for position in inputs if position not in read]:
        more = " …" if len(unread) > _MOST_UNREAD else ""
        prose.append(f"Inputs that no target is computed from: {joined(unread[:_MOST_UNREAD])}{more}.")
    if dependency_graph(run, found.order):
        prose.append(
            "In the figure, squares are inputs and circles are targets, the first to be emitted on top. Lines come "
            "from inputs, arcs from other targets. A dashed arc comes from a target that is emitted later: its token "
            "is not known yet when it is needed."
        )
    else:
        prose.append(
            "In the figure, a row is a target, a column a target that it is computed from. In a good order nothing is "
            "right of the diagonal: everything that a target is computed from is emitted before it."
        )
    return Section("dependencies", "What each target is computed from", prose, parts)


def _attention(run: ReportedRun) -> Section | None:
    if run.attended is None:
        return None
    prose = [
        "Rows are the positions that read, columns the positions that are read; means over test samples. First come "
        "the inputs, then the separator, then the targets in the order of emission. S is the mean entropy of the rows, "
        "in nats: the smaller, the fewer tokens are read."
    ]
    maps = [figures.attention_figure(run, place, entry) for place, entry in enumerate(run.attended.attention)]
    parts = [Part(sparsity_table(run), "Sparsity by order", open=True), *(Part(None, "", one) for one in maps)]
    return Section("attention", "Attention", prose, parts)


def _ranking(run: ReportedRun) -> Section | None:
    table = ranking_table(run)
    if table is None:
        return None
    figure = figures.ranking_figure(run)
    if figure is None:
        return Section("ranking", "The ranking", ["No order has a finite loss."], [Part(table, "All orders")])
    prose = ["Bars are standard errors. Orders that are tied with the best are not significantly worse than it."]
    if "steps" in [column.name for column in table.columns]:
        prose.append("Losses are means over target tokens on the validation samples.")
    if run.outcome and run.outcome.unigram_loss is not None:
        loss = number(run.outcome.unigram_loss)
        prose.append(f"The unigram baseline, which guesses each target by its frequencies, is {loss}.")
    if run.keeps_given:
        prose.append("The race did not decide: the verdict is that no order was shown to be better than the given one.")
    heading = "The race" if run.discovery else "The ranking"
    return Section("ranking", heading, prose, [Part(table, "The orders", figure)])


def _curves(run: ReportedRun) -> Section | None:
    sources = (
        ("curves-race", "Trainings of the race", race_curves(run), "training loss"),
        ("curves-candidates", "Candidates of the mixture run", candidate_curves(run), "validation loss"),
        ("curves-final", "Training to the end", training_curves(run), "training loss"),
    )
    parts = [
        Part(curve_table(curves[:_MOST_CURVES]), caption, figures.curves_figure(name, caption, curves, what))
        for name, caption, curves, what in sources
        if curves
    ]
    return Section("curves", "How the loss falls", [], parts) if parts else None


def _positions(run: ReportedRun) -> Section | None:
    table = position_table(run)
    if table is None:
        return None
    errors, losses = figures.error_figures(run)
    prose = ["On the test samples: errors of greedy generation, losses given the true targets before each target."]
    return Section(
        "positions", "Where the errors are", prose, [Part(table, "By target", errors), Part(None, "", losses)]
    )


def _samples(run: ReportedRun) -> Section | None:
    titles = {name: run.trained_title(name) if run.discovery else "this order" for name in TRAINED}
    found = [(title, samples) for name, title in titles.items() if (samples := samples_of(run, name))]
    if not found:
        return None
    prose = [
        "The first test samples with an error, then some without, in the order of emission. A wrong token is marked "
        "and underlined, with the right one below it. After a first error the model continues from its own token."
    ]
    return Section("samples", "Some test samples", prose, samples=found)


def _path(run: ReportedRun) -> Section | None:
    table = path_table(run)
    if table is None:
        return None
    prose = []
    if run.discovery and run.discovery.verdict:
        prose.append(f"Verdict: {run.discovery.verdict}. {run.discovery.advice or ''}".rstrip())
    losses = run.discovery.search.losses if run.discovery else {}
    names = {"best": "the best order", "reverse": "its reverse", "random": "random orders", "blind": "unigram baseline"}
    if measured := [f"{name} {losses[key]:.3f}" for key, name in names.items() if key in losses]:
        prose.append(f"Loss under the profiler: {', '.join(measured)}.")
    return Section("path", "The path of the search", prose, [Part(table, "Stages", open=True)])


def _time(run: ReportedRun) -> Section | None:
    table = time_table(run)
    if not table.rows:
        return None
    figure = figures.time_figure(table, "part", "Seconds by part")
    return Section("time", "Where the time went", [], [Part(table, "Seconds", figure)])


def _configuration(run: ReportedRun) -> Section:
    versions = versions_table(run)
    parts = [Part(configuration_table(run), "All settings")]
    if versions:
        parts.append(Part(versions, "Machine and versions"))
    return Section("configuration", "To repeat it", [], parts)
