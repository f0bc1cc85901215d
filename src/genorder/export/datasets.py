"""A run's samples with the targets in its order, for other programs to train on.

JSON Lines hold any tokens. CALT and Int2Int separate tokens by white space, and the two sides by ` # ` and by a tab;
tokens that would be read otherwise than they were written are refused.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from genorder.data import PackedRows, SequenceDataset, write_jsonl
from genorder.errors import InputError
from genorder.orders import Order
from genorder.store import replace_atomic


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


def write_calt(dataset: SequenceDataset, path: Path) -> None:
    """`problem # answer`, one sample a line: the raw text files of CALT."""
    _write_lines(dataset, path, kind="calt", separator=" # ", forbidden="#")


def write_int2int(dataset: SequenceDataset, path: Path) -> None:
    """Input and output tokens, a tab between them, one sample a line: the data files of Int2Int."""
    _write_lines(dataset, path, kind="int2int", separator="\t", forbidden="")


DATASET_WRITERS: dict[str, Callable[[SequenceDataset, Path], None]] = {
    "dataset": write_jsonl,
    "calt": write_calt,
    "int2int": write_int2int,
}


def _write_lines(dataset: SequenceDataset, path: Path, *, kind: str, separator: str, forbidden: str) -> None:
    _refuse_tokens(dataset, kind, forbidden)
    texts = dataset.vocabulary.tokens

    def words(packed: PackedRows, row: int) -> str:
        return " ".join(map(texts.__getitem__, packed[row].tolist()))

    def lines() -> Iterator[str]:
        for row in range(len(dataset)):
            yield f"{words(dataset.inputs, row)}{separator}{words(dataset.targets, row)}\n"

    with replace_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines())


def _refuse_tokens(dataset: SequenceDataset, kind: str, forbidden: str) -> None:
    advice = "use --to dataset, which can hold it"
    for token in dataset.vocabulary.tokens:
        if not token or token.split() != [token]:
            raise InputError(
                f"the token {token!r} is empty or holds white space, which separates tokens in {kind}; {advice}"
            )
        if forbidden and forbidden in token:
            raise InputError(f"the token {token!r} holds {forbidden}, which separates the sides in {kind}; {advice}")
        try:
            token.encode()
        except UnicodeEncodeError:
            raise InputError(f"the token {token!r} is not Unicode text; {advice}") from None
    if len(dataset) and not dataset.inputs.lengths.min():
        raise InputError(f"a sample has an empty input, which {kind} cannot hold; {advice}")
