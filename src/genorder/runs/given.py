"""Data that a Python program hands over. It is kept in the run directory, so that the run can be read by itself."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from genorder.data import Names, ReadOptions, SequenceDataset, Splits, Vocabulary, read_jsonl, write_jsonl
from genorder.errors import InputError
from genorder.runs.source import AnyConfig, Source, configure, split_for_run
from genorder.store import ensure_writable_directory, write_json_atomic
from genorder.tasks import TaskData

Rows = Sequence[Sequence[object]]
Given = SequenceDataset | Splits | TaskData | Path | str | tuple[Rows, Rows]

_KEPT = "data"  # the folder, in the run directory
_SPLITS = ("train", "validation", "test")
_EXPECTED = "a SequenceDataset, Splits, the data of a task, a path, or a pair of lists (inputs, targets)"


def configure_given(
    resolve: Callable[[int | None], AnyConfig], given: Given, names: Names = Names()
) -> tuple[AnyConfig, Source]:
    """The configuration and the data, as `configure` gives them for a file or a task."""
    if isinstance(given, str | Path):
        return configure(resolve, str(given), None, None, None, ReadOptions(), names)
    if isinstance(given, TaskData):
        label = f"{given.task.name}-L{given.task.lengths}"
        config, splits = _cut(resolve, given.splits)
        source = Source(splits, label, {}, given.true_of_column, given.graph_of_columns(), given.task)
    elif isinstance(given, Splits):
        config, splits = _cut(resolve, Splits.of(*given.all, given.dropped))
        source = Source(splits, "data", {})
    else:
        dataset = given if isinstance(given, SequenceDataset) else _from_lists(given)
        config, splits = _cut(resolve, split_for_run(dataset, resolve(len(dataset)).samples))
        source = Source(splits, "data", {})
    _refuse_empty(splits)
    return config, replace(source, description=_description(splits)).named(names)


def keep_data(source: Source, path: Path) -> None:
    """Write the splits into the run directory, unless they can be had again from a file or a task."""
    if "kept" not in source.description or (path / _KEPT / "vocabulary.json").exists():
        return
    folder = ensure_writable_directory(path / _KEPT)
    for name, split in zip(_SPLITS, source.splits.all, strict=True):
        write_jsonl(split, folder / f"{name}.jsonl")
    write_json_atomic(folder / "vocabulary.json", list(source.splits.train.vocabulary.tokens))


def read_kept(path: Path) -> Source:
    """What `keep_data` wrote. Raises InputError where it is missing or damaged."""
    folder = path / _KEPT
    try:
        vocabulary = Vocabulary(tuple(json.loads((folder / "vocabulary.json").read_bytes())))
    except OSError as error:
        raise InputError(f"cannot read {folder / 'vocabulary.json'}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise InputError(f"{folder / 'vocabulary.json'} is damaged: expected a JSON list of tokens") from None
    train, validation, test = (read_jsonl(folder / f"{name}.jsonl").with_vocabulary(vocabulary) for name in _SPLITS)
    splits = Splits(train, validation, test)
    return Source(splits, "data", _description(splits))


def _description(splits: Splits) -> dict[str, Any]:
    sizes = {name: len(split) for name, split in zip(_SPLITS, splits.all, strict=True)}
    return {"kept": _KEPT, "samples": sizes, "fingerprint": splits.fingerprint()}


def _cut(resolve: Callable[[int | None], AnyConfig], splits: Splits) -> tuple[AnyConfig, Splits]:
    """The configuration for the training samples there are, or for so many of them as are asked for."""
    asked = resolve(len(splits.train)).samples.train
    if asked < len(splits.train):
        splits = replace(splits, train=splits.train.take(np.arange(asked)))
    return resolve(len(splits.train)), splits


def _from_lists(given: Any) -> SequenceDataset:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"the dataset is a {type(given).__name__}; expected {_EXPECTED}")
    inputs, targets = given
    for name, rows in (("inputs", inputs), ("targets", targets)):
        if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(_is_row(row) for row in rows):
            raise InputError(f"the {name} are not lists of tokens, one for each sample; expected {_EXPECTED}")
    if len(inputs) != len(targets):
        raise InputError(f"there are {len(inputs)} inputs, but {len(targets)} targets")
    return SequenceDataset.from_sequences(inputs, targets)


def _is_row(row: object) -> bool:
    return isinstance(row, list | tuple) and all(type(token) in (int, str) for token in row)


def _refuse_empty(splits: Splits) -> None:
    for name, split in zip(_SPLITS, splits.all, strict=True):
        if not len(split):
            raise InputError(f"the {name} split holds no samples")
        empty = np.flatnonzero(split.targets.lengths == 0)
        if len(empty):
            raise InputError(f"the target of sample {empty[0]} of the {name} split is empty; expected a token or more")
