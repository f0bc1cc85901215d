"""From rows of a data file to a dataset: one vocabulary, packed rows, no Python loop over tokens."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from genorder.data.dataset import PackedRows, SequenceDataset
from genorder.data.names import Names
from genorder.data.readers.tokens import LONGEST, SPLITTERS, parse_tokens
from genorder.data.vocabulary import Vocabulary
from genorder.errors import InputError

Rows = list[list[Any]]

PROBLEMS_SHOWN = 20


@final
class FileProblems:
    """The unusable lines of a file, collected so that one error lists them all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.blank_lines = 0
        self.count = 0
        self._shown: list[str] = []

    def add(self, message: str, *, fatal: bool = False) -> None:
        """Record a problem. Raises InputError at once if it is fatal, as in a file that is not text."""
        self.count += 1
        if self.count <= PROBLEMS_SHOWN:
            self._shown.append(message)
        if fatal:
            self._refuse()

    def raise_if_any(self) -> None:
        if self.count:
            self._refuse()

    def _refuse(self) -> NoReturn:
        if self.count == 1:
            raise InputError(self._shown[0])
        lines = [f"{self.name}: {self.count} lines cannot be used; correct or remove them", *self._shown]
        if self.count > PROBLEMS_SHOWN:
            lines.append(f"and {self.count - PROBLEMS_SHOWN} more")
        raise InputError("\n  ".join(lines))


class RowBatch(NamedTuple):
    """Samples as a file contains them: each side is a list of tokens, or a string that is not yet split."""

    inputs: list[Any]
    targets: list[Any]
    numbers: Sequence[int]  # the line or row number of each sample, for error messages
    fields: tuple[str, str] = ("input", "target")
    number_prefix: str = ":"  # between the file's name and a number
    names: Names = Names()  # of columns that contain one token each
    reread: "Callable[[], RowBatch] | None" = None  # reads the same samples one by one, if these cannot be used


class _TokenIds(dict[str | int, int]):
    """Provisional token ids in order of first occurrence; 7 and "7" are one token."""

    def __missing__(self, token: str | int) -> int:
        text = str(token)
        number = self[text] if text in self else len(self.tokens)
        if number == len(self.tokens):
            self.tokens.append(text)
            self[text] = number
        self[token] = number
        return number

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []


@final
class _RowPacker:
    """Collects the rows of one side, the inputs or the targets."""

    def __init__(self) -> None:
        self._tokens: list[NDArray[np.int32]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, rows: Rows, token_ids: _TokenIds) -> None:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = map(token_ids.__getitem__, chain.from_iterable(rows))
        self._tokens.append(np.fromiter(ids, np.int32, int(lengths.sum())))
        self._lengths.append(lengths)

    def packed(self, ids: NDArray[np.int32]) -> PackedRows:
        lengths = np.concatenate(self._lengths)
        tokens = np.empty(int(lengths.sum()), np.int32)
        start = 0
        for part in self._tokens:
            tokens[start : start + len(part)] = ids[part] if len(part) else part
            start += len(part)
        return PackedRows(tokens, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def collect_rows(batches: Iterable[RowBatch], problems: FileProblems, split: str, expected: str) -> SequenceDataset:
    """The dataset of all batches. Raises InputError with every problem of the file, and for a file without samples."""
    token_ids, inputs, targets = _TokenIds(), _RowPacker(), _RowPacker()
    splitter = SPLITTERS[split]
    samples = 0
    names = Names()
    with _without_garbage_collection():
        for batch in batches:
            names = batch.names or names
            rows = _valid_rows(batch, splitter)
            if rows is None:
                rows = _checked_rows(batch.reread() if batch.reread else batch, splitter, problems)
            if problems.count:
                continue  # there will be no dataset; the rest of the file is only read for its problems
            inputs.add(rows[0], token_ids)
            targets.add(rows[1], token_ids)
            samples += len(rows[0])
    problems.raise_if_any()
    if not samples:
        raise InputError(f"{problems.name} holds no samples; expected {expected}")
    vocabulary = Vocabulary.of(token_ids.tokens)
    ids = vocabulary.ids_from(Vocabulary(tuple(token_ids.tokens)))
    return SequenceDataset(inputs.packed(ids), targets.packed(ids), vocabulary, names)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Rows contain no cycles; searching thousands of new lists for them would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _valid_rows(batch: RowBatch, split: Callable[[str], list[str]]) -> tuple[Rows, Rows] | None:
    """The rows of a batch without any problem, checked without a loop over tokens; None if there is a problem."""
    inputs, targets = (_valid_column(values, split) for values in (batch.inputs, batch.targets))
    if inputs is None or targets is None or min(map(len, targets), default=0) == 0:
        return None
    return inputs, targets


def _valid_column(values: list[Any], split: Callable[[str], list[str]]) -> Rows | None:
    kinds = set(map(type, values))
    if kinds == {str}:
        try:
            values = list(map(split, values))
        except InputError:
            return None
    elif kinds != {list} or not set(map(type, chain.from_iterable(values))) <= {int, str}:
        return None
    return values if max(map(len, values)) <= LONGEST else None


def _checked_rows(batch: RowBatch, split: Callable[[str], list[str]], problems: FileProblems) -> tuple[Rows, Rows]:
    """The usable rows of a batch, checked one by one; the others are added to `problems`."""
    kept: tuple[Rows, Rows] = ([], [])
    for *values, number in zip(batch.inputs, batch.targets, batch.numbers, strict=True):
        where = f"{problems.name}{batch.number_prefix}{number}"
        try:
            rows = [parse_tokens(v, where, field, split) for v, field in zip(values, batch.fields, strict=True)]
        except InputError as error:
            problems.add(str(error))
            continue
        if not rows[1]:
            problems.add(f"{where}: the target is empty; expected at least one token")
            continue
        for column, row in zip(kept, rows, strict=True):
            column.append(row)
    return kept
