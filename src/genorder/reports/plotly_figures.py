"""The figures of a report, drawn by plotly.

What depends on light or dark (text, grid, the scale of matrices) is set by the page's script.
"""

import json

import plotly.graph_objects as go

from genorder.reports.figures import Axis, Bars, Figure, Series

_HATCHES = ("", "/", "x")
_LEGENDS = {
    "below": {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    "above": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
}


def figure_json(figure: Figure) -> str:
    """The plotly figure for a script element: nothing in it can end the element."""
    plain = plotly_figure(figure).to_plotly_json()
    plain["layout"].pop("template", None)
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def plotly_figure(figure: Figure) -> go.Figure:
    drawn = go.Figure()
    for band in figure.bands:
        line = {"width": 0.5, "color": "#7F7F7F"}
        drawn.add_scatter(x=band.x, y=band.high, mode="lines", line=line, showlegend=False)
        drawn.add_scatter(
            x=band.x, y=band.low, mode="lines", line=line, fill="tonexty", fillcolor="rgba(127,127,127,0.25)",
            name=band.name,
        )  # fmt: skip
    for series in figure.series:
        drawn.add_trace(_scatter(series, hoverable=bool(series.hover) or not figure.x.hidden))
    for place, bars in enumerate(figure.bars):
        drawn.add_trace(_bars(bars, _HATCHES[place % len(_HATCHES)]))
    if heatmap := figure.heatmap:
        drawn.add_heatmap(
            z=heatmap.values, zmin=0.0, zmax=heatmap.highest, xgap=0.5, ygap=0.5, meta="matrix",
            text=[_safe_all(row) for row in heatmap.hover] or None,
            hovertemplate=("%{text}" if heatmap.hover else "%{y} from %{x}") + ": %{z:.3g}<extra></extra>",
            colorbar={"title": {"text": heatmap.unit, "side": "right"}, "thickness": 10, "len": 0.9},
        )  # fmt: skip
    drawn.update_layout(
        template="none", height=figure.height, margin={"l": 60, "r": 20, "t": 24, "b": 50}, dragmode=False,
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", hovermode="closest", barmode="group",
        showlegend=figure.legend is not None, legend=_LEGENDS.get(figure.legend or "", {}),
    )  # fmt: skip
    drawn.update_xaxes(_axis(figure.x, square=figure.square))
    drawn.update_yaxes(_axis(figure.y, square=figure.square))
    if figure.x.hidden:
        drawn.update_layout(
            margin={"l": 8, "r": 8, "t": 8, "b": 48},
            legend={"y": 0, "itemclick": False, "itemdoubleclick": False},
        )  # fmt: skip
    if figure.square:
        drawn.update_yaxes(scaleanchor="x", constrain="domain")
        drawn.update_xaxes(constrain="domain")
    return drawn


def _scatter(series: Series, *, hoverable: bool) -> go.Scatter:
    parts = {"lines": series.dash, "markers": series.symbol, "text": series.labels}
    below, above = series.errors or ([], [])
    errors = {"type": "data", "symmetric": False, "array": above, "arrayminus": below} if series.errors else None
    return go.Scatter(
        x=series.x, y=series.y, name=safe(series.name), showlegend=bool(series.name), cliponaxis=False,
        mode="+".join(name for name, there in parts.items() if there),
        line={"color": series.colour, "width": series.width, "dash": series.dash or "solid"},
        marker={"color": series.colour, "size": series.size, "symbol": series.symbol},
        **{"error_x" if series.errors_across else "error_y": errors},
        text=_safe_all(series.labels) or None, textfont={"size": 11},
        textposition="middle left" if series.labels_left else "middle right",
        customdata=_safe_all(series.hover) or None,
        hoverinfo=None if hoverable else "skip",
        hovertemplate="%{customdata}<extra></extra>" if series.hover else None,
    )  # fmt: skip


def _bars(bars: Bars, hatch: str) -> go.Bar:
    places, unit = list(range(len(bars.lengths))), "%{x:.1f} s" if bars.across else "%{y:.4g}"
    return go.Bar(
        x=bars.lengths if bars.across else places, y=places if bars.across else bars.lengths,
        orientation="h" if bars.across else "v", width=0.6 if bars.across else None, name=bars.name,
        marker={"color": bars.colour,
                "pattern": {"shape": hatch, "fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.6)"}},
        hovertext=_safe_all(bars.hover), hovertemplate=f"%{{hovertext}}: {unit}<extra></extra>",
    )  # fmt: skip


def _axis(axis: Axis, *, square: bool) -> dict[str, object]:
    options: dict[str, object] = {"title": axis.title, "automargin": True, "visible": not axis.hidden}
    if axis.names:
        ticks = axis.ticks(square=square)
        options |= {
            "tickmode": "array", "tickvals": [place for place, _ in ticks],
            "ticktext": [safe(name) for _, name in ticks], "zeroline": False, "showgrid": False,
        }  # fmt: skip
    if axis.limits:
        few = abs(axis.limits[1] - axis.limits[0]) < 20
        options |= {"range": list(axis.limits), **({"dtick": 1} if axis.whole and few else {})}
    elif axis.downwards:
        options |= {"autorange": "reversed", "zeroline": False}
    elif axis.from_zero:
        options |= {"rangemode": "tozero"}
    return options | ({"type": "log"} if axis.logarithmic else {})


def safe(text: str) -> str:
    """Escape the tags that plotly reads in labels: a user's text is text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _safe_all(texts: list[str]) -> list[str]:
    return [safe(text) for text in texts]
