"""Do samples that agree in some positions agree in a target too? Counted, nothing is trained.

For a set of positions, the samples are sorted by their tokens there, and neighbours that have the same ones are
compared in all targets at once. A target in which any two of them differ is not determined by the set. A few samples
refute most sets; all of them confirm the others.

Axes: N samples, P positions (the inputs, then the targets), L targets, M pairs of samples.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from genorder.data import EncodedDataset
from genorder.training import ProgressReporter

_FIRST_SAMPLES, _MORE_SAMPLES = 1_000, 4  # at first, and how many times as many if too few of them agree
_UNSEEN = 3  # pairs of samples that may well agree in a set when none was seen to
_CHANCE = 1e-12  # that pairs of samples agree in a target by the frequencies of its tokens alone
_SEEN_AGAIN = 0.1  # of the combinations that occur, those that must occur more than once
_FIRST_CHUNK, _LARGEST_CHUNK = 32, 16_384  # pairs compared at once: few refute most
_MOST_COMPARED = 3_000_000_000  # tokens: with more, there are so many relations that it would take too long


class AgreementConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    positions: int = Field(default=3, ge=0, le=3)  # that may determine a target together; 0 leaves the counting out
    sets: int = Field(default=50_000, ge=0)  # of positions that are tried: larger ones are left out if they are more
    samples: int = Field(default=100_000, ge=2, le=200_000)  # that are looked at
    pairs: int = Field(default=300, ge=1)  # of samples that must agree in the positions, and then in the target


@final
@dataclass(frozen=True)
class Source:
    """Positions that determine a target, when no part of them does."""

    positions: tuple[int, ...]  # of the inputs, then of the targets
    combinations: int  # of tokens there, among the samples: what there is to learn
    pairs: int  # of samples that agree in them: all of these agree in the target

    @property
    def complexity(self) -> tuple[int, int, tuple[int, ...]]:
        """Fewer positions are simpler, then fewer combinations; of equals, those that read targets and not inputs."""
        return len(self.positions), self.combinations, tuple(-position for position in reversed(self.positions))


class TooManyRelations(Exception):
    """So many sets determine so many targets that to confirm them all would take too long."""


@final
class Agreement:
    def __init__(self, train: EncodedDataset, config: AgreementConfig, watch: ProgressReporter | None = None) -> None:
        self._config, self._watch = config, watch or ProgressReporter()
        self._inputs, self._targets = train.input_width, train.target_width
        train = train.head(config.samples)
        tokens_NP = np.concatenate([train.inputs_NW.cpu().numpy(), train.targets_NL.cpu().numpy()], axis=1)
        _, rows_N = np.unique(tokens_NP, axis=0, return_index=True)
        rows_N.sort()  # each sample once: one that is repeated agrees with itself in everything
        columns = [np.unique(tokens_N, return_inverse=True)[1] for tokens_N in tokens_NP[rows_N].T]
        self._tokens_PN = np.array(columns, dtype=np.int32)  # of each position from 0, so that keys stay small
        self._kinds_P = self._tokens_PN.max(axis=1).astype(np.int64) + 1
        self._targets_NL = np.ascontiguousarray(self._tokens_PN[self._inputs :].T)
        self._lengths_N = train.target_lengths_N.cpu().numpy()[rows_N]
        self._has_NL = None if train.is_fixed_length else self._lengths_N[:, None] > np.arange(self._targets)
        self._fewest_L = self._fewest_pairs()
        self._tried: dict[tuple[int, ...], dict[int, Source]] = {}
        self._compared = 0
        self._size = 0  # of the largest sets that are tried now

    def sets(self, size: int) -> int:
        """Of at most so many positions."""
        return sum(math.comb(self._inputs + self._targets, smaller) for smaller in range(size + 1))

    def _fewest_pairs(self) -> NDArray[np.float64]:
        """pairs_L that must be compared: if a target is nearly always the same, many agree by chance."""
        fewest_L = np.full(self._targets, float(self._config.pairs))
        for target, tokens_N in enumerate(self._targets_NL.T):
            tokens_N = tokens_N[self._lengths_N > target]
            most = np.bincount(tokens_N).max() / len(tokens_N) if len(tokens_N) else 1.0
            if most < 1:
                fewest_L[target] = max(fewest_L[target], math.log(_CHANCE) / math.log(most))
        return fewest_L

    def reach_all(self, size: int) -> bool:
        """Is every target determined by inputs and targets known before it, by at most so many at a time?"""
        self._size = size
        open_ones = set(range(self._targets))
        known = list(range(self._inputs))
        combined = [0] * (size + 1)  # by size, how many of the known ones have met in sets
        while open_ones:
            found: set[int] = set()
            for smaller in range(size + 1):
                for chosen in _with_new(known, combined[smaller], smaller):
                    found |= open_ones.intersection(self.determined_by(chosen))
                combined[smaller] = len(known)
                if found:
                    break
            if not found:
                return False
            open_ones -= found
            known += (self._inputs + target for target in sorted(found))
        return True

    def sources(self, size: int) -> tuple[tuple[Source, ...], ...]:
        """Of each target, all of at most so many positions, the simplest first."""
        self._size = size
        positions = range(self._inputs + self._targets)
        sets = (chosen for smaller in range(size + 1) for chosen in combinations(positions, smaller))
        found: list[list[Source]] = [[] for _ in range(self._targets)]
        for chosen in sets:
            for target, source in self.determined_by(chosen).items():
                found[target].append(source)
        return tuple(tuple(sorted(sources, key=lambda source: source.complexity)) for sources in found)

    def determined_by(self, positions: tuple[int, ...]) -> dict[int, Source]:
        """The targets that these positions, in their sequence, determine, and no part of them that was tried before."""
        if positions not in self._tried:
            self._watch(f"comparing samples that agree in {self._size}", len(self._tried), self.sets(self._size))
            parts = (part for size in range(len(positions)) for part in combinations(positions, size))
            explained = {target for part in parts for target in self._tried.get(part, ())}
            explained |= {position - self._inputs for position in positions}
            left = [target for target in range(self._targets) if target not in explained]
            self._tried[positions] = self._count(positions, left)
        return self._tried[positions]

    def _count(self, positions: tuple[int, ...], targets: list[int]) -> dict[int, Source]:
        samples, rows = len(self._targets_NL), _FIRST_SAMPLES
        pairs_2M = self._pairs(positions, rows)
        while targets := self._that_agree(pairs_2M, targets):
            if rows >= samples:
                break
            if (pairs_2M.shape[1] + _UNSEEN) * (samples / rows) ** 2 < self._config.pairs:
                return {}  # too few would agree among all samples
            rows *= _MORE_SAMPLES
            pairs_2M = self._pairs(positions, rows)
        sources = {target: self._source(positions, target) for target in targets}
        return {target: source for target, source in sources.items() if source}

    def _source(self, positions: tuple[int, ...], target: int) -> Source | None:
        """If there is enough to tell by: one combination that has all the pairs does not speak for the others."""
        having_N = np.flatnonzero(self._lengths_N > target)
        times_C = np.unique(self._key(positions, len(self._lengths_N))[having_N], return_counts=True)[1]
        pairs = len(having_N) - len(times_C)
        enough = pairs >= self._fewest_L[target] and (times_C > 1).mean() >= _SEEN_AGAIN
        return Source(positions, len(times_C), pairs) if enough else None

    def _key(self, positions: tuple[int, ...], rows: int) -> NDArray[np.int64]:
        """key_N, the same for samples that agree in the positions."""
        key_N = np.zeros(min(rows, len(self._lengths_N)), dtype=np.int64)
        for position in positions:
            key_N = key_N * self._kinds_P[position] + self._tokens_PN[position, :rows]
        return key_N

    def _pairs(self, positions: tuple[int, ...], rows: int) -> NDArray[np.int64]:
        """pairs_2M of samples that agree in the positions: each with one that does, and has about as many targets."""
        key_N = self._key(positions, rows)
        by_length_N = key_N * (self._targets + 1) + self._lengths_N[: len(key_N)]
        sorted_N = by_length_N.argsort()  # all that agree are compared along a chain: in which sequence does not matter
        same_M = np.flatnonzero(np.diff(key_N[sorted_N]) == 0)
        return np.stack([sorted_N[same_M], sorted_N[same_M + 1]])

    def _that_agree(self, pairs_2M: NDArray[np.int64], targets: list[int]) -> list[int]:
        """Those of the targets in which no pair differs."""
        start, size = 0, _FIRST_CHUNK
        while targets and start < pairs_2M.shape[1]:
            one_B, other_B = pairs_2M[:, start : start + size]
            start, size = start + size, min(4 * size, _LARGEST_CHUNK)
            self._compared += len(one_B) * len(targets)
            if self._compared > _MOST_COMPARED:
                raise TooManyRelations
            one_BL, other_BL = (one_B[:, None], targets), (other_B[:, None], targets)
            differ_BL = self._targets_NL[one_BL] != self._targets_NL[other_BL]
            if self._has_NL is not None:
                differ_BL &= self._has_NL[one_BL] & self._has_NL[other_BL]
            targets = [target for target, differs in zip(targets, differ_BL.any(axis=0), strict=True) if not differs]
        return targets


def _with_new(known: list[int], old: int, size: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many of the known positions, ascending, but for those of the first `old` alone."""
    for new in range(0 if size == 0 and old == 0 else 1, size + 1):
        for fresh in combinations(known[old:], new):
            for others in combinations(known[:old], size - new):
                yield tuple(sorted(fresh + others))
