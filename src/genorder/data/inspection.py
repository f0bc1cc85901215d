"""A summary of a dataset, and checks that find problems before a model is trained on it.

Axes: N samples, W input columns, L target columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from genorder.data.dataset import PackedRows, SequenceDataset

_BARS = 10  # of a histogram
_FREQUENT_TOKENS = 10  # tokens listed in a summary
_COLUMNS = 512  # of inputs and of targets, compared at most
_PROBED = 256  # samples that rule out most pairs of columns
_LARGEST_MATRIX = 1 << 32  # entries of all samples, padded to the longest one
_MANY_TOKENS = 500
_RARE = 10  # a token with fewer occurrences is rare
_SAMPLES_PER_TARGET = 100
_NUMBER = re.compile(r"-?[0-9]{2,}")


@final
@dataclass(frozen=True)
class LengthSummary:
    shortest: int
    longest: int
    mean: float
    histogram: list[tuple[int, int, int]]  # first length, last length and number of samples of each bar

    @classmethod
    def of(cls, packed: PackedRows) -> "LengthSummary":
        lengths = packed.lengths
        return cls(int(lengths.min()), int(lengths.max()), float(lengths.mean()), _histogram(lengths))

    def __str__(self) -> str:
        return str(self.shortest) if self.shortest == self.longest else f"{self.shortest}-{self.longest}"


@final
@dataclass(frozen=True)
class DatasetSummary:
    samples: int
    inputs: LengthSummary
    targets: LengthSummary
    vocabulary: int
    frequent_tokens: list[tuple[str, int]]  # with the number of occurrences of each
    sample: tuple[list[str], list[str]]  # input and target of the first sample

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def summarise_dataset(dataset: SequenceDataset) -> DatasetSummary:
    counts = _token_counts(dataset)
    most = np.argsort(-counts, kind="stable")[:_FREQUENT_TOKENS]
    return DatasetSummary(
        samples=len(dataset),
        inputs=LengthSummary.of(dataset.inputs),
        targets=LengthSummary.of(dataset.targets),
        vocabulary=len(dataset.vocabulary),
        frequent_tokens=[(dataset.vocabulary.tokens[token], int(counts[token])) for token in most],
        sample=(dataset.input(0), dataset.target(0)),
    )


def _token_counts(dataset: SequenceDataset) -> NDArray[np.int64]:
    """How often each token of the vocabulary occurs, in inputs and targets together."""
    size = len(dataset.vocabulary)
    return np.bincount(dataset.inputs.tokens, minlength=size) + np.bincount(dataset.targets.tokens, minlength=size)


def token_preview(tokens: Sequence[str], shown: int = 8, width: int = 20) -> str:
    """The first tokens, long ones cut, and the number of all tokens if there are more."""
    texts = [token if len(token) <= width else f"{token[: width - 3]}..." for token in tokens[:shown]]
    more = f" ... ({len(tokens)} in all)" if len(tokens) > shown else ""
    return " ".join(texts) + more


@final
@dataclass(frozen=True)
class Finding:
    name: str
    message: str
    prevents: bool = False  # whether the data cannot be used for a run

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def check_dataset(dataset: SequenceDataset, blank_lines: int = 0) -> list[Finding]:
    """All findings; `blank_lines` is the number of blank lines in the file."""
    found = [_too_wide(dataset)]
    if blank_lines:
        found.append(Finding("blank_lines", f"{blank_lines} blank lines skipped"))
    found += _repeated_samples(dataset)
    found += _trivial_targets(dataset)
    found += [_large_vocabulary(dataset), _few_samples(dataset)]
    return [finding for finding in found if finding is not None]


def _too_wide(dataset: SequenceDataset) -> Finding | None:
    width = dataset.inputs.longest + dataset.targets.longest
    if len(dataset) * width <= _LARGEST_MATRIX:
        return None
    message = (
        f"the longest input and target have {width:,} tokens, too many to pad all {len(dataset):,} samples to; "
        "remove the longest samples"
    )
    return Finding("too_wide", message, prevents=True)


def _repeated_samples(dataset: SequenceDataset) -> Iterator[Finding]:
    """Duplicates, and inputs with more than one target: a model can solve only the most frequent target of an input."""
    inputs, targets = dataset.inputs.content_keys(), dataset.targets.content_keys()
    order = np.lexsort((targets, inputs))
    inputs, targets = inputs[order], targets[order]
    new_input = np.concatenate([[True], inputs[1:] != inputs[:-1]])
    new_pair = new_input | np.concatenate([[True], targets[1:] != targets[:-1]])
    pairs = np.flatnonzero(new_pair)
    repeats = np.diff(np.append(pairs, len(order)))
    if (duplicates := len(order) - len(pairs)) > 0:
        yield Finding("duplicates", f"{duplicates} samples repeat an earlier one ({_share(duplicates, len(order))})")
    starts = np.flatnonzero(new_input[pairs])
    conflicting = int((np.diff(np.append(starts, len(pairs))) > 1).sum())
    if conflicting:
        ceiling = int(np.maximum.reduceat(repeats, starts).sum())
        message = (
            f"{conflicting} inputs occur with more than one target: no model can solve more than "
            f"{_share(ceiling, len(order))} of the samples"
        )
        yield Finding("conflicting_targets", message)


def _trivial_targets(dataset: SequenceDataset) -> Iterator[Finding]:
    """Targets that are always the same token, and targets that repeat an input."""
    if len(dataset) < 2:
        return
    shared = min(int(dataset.targets.lengths.min()), _COLUMNS)
    constant = [t for t in range(shared) if _is_constant(_column(dataset.targets, t))]
    if constant:
        yield Finding("constant_targets", f"always the same token: {_listed('y', constant)}")
    copies = _copied_inputs(dataset, [t for t in range(shared) if t not in set(constant)])
    if copies:
        shown = ", ".join(f"y{target} = x{source}" for target, source in copies[:8])
        more = f" and {len(copies) - 8} more" if len(copies) > 8 else ""
        yield Finding("copied_inputs", f"targets that repeat an input: {shown}{more}")


def _copied_inputs(dataset: SequenceDataset, targets: list[int]) -> list[tuple[int, int]]:
    """(target, input) for each target column that equals an input column in every sample; the first such input."""
    width = min(int(dataset.inputs.lengths.min()), _COLUMNS)
    if not width or not targets:
        return []
    probed = np.unique(np.linspace(0, len(dataset) - 1, _PROBED).astype(np.int64))
    inputs_NW = np.stack([_column(dataset.inputs, x)[probed] for x in range(width)], axis=1)
    copies = []
    for target in targets:
        column_N = _column(dataset.targets, target)
        for source in np.flatnonzero((inputs_NW == column_N[probed][:, None]).all(axis=0)).tolist():
            if np.array_equal(_column(dataset.inputs, source), column_N):
                copies.append((target, source))
                break
    return copies


def _large_vocabulary(dataset: SequenceDataset) -> Finding | None:
    size = len(dataset.vocabulary)
    if size <= _MANY_TOKENS:
        return None
    numbers = sum(_NUMBER.fullmatch(token) is not None for token in dataset.vocabulary.tokens)
    message = f"{size:,} different tokens"
    if numbers > size / 2:
        message += f", {numbers:,} of them numbers of several digits: split into digits (--split character), 10 suffice"
    elif (rare := int((_token_counts(dataset) < _RARE).sum())) > size / 2:
        message += f", {rare:,} of them seen fewer than ten times: is --split the right one?"
    else:
        message += ": a model must learn each from the samples that contain it"
    return Finding("large_vocabulary", message)


def _few_samples(dataset: SequenceDataset) -> Finding | None:
    needed = _SAMPLES_PER_TARGET * dataset.targets.longest
    if len(dataset) >= needed:
        return None
    message = (
        f"{len(dataset)} samples are few for targets of {dataset.targets.longest} tokens: below about {needed}, "
        "a model memorises them"
    )
    return Finding("few_samples", message)


def _column(packed: PackedRows, column: int) -> NDArray[np.int32]:
    return packed.tokens[packed.offsets[:-1] + column]


def _is_constant(column_N: NDArray[np.int32]) -> bool:
    return bool((column_N == column_N[0]).all())


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _listed(letter: str, numbers: list[int], shown: int = 12) -> str:
    more = f" and {len(numbers) - shown} more" if len(numbers) > shown else ""
    return " ".join(f"{letter}{number}" for number in numbers[:shown]) + more


def _histogram(lengths: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // _BARS)
    counts = np.bincount((lengths - low) // width)
    return [(low + bar * width, min(high, low + (bar + 1) * width - 1), int(n)) for bar, n in enumerate(counts)]
