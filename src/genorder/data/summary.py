"""What a dataset looks like: lengths, vocabulary, the most frequent tokens, one sample."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from genorder.data.dataset import PackedRows, SequenceDataset

_BARS = 10  # of a histogram
_TOKENS = 10  # most frequent ones


@final
@dataclass(frozen=True)
class LengthSummary:
    shortest: int
    longest: int
    mean: float
    histogram: list[tuple[int, int, int]]  # first and last length of a bar, and how many samples it holds

    @classmethod
    def of(cls, packed: PackedRows) -> "LengthSummary":
        lengths = packed.lengths
        return cls(int(lengths.min()), int(lengths.max()), float(lengths.mean()), _histogram(lengths))

    def __str__(self) -> str:
        return str(self.shortest) if self.shortest == self.longest else f"{self.shortest}-{self.longest}"


@final
@dataclass(frozen=True)
class Summary:
    samples: int
    inputs: LengthSummary
    targets: LengthSummary
    vocabulary: int
    frequent_tokens: list[tuple[str, int]]  # with the number of times each occurs
    sample: tuple[list[str], list[str]]  # the first one's input and target

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(dataset: SequenceDataset) -> Summary:
    counts = token_counts(dataset)
    most = np.argsort(-counts, kind="stable")[:_TOKENS]
    return Summary(
        samples=len(dataset),
        inputs=LengthSummary.of(dataset.inputs),
        targets=LengthSummary.of(dataset.targets),
        vocabulary=len(dataset.vocabulary),
        frequent_tokens=[(dataset.vocabulary.tokens[token], int(counts[token])) for token in most],
        sample=(dataset.input(0), dataset.target(0)),
    )


def token_counts(dataset: SequenceDataset) -> NDArray[np.int64]:
    """How often each token of the vocabulary occurs, in inputs and targets together."""
    size = len(dataset.vocabulary)
    return np.bincount(dataset.inputs.tokens, minlength=size) + np.bincount(dataset.targets.tokens, minlength=size)


def shortened_tokens(tokens: Sequence[str], shown: int = 8, width: int = 20) -> str:
    """The first tokens, long ones cut, with the number of those left out."""
    texts = [token if len(token) <= width else f"{token[: width - 3]}..." for token in tokens[:shown]]
    more = f" ... ({len(tokens)} in all)" if len(tokens) > shown else ""
    return " ".join(texts) + more


def _histogram(lengths: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // _BARS)
    counts = np.bincount((lengths - low) // width)
    return [(low + bar * width, min(high, low + (bar + 1) * width - 1), int(n)) for bar, n in enumerate(counts)]
