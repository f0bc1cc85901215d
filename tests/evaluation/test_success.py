import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import torch
from evaluation_helpers import encode_whole, generate_plainly, overfitted, random_dataset, random_model
from torch import Tensor

from genorder.data import EncodedDataset, SequenceDataset
from genorder.data.encoding import EOS, SEP
from genorder.evaluation import evaluate, generate_greedily, success
from genorder.models import GPT
from genorder.orders import Order


def evaluate_plainly(model: GPT, encoded: EncodedDataset, order: Order) -> dict[str, Any]:
    """One sample and one token at a time, in Python."""
    samples, width = len(encoded), encoded.target_width
    successes = matches = 0
    errors: list[list[bool]] = [[] for _ in range(width + 1)]  # the last one for EOS
    losses: list[list[float]] = [[] for _ in range(width + 1)]
    for row in range(samples):
        x = encoded.inputs_NW[row].tolist()
        length = int(encoded.target_lengths_N[row])
        restricted = order.restrict(length)
        expected = [*restricted.apply(encoded.targets_NL[row, :length].tolist()), EOS]
        slots = [*restricted, width]
        generated = generate_plainly(model, x, width + 1)[: length + 1]
        successes += generated == expected
        with torch.no_grad():
            logits = model(torch.tensor([[*x, SEP, *expected[:-1]]]))[0, len(x) :].double()
        matches += logits.argmax(dim=-1).tolist() == expected
        for step, (slot, token) in enumerate(zip(slots, expected, strict=True)):
            errors[slot].append(generated[step] != token)
            losses[slot].append(-float(logits[step].log_softmax(dim=-1)[token]))

    def mean(values: list[Any]) -> float:
        return sum(values) / len(values) if values else 0.0

    return {
        "samples": samples,
        "success_rate": successes / samples,
        "teacher_forced_match_rate": matches / samples,
        "loss": mean([loss for slot in losses[:-1] for loss in slot]),
        "error_rate_by_target": list(map(mean, errors[:-1])),
        "loss_by_target": list(map(mean, losses[:-1])),
        "eos_error_rate": mean(errors[-1]),
        "eos_loss": mean(losses[-1]),
    }


def assert_as_computed_plainly(model: GPT, encoded: EncodedDataset, order: Order, batch_size: int) -> dict[str, Any]:
    found = evaluate(model, encoded, order, batch_size).to_dict()
    low, high = found.pop("success_rate_interval")
    assert low <= found["success_rate"] <= high
    expected = evaluate_plainly(model, encoded, order)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    return found


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("order", [Order((0, 1, 2, 3)), Order((2, 0, 3, 1)), Order((3, 2, 1, 0))])
@pytest.mark.parametrize("batch_size", [7, 512])
def test_equals_the_plain_computation_for_random_weights(fixed: bool, order: Order, batch_size: int) -> None:
    encoded = encode_whole(random_dataset(30, fixed=fixed))
    model = random_model(encoded.model_vocabulary, encoded.input_width + 1 + encoded.target_width, seed=11)
    found = assert_as_computed_plainly(model, encoded, order, batch_size)
    assert len(set(found["error_rate_by_target"])) > 1  # else a mistaken index could not show


def known_samples(*, fixed: bool) -> SequenceDataset:
    rows = [("12", "5678"), ("21", "8851"), ("3", "1234"), ("", "7562")]
    return SequenceDataset.from_sequences(
        [list(x) for x, _ in rows], [list(y if fixed else y[: 4 - number]) for number, (_, y) in enumerate(rows)]
    )


@pytest.mark.parametrize("fixed", [True, False])
def test_equals_the_plain_computation_for_a_half_trained_model(fixed: bool) -> None:
    """It knows four samples by heart, and each comes a second time with the target of another."""
    dataset, order = known_samples(fixed=fixed), Order((1, 3, 0, 2))
    model = overfitted(dataset, order)
    swapped = dataset.take(np.array([1, 0, 3, 2]))
    mixed = SequenceDataset.from_sequences(
        [dataset.input(row % 4) for row in range(8)],
        [(dataset if row < 4 else swapped).target(row % 4) for row in range(8)],
    ).with_vocabulary(dataset.vocabulary)
    found = assert_as_computed_plainly(model, encode_whole(mixed), order, 5)
    assert found["success_rate"] == found["teacher_forced_match_rate"] == 0.5
    assert all(0 < rate < 1 for rate in found["error_rate_by_target"][:3])
    own = evaluate(model, encode_whole(dataset), order)
    assert own.success_rate == own.teacher_forced_match_rate == 1
    assert own.eos_error_rate == 0
    assert own.error_rate_by_target == [0.0] * 4
    other_order = evaluate(model, encode_whole(dataset), Order((0, 1, 2, 3)))
    assert other_order.success_rate < 1


def test_success_comes_from_generation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy decoding succeeds exactly where every teacher-forced argmax is right, so each is spoiled in turn."""
    dataset, order = known_samples(fixed=True), Order((2, 0, 3, 1))
    model, encoded = overfitted(dataset, order), encode_whole(dataset)

    def only_eos(model: GPT, inputs_NW: Tensor, longest: int, batch_size: int) -> Tensor:
        return torch.full((len(inputs_NW), longest), EOS)

    with monkeypatch.context() as changed:
        changed.setattr(success, "generate_greedily", only_eos)
        spoiled = evaluate(model, encoded, order)
    assert (spoiled.success_rate, spoiled.teacher_forced_match_rate) == (0, 1)
    assert spoiled.error_rate_by_target == [1.0] * 4
    assert spoiled.eos_error_rate == 0

    target_logits = GPT.target_logits
    with monkeypatch.context() as changed:
        changed.setattr(GPT, "target_logits", lambda model, batch: -target_logits(model, batch))
        spoiled = evaluate(model, encoded, order)
    assert (spoiled.success_rate, spoiled.teacher_forced_match_rate) == (1, 0)
    assert spoiled.loss > 1


def test_one_wrong_token_or_a_missing_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, order = known_samples(fixed=False), Order((2, 0, 3, 1))
    model, encoded = overfitted(dataset, order), encode_whole(dataset)
    lengths = encoded.target_lengths_N.tolist()
    assert lengths == [4, 3, 2, 1]
    for row, length in enumerate(lengths):
        for place in range(5):

            def altered(*arguments: Any, row: int = row, place: int = place) -> Tensor:
                tokens = generate_greedily(*arguments).clone()
                tokens[row, place] = SEP
                return tokens

            with monkeypatch.context() as changed:
                changed.setattr(success, "generate_greedily", altered)
                found = evaluate(model, encoded, order)
            assert found.success_rate == (0.75 if place <= length else 1.0)
            assert found.eos_error_rate == (0.25 if place == length else 0.0)
            expected = [0.0] * 4
            if place < length:
                index = order.restrict(length)[place]
                expected[index] = 1 / sum(other > index for other in lengths)
            assert found.error_rate_by_target == pytest.approx(expected)


def test_result_can_be_written_as_json() -> None:
    encoded = encode_whole(random_dataset(5, fixed=False))
    model = random_model(encoded.model_vocabulary, 8)
    found = evaluate(model, encoded, Order.forward(4))
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["samples"] == 5
    assert success.Evaluation.from_dict(json.loads(text)) == dataclasses.replace(found, examples=[])


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("batch_size", [3, 512])
def test_examples_are_the_first_wrong_and_the_first_right_samples(fixed: bool, batch_size: int) -> None:
    drawn = random_dataset(40, fixed=fixed)
    targets = [drawn.target(row) for row in range(40)]
    dataset = SequenceDataset.from_sequences([[row // 7, row % 7] for row in range(40)], targets)
    encoded = encode_whole(dataset)
    order = Order((2, 0, 3, 1))
    model = overfitted(dataset.take(np.arange(0, 40, 2)), order)  # right on what it has seen, wrong on most of the rest
    found = evaluate(model, encoded, order, batch_size)
    expected: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for row in range(40):
        target = order.restrict(len(dataset.target(row))).apply(dataset.target(row))
        ids = generate_plainly(model, encoded.inputs_NW[row].tolist(), 5)[: len(target) + 1]
        generated = [("<pad>", "<sep>", "<eos>", *dataset.vocabulary.tokens)[token] for token in ids]
        right = generated == [*target, "<eos>"]
        lengths = {"input_length": 2, "length": len(target)}
        tokens = {"input": dataset.input(row), "expected": [*target, "<eos>"], "generated": generated}
        expected[right].append({"row": row, "right": right, **lengths, **tokens})
    assert len(expected[True]) > 3
    assert len(expected[False]) > 5
    examples = [example.to_dict() for example in found.decoded_examples(dataset.vocabulary.tokens)]
    assert examples == [*expected[False][:5], *expected[True][:3]]
    assert round(found.success_rate * 40) == len(expected[True])


def test_examples_of_long_samples_are_cut() -> None:
    decoded = success.Example(row=0, inputs=[3] * 999, expected=[3, 2], generated=[4, 2]).decoded(("a", "b"))
    assert (len(decoded.input), decoded.expected, decoded.generated) == (256, ["a", "<eos>"], ["b", "<eos>"])
    assert (decoded.input_length, decoded.length, decoded.right) == (999, 1, False)
    assert success.DecodedExample.from_dict(decoded.to_dict()) == decoded
