"""The path of a search, and the conditions of a run, as plain tables."""

import shlex
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from genorder.reports.run import ReportedRun
from genorder.reports.tables import Cell, Column, Table
from genorder.reports.wording import visible
from genorder.settings import flat_settings

_PROFILE, _ANY_ORDER, _MINING = "profile ", "any-order ", "mine dependencies"  # a search's jobs in the journal


def path_table(run: ReportedRun) -> Table | None:
    """The stages of a search: what went in, what was kept, the best of it. Of an unfinished run, as far as it came."""
    stages = run.result.get("proposed", {}).get("stages") or list(_stages_so_far(run))
    if not stages:
        return None
    rows: list[tuple[Cell, ...]] = []
    for stage in stages:
        best = stage["best"][0] if stage["best"] else {}
        rows.append(
            (
                stage["name"],
                stage["candidates"],
                stage["kept"],
                best.get("loss"),
                run.order_text(best["order"], 12) if best else None,
                sum(stage["seconds"].values()),
            )
        )
    columns = (
        Column("stage"), Column("candidates", "count"), Column("kept", "count"), Column("best loss", "number"),
        Column("best order"), Column("seconds", "seconds"),
    )  # fmt: skip
    note = "Losses of different stages come from different models and are not comparable." if len(rows) > 1 else ""
    return Table(columns, rows, note)


def _stages_so_far(run: ReportedRun) -> Iterator[dict[str, Any]]:
    """The learned oracle's orders are of the targets that counting has left open."""
    known = {row["target"] for job in run.jobs if job.name == _MINING for row in job.result.get("known", [])}
    for job in run.jobs:
        if job.name.startswith(_PROFILE) and job.result.get("orders"):
            yield _stage_of_profile(job.name.removeprefix(_PROFILE), job.result)
        elif job.name.startswith(_ANY_ORDER) and job.result.get("proposals"):
            left = [
                target for target in range(len(known) + len(job.result["proposals"][0]["order"])) if target not in known
            ]
            proposals = [{**row, "order": [left[place] for place in row["order"]]} for row in job.result["proposals"]]
            seconds = {"all": job.seconds}
            yield {"name": job.name, "candidates": len(proposals), "kept": None, "best": proposals, "seconds": seconds}


def _stage_of_profile(name: str, profile: dict[str, Any]) -> dict[str, Any]:
    known = [place for place, loss in enumerate(profile["losses"]) if loss is not None]
    longest = max(profile["samples"])
    best = min((p for p in known if profile["samples"][p] == longest), key=profile["losses"].__getitem__, default=None)
    found = [] if best is None else [{"order": profile["orders"][best], "loss": profile["losses"][best]}]
    seconds = {"train": profile["train_seconds"], "score": profile["score_seconds"]}
    return {"name": name, "candidates": len(profile["orders"]), "kept": None, "best": found, "seconds": seconds}


def configuration_table(run: ReportedRun) -> Table:
    """Every setting by the name that --set knows it by."""
    shown = {name: value for name, value in run.config.items() if name not in ("config", "order")}
    rows: list[tuple[Cell, ...]] = [
        (visible(name), visible(str(value), 200))
        for name, value in (*flat_settings(shown), *flat_settings(run.config.get("config", {})))
    ]
    return Table((Column("setting"), Column("value")), rows)


def versions_table(run: ReportedRun) -> Table | None:
    versions = run.starts[-1].get("versions") if run.starts else None
    if not versions:
        return None
    rows: list[tuple[Cell, ...]] = [
        (name, visible(str(value), 200)) for name, value in flat_settings(versions) if value is not None
    ]
    return Table((Column("what"), Column("version or size")), rows)


def command(run: ReportedRun) -> str | None:
    """The command that repeats the run, as one would type it."""
    if not run.starts:
        return None
    program, *arguments = run.starts[0].get("command") or [""]
    if not program:
        return None
    name = "genorder" if PurePath(program).name in ("genorder", "__main__.py") else PurePath(program).name
    return visible(shlex.join([name, *arguments]), 2000)
