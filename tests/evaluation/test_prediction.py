import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from evaluation_helpers import encode_whole, generate_plainly, overfitted, random_dataset, random_model

from genorder.data import SequenceDataset
from genorder.data.encoding import EOS, PAD, SPECIAL_TOKENS
from genorder.errors import InputError
from genorder.evaluation import predict
from genorder.models import SavedModel, load_model
from genorder.orders import Order


def random_saved(order: Order, *, fixed: bool, seed: int = 0) -> tuple[SavedModel, SequenceDataset]:
    dataset = random_dataset(30, fixed=fixed)
    encoded = encode_whole(dataset)
    model = random_model(encoded.model_vocabulary, encoded.input_width + 1 + encoded.target_width, seed=seed)
    return SavedModel(model, dataset.vocabulary, order, encoded.input_width, shortest_input=0), dataset


@pytest.mark.parametrize("fixed", [True, False])
def test_gives_back_the_targets_that_were_learned_in_another_order(fixed: bool, tmp_path: Path) -> None:
    rows = [([1, 2], [5, 6, 7, 8]), ([2, 1], [8, 8, 5, 1]), ([3], [1, 2, 3, 4]), ([], [7, 5, 6, 2])]
    if not fixed:
        rows = [(x, y[: 4 - number]) for number, (x, y) in enumerate(rows)]
    dataset = SequenceDataset.from_sequences([x for x, _ in rows], [y for _, y in rows])
    order = Order((2, 0, 3, 1))
    SavedModel(overfitted(dataset, order), dataset.vocabulary, order, 2, 0).save(tmp_path)
    saved = load_model(tmp_path, torch.device("cpu"))
    inputs = [list(map(str, x)) for x, _ in rows]
    assert predict(saved, inputs) == [list(map(str, y)) for _, y in rows]
    assert predict(saved, inputs[::-1]) == [list(map(str, y)) for _, y in rows[::-1]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", [Order((0, 1, 2, 3)), Order((2, 0, 3, 1)), Order((1, 2, 3, 0))])
def test_undoes_the_order_of_whatever_is_generated(order: Order, seed: int) -> None:
    saved, dataset = random_saved(order, fixed=False, seed=seed)
    names = ["<pad>", "<sep>", "<eos>", *dataset.vocabulary.tokens]
    inputs = [dataset.input(row) for row in range(len(dataset))]
    for tokens, predicted in zip(inputs, predict(saved, inputs), strict=True):
        x = [number + SPECIAL_TOKENS for number in dataset.vocabulary.ids(tokens)]
        generated = generate_plainly(saved.model, x + [PAD] * (saved.input_width - len(x)), 5)
        length = min(generated.index(EOS) if EOS in generated else 5, 4)
        expected: list[str] = []
        if length:
            emitted = [names[token] for token in generated[:length]]
            expected = order.restrict(length).inverse().apply(emitted)
        assert predicted == expected


def test_the_outputs_compared_are_of_many_lengths() -> None:
    lengths = set()
    for seed in range(4):
        saved, dataset = random_saved(Order((2, 0, 3, 1)), fixed=False, seed=seed)
        lengths |= set(map(len, predict(saved, [dataset.input(row) for row in range(len(dataset))])))
    assert len(lengths) >= 3


def test_nothing_to_predict() -> None:
    assert predict(random_saved(Order.forward(4), fixed=True)[0], []) == []


def test_short_and_empty_inputs_are_padded() -> None:
    saved, _ = random_saved(Order.forward(4), fixed=True, seed=11)
    inputs = [list(x) for length in range(4) for x in itertools.product("012", repeat=length)]
    together, alone = predict(saved, inputs), [predict(saved, [x])[0] for x in inputs]
    assert together == alone
    assert len(set(map(tuple, together))) > 5


def test_an_input_shorter_than_any_that_was_trained_on_is_refused() -> None:
    saved = replace(random_saved(Order.forward(4), fixed=True)[0], shortest_input=2)
    width = saved.input_width
    predict(saved, [["1"] * 2])
    with pytest.raises(InputError, match=rf"^input 1: the input has 1 tokens; .* trained on 2 to {width}$"):
        predict(saved, [["1"]])
    with pytest.raises(InputError, match=rf"has {width + 1} tokens"):
        predict(saved, [["1"] * (width + 1)])


def test_an_answer_without_an_end_is_said_to_be_cut(caplog: pytest.LogCaptureFixture) -> None:
    for seed in range(4):
        saved, dataset = random_saved(Order.forward(4), fixed=False, seed=seed)
        inputs = [dataset.input(row) for row in range(len(dataset))]
        caplog.clear()
        predict(saved, inputs)
        endless = [
            number
            for number, tokens in enumerate(inputs, start=1)
            if EOS
            not in generate_plainly(
                saved.model,
                [i + SPECIAL_TOKENS for i in dataset.vocabulary.ids(tokens)]
                + [PAD] * (saved.input_width - len(tokens)),
                5,
            )
        ]
        assert [record.args[0] for record in caplog.records if record.args] == [f"input {n}" for n in endless]


def test_unknown_token_is_named_with_its_place() -> None:
    saved, _ = random_saved(Order.forward(4), fixed=True)
    with pytest.raises(InputError, match=r"^input 2: token 'x' is not in the vocabulary of 3 tokens") as caught:
        predict(saved, [["1"], ["1", "x"]])
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"^file:7: token 'x'"):
        predict(saved, [["1"], ["x"]], where=["file:1", "file:7"])


def test_input_that_is_too_long_is_refused() -> None:
    saved, _ = random_saved(Order.forward(4), fixed=True)
    with pytest.raises(InputError, match=r"^here: the input has 4 tokens; the model was trained on 0 to 3$"):
        predict(saved, [["1"] * 3, ["1"] * 4], where=["there", "here"])
