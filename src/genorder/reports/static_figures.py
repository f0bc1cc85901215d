"""Figures of a run for a paper: SVG, PDF and PNG, drawn by matplotlib from the report's tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genorder.errors import InputError
from genorder.reports.attention import attention_matrix
from genorder.reports.figures import COLOURS, EDGES
from genorder.reports.graph import DrawnGraph, dependency_graph
from genorder.reports.run import ReportedRun
from genorder.reports.tables import (
    Curve,
    Matrix,
    Table,
    candidate_curves,
    dependency_matrix,
    position_table,
    race_curves,
    ranked_rows,
    training_curves,
)
from genorder.reports.wording import shortened
from genorder.store import ensure_writable_directory, write_bytes_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "pdf", "png")
_COLUMN, _PAGE = 3.4, 7.0  # inches: the width of a column, of a page
_HIGHEST = 9.0  # inches: a page
_LINES = ("-", "--", "-.", ":")
_STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7, "font.family": "sans-serif", "pdf.fonttype": 42,
    "svg.hashsalt": "genorder", "axes.spines.top": False, "axes.spines.right": False, "text.parse_math": False,
    "axes.linewidth": 0.6, "lines.linewidth": 1.2,
}  # fmt: skip
_MOST_CURVES, _MOST_RANKS, _MOST_NAMES = 6, 60, 24

Painter = Callable[["Axes"], None]


def write_figures(run: ReportedRun, folder: Path) -> list[Path]:
    """One file per figure and format. Raises InputError where there is nothing to draw, or no matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--figures needs matplotlib: pip install 'genorder[figures]'") from None
    painters = _painters(run)
    if not painters:
        raise InputError(f"{run.path} has nothing to draw yet: it is {run.state}")
    ensure_writable_directory(folder)
    written = []
    with mpl.rc_context(_STYLE):
        for name, (width, height, paint) in painters.items():
            figure = Figure(figsize=(width, height), layout="constrained")
            paint(figure.subplots())
            for kind in FORMATS:
                target = folder / f"{name}.{kind}"
                write_bytes_atomic(target, _drawn(figure, kind), durable=False)
                written.append(target)
    return written


def _drawn(figure: Any, kind: str) -> bytes:
    import io

    stream = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure.savefig(stream, format=kind, dpi=300, metadata=undated)
    return stream.getvalue()


def _painters(run: ReportedRun) -> dict[str, tuple[float, float, Painter]]:
    """By name: width, height in inches, and what draws it. Only what the run has data for."""
    found: dict[str, tuple[float, float, Painter]] = {}
    if run.order is not None:
        order = run.order
        found["order"] = (_COLUMN, _COLUMN, lambda axes: _paint_order(axes, order))
        for name, sequence in (("found", order), ("given", list(range(len(order))))):
            matrix = dependency_matrix(run, sequence)
            if matrix is not None:
                found[f"dependencies_{name}"] = (_COLUMN, _COLUMN, _matrix_painter(matrix, "is read", "target"))
        if graph := dependency_graph(run, order):
            found["dependency_graph"] = (_COLUMN, min(0.5 + 0.14 * graph.rows, _HIGHEST), _graph_painter(graph))
    for place, row in enumerate(run.attention):
        painter = _matrix_painter(attention_matrix(run, place), "read", "reading", f"S = {row['sparsity']:.3f}")
        found[f"attention_{place}"] = (_COLUMN, _COLUMN, painter)
    rows = [row for row in ranked_rows(run) if row["loss"] is not None]
    if rows:
        found["ranking"] = (_COLUMN, 2.4, lambda axes: _paint_ranking(axes, rows))
    sources = (("race_curves", race_curves(run)), ("candidate_curves", candidate_curves(run)),
               ("training_curves", training_curves(run)))  # fmt: skip
    for name, curves in sources:
        if curves:
            found[name] = (_COLUMN, 2.4, _curve_painter(curves))
    positions = position_table(run)
    if positions is not None:
        found["error_rates"] = (_PAGE, 2.2, lambda axes: _paint_errors(axes, positions))
    return found


def _paint_order(axes: "Axes", order: Sequence[int]) -> None:
    axes.plot(order, range(len(order)), "s", color=COLOURS[0], markersize=max(1.0, min(6.0, 120 / len(order))))
    axes.set(xlabel="target, in the given order", ylabel="step", aspect="equal")
    axes.invert_yaxis()


def _matrix_painter(matrix: Matrix, across: str, down: str, title: str = "") -> Painter:
    def paint(axes: "Axes") -> None:
        image = axes.imshow(matrix.values, cmap="Blues", vmin=0.0, interpolation="nearest")
        axes.figure.colorbar(image, ax=axes, shrink=0.7)
        places = range(0, len(matrix.names), -(-len(matrix.names) // _MOST_NAMES))
        names = [matrix.names[place] for place in places]
        axes.set_xticks(list(places), names, rotation=90, fontsize=6)
        axes.set_yticks(list(places), names, fontsize=6)
        axes.set(xlabel=across, ylabel=down, title=title)

    return paint


def _graph_painter(graph: DrawnGraph) -> Painter:
    def paint(axes: "Axes") -> None:
        size = 6.0 if graph.rows <= 40 else 4.0
        for kind, (title, colour, dash) in EDGES.items():
            style = {"solid": "-", "dash": "--", "dot": ":"}[dash]
            chosen = [edge for edge in graph.edges if edge.kind == kind]
            for place, edge in enumerate(chosen):
                axes.plot(edge.x, edge.y, style, color=colour, linewidth=0.6, label=title if place == 0 else None)
                if len(edge.x) > 2:
                    axes.plot(edge.x[-1], edge.y[-1], "<", color=colour, markersize=2)
        for nodes, marker, colour, gap, side in (
            (graph.inputs, "s", COLOURS[4], -0.05, "right"),
            (graph.targets, "o", COLOURS[0], 0.05, "left"),
        ):
            axes.plot([node.x for node in nodes], [node.y for node in nodes], marker, color=colour, markersize=3)
            for node in nodes:
                axes.text(node.x + gap, node.y, node.name, fontsize=size, ha=side, va="center")
        axes.set(xlim=(graph.left, graph.right), ylim=(graph.rows - 0.4, -0.6))
        axes.axis("off")
        axes.legend(frameon=False, fontsize=5, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3)

    return paint


def _paint_ranking(axes: "Axes", rows: Sequence[dict[str, Any]]) -> None:
    shown = rows[:_MOST_RANKS]
    for tied, colour, marker in ((True, COLOURS[1], "o"), (False, COLOURS[0], "s")):
        chosen = [row for row in shown if bool(row["tied_with_best"]) is tied]
        axes.errorbar(
            [row["rank"] for row in chosen], [row["loss"] for row in chosen],
            yerr=[row["standard_error"] or 0.0 for row in chosen], fmt=marker, color=colour, markersize=3,
            label="tied with the best" if tied else "behind it",
        )  # fmt: skip
    axes.set(xlabel="rank", ylabel="validation loss")
    axes.legend(frameon=False)


def _curve_painter(curves: Sequence[Curve]) -> Painter:
    last = curves[:_MOST_CURVES]

    def paint(axes: "Axes") -> None:
        for place, curve in enumerate(last):
            colour, line = COLOURS[place], _LINES[place % len(_LINES)]
            axes.plot(curve.steps, curve.losses, label=shortened(curve.name, 34), color=colour, linestyle=line)
        axes.set(xlabel="step", ylabel="loss")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=5)

    return paint


def _paint_errors(axes: "Axes", table: Table) -> None:
    names = [str(name) for name in table.column("target")]
    columns = [column.name for column in table.columns if column.name.startswith("error rate")]
    width = 0.8 / len(columns)
    for place, column in enumerate(columns):
        values = [100 * float(value or 0.0) for value in table.column(column)]
        at = [step + place * width for step in range(len(names))]
        label = "given order" if "given" in column else "this order"
        axes.bar(at, values, width, color=COLOURS[place], label=label, hatch=("", "///")[place % 2])
    stride = -(-len(names) // 40)
    axes.set_xticks(list(range(0, len(names), stride)), names[::stride], rotation=90, fontsize=6)
    axes.set(xlabel="target, in the order of emission", ylabel="wrong, %")
    if len(columns) > 1:
        axes.legend(frameon=False)
