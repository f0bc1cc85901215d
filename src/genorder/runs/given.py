"""Data that a Python program hands over. It is kept in the run directory, so that the run can be read by itself."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genorder.data import (
    Names,
    ReadOptions,
    SequenceDataset,
    Splits,
    Vocabulary,
    read_dataset,
    read_jsonl,
    write_jsonl,
)
from genorder.errors import InputError
from genorder.runs.source import (
    HELD_OUT,
    AnyConfig,
    DataSpec,
    Source,
    configure,
    cut_to,
    numbers_of,
    read_own_splits,
    split_for_run,
)
from genorder.store import ensure_writable_directory, write_json_atomic
from genorder.tasks import TaskData

Rows = Sequence[Sequence[object]]
SplitLike = SequenceDataset | Path | str | tuple[Rows, Rows]
DatasetLike = SplitLike | Splits | TaskData

_KEPT = "data"  # the folder, in the run directory
_SPLITS = ("train", "validation", "test")
_EXPECTED = "a SequenceDataset, Splits, the data of a task, a path, or a pair of lists (inputs, targets)"
_EXPECTED_SPLIT = "a SequenceDataset, a path, or a pair of lists (inputs, targets)"


def configure_given(
    resolve: Callable[..., AnyConfig], given: DatasetLike, own: Mapping[str, SplitLike | None], names: Names
) -> tuple[AnyConfig, Source]:
    """The configuration and the data, as `configure` gives them for a file or a task.

    `own` are validation and test samples that are not to be cut off the data, by name; `names` are those of the places.
    """
    own = {name: split for name, split in own.items() if split is not None}
    files = {name: str(split) for name, split in own.items() if isinstance(split, str | Path)}
    if isinstance(given, TaskData | Splits):
        if own:
            raise InputError(f"{' and '.join(own)} given, but the dataset is split already; leave them out")
        config, source = _configure_splits(resolve, given)
        return config, source.named(names)
    if isinstance(given, str | Path) and len(files) == len(own):
        return configure(resolve, DataSpec(data=str(given), names=names, **files))  # type: ignore[arg-type]
    dataset = _dataset(given, "dataset", _EXPECTED)
    datasets, _ = read_own_splits(files, dataset, "the dataset", ReadOptions())
    datasets |= {
        name: _dataset(split, f"{name} split", _EXPECTED_SPLIT) for name, split in own.items() if name not in files
    }
    held_out = {name: len(split) for name, split in datasets.items()}
    whole = resolve(train_samples=len(dataset), held_out=held_out)
    splits = split_for_run(dataset, whole.samples, datasets)
    _refuse_empty(splits)
    return resolve(**numbers_of(splits, datasets)), Source(splits, "data", _description(splits)).named(names)


def _configure_splits(resolve: Callable[..., AnyConfig], given: TaskData | Splits) -> tuple[AnyConfig, Source]:
    """As many samples of each split as are asked for, or all."""
    splits = given.splits if isinstance(given, TaskData) else Splits.of(*given.all, given.dropped)
    _refuse_empty(splits)
    splits = cut_to(splits, resolve(**numbers_of(splits, HELD_OUT)).samples)
    config, description = resolve(**numbers_of(splits, HELD_OUT)), _description(splits)
    if isinstance(given, Splits):
        return config, Source(splits, "data", description)
    label = f"{given.task.name}-L{given.task.lengths}"
    return config, Source(splits, label, description, given.true_of_column, given.graph_of_columns(), given.task)


def _dataset(given: Any, name: str, expected: str) -> SequenceDataset:
    if isinstance(given, str | Path):
        return read_dataset(given)
    return given if isinstance(given, SequenceDataset) else _from_lists(given, name, expected)


def save_data(source: Source, path: Path) -> None:
    """Write the splits into the run directory, unless they can be had again from a file or a task."""
    if "kept" not in source.description or (path / _KEPT / "vocabulary.json").exists():
        return
    folder = ensure_writable_directory(path / _KEPT)
    for name, split in zip(_SPLITS, source.splits.all, strict=True):
        write_jsonl(split, folder / f"{name}.jsonl")
    write_json_atomic(folder / "vocabulary.json", list(source.splits.train.vocabulary.tokens))


def read_kept(path: Path) -> Source:
    """What `save_data` wrote. Raises InputError where it is missing or damaged."""
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


def _from_lists(given: Any, name: str, expected: str) -> SequenceDataset:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"the {name} is a {type(given).__name__}; expected {expected}")
    inputs, targets = given
    for side, rows in (("inputs", inputs), ("targets", targets)):
        if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(_is_row(row) for row in rows):
            raise InputError(f"the {side} are not lists of tokens, one for each sample; expected {expected}")
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
