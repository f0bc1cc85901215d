"""`genorder generate`: samples of a built-in task, as a file."""

from pathlib import Path
from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import emit_json, say
from genorder.data import ReadOptions, SequenceDataset, write_dataset
from genorder.data.readers import FORMATS, format_of
from genorder.errors import InputError
from genorder.store import ensure_writable_directory, sha256_file
from genorder.tasks import Split, make_task, stored_columns, task_dataset


@options.with_read_options("--split-tokens")
def generate(
    reading: ReadOptions,
    task: Annotated[str, typer.Option(help="Task to draw from; see `genorder tasks`.")],
    length: options.Length = None,
    samples: Annotated[int, typer.Option(help="How many samples.")] = 100_000,
    split: Annotated[str, typer.Option(help="train, validation or test; they share no input.")] = "train",
    hidden_order_seed: options.HiddenOrderSeed = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other samples of the same split.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="File to write, its format by its extension; default: TASK-L-SPLIT.jsonl.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write a dataset of a built-in task: JSON Lines, CSV, TSV, text or Parquet.

    Example: genorder generate --task relu --length 20 --samples 1000 --split test --out relu.jsonl
    """
    if split not in [known.value for known in Split]:
        raise InputError(f"--split {split!r}: expected one of {', '.join(known.value for known in Split)}")
    made = make_task(task, length)
    written = FORMATS[format_of(str(out or "data.jsonl"), reading, exists=False)]
    extension = next(iter(written.extensions), "")
    path = out or Path(f"{made.name}-L{made.lengths}-{split}{extension}")
    if path.is_dir():
        raise InputError(f"--out {path} is a directory; expected the name of a file")
    dataset = task_dataset(made, Split(split), samples, hidden_order_seed=hidden_order_seed, seed=seed)
    _write_unless_other(dataset, path, reading)
    columns = stored_columns(made, hidden_order_seed)
    if json:
        emit_json({"path": str(path), "samples": len(dataset), "order_in_true_indices": list(columns)})
        return
    say(f"{len(dataset)} samples in {path}")
    if hidden_order_seed is not None:
        say(f"stored columns hold the true targets {columns.short()}")


def _write_unless_other(dataset: SequenceDataset, path: Path, reading: ReadOptions) -> None:
    """Write the file; one that already holds the same is left, one that holds something else is refused."""
    if not path.exists():
        ensure_writable_directory(path.parent)
        write_dataset(path, dataset, reading)
        return
    fresh = path.with_name(f".fresh-{path.name}")
    try:
        write_dataset(fresh, dataset, reading)
        same = sha256_file(fresh) == sha256_file(path)
    finally:
        fresh.unlink(missing_ok=True)
    if not same:
        raise InputError(f"{path} exists and holds something else; remove it or choose another --out")
