"""`genorder status`: how far a run is."""

from genorder.cli import options
from genorder.cli.console import duration, emit_json, percent, say
from genorder.reports.wording import progress_text
from genorder.store import read_status, verb_of


def status(run_dir: options.RunDir, json: options.Json = False) -> None:
    """Show how far a run is, also while it runs.

    Example: genorder status runs/train-relu-L20-forward-1a2b3c4d
    """
    found = read_status(run_dir)
    verb_of(run_dir, found.config)
    if json:
        emit_json(
            {
                "run_dir": str(run_dir),
                "state": found.state,
                "jobs": [vars(job) for job in found.jobs],
                "progress": found.progress,
                "failure": found.failure,
                "result": found.result,
            }
        )
        return
    say(f"{run_dir}: {found.state}")
    if found.state == "interrupted":
        say("the command that started it continues it")
    if found.failure:
        say(f"it failed: {found.failure}")
    if found.holder:
        say(f"held by process {found.holder.pid} on {found.holder.host}, since {found.holder.since}")
    for job in found.jobs:
        say(f"done: {job.name} ({duration(job.seconds)})")
    if found.state not in ("finished", "failed") and (text := progress_text(found.progress or {})):
        say(text)
    rate = (found.result or {}).get("success_rate")
    if isinstance(rate, float):
        say(f"success rate {percent(rate)}")
