"""Pairs of input and target token sequences in packed integer arrays: memory is proportional to the tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from genorder.data.names import Names
from genorder.data.vocabulary import Vocabulary
from genorder.errors import InputError
from genorder.seeding import mix64
from genorder.store import fingerprint, fingerprint_arrays


@final
@dataclass(frozen=True, eq=False)
class PackedRows:
    """Ragged rows of token ids: row i is `tokens[offsets[i]:offsets[i + 1]]`."""

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def from_matrix(cls, matrix_NW: NDArray[np.integer], lengths_N: NDArray[np.integer]) -> "PackedRows":
        """The first `lengths_N[i]` entries of each row i. Raises InputError for an entry beyond 32 bits."""
        offsets = np.concatenate([[0], np.cumsum(lengths_N, dtype=np.int64)])
        if matrix_NW.size == offsets[-1]:
            kept = matrix_NW.reshape(-1)
        else:
            kept = matrix_NW[np.arange(matrix_NW.shape[1])[None, :] < lengths_N[:, None]]
        tokens = kept.astype(np.int32)
        if kept.dtype != np.int32 and len(changed := np.flatnonzero(tokens != kept)):
            raise InputError(f"a token is {kept[changed[0]]}; expected integers of 32 bits")
        return cls(tokens, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.tokens[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def longest(self) -> int:
        return int(self.lengths.max(initial=0))

    @property
    def _is_matrix(self) -> bool:
        """Whether all rows have the same length: then no index per token is needed, which takes twice the memory."""
        return len(self) > 0 and len(self.tokens) == len(self) * self.longest

    def take(self, rows: NDArray[np.integer]) -> "PackedRows":
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if self._is_matrix:
            return PackedRows(self.tokens.reshape(len(self), -1)[rows].reshape(-1), offsets)
        source = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return PackedRows(self.tokens[source], offsets)

    def padded(self, width: int, fill: int) -> NDArray[np.int32]:
        """A matrix of `width` columns, `fill` beyond each row's end. Raises ValueError if a row is longer."""
        if self.longest > width:
            raise ValueError(f"a row holds {self.longest} tokens, more than the width of {width}")
        if self._is_matrix and self.longest == width:
            return self.tokens.reshape(len(self), width).copy()
        matrix_NW = np.full((len(self), width), fill, dtype=np.int32)
        matrix_NW[np.arange(width)[None, :] < self.lengths[:, None]] = self.tokens
        return matrix_NW

    def content_keys(self) -> NDArray[np.uint64]:
        """A 64-bit hash of each row: equal rows have equal keys; unequal rows collide once in 2^64."""
        keys = np.empty(len(self), dtype=np.uint64)
        chunk = 1 << 16  # bounds the memory of the 64-bit intermediates
        for start in range(0, len(self), chunk):
            stop = min(start + chunk, len(self))
            offsets = self.offsets[start : stop + 1]
            lengths = np.diff(offsets)
            tokens = self.tokens[offsets[0] : offsets[-1]].astype(np.uint64)
            position = np.arange(len(tokens), dtype=np.uint64) - np.repeat(
                (offsets[:-1] - offsets[0]).astype(np.uint64), lengths
            )
            mixed = _scramble((tokens << np.uint64(32)) ^ position)
            running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
            ends = offsets - offsets[0]
            keys[start:stop] = _scramble(running[ends[1:]] - running[ends[:-1]] + lengths.astype(np.uint64))
        return keys


def _scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64."""
    return mix64(values + np.uint64(0x9E3779B97F4A7C15))


@final
@dataclass(frozen=True, eq=False)
class SequenceDataset:
    inputs: PackedRows
    targets: PackedRows
    vocabulary: Vocabulary
    names: Names = field(default_factory=Names)  # of the positions, if the data has names

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise ValueError(f"{len(self.inputs)} inputs, but {len(self.targets)} targets")

    @classmethod
    def from_integers(
        cls,
        inputs_NW: NDArray[np.integer],
        input_lengths_N: NDArray[np.integer],
        targets_NL: NDArray[np.integer],
        target_lengths_N: NDArray[np.integer],
    ) -> "SequenceDataset":
        """One token per integer; columns beyond a row's length are ignored."""
        rows = [
            PackedRows.from_matrix(inputs_NW, input_lengths_N),
            PackedRows.from_matrix(targets_NL, target_lengths_N),
        ]
        values = np.union1d(*(np.unique(packed.tokens) for packed in rows))
        inputs, targets = (PackedRows(_ids(packed.tokens, values), packed.offsets) for packed in rows)
        return cls(inputs, targets, Vocabulary(tuple(map(str, values.tolist()))))

    @classmethod
    def from_sequences(
        cls, inputs: Sequence[Sequence[object]], targets: Sequence[Sequence[object]]
    ) -> "SequenceDataset":
        """From Python sequences of tokens, which are strings or integers."""
        vocabulary = Vocabulary.of(str(token) for rows in (inputs, targets) for row in rows for token in row)

        def pack(rows: Sequence[Sequence[object]]) -> PackedRows:
            offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
            tokens = np.array([vocabulary.id_of(str(t)) for row in rows for t in row], dtype=np.int32)
            return PackedRows(tokens, offsets.astype(np.int64))

        return cls(pack(inputs), pack(targets), vocabulary)

    def __len__(self) -> int:
        return len(self.inputs)

    def input(self, row: int) -> list[str]:
        return [self.vocabulary.tokens[token] for token in self.inputs[row]]

    def target(self, row: int) -> list[str]:
        return [self.vocabulary.tokens[token] for token in self.targets[row]]

    def head(self, samples: int) -> "SequenceDataset":
        """The first `samples` samples, or all if there are fewer."""
        return self if samples >= len(self) else self.take(np.arange(samples))

    def take(self, rows: NDArray[np.integer]) -> "SequenceDataset":
        return replace(self, inputs=self.inputs.take(rows), targets=self.targets.take(rows))

    def with_vocabulary(self, vocabulary: Vocabulary) -> "SequenceDataset":
        """The same sequences with the ids of another vocabulary, which must contain every token."""
        if vocabulary == self.vocabulary:
            return self
        ids = vocabulary.ids_from(self.vocabulary)
        return replace(
            self,
            inputs=PackedRows(ids[self.inputs.tokens], self.inputs.offsets),
            targets=PackedRows(ids[self.targets.tokens], self.targets.offsets),
            vocabulary=vocabulary,
        )

    def fingerprint(self) -> str:
        """A hash of every token of every sample and of the order of the samples."""
        return fingerprint(
            [
                list(self.vocabulary.tokens),
                fingerprint_arrays(self.inputs.tokens, self.inputs.offsets, self.targets.tokens, self.targets.offsets),
            ]
        )


def _ids(tokens: NDArray[np.int32], values: NDArray[np.int32]) -> NDArray[np.int32]:
    """The index of each token among the sorted values, a part at a time: numpy's indices have 64 bits."""
    ids = np.empty_like(tokens)
    for start in range(0, len(tokens), 1 << 20):
        part = slice(start, start + (1 << 20))
        ids[part] = np.searchsorted(values, tokens[part])
    return ids


def share_vocabulary(datasets: Sequence[SequenceDataset]) -> list[SequenceDataset]:
    """The datasets with the ids of one vocabulary, which contains the tokens of all."""
    if not datasets:
        raise InputError("received no datasets; expected at least one")
    vocabulary = Vocabulary.of(token for dataset in datasets for token in dataset.vocabulary.tokens)
    return [dataset.with_vocabulary(vocabulary) for dataset in datasets]


def concatenated(datasets: Sequence[SequenceDataset]) -> SequenceDataset:
    """One dataset with the samples of all, in the order of `datasets`."""
    shared = share_vocabulary(datasets)

    def join(parts: list[PackedRows]) -> PackedRows:
        lengths = np.concatenate([part.lengths for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return PackedRows(np.concatenate([part.tokens for part in parts]), offsets)

    inputs, targets = (join([getattr(one, side) for one in shared]) for side in ("inputs", "targets"))
    return SequenceDataset(inputs, targets, shared[0].vocabulary)
