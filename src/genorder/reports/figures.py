"""The figures of a report as plain descriptions: what is drawn where. Nothing is drawn here.

Colours can be told apart by the colour-blind, and in grey. A function returns None where the run has no data for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np

from genorder.orders import Order
from genorder.outcomes import AttentionEntry
from genorder.reports.dependencies import (
    DrawnNode,
    EdgeKind,
    dependency_graph,
    dependency_matrix,
    direction_text,
)
from genorder.reports.run import ReportedRun
from genorder.reports.tables import Curve, Matrix, Table, attention_matrix, position_table, ranking_of
from genorder.reports.wording import visible

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")  # Okabe and Ito's
GREY = COLOURS[7]
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
Dash = Literal["solid", "dash", "dot"]
Blank = Literal["zeros", "upper", "nothing"]  # cells of a matrix that are not drawn; upper: right of the diagonal

_MOST_CURVES, _SHOWN_CURVES = 16, 8  # curves that are drawn one by one; those that are, of more
_MARKED_POINTS = 12  # a curve of at most so many points has marks
_MOST_BARS = 60  # ranks drawn with error bars
_MOST_POINTS = 500  # of a long ranking
_TICKS, _SQUARE_TICKS = 40, 26  # most names along an axis, and along one of a square figure, which is narrower


@final
@dataclass(frozen=True, kw_only=True)
class Axis:
    title: str = ""
    names: list[str] = field(default_factory=list)  # of the places 0, 1, 2, ...; empty: numbers
    limits: tuple[float, float] | None = None
    downwards: bool = False  # the first place on top
    from_zero: bool = False
    logarithmic: bool = False
    whole: bool = False  # whole numbers only
    hidden: bool = False

    def ticks(self, *, square: bool) -> list[tuple[int, str]]:
        """Places and their names, as many as can be read."""
        stride = -(-len(self.names) // (_SQUARE_TICKS if square else _TICKS))
        return [(place, self.names[place]) for place in range(0, len(self.names), stride or 1)]


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """Points, drawn as a line, as marks, or as both. An infinite value (None) is a gap in the line."""

    x: list[float | None]
    y: list[float | None]
    colour: str
    name: str = ""  # in the legend; empty: not there
    symbol: str | None = None  # of the marks; None: no marks
    size: float = 7  # of the marks
    dash: Dash | None = None  # of the line; None: no line
    width: float = 2
    errors: tuple[list[float], list[float]] | None = None  # lengths of the error bars, below and above
    errors_across: bool = False  # along x
    labels: list[str] = field(default_factory=list)  # beside the marks
    labels_left: bool = False
    hover: list[str] = field(default_factory=list)  # shown by the page under the mouse


@final
@dataclass(frozen=True, kw_only=True)
class Band:
    """The range between two lines."""

    x: list[float]
    low: list[float]
    high: list[float]
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class Bars:
    """A bar at each place 0, 1, 2, ...; the bars of several series are side by side."""

    lengths: list[float]
    colour: str
    name: str = ""
    across: bool = False
    hover: list[str] = field(default_factory=list)


@final
@dataclass(frozen=True, kw_only=True)
class Heatmap:
    values: list[list[float | None]]  # None: blank
    highest: float
    unit: str
    hover: list[list[str]] = field(default_factory=list)


@final
@dataclass(frozen=True, kw_only=True)
class Figure:
    name: str  # of the element on the page
    caption: str
    description: str  # for readers who cannot see it
    x: Axis
    y: Axis
    series: list[Series] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    bars: list[Bars] = field(default_factory=list)
    heatmap: Heatmap | None = None
    square: bool = False
    height: int = 380  # in pixels
    legend: Literal["above", "below"] | None = None
    title: str = ""  # in a file; the page has the caption


def order_figure(run: ReportedRun) -> Figure | None:
    """The permutation matrix as marks, one per step."""
    order = run.order
    if order is None:
        return None
    marks = Series(
        x=list(order), y=list(range(len(order))), colour=COLOURS[0], symbol="square",
        size=max(3, min(14, 320 // len(order))),
        hover=[f"step {step}: {run.target(column)}" for step, column in enumerate(order)],
    )  # fmt: skip
    names = [run.target(column) for column in range(len(order))]
    return Figure(
        name="order",
        caption="The order as a permutation matrix",
        description=f"One mark per step, at the target that is emitted then; {len(order)} steps.",
        x=Axis(title="target, in the given order", names=names, limits=(-0.7, len(order) - 0.3)),
        y=Axis(title="step", limits=(len(order) - 0.3, -0.7), whole=True),
        series=[marks],
        square=True,
        height=420,
    )


def dependency_figure(run: ReportedRun, name: str, order: Order, title: str) -> Figure | None:
    """The dependencies along an order: a graph, or a matrix if they are too many for a graph."""
    caption = f"In the {title} order: {direction_text(run, order)}"
    return dependency_graph_figure(run, name, order, caption) or dependency_matrix_figure(run, name, order, caption)


def dependency_matrix_figure(run: ReportedRun, name: str, order: Order, caption: str = "") -> Figure | None:
    matrix = dependency_matrix(run, order)
    what = "Matrix of targets by targets; a mark where the row's target is computed from the column's."
    return None if matrix is None else matrix_figure(name, caption, f"{what} {caption}.", matrix, "dependency")


EDGES: dict[EdgeKind, tuple[str, str, Dash]] = {  # title, colour, dash
    "input": ("from an input", GREY, "solid"),
    "pointer": ("from an input that others choose", GREY, "dot"),
    "earlier": ("from an earlier target", COLOURS[0], "solid"),
    "later": ("from a later target", COLOURS[1], "dash"),
}


def dependency_graph_figure(run: ReportedRun, name: str, order: Order, caption: str = "") -> Figure | None:
    """Inputs as squares, targets as circles, first step on top."""
    graph = dependency_graph(run, order)
    if graph is None:
        return None
    series = []
    for kind, (title, colour, dash) in EDGES.items():
        edges = [edge for edge in graph.edges if edge.kind == kind]
        x: list[float | None] = [value for edge in edges for value in (*edge.x, None)]
        y: list[float | None] = [value for edge in edges for value in (*edge.y, None)]
        if edges:
            width = 1.0 if kind in ("input", "pointer") else 1.6
            series.append(Series(x=x, y=y, colour=colour, name=title, dash=dash, width=width))
        if arcs := [edge for edge in edges if len(edge.x) > 2]:  # an arrow marks the target that is computed
            ends_x: list[float | None] = [edge.x[-1] for edge in arcs]
            ends_y: list[float | None] = [edge.y[-1] for edge in arcs]
            series.append(Series(x=ends_x, y=ends_y, colour=colour, symbol="triangle-left"))
    series += [_nodes(graph.inputs, COLOURS[4], "square", left=True)] if graph.inputs else []
    series.append(_nodes(graph.targets, COLOURS[0], "circle", left=False))
    what = f"{len(graph.inputs)} inputs and {len(graph.targets)} targets"
    return Figure(
        name=name,
        caption=caption,
        description=f"Graph of {what}, in the order of emission from top to bottom. {caption}.",
        x=Axis(hidden=True, limits=(graph.left, graph.right)),
        y=Axis(hidden=True, limits=(graph.rows - 0.4, -0.6)),
        series=series,
        height=70 + 19 * graph.rows,
        legend="below",
    )


def _nodes(nodes: Sequence[DrawnNode], colour: str, symbol: str, *, left: bool) -> Series:
    return Series(
        x=[node.x for node in nodes], y=[node.y for node in nodes], colour=colour, symbol=symbol, size=9,
        labels=[node.name for node in nodes], labels_left=left, hover=[node.hover for node in nodes],
    )  # fmt: skip


def attention_figure(run: ReportedRun, place: int, entry: AttentionEntry) -> Figure:
    name, sparsity = visible(entry.name), f"S = {entry.sparsity:.3f}"
    return matrix_figure(
        f"attention-{place}",
        f"{name}: {sparsity}",
        f"Attention map of the model trained in the order {name}; S is {entry.sparsity:.3f} nats.",
        attention_matrix(run, entry.order, entry.map),
        "weight",
        axes=("is read", "reads"),
        blank="upper",
        title=sparsity,
    )


def matrix_figure(
    name: str,
    caption: str,
    description: str,
    matrix: Matrix,
    unit: str,
    *,
    axes: tuple[str, str] = ("is read", "target"),
    blank: Blank = "zeros",
    title: str = "",
) -> Figure:
    """`axes` are the titles across and down."""
    values = np.array(matrix.values)
    upper = np.triu(np.ones(values.shape, dtype=bool), 1)
    hidden = {"zeros": values == 0, "upper": upper, "nothing": np.zeros_like(upper)}[blank]
    few = len(matrix.names) <= _TICKS
    across, down = axes
    return Figure(
        name=name,
        caption=caption,
        description=description,
        x=Axis(title=across, names=matrix.names),
        y=Axis(title=down, names=matrix.names, downwards=True),
        heatmap=Heatmap(
            values=[
                [None if mask else value for value, mask in zip(row, masks, strict=True)]
                for row, masks in zip(values.tolist(), hidden.tolist(), strict=True)
            ],
            highest=float(values.max()) or 1.0,
            unit=unit,
            hover=[[f"{row} from {column}" for column in matrix.names] for row in matrix.names] if few else [],
        ),
        square=True,
        height=440,
        title=title,
    )


def curves_figure(name: str, caption: str, curves: Sequence[Curve], what: str = "training loss") -> Figure | None:
    """Lines; of many curves the first ones, and the range of the others."""
    if not curves:
        return None
    groups = list(dict.fromkeys(curve.group for curve in curves))
    shown = groups[: _MOST_CURVES if len(groups) <= _MOST_CURVES else _SHOWN_CURVES]
    rest = [curve for curve in curves if curve.group not in shown]
    series = []
    for curve in curves:
        if curve.group in shown:
            place = shown.index(curve.group)
            marked = len(curve.steps) <= _MARKED_POINTS
            series.append(
                Series(
                    x=list(curve.steps), y=list(curve.losses), colour=COLOURS[place % len(COLOURS)], name=curve.name,
                    symbol=SYMBOLS[place % len(SYMBOLS)] if marked else None,
                    dash=("solid", "dash", "dot")[place // len(COLOURS) % 3],
                )
            )  # fmt: skip
    more = f" and the range of the other {len(groups) - len(shown)}" if rest else ""
    return Figure(
        name=name,
        caption=caption,
        description=f"{what} by step of {len(shown)} orders{more}.",
        x=Axis(title="step", whole=True),
        y=Axis(title=what, from_zero=_from_zero([loss for curve in curves for loss in curve.losses])),
        series=series,
        bands=[_band(rest)] if rest else [],
        height=380 + 18 * len(shown),
        legend="below",
    )


def _band(curves: Sequence[Curve]) -> Band:
    """Between the lowest and the highest loss at each step, of the curves with the most steps."""
    steps = max((curve.steps for curve in curves), key=len)
    losses = np.array([curve.losses for curve in curves if curve.steps == steps])
    low, high = losses.min(axis=0).tolist(), losses.max(axis=0).tolist()
    return Band(x=list(steps), low=low, high=high, name=f"the other {len(losses):,}")


def ranking_figure(run: ReportedRun) -> Figure | None:
    """Loss by rank; the first orders with error bars, the others as a line."""
    known = [(rank, one) for rank, one in enumerate(ranking_of(run), start=1) if one.loss is not None]
    if not known:
        return None
    first, rest = known[:_MOST_BARS], known[_MOST_BARS:]
    series = []
    for place, steps in enumerate(sorted({one.steps or 0 for _, one in first}, reverse=True)):
        for tied in (True, False):
            chosen = [(rank, one) for rank, one in first if one.tied_with_best is tied and (one.steps or 0) == steps]
            after = f"after {steps:,} steps" if steps else "with standard error"
            errors = [one.standard_error or 0.0 for _, one in chosen]
            if chosen:
                series.append(
                    Series(
                        x=[rank for rank, _ in chosen], y=[one.loss for _, one in chosen], errors=(errors, errors),
                        name=f"tied with the best, {after}" if tied else after, size=8,
                        colour=COLOURS[1 if tied else (0, 2, 3, 4)[place % 4]],
                        symbol=SYMBOLS[0 if tied else 1 + place % 6],
                    )
                )  # fmt: skip
    if rest:
        places = np.unique(np.linspace(0, len(rest) - 1, _MOST_POINTS).round().astype(int)).tolist()
        x: list[float | None] = [rest[place][0] for place in places]
        y = [rest[place][1].loss for place in places]
        series.append(Series(x=x, y=y, colour=GREY, name=f"the other {len(rest):,}", dash="solid"))
    losses = [one.loss for _, one in known if one.loss is not None]
    few = len(known) <= 2 * len(COLOURS)
    return Figure(
        name="ranking",
        caption="Losses by rank",
        description=f"Validation loss of {len(known)} orders from best to worst.",
        x=Axis(
            title="rank",
            whole=True,
            logarithmic=len(known) > 4 * _MOST_BARS,
            limits=(0.5, len(known) + 0.5) if few else None,
        ),
        y=Axis(title="validation loss", from_zero=_from_zero(losses)),
        series=series,
        legend="below",
    )


def error_figures(run: ReportedRun) -> list[Figure]:
    """Error rates, then losses, of every target; beside them those of the given order."""
    table = position_table(run)
    if table is None:
        return []
    both = "loss, given order" in [column.name for column in table.columns]
    targets = [str(name) for name in table.column("target")]
    figures = []
    for name, what, unit, scale in (
        ("errors", "error rate", "wrong, %", 100.0),
        ("losses", "loss", "loss, nats", 1.0),
    ):
        titles = {what: "this order", f"{what}, given order": "given order"} if both else {what: what}
        bars = [
            Bars(
                lengths=[scale * value for value in table.numbers(column)], colour=COLOURS[place],
                name=title if both else "", hover=targets,
            )
            for place, (column, title) in enumerate(titles.items())
        ]  # fmt: skip
        figures.append(
            Figure(
                name=name,
                caption=f"{what.capitalize()} by target",
                description=f"{' and '.join(titles.values())} for each of {len(targets)} targets.",
                x=Axis(title="target", names=targets),
                y=Axis(title=unit, from_zero=True),
                bars=bars,
                height=340,
                legend="above" if both else None,
            )
        )
    return figures


def time_figure(table: Table, label: str, caption: str) -> Figure:
    """One bar across per row."""
    labels = [str(value) for value in table.column(label)]
    bars = Bars(lengths=table.numbers("seconds"), colour=COLOURS[0], across=True, hover=labels)
    return Figure(
        name="time",
        caption=caption,
        description=f"Seconds of each of {len(labels)} {label}s.",
        x=Axis(title="seconds", from_zero=True),
        y=Axis(names=labels, downwards=True),
        bars=[bars],
        height=110 + 30 * min(len(labels), 20),
    )


def rates_figure(labels: Sequence[str], series: dict[str, list[tuple[float, float, float] | None]]) -> Figure:
    """Success rates with their intervals (rate, low, high), one row per label."""
    marks = []
    for place, (title, rates) in enumerate(series.items()):
        known = [(row, *rate) for row, rate in enumerate(rates) if rate is not None]
        below = [100 * (rate - low) for _, rate, low, _ in known]
        above = [100 * (high - rate) for _, rate, _, high in known]
        marks.append(
            Series(
                x=[100 * rate for _, rate, _, _ in known], y=[row for row, *_ in known], errors=(below, above),
                errors_across=True, colour=COLOURS[place], symbol=SYMBOLS[place], size=10, name=title,
            )
        )  # fmt: skip
    return Figure(
        name="rates",
        caption="Success rates",
        description=f"Success rates with 95 % intervals of {len(labels)} runs.",
        x=Axis(title="success rate, %", limits=(-4, 104)),
        y=Axis(names=list(labels), limits=(len(labels) - 0.5, -0.5)),
        series=marks,
        height=160 + 34 * len(labels),
        legend="above",
    )


def _from_zero(losses: Sequence[float]) -> bool:
    """Whether an axis can start at zero without hiding the differences."""
    return min(losses) < 0.7 * max(losses)
