"""Training, validation and test samples: three splits without common inputs."""

from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.data.dataset import SequenceDataset, share_vocabulary
from genorder.data.vocabulary import Vocabulary
from genorder.errors import InputError
from genorder.seeding import derive_seed, numpy_generator
from genorder.store import fingerprint


@final
@dataclass(frozen=True, eq=False)
class Splits:
    """The search uses `train` and `validation`; `test` is only for the final success rate."""

    train: SequenceDataset
    validation: SequenceDataset
    test: SequenceDataset
    dropped: int = 0  # samples removed because another split has the same input

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


def split_dataset(
    dataset: SequenceDataset,
    *,
    validation: float | int | SequenceDataset,
    test: float | int | SequenceDataset,
    seed: int,
    count_kept: bool = False,
) -> Splits:
    """Shuffle by `seed`, then cut off test and validation; the rest is training.

    A size is a fraction (float, below 1) or a number of samples (int). A dataset in place of a size becomes that split,
    and no samples are cut off for it; if none are cut off at all, nothing is shuffled. A sample is dropped and counted
    if the test split has the same input, or if it is a training sample and validation has the same input. With
    `count_kept`, the size of validation is the number of samples after this. All splits share one vocabulary.

    Raises InputError for an empty split, and for a dataset in place of a size that does not match `dataset`.
    """
    samples = len(dataset)
    sizes = {"validation": validation, "test": test}
    separate = {name: split for name, split in sizes.items() if isinstance(split, SequenceDataset)}
    for name, split in separate.items():
        _check_matches(split, dataset, name)
    if separate:
        dataset, *shared = share_vocabulary([dataset, *separate.values()])
        separate = dict(zip(separate, shared, strict=True))
    test_size = 0 if isinstance(test, SequenceDataset) else _size(test, samples, "test")
    validation_size = 0 if isinstance(validation, SequenceDataset) else _size(validation, samples, "validation")
    if test_size + validation_size >= samples:
        raise InputError(
            f"{samples} samples cannot give {validation_size} for validation, {test_size} for test "
            "and any for training; give more data or smaller splits"
        )
    cut = test_size + validation_size
    shuffled = numpy_generator(derive_seed(seed, "split")).permutation(samples) if cut else np.arange(samples)
    keys = dataset.inputs.content_keys()
    test_split = separate["test"] if "test" in separate else dataset.take(shuffled[:test_size])
    test_keys = test_split.inputs.content_keys()
    if count_kept and validation_size:
        kept = np.flatnonzero(~np.isin(keys[shuffled[test_size:]], test_keys))
        validation_size = int(kept[:validation_size][-1]) + 1 if len(kept) else validation_size
        cut = test_size + validation_size
    validation_split = separate["validation"] if "validation" in separate else dataset.take(shuffled[test_size:cut])
    validation_keys = validation_split.inputs.content_keys()
    validation_kept = np.flatnonzero(~np.isin(validation_keys, test_keys))
    train_kept = shuffled[cut:][~np.isin(keys[shuffled[cut:]], np.concatenate([test_keys, validation_keys]))]
    if not len(validation_kept) or not len(train_kept):
        raise InputError(
            f"the {samples} samples hold only {len(np.unique(keys))} different inputs: after removing from "
            f"each split the inputs of the others, {len(train_kept)} samples are left for training and "
            f"{len(validation_kept)} for validation; give more different samples"
        )
    dropped = samples - cut - len(train_kept) + len(validation_split) - len(validation_kept)
    return Splits(dataset.take(train_kept), validation_split.take(validation_kept), test_split, dropped=dropped)


def unseen_tokens(split: SequenceDataset, vocabulary: Vocabulary) -> tuple[list[str], int]:
    """The tokens of a split that a vocabulary lacks, and the number of samples with such a token."""
    unseen_V = np.array([token not in vocabulary for token in split.vocabulary.tokens], dtype=bool)
    tokens, rows = [], []
    for packed in (split.inputs, split.targets):
        held = unseen_V[packed.tokens]
        tokens.append(packed.tokens[held])
        rows.append(np.repeat(np.arange(len(packed)), packed.lengths)[held])
    found = [split.vocabulary.tokens[token] for token in np.unique(np.concatenate(tokens))]
    return found, len(np.unique(np.concatenate(rows)))


def _check_matches(split: SequenceDataset, dataset: SequenceDataset, name: str) -> None:
    """Raises InputError if the samples of a split cannot be of the same kind as the training samples."""
    if not len(split):
        raise InputError(f"the {name} split holds no samples")
    for what, longest, most in (
        ("an input", split.inputs.longest, dataset.inputs.longest),
        ("a target", split.targets.longest, dataset.targets.longest),
    ):
        if longest > most:
            raise InputError(
                f"the {name} split has {what} of {longest} tokens; those of the training samples have at most {most}"
            )
    tokens, samples = unseen_tokens(split, dataset.vocabulary)
    if samples == len(split):
        raise InputError(
            f"every sample of the {name} split holds a token that no training sample has, such as {tokens[0]!r}; "
            "expected samples of the same kind, split into tokens in the same way"
        )


def _size(wanted: float | int, samples: int, name: str) -> int:
    if isinstance(wanted, float) and not 0 < wanted < 1:
        raise InputError(f"the {name} fraction is {wanted}; expected a number between 0 and 1")
    size = round(wanted * samples) if isinstance(wanted, float) else wanted
    if size < 1:
        raise InputError(f"the {name} split of {samples} samples would be empty; give more data")
    return size
