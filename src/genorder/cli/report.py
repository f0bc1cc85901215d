"""`genorder report`: the page of a run again, several runs side by side, figures for a paper."""

from pathlib import Path
from typing import Annotated, Any

import typer

from genorder.cli import options
from genorder.cli.console import emit_json, say
from genorder.errors import InputError

_COMPARISON = "comparison.html"


def report(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Run directories; several: compared.")],
    out: Annotated[
        Path | None, typer.Option(help=f"HTML file; default: report.html in the run, {_COMPARISON} for several.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the figures of one run there, as SVG, PDF and PNG.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the report of a run, also of one that is unfinished or failed; or compare several runs.

    Example: genorder report runs/relu runs/square --out both.html
    """
    # Only now, because it loads plotly, which no other verb needs before its end.
    from genorder.reports.page import REPORT, comparison_page, run_page
    from genorder.reports.run import read_run
    from genorder.store import write_bytes_atomic

    runs = [read_run(path) for path in run_dirs]
    if figures is not None and len(runs) > 1:
        raise InputError(f"--figures draws one run; received {len(runs)}")
    if figures is not None:
        _write_figures(runs[0], figures, json=json)
        return
    page = run_page(runs[0]) if len(runs) == 1 else comparison_page(runs)
    target = out or (run_dirs[0] / REPORT if len(runs) == 1 else Path(_COMPARISON))
    write_bytes_atomic(target, page.encode())
    if json:
        emit_json({"path": str(target), "states": [run.state for run in runs], "bytes": len(page.encode())})
        return
    for path, run in zip(run_dirs, runs, strict=True):
        if run.state != "finished":
            say(f"{path} is {run.state}: the report shows what there is")
    say(f"report in {target}")


def _write_figures(run: Any, folder: Path, *, json: bool) -> None:
    from genorder.reports.static_figures import write_figures

    written = write_figures(run, folder)
    if json:
        emit_json({"figures": [str(path) for path in written]})
        return
    for path in written:
        say(str(path))
