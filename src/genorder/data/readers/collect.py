"""From batches of raw samples to a dataset: one vocabulary, packed rows, no Python per token."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from genorder.data.dataset import PackedRows, SequenceDataset
from genorder.data.names import Names
from genorder.data.readers.problems import Problems
from genorder.data.readers.tokens import LONGEST, SPLITTERS, parse_tokens
from genorder.data.vocabulary import Vocabulary
from genorder.errors import InputError

Rows = list[list[Any]]


class RowBatch(NamedTuple):
    """Samples as they stand in a file: a list of tokens each, or a string that is yet to be split."""

    inputs: list[Any]
    targets: list[Any]
    places: Sequence[int]  # the line or row of each, for error messages
    fields: tuple[str, str] = ("input", "target")
    kind: str = ":"  # between a file's name and a place
    names: Names = Names()  # of columns that hold one token each
    again: "Callable[[], RowBatch] | None" = None  # the same samples read with more care, where these are unusable


class _TokenNumbers(dict[str | int, int]):
    """Numbers tokens as they are first seen; 7 and "7" are one token."""

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
class _Column:
    def __init__(self) -> None:
        self._tokens: list[NDArray[np.int32]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, rows: Rows, numbers: _TokenNumbers) -> None:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        numbered = map(numbers.__getitem__, chain.from_iterable(rows))
        self._tokens.append(np.fromiter(numbered, np.int32, int(lengths.sum())))
        self._lengths.append(lengths)

    def packed(self, ids: NDArray[np.int32]) -> PackedRows:
        lengths = np.concatenate(self._lengths)
        tokens = np.empty(int(lengths.sum()), np.int32)
        start = 0
        for part in self._tokens:
            tokens[start : start + len(part)] = ids[part] if len(part) else part
            start += len(part)
        return PackedRows(tokens, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def collect(batches: Iterable[RowBatch], problems: Problems, split: str, expected: str) -> SequenceDataset:
    """Raises InputError with every problem, of the batches and of what stands in them, and where there is nothing."""
    numbers, inputs, targets = _TokenNumbers(), _Column(), _Column()
    splitter = SPLITTERS[split]
    samples = 0
    names = Names()
    with _no_search_for_cycles():
        for batch in batches:
            names = batch.names or names
            rows = _plain_rows(batch, splitter)
            if rows is None:
                rows = _checked_rows(batch.again() if batch.again else batch, splitter, problems)
            if problems.count:
                continue  # nothing will come of the dataset; the rest is read for its problems alone
            inputs.add(rows[0], numbers)
            targets.add(rows[1], numbers)
            samples += len(rows[0])
    problems.check()
    if not samples:
        raise InputError(f"{problems.name} holds no samples; expected {expected}")
    vocabulary = Vocabulary.of(numbers.tokens)
    ids = vocabulary.ids_from(Vocabulary(tuple(numbers.tokens)))
    return SequenceDataset(inputs.packed(ids), targets.packed(ids), vocabulary, names)


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Rows hold no cycles; looking for them among thousands of new lists would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _plain_rows(batch: RowBatch, split: Callable[[str], list[str]]) -> tuple[Rows, Rows] | None:
    """The rows of a batch with nothing to remark on, found without a look at each token; else nothing."""
    inputs, targets = (_plain_column(values, split) for values in (batch.inputs, batch.targets))
    if inputs is None or targets is None or min(map(len, targets), default=0) == 0:
        return None
    return inputs, targets


def _plain_column(values: list[Any], split: Callable[[str], list[str]]) -> Rows | None:
    kinds = set(map(type, values))
    if kinds == {str}:
        try:
            values = list(map(split, values))
        except InputError:
            return None
    elif kinds != {list} or not set(map(type, chain.from_iterable(values))) <= {int, str}:
        return None
    return values if max(map(len, values)) <= LONGEST else None


def _checked_rows(batch: RowBatch, split: Callable[[str], list[str]], problems: Problems) -> tuple[Rows, Rows]:
    """The usable rows of a batch, sample by sample; the others are noted."""
    kept: tuple[Rows, Rows] = ([], [])
    for *values, place in zip(batch.inputs, batch.targets, batch.places, strict=True):
        where = f"{problems.name}{batch.kind}{place}"
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
