import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.data import Vocabulary
from genorder.errors import InputError

tokens = st.text(max_size=5) | st.integers(-30, 30).map(str)


def test_integers_come_first_by_value_then_texts_by_text() -> None:
    seen = ["b", "10", "-3", "9", "a", "0", "-20"]
    assert Vocabulary.of(seen).tokens == ("-20", "-3", "0", "9", "10", "a", "b")


def test_only_canonical_decimals_count_as_integers() -> None:
    assert Vocabulary.of(["1.5", "07", "-0", "+1", "5", "٣", "1\n"]).tokens[0] == "5"
    assert Vocabulary.of(["-7", "0", "12"]).is_integers
    for other in ("07", "-0", "+1", "1.5", "", "٣", "1\n"):
        assert not Vocabulary.of(["1", other]).is_integers


def test_a_number_of_thousands_of_digits_is_a_token_like_any_other() -> None:
    number, longest = "7" * 5000, "-" + "9" * 600
    assert Vocabulary.of([number, "3", longest]).tokens == (longest, "3", number)
    assert Vocabulary.of(["3", longest]).is_integers
    assert not Vocabulary.of([number]).is_integers  # it could not be read back as one


@given(st.lists(tokens, max_size=20), st.randoms())
def test_ids_do_not_depend_on_the_sequence_of_tokens(seen: list[str], shuffler: object) -> None:
    shuffled = list(seen)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    vocabulary = Vocabulary.of(seen)
    assert Vocabulary.of(shuffled + seen) == vocabulary
    assert set(vocabulary.tokens) == set(seen)
    assert len(vocabulary) == len(set(seen))


@given(st.lists(st.integers(-(10**30), 10**30), unique=True, max_size=20))
def test_integers_are_sorted_as_python_sorts_them(values: list[int]) -> None:
    assert Vocabulary.of(map(str, values)).tokens == tuple(map(str, sorted(values)))


@given(st.lists(tokens, min_size=1, max_size=20))
def test_ids_are_positions(seen: list[str]) -> None:
    vocabulary = Vocabulary.of(seen)
    assert [vocabulary.tokens[number] for number in vocabulary.ids(seen)] == seen
    assert all(token in vocabulary for token in seen)


@given(st.lists(tokens, max_size=10), st.lists(tokens, max_size=10))
def test_ids_from_translates_between_vocabularies(small: list[str], more: list[str]) -> None:
    inner, outer = Vocabulary.of(small), Vocabulary.of(small + more)
    translated = outer.ids_from(inner)
    assert translated.dtype == np.int32
    assert [outer.tokens[number] for number in translated] == list(inner.tokens)


def test_unknown_token_is_named_with_some_known_ones() -> None:
    vocabulary = Vocabulary.of(map(str, range(100)))
    assert "100" not in vocabulary
    with pytest.raises(InputError, match=r"token '100' is not in the vocabulary of 100 tokens \(0 1 2 3 \.\.\. 96"):
        vocabulary.id_of("100")
    with pytest.raises(InputError, match="'x'"):
        vocabulary.ids(["1", "x"])
    with pytest.raises(InputError, match="'5'"):
        Vocabulary.of(["1"]).ids_from(Vocabulary.of(["1", "5"]))


def test_small_vocabulary_is_listed_whole() -> None:
    with pytest.raises(InputError, match=r"2 tokens \(a b\)"):
        Vocabulary.of("ab").id_of("c")


def test_repeated_token_is_refused() -> None:
    with pytest.raises(InputError, match="same token twice"):
        Vocabulary(("a", "b", "a"))
