"""Figures of a report, drawn from its tables by plotly. Colours tell apart for the colour-blind, and in grey.

What depends on light or dark (text, grid, the scale of matrices) is set by the page's script.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from genorder.reports.graph import DrawnGraph, EdgeKind
from genorder.reports.tables import Curve, Matrix, Table

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")  # Okabe and Ito's
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
Blank = Literal["zeros", "upper", "nothing"]  # cells of a matrix without a mark; upper: right of the diagonal
_MOST_CURVES = 16
_MOST_BARS = 60  # ranks drawn with error bars
_MOST_POINTS = 500  # of a long ranking
_LABELLED = 40  # ticks of an axis of targets
_LABELLED_SQUARE = 26  # of a square figure, which is narrower


@final
@dataclass(frozen=True)
class Drawing:
    """A figure with what a reader who cannot see it is told."""

    name: str  # of the element, and of a file
    caption: str
    description: str
    figure: go.Figure

    def to_json(self) -> str:
        """For a script element: nothing in it can end the element."""
        plain = self.figure.to_plotly_json()
        plain["layout"].pop("template", None)
        return json.dumps(plain, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def order_drawing(order: Sequence[int], names: Sequence[str]) -> Drawing:
    """The permutation matrix as marks: one per step."""
    steps = list(range(len(order)))
    figure = go.Figure(
        go.Scatter(
            x=list(order),
            y=steps,
            mode="markers",
            marker={"symbol": "square", "size": max(3, min(14, 320 // len(order))), "color": COLOURS[0]},
            text=[safe(names[column]) for column in order],
            hovertemplate="step %{y}: %{text}<extra></extra>",
        )
    )
    _size(figure, 420, square=True)
    _axis_of_names(
        figure.layout.xaxis, [names[column] for column in sorted(order)], "target, in the given order", _LABELLED_SQUARE
    )
    figure.update_yaxes(title="step", autorange="reversed", zeroline=False)
    figure.update_xaxes(range=[-0.7, len(order) - 0.3])
    return Drawing(
        "order",
        "The order as a permutation matrix",
        f"One mark per step, at the target that is emitted then; {len(order)} steps.",
        figure,
    )


def matrix_drawing(
    name: str,
    caption: str,
    description: str,
    matrix: Matrix,
    unit: str,
    *,
    axes: tuple[str, str] = ("is read", "target"),
    blank: Blank = "zeros",
) -> Drawing:
    """`axes` are the titles across and down."""
    values = np.array(matrix.values)
    names = [safe(label) for label in matrix.names]
    places = list(range(len(names)))
    figure = go.Figure(
        go.Heatmap(
            z=_marks(values, blank),
            x=places,
            y=places,
            text=[[f"{row} from {column}" for column in names] for row in names] if len(names) <= _LABELLED else None,
            hovertemplate=("%{text}" if len(names) <= _LABELLED else "%{y} from %{x}") + ": %{z:.3g}<extra></extra>",
            zmin=0.0,
            zmax=float(values.max()) or 1.0,
            xgap=0.5,
            ygap=0.5,
            colorbar={"title": {"text": unit, "side": "right"}, "thickness": 10, "len": 0.9},
            meta="matrix",
        )
    )
    _size(figure, 440, square=True)
    _axis_of_names(figure.layout.xaxis, matrix.names, axes[0], _LABELLED_SQUARE)
    _axis_of_names(figure.layout.yaxis, matrix.names, axes[1], _LABELLED_SQUARE)
    figure.update_yaxes(autorange="reversed")
    return Drawing(name, caption, description, figure)


EDGES: dict[EdgeKind, tuple[str, str, str]] = {  # title, colour, dash
    "input": ("from an input", "#7F7F7F", "solid"),
    "pointer": ("from an input that others choose", "#7F7F7F", "dot"),
    "earlier": ("from an earlier target", COLOURS[0], "solid"),
    "later": ("from a later target", COLOURS[1], "dash"),
}


def graph_drawing(name: str, caption: str, graph: DrawnGraph) -> Drawing:
    """Inputs as squares, targets as circles, first step on top."""
    figure = go.Figure()
    for kind, (title, colour, dash) in EDGES.items():
        x: list[float | None] = []
        y: list[float | None] = []
        for edge in graph.edges:
            if edge.kind == kind:
                x += [*edge.x, None]
                y += [*edge.y, None]
        if x:
            width = 1.0 if kind in ("input", "pointer") else 1.6
            figure.add_scatter(
                x=x, y=y, mode="lines", name=title, hoverinfo="skip", opacity=0.6 if kind == "pointer" else 0.9,
                line={"color": colour, "width": width, "dash": dash},
            )  # fmt: skip
        ends = [(edge.x[-1], edge.y[-1]) for edge in graph.edges if edge.kind == kind and len(edge.x) > 2]
        if ends:  # arrows: where an arc ends is the target that is computed
            figure.add_scatter(
                x=[x for x, _ in ends], y=[y for _, y in ends], mode="markers", showlegend=False, hoverinfo="skip",
                marker={"symbol": "triangle-left", "size": 7, "color": colour}, cliponaxis=False,
            )  # fmt: skip
    for title, nodes, symbol, colour, side in (
        ("input", graph.inputs, "square", COLOURS[4], "middle left"),
        ("target", graph.targets, "circle", COLOURS[0], "middle right"),
    ):
        if nodes:
            figure.add_scatter(
                x=[node.x for node in nodes], y=[node.y for node in nodes], mode="markers+text", name=title,
                marker={"symbol": symbol, "size": 9, "color": colour}, text=[safe(node.name) for node in nodes],
                textposition=side, textfont={"size": 11}, customdata=[safe(node.told) for node in nodes],
                hovertemplate="%{customdata}<extra></extra>", cliponaxis=False, showlegend=False,
            )  # fmt: skip
    _size(figure, 70 + 19 * graph.rows)
    figure.update_xaxes(visible=False, range=[graph.left, graph.right])
    figure.update_yaxes(visible=False, range=[graph.rows - 0.4, -0.6])
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 48}, showlegend=True,
        legend={"orientation": "h", "y": 0, "yanchor": "top", "x": 0, "itemclick": False, "itemdoubleclick": False},
    )  # fmt: skip
    what = f"{len(graph.inputs)} inputs and {len(graph.targets)} targets"
    return Drawing(name, caption, f"Graph of {what}, in the order of emission from top to bottom. {caption}.", figure)


def _marks(values: NDArray[np.float64], blank: Blank) -> list[list[float | None]]:
    hidden = {"zeros": values == 0, "upper": np.triu(np.ones(values.shape, dtype=bool), 1)}.get(blank)
    if hidden is None:
        hidden = np.zeros(values.shape, dtype=bool)
    pairs = (zip(row, mask, strict=True) for row, mask in zip(values.tolist(), hidden.tolist(), strict=True))
    return [[None if mask else value for value, mask in pair] for pair in pairs]


def curves_drawing(name: str, caption: str, curves: Sequence[Curve], what: str = "training loss") -> Drawing:
    """Lines; of many, the first ones and the range of the others."""
    figure = go.Figure()
    groups = list(dict.fromkeys(curve.group for curve in curves))
    shown = groups[: _MOST_CURVES if len(groups) <= _MOST_CURVES else 8]
    rest = [curve for curve in curves if curve.group not in shown]
    if rest:
        _add_range(figure, rest)
    for curve in curves:
        if curve.group in shown:
            place = shown.index(curve.group)
            figure.add_scatter(
                x=curve.steps,
                y=curve.losses,
                name=safe(curve.name),
                mode="lines" if len(curve.steps) > 12 else "lines+markers",
                legendgroup=curve.group,
                line={"color": COLOURS[place % len(COLOURS)], "width": 2},
                marker={"symbol": SYMBOLS[place % len(SYMBOLS)]},
            )
    _size(figure, 380 + 18 * len(shown))
    figure.update_xaxes(title="step")
    figure.update_yaxes(title=what, rangemode=_range([loss for curve in curves for loss in curve.losses]))
    figure.update_layout(legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0})
    more = f" and the range of the other {len(groups) - len(shown)}" if rest else ""
    return Drawing(name, caption, f"{what} by step of {len(shown)} orders{more}.", figure)


def _add_range(figure: go.Figure, curves: Sequence[Curve]) -> None:
    """Between the lowest and the highest loss at each step; curves of the longest kind only."""
    steps = max((curve.steps for curve in curves), key=len)
    losses = np.array([curve.losses for curve in curves if curve.steps == steps])
    line = {"width": 0.5, "color": "#7F7F7F"}
    figure.add_scatter(x=steps, y=losses.max(axis=0).tolist(), mode="lines", line=line, showlegend=False)
    figure.add_scatter(
        x=steps, y=losses.min(axis=0).tolist(), mode="lines", line=line, fill="tonexty",
        fillcolor="rgba(127,127,127,0.25)", name=f"the other {len(losses):,}",
    )  # fmt: skip


def ranking_drawing(rows: Sequence[dict[str, Any]]) -> Drawing:
    """Loss by rank; the first ones with error bars, the others thinned to a line."""
    known = [row for row in rows if row["loss"] is not None]
    figure = go.Figure()
    trained = [row["steps"][-1] if "steps" in row else 0 for row in known[:_MOST_BARS]]
    for place, steps in enumerate(sorted(set(trained), reverse=True)):
        for tied in (True, False):
            chosen = [
                row
                for row, taken in zip(known, trained, strict=False)
                if bool(row["tied_with_best"]) is tied and taken == steps
            ]
            if chosen:
                after = f"after {steps:,} steps" if steps else "with standard error"
                figure.add_scatter(
                    x=[row["rank"] for row in chosen],
                    y=[row["loss"] for row in chosen],
                    error_y={"type": "data", "array": [row["standard_error"] or 0.0 for row in chosen]},
                    mode="markers",
                    name=f"tied with the best, {after}" if tied else after,
                    marker={"size": 8, "color": COLOURS[1 if tied else (0, 2, 3, 4)[place % 4]],
                            "symbol": SYMBOLS[0 if tied else 1 + place % 6]},
                )  # fmt: skip
    if len(known) > _MOST_BARS:
        places = np.unique(np.linspace(_MOST_BARS, len(known) - 1, _MOST_POINTS).round().astype(int)).tolist()
        figure.add_scatter(
            x=[known[place]["rank"] for place in places], y=[known[place]["loss"] for place in places], mode="lines",
            name=f"the other {len(known) - _MOST_BARS:,}", line={"color": COLOURS[7]},
        )  # fmt: skip
    _size(figure, 380)
    figure.update_xaxes(title="rank", type="log" if len(known) > 4 * _MOST_BARS else "linear")
    if len(known) <= 2 * len(COLOURS):
        figure.update_xaxes(dtick=1, range=[0.5, len(known) + 0.5])
    figure.update_yaxes(title="validation loss", rangemode=_range([row["loss"] for row in known]))
    figure.update_layout(legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0}, showlegend=True)
    return Drawing("ranking", "Losses by rank", f"Validation loss of {len(known)} orders from best to worst.", figure)


def bars_drawing(
    name: str, caption: str, table: Table, label: str, series: dict[str, str], unit: str, *, scale: float = 1.0
) -> Drawing:
    """Grouped bars: one group per row, one bar per series (its title by its column)."""
    figure = go.Figure()
    labels = [str(value) for value in table.column(label)]
    for place, (column, title) in enumerate(series.items()):
        values = [scale * float(value or 0.0) for value in table.column(column)]
        hatch = {"shape": ("", "/", "x")[place % 3], "fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.6)"}
        figure.add_bar(
            x=list(range(len(labels))), y=values, name=title, marker={"color": COLOURS[place], "pattern": hatch},
            hovertext=[safe(text) for text in labels], hovertemplate="%{hovertext}: %{y:.4g}<extra></extra>",
        )  # fmt: skip
    _size(figure, 340)
    _axis_of_names(figure.layout.xaxis, labels, label)
    figure.update_yaxes(title=unit, rangemode="tozero")
    figure.update_layout(barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    figure.update_layout(showlegend=len(series) > 1)
    titles = " and ".join(series.values())
    return Drawing(name, caption, f"{titles} for each of {len(labels)} {label}s.", figure)


def time_drawing(table: Table, label: str, caption: str) -> Drawing:
    """One bar across per row."""
    labels = [str(value) for value in table.column(label)]
    seconds = [float(value or 0.0) for value in table.column("seconds")]
    figure = go.Figure(
        go.Bar(
            y=list(range(len(labels))), x=seconds, orientation="h", width=0.6, marker={"color": COLOURS[0]},
            hovertext=[safe(text) for text in labels], hovertemplate="%{hovertext}: %{x:.1f} s<extra></extra>",
        )
    )  # fmt: skip
    _size(figure, 110 + 30 * min(len(labels), 20))
    _axis_of_names(figure.layout.yaxis, labels, "")
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="seconds", rangemode="tozero")
    return Drawing("time", caption, f"Seconds of each of {len(labels)} {label}s.", figure)


def rates_drawing(labels: Sequence[str], series: dict[str, list[tuple[float, float, float] | None]]) -> Drawing:
    """Success rates with their intervals (rate, low, high), one row per label."""
    figure = go.Figure()
    for place, (title, rates) in enumerate(series.items()):
        known = [(labels[at], rate) for at, rate in enumerate(rates) if rate is not None]
        figure.add_scatter(
            y=[safe(label) for label, _ in known],
            x=[100 * rate for _, (rate, _, _) in known],
            error_x={"type": "data", "symmetric": False,
                     "array": [100 * (high - rate) for _, (rate, _, high) in known],
                     "arrayminus": [100 * (rate - low) for _, (rate, low, _) in known]},
            mode="markers", name=title,
            marker={"size": 10, "color": COLOURS[place], "symbol": SYMBOLS[place]},
        )  # fmt: skip
    _size(figure, 160 + 34 * len(labels))
    figure.update_xaxes(title="success rate, %", range=[-4, 104])
    # Names are names, also where they look like numbers or dates.
    figure.update_yaxes(type="category", autorange="reversed", automargin=True)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return Drawing("rates", "Success rates", f"Success rates with 95 % intervals of {len(labels)} runs.", figure)


def _range(values: Sequence[float]) -> str:
    """From zero, unless that would hide the differences."""
    return "tozero" if min(values) < 0.7 * max(values) else "normal"


def safe(text: str) -> str:
    """Plotly reads some tags in labels; a user's text is text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _size(figure: go.Figure, height: int, *, square: bool = False) -> None:
    figure.update_layout(
        template="none", height=height, margin={"l": 60, "r": 20, "t": 24, "b": 50}, dragmode=False,
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", hovermode="closest",
    )  # fmt: skip
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    if square:
        figure.update_yaxes(scaleanchor="x", constrain="domain")
        figure.update_xaxes(constrain="domain")


def _axis_of_names(axis: Any, names: Sequence[str], title: str, most: int = _LABELLED) -> None:
    """Names as ticks, so many as can be read."""
    stride = -(-len(names) // most)
    places = list(range(0, len(names), stride))
    axis.update(
        title=title, tickmode="array", tickvals=places, ticktext=[safe(names[place]) for place in places],
        zeroline=False, showgrid=False,
    )  # fmt: skip
