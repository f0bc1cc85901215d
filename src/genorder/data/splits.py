"""Training, search validation and test: three splits that share no input."""

from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.data.dataset import SequenceDataset, share_vocabulary
from genorder.errors import InputError
from genorder.seeding import derive_seed, numpy_generator
from genorder.store import fingerprint


@final
@dataclass(frozen=True, eq=False)
class Splits:
    """The search sees `train` and `validation`; `test` is for the final success rate alone."""

    train: SequenceDataset
    validation: SequenceDataset
    test: SequenceDataset
    dropped: int = 0  # samples left out because their input stands in another split

    @classmethod
    def of(
        cls, train: SequenceDataset, validation: SequenceDataset, test: SequenceDataset, dropped: int = 0
    ) -> "Splits":
        train, validation, test = share_vocabulary([train, validation, test])
        return cls(train, validation, test, dropped)

    @property
    def all(self) -> tuple[SequenceDataset, SequenceDataset, SequenceDataset]:
        return self.train, self.validation, self.test

    @property
    def input_width(self) -> int:
        return max(split.inputs.longest for split in self.all)

    @property
    def shortest_input(self) -> int:
        return min(int(split.inputs.lengths.min()) for split in self.all)

    @property
    def target_width(self) -> int:
        return max(split.targets.longest for split in self.all)

    def fingerprint(self) -> str:
        return fingerprint([split.fingerprint() for split in self.all])


def split_dataset(dataset: SequenceDataset, *, validation: float | int, test: float | int, seed: int) -> Splits:
    """Shuffle by `seed`, then cut off test and validation; the rest is training.

    Sizes are fractions (float, below 1) or numbers of samples (int). A sample whose input already stands
    in the test split (or in validation, for a training sample) is dropped and counted, so that no
    duplicate straddles two splits. Raises InputError where a split would be empty.
    """
    samples = len(dataset)
    test_size = _size(test, samples, "test")
    validation_size = _size(validation, samples, "validation")
    if test_size + validation_size >= samples:
        raise InputError(
            f"{samples} samples cannot give {validation_size} for validation, {test_size} for test "
            "and any for training; give more data or smaller splits"
        )
    shuffled = numpy_generator(derive_seed(seed, "split")).permutation(samples)
    test_rows, validation_rows, train_rows = np.split(shuffled, [test_size, test_size + validation_size])
    keys = dataset.inputs.content_keys()
    validation_kept = validation_rows[~np.isin(keys[validation_rows], keys[test_rows])]
    held_out = np.concatenate([keys[test_rows], keys[validation_kept]])
    train_kept = train_rows[~np.isin(keys[train_rows], held_out)]
    if not len(validation_kept) or not len(train_kept):
        raise InputError(
            f"the {samples} samples hold only {len(np.unique(keys))} different inputs: after removing from "
            f"each split the inputs of the others, {len(train_kept)} samples are left for training and "
            f"{len(validation_kept)} for validation; give more different samples"
        )
    dropped = samples - test_size - len(validation_kept) - len(train_kept)
    return Splits(dataset.take(train_kept), dataset.take(validation_kept), dataset.take(test_rows), dropped=dropped)


def _size(wanted: float | int, samples: int, name: str) -> int:
    if isinstance(wanted, float) and not 0 < wanted < 1:
        raise InputError(f"the {name} fraction is {wanted}; expected a number between 0 and 1")
    size = round(wanted * samples) if isinstance(wanted, float) else wanted
    if size < 1:
        raise InputError(f"the {name} split of {samples} samples would be empty; give more data")
    return size
