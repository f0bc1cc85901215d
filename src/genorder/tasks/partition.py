"""Which split owns an input: decided by a hash of the input itself, so that no two splits share one."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Split(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


# The salt is chosen so that each split owns an input of every recurrence at L = 1, 2, 3 (see the tests).
_SALT = 8
_MULTIPLIER = 0x9E3779B97F4A7C15
_WORD = 2**64
_TENTH = _WORD // 10


def owned_by(split: Split, inputs: IntArray, input_lengths: IntArray) -> NDArray[np.bool_]:
    """Which rows the split owns: test a tenth of all inputs, validation a tenth, training the rest.

    The owner depends on the row's content within its length and on that length, on nothing else.
    """
    hashes = row_hashes(inputs, input_lengths)
    if split == Split.TEST:
        return hashes < _TENTH
    if split == Split.VALIDATION:
        return (hashes >= _TENTH) & (hashes < 2 * _TENTH)
    return hashes >= 2 * _TENTH


def row_hashes(inputs: IntArray, input_lengths: IntArray) -> NDArray[np.uint64]:
    """A 64-bit hash of each row: a polynomial in the tokens, then the finaliser of splitmix64."""
    width = inputs.shape[1]
    powers = [pow(_MULTIPLIER, column + 2, _WORD) for column in range(width)]
    hashes = np.where(within(input_lengths, width), inputs, 0).astype(np.int64).view(np.uint64) @ np.array(
        powers, np.uint64
    )
    hashes += input_lengths.astype(np.uint64) * np.uint64(_MULTIPLIER) + np.uint64(_SALT)
    return mix(hashes)


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a bijection of 64-bit words whose output bits depend on all input bits."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def within(lengths: IntArray, width: int) -> NDArray[np.bool_]:
    """(N, width): which positions lie inside their row's length."""
    mask: NDArray[np.bool_] = np.arange(width) < lengths[:, np.newaxis]
    return mask
