from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import EncodedDataset, SequenceDataset, arrange, encode
from genorder.data.encoding import EOS, IGNORED, PAD, SEP, SPECIAL_TOKENS, decode_tokens, restrict_orders
from genorder.orders import Order


class Case(NamedTuple):
    dataset: SequenceDataset
    encoded: EncodedDataset
    rows: list[int]
    orders: list[Order]  # one, or one per row


@st.composite
def cases(draw: st.DrawFn) -> Case:
    longest = draw(st.integers(1, 6))
    fixed = draw(st.booleans())
    token = st.integers(0, 9)
    sample = st.tuples(st.lists(token, max_size=4), st.lists(token, min_size=longest if fixed else 1, max_size=longest))
    samples = draw(st.lists(sample, min_size=1, max_size=6))
    dataset = SequenceDataset.from_sequences([x for x, _ in samples], [y for _, y in samples])
    width = dataset.inputs.longest + draw(st.integers(0, 2))
    target_width = dataset.targets.longest + draw(st.integers(0, 0 if fixed else 2))
    rows = draw(st.lists(st.integers(0, len(samples) - 1), min_size=1, max_size=8))
    orders = draw(
        st.lists(
            st.permutations(range(target_width)).map(Order.of),
            min_size=len(rows),
            max_size=len(rows),
        )
    )
    if draw(st.booleans()):
        orders = orders[:1]
    return Case(dataset, encode(dataset, input_width=width, target_width=target_width), rows, orders)


def oracle(case: Case) -> tuple[list[list[int]], list[list[int]]]:
    """Tokens and labels of each row; a token that no counted prediction reads is None."""
    all_tokens, all_labels = [], []
    for place, row in enumerate(case.rows):
        order = case.orders[place if len(case.orders) > 1 else 0]
        x = [number + SPECIAL_TOKENS for number in case.dataset.inputs[row].tolist()]
        y = [number + SPECIAL_TOKENS for number in case.dataset.targets[row].tolist()]
        emitted = order.restrict(len(y)).apply(y)
        blank = len(order) - len(y)
        tokens = x + [PAD] * (case.encoded.input_width - len(x)) + [SEP] + emitted
        all_tokens.append(tokens)
        all_labels.append([*emitted, EOS, *[IGNORED] * blank])
    return all_tokens, all_labels


@settings(deadline=None)
@given(cases())
def test_arrange_equals_the_plain_computation(case: Case) -> None:
    orders = torch.tensor([list(order) for order in case.orders])
    batch = arrange(case.encoded, torch.tensor(case.rows), orders)
    tokens, labels = oracle(case)
    width = case.encoded.input_width + 1 + case.encoded.target_width
    assert batch.tokens_BT.shape == (len(case.rows), width)
    assert batch.labels_BQ.shape == (len(case.rows), case.encoded.target_width + 1)
    assert batch.tokens_BT.dtype == batch.labels_BQ.dtype == torch.int64
    assert batch.labels_BQ.tolist() == labels
    for row, expected in zip(batch.tokens_BT.tolist(), tokens, strict=True):
        assert row[: len(expected)] == expected
        assert all(0 <= token < case.encoded.model_vocabulary for token in row)


@settings(deadline=None)
@given(cases())
def test_every_label_is_the_token_that_follows(case: Case) -> None:
    """Prediction q is read off position W + q, so its label is the token at W + q + 1 until EOS."""
    orders = torch.tensor([list(order) for order in case.orders])
    batch = arrange(case.encoded, torch.tensor(case.rows), orders)
    first = case.encoded.input_width + 1
    for tokens, labels in zip(batch.tokens_BT.tolist(), batch.labels_BQ.tolist(), strict=True):
        end = labels.index(EOS)
        assert tokens[first : first + end] == labels[:end]
        assert tokens[first - 1] == SEP
        assert all(label == IGNORED for label in labels[end + 1 :])


@settings(deadline=None)
@given(cases())
def test_restricted_orders_start_with_those_of_order_restrict(case: Case) -> None:
    orders = torch.tensor([list(order) for order in case.orders])
    restricted = restrict_orders(case.encoded, torch.tensor(case.rows), orders).tolist()
    for place, row in enumerate(case.rows):
        order = case.orders[place if len(case.orders) > 1 else 0]
        length = int(case.dataset.targets.lengths[row])
        assert restricted[place][:length] == list(order.restrict(length))
        assert sorted(restricted[place]) == sorted(order)


def test_a_worked_example() -> None:
    dataset = SequenceDataset.from_sequences([["a"], ["b", "c"]], [["a", "b", "c"], ["c", "a"]])
    encoded = encode(dataset, input_width=2, target_width=3)
    batch = arrange(encoded, torch.tensor([0, 1]), torch.tensor([[2, 1, 0]]))
    a, b, c = 3, 4, 5
    assert batch.tokens_BT[0].tolist() == [a, PAD, SEP, c, b, a]
    assert batch.tokens_BT[1].tolist()[:5] == [b, c, SEP, a, c]
    assert batch.labels_BQ.tolist() == [[c, b, a, EOS], [a, c, EOS, IGNORED]]
    assert encoded.model_vocabulary == 6
    assert not encoded.is_fixed_length


def test_encode_properties_and_head() -> None:
    rng = np.random.default_rng(0)
    dataset = SequenceDataset.from_integers(
        rng.integers(0, 4, (5, 3)), np.full(5, 3), rng.integers(0, 4, (5, 2)), np.full(5, 2)
    )
    encoded = encode(dataset, input_width=3, target_width=2)
    assert (len(encoded), encoded.input_width, encoded.target_width) == (5, 3, 2)
    assert encoded.is_fixed_length
    assert not encode(dataset, input_width=3, target_width=3).is_fixed_length
    head = encoded.head(2)
    assert len(head) == 2
    for name in ("inputs_NW", "targets_NL", "target_lengths_N"):
        assert torch.equal(getattr(head, name), getattr(encoded, name)[:2])
        assert torch.equal(getattr(encoded.to(torch.device("cpu")), name), getattr(encoded, name))
    assert head.model_vocabulary == encoded.model_vocabulary == len(dataset.vocabulary) + SPECIAL_TOKENS


def test_too_long_sequences_are_refused() -> None:
    dataset = SequenceDataset.from_sequences([[1, 2]], [[1, 2, 3]])
    with pytest.raises(ValueError, match="a row holds 2 tokens"):
        encode(dataset, input_width=1, target_width=3)
    with pytest.raises(ValueError, match="a row holds 3 tokens"):
        encode(dataset, input_width=2, target_width=2)


def test_decode_tokens_names_the_special_ones() -> None:
    assert decode_tokens(np.array([PAD, SEP, EOS, 3, 4]), ("x", "y")) == ["<pad>", "<sep>", "<eos>", "x", "y"]
