"""`genorder export`: a finished run in the formats of other programs."""

from pathlib import Path
from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import abbreviated, emit_json, say
from genorder.export import KINDS, SPLITS, export_run
from genorder.orders import Order


def export(
    run_dir: options.RunDir,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder (hf) or file (the datasets) to write.")],
    to: Annotated[str, typer.Option(help=f"What to write: {', '.join(KINDS)}.")],
    given: Annotated[bool, typer.Option("--given", help="The given order and its model, not the run's own.")] = False,
    split: Annotated[str, typer.Option(help=f"Of a dataset: {', '.join(SPLITS)}.")] = "all",
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier export wrote.")] = False,
    json: options.Json = False,
) -> None:
    """Write a run's model for transformers (hf), or its dataset with the targets in the run's order.

    Example: genorder export runs/mine --to hf mymodel
    """
    exported = export_run(run_dir, to, path, given=given, split=split, force=force)
    if json:
        emit_json(exported.to_dict())
        return
    order = abbreviated(Order(tuple(exported.order)))
    if exported.samples is None:
        say(f"{path}: {', '.join(exported.files)}; the model emits {order}")
    else:
        say(f"{exported.samples} samples in {path}; targets in the order {order}")
