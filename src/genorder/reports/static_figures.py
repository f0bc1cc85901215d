"""The figures of a report as files for a paper: SVG, PDF and PNG, drawn by matplotlib."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genorder.errors import InputError
from genorder.orders import Order
from genorder.reports import figures
from genorder.reports.figures import Axis, Figure, Series
from genorder.reports.run import ReportedRun
from genorder.reports.tables import candidate_curves, race_curves, training_curves
from genorder.reports.wording import cut_short
from genorder.store import ensure_writable_directory, write_bytes_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "pdf", "png")
_COLUMN, _PAGE = 3.4, 7.0  # inches: the width of a column, of a page
_HIGHEST = 9.0  # inches
_PIXELS = 136  # of the page's figures, per inch
_LEGEND_WIDTH = 34  # characters of a name in a legend
_STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "legend.fontsize": 6, "font.family": "sans-serif", "pdf.fonttype": 42,
    "svg.hashsalt": "genorder", "axes.spines.top": False, "axes.spines.right": False, "text.parse_math": False,
    "axes.linewidth": 0.6,
}  # fmt: skip
_MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "x": "x", "cross": "P", "star": "*",
    "triangle-down": "v", "triangle-left": "<",
}  # fmt: skip
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}
_HATCHES = ("", "///", "xx")
_LEGENDS: Any = {"below": "outside lower center", "above": "outside upper center"}


def write_figures(run: ReportedRun, folder: Path) -> list[Path]:
    """One file per figure and format. Raises InputError if there is nothing to draw, or no matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise InputError("--figures needs matplotlib: pip install 'genorder[figures]'") from None
    found = static_figures(run)
    if not found:
        raise InputError(f"{run.path} has nothing to draw yet: it is {run.state}")
    ensure_writable_directory(folder)
    written = []
    with mpl.rc_context(_STYLE):
        for name, figure in found.items():
            drawn = matplotlib_figure(figure)
            for kind in FORMATS:
                target = folder / f"{name}.{kind}"
                write_bytes_atomic(target, _bytes_of(drawn, kind), durable=False)
                written.append(target)
    return written


def static_figures(run: ReportedRun) -> dict[str, Figure]:
    """The figures by the names of their files; only those that the run has data for."""
    found: dict[str, Figure | None] = {"order": figures.order_figure(run)}
    if run.order is not None:
        for name, order in (("found", run.order), ("given", Order.forward(len(run.order)))):
            found[f"dependencies_{name}"] = figures.dependency_matrix_figure(run, name, order)
        found["dependency_graph"] = figures.dependency_graph_figure(run, "graph", run.order)
    for place, entry in enumerate(run.attended.attention if run.attended else []):
        found[f"attention_{place}"] = figures.attention_figure(run, place, entry)
    found["ranking"] = figures.ranking_figure(run)
    found["race_curves"] = figures.curves_figure("race", "", race_curves(run))
    found["candidate_curves"] = figures.curves_figure("candidates", "", candidate_curves(run), "validation loss")
    found["training_curves"] = figures.curves_figure("training", "", training_curves(run))
    found["error_rates"] = next(iter(figures.error_figures(run)), None)
    return {name: figure for name, figure in found.items() if figure is not None}


def matplotlib_figure(figure: Figure) -> Any:
    from matplotlib.figure import Figure as DrawnFigure

    width = _PAGE if figure.bars else _COLUMN
    height = _COLUMN if figure.square else min(figure.height / _PIXELS, _HIGHEST)
    drawn = DrawnFigure(figsize=(width, height), layout="constrained")
    axes = drawn.subplots()
    for band in figure.bands:
        axes.fill_between(band.x, band.low, band.high, color="#7F7F7F", alpha=0.25, linewidth=0, label=band.name)
    for series in figure.series:
        _draw_series(axes, series)
    width_of_bar = 0.8 / max(1, len(figure.bars))
    for place, bars in enumerate(figure.bars):
        beside = (place - (len(figure.bars) - 1) / 2) * width_of_bar
        at = [step + beside for step in range(len(bars.lengths))]
        draw = axes.barh if bars.across else axes.bar
        draw(at, bars.lengths, width_of_bar, color=bars.colour, label=bars.name or None, hatch=_HATCHES[place % 3])
    if heatmap := figure.heatmap:
        values = [[float("nan") if value is None else value for value in row] for row in heatmap.values]
        image = axes.imshow(values, cmap="Blues", vmin=0.0, vmax=heatmap.highest, interpolation="nearest")
        drawn.colorbar(image, ax=axes, shrink=0.7, label=heatmap.unit)
    axes.set(title=figure.title)
    _set_axis(axes, "x", figure.x, square=figure.square)
    _set_axis(axes, "y", figure.y, square=figure.square)
    if figure.square:
        axes.set_aspect("equal")
    if figure.x.hidden:
        axes.axis("off")
    if figure.legend:
        handles, labels = axes.get_legend_handles_labels()
        drawn.legend(handles, labels, loc=_LEGENDS[figure.legend], frameon=False, ncols=2)
    return drawn


def _draw_series(axes: "Axes", series: Series) -> None:
    x, y = ([float("nan") if value is None else value for value in values] for values in (series.x, series.y))
    axes.errorbar(
        x, y,
        xerr=series.errors if series.errors_across else None, yerr=None if series.errors_across else series.errors,
        color=series.colour, linestyle=_DASHES[series.dash] if series.dash else "none", linewidth=series.width / 2,
        marker=_MARKERS[series.symbol] if series.symbol else None, markersize=series.size * 0.43, elinewidth=0.8,
        label=cut_short(series.name, _LEGEND_WIDTH) or None,
    )  # fmt: skip
    gap, side = (-0.05, "right") if series.labels_left else (0.05, "left")
    for label, across, down in zip(series.labels, x, y, strict=False):
        axes.text(across + gap, down, label, fontsize=6 if len(series.labels) <= 40 else 4, ha=side, va="center")


def _set_axis(axes: "Axes", side: str, axis: Axis, *, square: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    chosen = axes.xaxis if side == "x" else axes.yaxis
    chosen.set_label_text(axis.title)
    if axis.names:
        ticks = axis.ticks(square=square)
        rotation = 90 if side == "x" else 0
        chosen.set_ticks([place for place, _ in ticks], [name for _, name in ticks], rotation=rotation, fontsize=6)
    set_limits = axes.set_xlim if side == "x" else axes.set_ylim
    if axis.logarithmic:
        axes.set(**{f"{side}scale": "log"})
    elif axis.whole:
        chosen.set_major_locator(MaxNLocator(integer=True))
    if axis.limits:
        set_limits(*axis.limits)
    elif axis.downwards:
        chosen.set_inverted(True)
    elif axis.from_zero:
        set_limits(0)


def _bytes_of(figure: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure.savefig(stream, format=kind, dpi=300, metadata=undated)
    return stream.getvalue()
