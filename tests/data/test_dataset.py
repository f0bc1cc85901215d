import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.data import PackedRows, SequenceDataset, Vocabulary, share_vocabulary
from genorder.errors import InputError

Rows = list[list[int]]
ragged = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=12)


def pack(rows: Rows) -> PackedRows:
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return PackedRows(np.array([token for row in rows for token in row], dtype=np.int32), offsets)


def unpack(packed: PackedRows) -> Rows:
    return [packed[row].tolist() for row in range(len(packed))]


@given(ragged)
def test_rows_lengths_and_longest(rows: Rows) -> None:
    packed = pack(rows)
    assert unpack(packed) == rows
    assert packed.lengths.tolist() == [len(row) for row in rows]
    assert packed.longest == max(map(len, rows), default=0)


@given(ragged, st.integers(0, 3), st.integers(-9, 9))
def test_from_matrix_ignores_what_lies_beyond_a_row(rows: Rows, spare: int, filler: int) -> None:
    width = max(map(len, rows), default=0) + spare
    matrix = np.array([row + [filler] * (width - len(row)) for row in rows], dtype=np.int64)
    packed = PackedRows.from_matrix(
        matrix.reshape(len(rows), width), np.array([len(row) for row in rows], dtype=np.int64)
    )
    assert unpack(packed) == rows
    assert packed.tokens.dtype == np.int32


@given(ragged, st.data())
def test_take_picks_rows_in_any_sequence_and_repeatedly(rows: Rows, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=15)) if rows else []
    taken = pack(rows).take(np.array(chosen, dtype=np.int64))
    assert unpack(taken) == [rows[row] for row in chosen]


@given(ragged, st.integers(0, 3), st.integers(-9, 9))
def test_padded_fills_up_to_the_width(rows: Rows, spare: int, fill: int) -> None:
    width = max(map(len, rows), default=0) + spare
    padded = pack(rows).padded(width, fill)
    assert padded.shape == (len(rows), width)
    assert padded.tolist() == [row + [fill] * (width - len(row)) for row in rows]


def test_padded_refuses_a_row_that_is_too_long() -> None:
    with pytest.raises(ValueError, match="a row holds 3 tokens, more than the width of 2"):
        pack([[1], [1, 2, 3]]).padded(2, 0)


@given(ragged)
def test_content_keys_are_equal_exactly_for_equal_rows(rows: Rows) -> None:
    keys = pack(rows).content_keys().tolist()
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            assert (keys[i] == keys[j]) == (first == second)


@given(ragged, ragged)
def test_content_keys_do_not_depend_on_the_neighbours(rows: Rows, before: Rows) -> None:
    assert pack(before + rows).content_keys()[len(before) :].tolist() == pack(rows).content_keys().tolist()


def test_content_keys_across_chunks() -> None:
    distinct = [[i % 251, i // 251] + [7] * (i % 3) for i in range(70_000)]
    keys = pack(distinct + distinct).content_keys()
    np.testing.assert_array_equal(keys[:70_000], keys[70_000:])
    assert len(np.unique(keys)) == 70_000


def test_content_keys_see_position_length_and_padding() -> None:
    rows = [[], [0], [0, 0], [1, 0], [0, 1], [2], [1, 1], [0, 0, 0], [1, 2, 3], [3, 2, 1]]
    assert len(set(pack(rows).content_keys().tolist())) == len(rows)


def test_from_integers_numbers_values_in_ascending_sequence() -> None:
    dataset = SequenceDataset.from_integers(
        np.array([[5, -2, 99], [7, 5, 5]]), np.array([2, 3]), np.array([[-2, 88], [0, 10]]), np.array([1, 2])
    )
    assert dataset.vocabulary.tokens == ("-2", "0", "5", "7", "10")
    assert [dataset.input(row) for row in range(2)] == [["5", "-2"], ["7", "5", "5"]]
    assert [dataset.target(row) for row in range(2)] == [["-2"], ["0", "10"]]
    assert len(dataset) == 2


@pytest.mark.parametrize("large", [2**31, 2**40, -(2**31) - 1])
def test_from_integers_refuses_values_beyond_32_bits(large: int) -> None:
    for lengths in (np.array([2, 2]), np.array([1, 2])):
        with pytest.raises(InputError, match=f"a token is {large}; expected integers of 32 bits"):
            SequenceDataset.from_integers(
                np.zeros((2, 1), dtype=np.int64), np.array([1, 1]), np.array([[0, 1], [large, 0]]), lengths
            )
    beyond_the_row = np.array([[0, large], [1, 2**31 - 1]])
    dataset = SequenceDataset.from_integers(beyond_the_row, np.array([1, 2]), beyond_the_row, np.array([1, 2]))
    assert dataset.target(1) == ["1", "2147483647"]


token = st.integers(-20, 20) | st.text(max_size=3)
sequences = st.lists(st.tuples(st.lists(token, max_size=4), st.lists(token, max_size=4)), max_size=8)


@given(sequences)
def test_from_sequences_gives_the_sequences_back(pairs: list[tuple[list[object], list[object]]]) -> None:
    dataset = SequenceDataset.from_sequences([x for x, _ in pairs], [y for _, y in pairs])
    assert len(dataset) == len(pairs)
    for row, (x, y) in enumerate(pairs):
        assert dataset.input(row) == list(map(str, x))
        assert dataset.target(row) == list(map(str, y))


def test_from_integers_and_from_sequences_agree() -> None:
    rng = np.random.default_rng(0)
    inputs, targets = rng.integers(-9, 10, (50, 4)), rng.integers(-9, 10, (50, 3))
    by_matrix = SequenceDataset.from_integers(inputs, np.full(50, 4), targets, np.full(50, 3))
    by_lists = SequenceDataset.from_sequences(inputs.tolist(), targets.tolist())
    assert by_matrix.fingerprint() == by_lists.fingerprint()


def test_unequal_numbers_of_inputs_and_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="2 inputs, but 1 targets"):
        SequenceDataset(pack([[0], [0]]), pack([[0]]), Vocabulary(("a",)))


def sample_dataset() -> SequenceDataset:
    return SequenceDataset.from_sequences([["a", 1], ["b"], []], [[2], [1, 1], ["a"]])


def test_take_keeps_pairs_together() -> None:
    taken = sample_dataset().take(np.array([2, 0, 2]))
    assert [taken.input(row) for row in range(3)] == [[], ["a", "1"], []]
    assert [taken.target(row) for row in range(3)] == [["a"], ["2"], ["a"]]
    assert taken.vocabulary == sample_dataset().vocabulary


def test_with_vocabulary_renumbers_and_keeps_the_tokens() -> None:
    dataset = sample_dataset()
    larger = Vocabulary.of([*dataset.vocabulary.tokens, "0", "aa"])
    renumbered = dataset.with_vocabulary(larger)
    assert renumbered.vocabulary is larger
    assert renumbered.inputs.tokens.tolist() != dataset.inputs.tokens.tolist()
    for row in range(len(dataset)):
        assert renumbered.input(row) == dataset.input(row)
        assert renumbered.target(row) == dataset.target(row)
    assert dataset.with_vocabulary(Vocabulary(dataset.vocabulary.tokens)) is dataset


def test_with_vocabulary_refuses_one_that_lacks_a_token() -> None:
    with pytest.raises(InputError, match="'b'"):
        sample_dataset().with_vocabulary(Vocabulary.of(["a", "1", "2"]))


def test_share_vocabulary_holds_the_tokens_of_all() -> None:
    first, second = SequenceDataset.from_sequences([[3]], [[1]]), SequenceDataset.from_sequences([["x"]], [[2]])
    shared = share_vocabulary([first, second])
    assert [dataset.vocabulary.tokens for dataset in shared] == [("1", "2", "3", "x")] * 2
    assert shared[0].input(0) + shared[0].target(0) + shared[1].input(0) + shared[1].target(0) == list("31x2")
    with pytest.raises(InputError, match="no datasets"):
        share_vocabulary([])


@pytest.mark.parametrize(
    ("inputs", "targets"),
    [
        ([["a", 1], ["b"], []], [[2], [1, 1], ["b"]]),  # another token
        ([["b"], ["a", 1], []], [[2], [1, 1], ["a"]]),  # another sequence of samples
        ([["a"], [1, "b"], []], [[2], [1, 1], ["a"]]),  # the same tokens, cut elsewhere
        ([["a", 1], ["b"], []], [[2], [1], [1, "a"]]),
        ([["a", 1], ["b"], [], []], [[2], [1, 1], ["a"], ["a"]]),
    ],
)
def test_fingerprint_depends_on_everything(inputs: list[list[object]], targets: list[list[object]]) -> None:
    assert SequenceDataset.from_sequences(inputs, targets).fingerprint() != sample_dataset().fingerprint()


def test_fingerprint_is_that_of_the_content() -> None:
    assert sample_dataset().fingerprint() == sample_dataset().fingerprint()
    renamed = SequenceDataset(sample_dataset().inputs, sample_dataset().targets, Vocabulary.of(["9", "3", "x", "y"]))
    assert renamed.fingerprint() != sample_dataset().fingerprint()
