"""A run, or several side by side, as one HTML file that opens offline in a browser."""

import base64
import hashlib
import importlib.resources
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from genorder.reports.answer import answer, caveats
from genorder.reports.comparison import compared_answer, comparison_sections
from genorder.reports.plotly_figures import figure_json
from genorder.reports.run import ReportedRun, read_run
from genorder.reports.sections import Section, sections_of
from genorder.reports.tables import Cell, Column, command
from genorder.reports.wording import duration, number, percent, visible
from genorder.store import write_bytes_atomic

REPORT = "report.html"
_POLL_SECONDS = 2


def write_report(run_dir: Path | str) -> Path:
    """Write the report of a run into its directory. Raises InputError if that is no run, or cannot be written."""
    target = Path(run_dir) / REPORT
    write_bytes_atomic(target, run_page(read_run(run_dir)).encode(), durable=False)
    return target


def report_is_current(run_dir: Path) -> bool:
    """Whether there is a report that was written after the run's result."""
    try:
        return (run_dir / REPORT).stat().st_mtime_ns >= (run_dir / "result.json").stat().st_mtime_ns
    except FileNotFoundError:
        return False


def run_page(run: ReportedRun, *, version: str | None = None) -> str:
    """The page of a run. With its `version`, the page asks its server for progress, and reloads for a new version."""
    return _render(
        title=run.title,
        kind={"discover": "Discovery", "rank": "Ranking", "train": "Training"}.get(run.verb, run.verb.capitalize()),
        state=run.state,
        place=visible(str(run.path), 200),
        answer=answer(run if version is None else replace(run, progress=None)),
        caveats=[visible(caveat, 500) for caveat in caveats(run)],
        sections=sections_of(run),
        command=command(run),
        seed=run.config.get("seed"),
        version=version,
    )


def comparison_page(runs: list[ReportedRun]) -> str:
    return _render(
        title=f"{len(runs)} runs",
        kind="Comparison",
        state="finished" if all(run.state == "finished" for run in runs) else "partial",
        place=", ".join(visible(run.path.name) for run in runs),
        answer=compared_answer(runs),
        caveats=[],
        sections=comparison_sections(runs),
        command=None,
        seed=None,
        version=None,
    )


def _render(*, sections: list[Section], version: str | None, **facts: Any) -> str:
    live = version is not None
    figures = [part.figure for section in sections for part in section.parts if part.figure]
    script = _asset("page.js")
    plotly = _asset("plotly-cartesian.min.js") if figures else ""
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            **facts,
            sections=sections,
            figures=[(figure.name, Markup(figure_json(figure))) for figure in figures],
            style=Markup(_asset("page.css")),
            plotly=Markup(plotly),
            script=Markup(script),
            policy=_policy([script, plotly], live=live),
            live=live,
            version=version,
            poll_seconds=_POLL_SECONDS,
        )
    )


def _policy(scripts: list[str], *, live: bool) -> str:
    """A content security policy: only these scripts run, and nothing is fetched."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts if script)
    nowhere = "base-uri 'none'; form-action 'none'"
    asking = "; connect-src 'self'" if live else ""
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; {nowhere}{asking}"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return importlib.resources.files("genorder.reports").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["cell"] = _cell
    return environment


def _cell(value: Cell, column: Column) -> str:
    if value is None:
        return "–"
    if column.kind == "mark":
        return "yes" if value else ""
    if isinstance(value, str):
        return value
    writers = {"rate": percent, "seconds": duration, "number": number}
    return writers[column.kind](value) if column.kind in writers else f"{value:,}"
