"""Exports of a finished run: a Hugging Face folder, or its samples in the order that it found."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from genorder.data import SequenceDataset
from genorder.data.dataset import concatenated
from genorder.errors import InputError
from genorder.export.datasets import FORMAT_OF, write_reordered
from genorder.export.huggingface import export_huggingface
from genorder.runs import FinishedRun, read_finished_run
from genorder.runs.request import HELD_OUT
from genorder.store import ensure_writable_directory

KINDS = ("hf", *FORMAT_OF)
SPLITS = ("all", "train", "validation", "test")


@final
@dataclass(frozen=True)
class Exported:
    path: Path
    kind: str
    files: list[str]  # names in `path` for a folder, else the one path
    order: list[int]  # in which the model emits the targets, or in which they are written
    samples: int | None = None  # samples written; None for a model

    def to_dict(self) -> dict[str, object]:
        return {**vars(self), "path": str(self.path)}


def export_run(
    run_dir: Path | str,
    kind: str,
    path: Path | str,
    *,
    given: bool = False,
    split: str = "all",
    force: bool = False,
) -> Exported:
    """Write a finished run of `train` or `discover` as one of `KINDS`.

    `given` exports the model of the given order, or the targets in the given order. `split` is for the datasets. With
    `force`, an existing export or file is replaced. Raises InputError for what cannot be exported.
    """
    path = Path(path)
    if kind not in KINDS:
        raise InputError(f"--to {kind!r}: expected one of {', '.join(KINDS)}")
    if split not in SPLITS:
        raise InputError(f"--split {split!r}: expected one of {', '.join(SPLITS)}")
    run = read_finished_run(Path(run_dir))
    if kind == "hf":
        if split != "all":
            raise InputError("--split belongs to the datasets; a Hugging Face folder holds a model")
        files, order = export_huggingface(run, path, given=given, force=force)
        return Exported(path, kind, files, list(order))
    order = run.given_order if given else run.order
    _refuse_existing_file(run, path, force=force)
    dataset = _chosen(run, split)
    ensure_writable_directory(path.parent)
    write_reordered(dataset, order, path, kind)
    return Exported(path, kind, [str(path)], list(order), len(dataset))


def _chosen(run: FinishedRun, split: str) -> SequenceDataset:
    splits = run.source.splits
    chosen: SequenceDataset = concatenated(splits.all) if split == "all" else getattr(splits, split)
    return chosen


def _refuse_existing_file(run: FinishedRun, path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected the name of a file")
    if not path.exists():
        return
    data = run.config["data"]
    if any(path.resolve() == Path(data[name]).resolve() for name in ("path", *HELD_OUT) if name in data):
        raise InputError(f"{path} is the data of the run itself; choose another file")
    if not force:
        raise InputError(f"{path} exists; choose another file, or give --force to replace it")
