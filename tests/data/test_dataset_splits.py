import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import SequenceDataset, Splits, Vocabulary, split_dataset, unseen_tokens
from genorder.errors import InputError

Sample = tuple[tuple[str, ...], tuple[str, ...]]


def distinct(samples: int) -> SequenceDataset:
    return SequenceDataset.from_sequences([[i, i % 7] for i in range(samples)], [[i] for i in range(samples)])


def content(dataset: SequenceDataset) -> list[Sample]:
    return [(tuple(dataset.input(row)), tuple(dataset.target(row))) for row in range(len(dataset))]


def contents(splits: Splits) -> list[Sample]:
    return [sample for split in splits.all for sample in content(split)]


def sizes(splits: Splits) -> tuple[int, int, int]:
    return len(splits.train), len(splits.validation), len(splits.test)


@pytest.mark.parametrize(
    ("validation", "test", "expected"),
    [
        (0.1, 0.2, (70, 10, 20)),
        (5, 7, (88, 5, 7)),
        (0.25, 1, (74, 25, 1)),
        (1, 98, (1, 1, 98)),
        (0.014, 0.016, (97, 1, 2)),
    ],
)
def test_sizes_are_fractions_or_numbers(validation: float, test: float, expected: tuple[int, int, int]) -> None:
    splits = split_dataset(distinct(100), validation=validation, test=test, seed=0)
    assert sizes(splits) == expected
    assert splits.dropped == 0
    assert sorted(contents(splits)) == sorted(content(distinct(100)))


def test_same_seed_same_splits_other_seed_others() -> None:
    first, again, other = (split_dataset(distinct(60), validation=10, test=10, seed=seed) for seed in (3, 3, 4))
    assert first.fingerprint() == again.fingerprint()
    assert first.fingerprint() != other.fingerprint()
    assert set(content(first.test)) != set(content(other.test))


def test_samples_are_shuffled() -> None:
    test = content(split_dataset(distinct(200), validation=20, test=50, seed=0).test)
    numbers = [int(target[0]) for _, target in test]
    assert numbers != sorted(numbers)
    assert min(numbers) < 50
    assert max(numbers) > 150


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=2), st.integers(0, 3)), min_size=3, max_size=40),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 5),
)
def test_no_input_is_in_two_splits(samples: list[tuple[list[int], int]], validation: int, test: int, seed: int) -> None:
    dataset = SequenceDataset.from_sequences([x for x, _ in samples], [[y] for _, y in samples])
    try:
        splits = split_dataset(dataset, validation=validation, test=test, seed=seed)
    except InputError:
        return  # nothing left for a split; see below
    train, held, tested = ({x for x, _ in content(split)} for split in splits.all)
    assert not train & held
    assert not train & tested
    assert not held & tested
    assert len(splits.test) == test
    assert splits.dropped == len(samples) - sum(sizes(splits))
    rest = content(dataset)
    for sample in contents(splits):
        rest.remove(sample)  # each is one of the given samples, used once
    assert all(x in tested | held for x, _ in rest)  # nothing is dropped without a reason


def test_many_duplicates_are_dropped_and_counted() -> None:
    rng = np.random.default_rng(1)
    inputs = rng.integers(0, 5, (2000, 2))  # 25 different inputs, each about 80 times
    dataset = SequenceDataset.from_sequences(inputs.tolist(), rng.integers(0, 5, (2000, 1)).tolist())
    splits = split_dataset(dataset, validation=5, test=5, seed=0)
    held_out = {x for split in (splits.validation, splits.test) for x, _ in content(split)}
    outside = [x for x, _ in content(dataset) if x not in held_out]
    assert len(splits.train) == len(outside)
    assert splits.dropped > 200
    assert splits.dropped == 2000 - sum(sizes(splits))


def test_too_few_different_inputs_are_refused() -> None:
    dataset = SequenceDataset.from_sequences([[1]] * 30, [[i] for i in range(30)])
    with pytest.raises(InputError, match=r"hold only 1 different inputs.*0 samples are left for training") as caught:
        split_dataset(dataset, validation=0.1, test=0.1, seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("validation", "test"), [(5, 5), (9, 1), (0.5, 0.5), (100, 1), (1, 100), (0.9, 0.9)])
def test_no_samples_left_for_training_is_refused(validation: float, test: float) -> None:
    with pytest.raises(InputError, match=r"10 samples cannot give .* any for training"):
        split_dataset(distinct(10), validation=validation, test=test, seed=0)


@pytest.mark.parametrize("size", [0.01, 0, -3])
def test_empty_split_is_refused(size: float) -> None:
    with pytest.raises(InputError, match="validation split of 10 samples would be empty"):
        split_dataset(distinct(10), validation=size, test=1, seed=0)
    with pytest.raises(InputError, match="test split of 10 samples would be empty"):
        split_dataset(distinct(10), validation=1, test=size, seed=0)


@pytest.mark.parametrize("fraction", [0.0, 1.0, 1.5, -0.1, float("nan"), float("inf")])
def test_fraction_outside_is_refused(fraction: float) -> None:
    with pytest.raises(InputError, match=r"test fraction is .*between 0 and 1"):
        split_dataset(distinct(10), validation=1, test=fraction, seed=0)


def test_widths_and_vocabulary_are_of_all_three() -> None:
    parts = [
        SequenceDataset.from_sequences(x, y)
        for x, y in (([[1]], [[2, 2]]), ([["a", "b", "c"]], [[1]]), ([[7]], [[5, 6, 7, 8]]))
    ]
    splits = Splits.of(*parts, dropped=3)
    assert (splits.input_width, splits.target_width, splits.dropped) == (3, 4, 3)
    for before, after in zip(parts, splits.all, strict=True):
        assert content(before) == content(after)
        assert after.vocabulary == splits.train.vocabulary
    assert set(splits.train.vocabulary.tokens) == set("125678abc")


def test_fingerprint_tells_the_splits_apart() -> None:
    first, second = distinct(4), distinct(5)
    assert Splits.of(first, second, second).fingerprint() != Splits.of(second, first, second).fingerprint()


def test_separate_datasets_become_splits() -> None:
    """No samples of the dataset are cut off for them, and none of their inputs is in the training split."""
    dataset, validation, test = distinct(100), distinct(30), distinct(10)
    splits = split_dataset(dataset, validation=validation, test=test, seed=0)
    assert sizes(splits) == (70, 20, 10)
    assert splits.dropped == 40
    assert content(splits.test) == content(test)
    assert content(splits.validation) == content(validation)[10:]
    assert len({split.vocabulary for split in splits.all}) == 1
    assert content(splits.train) == content(dataset)[30:]  # nothing is cut off, so nothing is shuffled
    one = split_dataset(dataset, validation=5, test=test, seed=0)
    assert len(one.test) == 10
    assert set(content(one.validation)) <= set(content(dataset)[10:])


def test_a_split_of_ones_own_may_hold_tokens_that_training_lacks() -> None:
    """The vocabulary contains them, with the same ids as if all samples were one dataset."""
    test = SequenceDataset.from_sequences([[1, 100], [2, 2], ["z", 2]], [[1], ["z"], ["z"]])
    dataset = distinct(20)
    assert unseen_tokens(test, dataset.vocabulary) == (["100", "z"], 3)
    assert unseen_tokens(dataset, dataset.vocabulary) == ([], 0)
    test = SequenceDataset.from_sequences([[1, 100], [2, 2], ["z", 2]], [[1], [3], ["z"]])
    assert unseen_tokens(test, dataset.vocabulary) == (["100", "z"], 2)
    splits = split_dataset(dataset, validation=5, test=test, seed=0)
    assert content(splits.test) == content(test)
    assert {split.vocabulary for split in splits.all} == {Vocabulary.of([*map(str, range(20)), "100", "z"])}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (SequenceDataset.from_sequences([[1, 1]], [["new"]]), "every sample of the test split holds a token .* 'new'"),
        (SequenceDataset.from_sequences([[1, 1, 1]], [[1]]), "the test split has an input of 3 tokens; those of the"),
        (SequenceDataset.from_sequences([[1, 1]], [[1, 2]]), "the test split has a target of 2 tokens; those of the"),
        (distinct(100).take(np.arange(0)), "the test split holds no samples"),
    ],
)
def test_separate_splits_that_do_not_match_are_refused(own: SequenceDataset, message: str) -> None:
    with pytest.raises(InputError, match=message):
        split_dataset(distinct(100), validation=5, test=own, seed=0)


@given(different=st.integers(4, 40), seed=st.integers(0, 20), cut=st.integers(1, 20))
def test_what_was_kept_of_validation_gives_the_same_splits_again(different: int, seed: int, cut: int) -> None:
    repeated = SequenceDataset.from_sequences([[i % different] for i in range(60)], [[i] for i in range(60)])
    try:
        splits = split_dataset(repeated, validation=cut, test=6, seed=seed)
    except InputError:
        return
    again = split_dataset(repeated, validation=len(splits.validation), test=6, seed=seed, count_kept=True)
    assert again.fingerprint() == splits.fingerprint()
    assert again.dropped == splits.dropped
