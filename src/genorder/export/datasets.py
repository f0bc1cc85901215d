"""The samples of a run with the targets in its order, for other training programs."""

from pathlib import Path

import numpy as np

from genorder.data import PackedRows, ReadOptions, SequenceDataset, write_dataset
from genorder.errors import InputError
from genorder.orders import Order

# CALT's raw text files are `problem # answer`, Int2Int's have a tab between the two.
FORMAT_OF: dict[str, str | None] = {"dataset": None, "calt": "text", "int2int": "int2int"}


def reordered(dataset: SequenceDataset, order: Order) -> SequenceDataset:
    """Each target in the order of emission; a shorter one in the order restricted to it."""
    targets = dataset.targets
    tokens = targets.tokens.copy()
    starts, lengths = targets.offsets[:-1], targets.lengths
    for length in np.unique(lengths[lengths > 0]).tolist():
        starts_N1 = starts[lengths == length][:, None]
        emitted = np.array(order.restrict(length).indices)
        tokens[starts_N1 + np.arange(length)] = targets.tokens[starts_N1 + emitted]
    return SequenceDataset(dataset.inputs, PackedRows(tokens, targets.offsets), dataset.vocabulary)


def write_reordered(dataset: SequenceDataset, order: Order, path: Path, kind: str) -> None:
    """`kind` is the format, or "dataset" for the format of the file's extension. Raises InputError."""
    if kind != "dataset" and len(dataset) and not dataset.inputs.lengths.min():
        raise InputError(f"a sample has an empty input, which {kind} cannot hold; use --to dataset, which can")
    write_dataset(path, reordered(dataset, order), ReadOptions(format=FORMAT_OF[kind]))
