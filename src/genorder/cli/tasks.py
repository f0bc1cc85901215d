"""`genorder tasks`: what can be given to --task."""

from rich.table import Table

from genorder.cli import options
from genorder.cli.console import emit_json, screen
from genorder.tasks import task_summaries


def tasks(json: options.Json = False) -> None:
    """List the built-in tasks.

    Example: genorder tasks
    """
    listed = [
        {
            "name": entry.name,
            "summary": entry.summary,
            "default_length": entry.default_length,
            "length_step": entry.length_step,
            "parameters": dict(entry.parameters),
        }
        for entry in task_summaries()
    ]
    if json:
        emit_json({"tasks": listed})
        return
    table = Table("task", "what it computes", "length", "parameters", box=None)
    for entry in task_summaries():
        settings = ", ".join(f"{name}={value}" for name, value in entry.parameters.items())
        length = "by the task" if entry.default_length is None else str(entry.default_length)
        table.add_row(entry.name, entry.summary, length, settings)
    type(screen)(soft_wrap=False).print(table)
