"""Predictions come back in the user's order of targets, whatever order the model emits."""

import json
from pathlib import Path

import pytest
from cli_helpers import RELU_3, TINY, Genorder

from genorder.data import ReadOptions
from genorder.orders import Order
from genorder.runs import ModelOrigin
from genorder.tasks import make_task, stored_columns


@pytest.fixture
def samples(genorder: Genorder) -> list[dict[str, list[int]]]:
    genorder("generate", *RELU_3, "--samples", 200, "--split", "test", "--seed", 9, "--out", "test.jsonl")
    return [json.loads(line) for line in Path("test.jsonl").read_text().splitlines()]


def test_targets_in_the_original_order(genorder: Genorder, good_run: Path, samples: list[dict[str, list[int]]]) -> None:
    evaluated = genorder("evaluate", good_run, "test.jsonl", "--threads", 1, "--json").result()
    assert evaluated["order"] == [1, 0, 2]
    predicted = genorder("predict", "--model", good_run, "test.jsonl", "--threads", 1, "--json").result()
    right = [
        guess == [str(token) for token in sample["target"]]
        for guess, sample in zip(predicted["predictions"], samples, strict=True)
    ]
    assert sum(right) / len(right) == pytest.approx(evaluated["success_rate"])
    assert sum(right) / len(right) > 0.9


def test_shuffled_columns_are_evaluated_in_the_task_s_own_sequence(genorder: Genorder) -> None:
    small = (*TINY, "--steps", 3, "--threads", 1)
    genorder("train", *RELU_3, "--hidden-order-seed", 1, "--out", "r", *small)
    for name, hidden in (("own.jsonl", ()), ("hidden.jsonl", ("--hidden-order-seed", 1))):
        genorder("generate", *RELU_3, "--samples", 50, "--split", "test", *hidden, "--out", name)
    shown = genorder("evaluate", "r", "own.jsonl", "--threads", 1, "--json")
    assert "targets in the task's own sequence, not in the run's shuffled columns" in shown.err
    genorder("train", "hidden.jsonl", *small, "--out", "other")  # a run that knows nothing of a task
    Path("other/model/weights.safetensors").write_bytes(Path("r/model/weights.safetensors").read_bytes())
    Path("other/model/model.json").write_bytes(Path("r/model/model.json").read_bytes())
    alike = genorder("evaluate", "other", "hidden.jsonl", "--threads", 1, "--json")
    assert shown.result()["loss"] == pytest.approx(alike.result()["loss"])
    finished = genorder("predict", "--model", "r", "own.jsonl", "--threads", 1)
    Path("r/result.json").unlink()
    assert genorder("predict", "--model", "r", "own.jsonl", "--threads", 1) == finished


def test_every_form_of_input_is_read_alike(
    genorder: Genorder, good_run: Path, samples: list[dict[str, list[int]]]
) -> None:
    rows = [sample["input"] for sample in samples[:6]]
    forms = {
        "tokens": [" ".join(map(str, row)) for row in rows],
        "list": [json.dumps(row) for row in rows],
        "texts": [json.dumps([str(token) for token in row]) for row in rows],
        "object": [json.dumps({"input": row}) for row in rows],
        "object of text": [json.dumps({"input": " ".join(map(str, row)), "target": [0]}) for row in rows],
    }
    mixed = [form[index] for index, form in enumerate([*forms.values(), forms["tokens"]])]
    command = ("predict", "--threads", 1, "--model")
    expected = None
    for lines in (*forms.values(), mixed):
        text = ("\ufeff" + "\n\n".join(lines) + "\n\n  \r\n").encode()
        Path("in.txt").write_bytes(text)
        from_file = genorder(*command, good_run, "in.txt")
        assert from_file.code == 0
        assert from_file.err == ""
        assert genorder(*command, good_run, "-", stdin=text) == from_file
        assert genorder(*command, good_run / "model", stdin=text) == from_file
        expected = expected or from_file.out
        assert from_file.out == expected
    assert expected is not None
    answers = [line.split() for line in expected.splitlines()]
    assert len(answers) == 6
    assert genorder(*command, good_run, "in.txt", "--json").result() == {"predictions": answers}


def test_an_input_shorter_than_any_trained_on_is_refused(genorder: Genorder, good_run: Path) -> None:
    outcome = genorder("predict", "--model", good_run, "--threads", 1, stdin=b"4 -7\n")
    assert outcome.error() == "standard input:1: the input has 2 tokens; the model was trained on 3"


SUMS = [(f"{a}+{b}", f"{a + b:03d}") for a in range(10, 30) for b in range(10, 20)]


@pytest.fixture
def sums_run(genorder: Genorder) -> Path:
    Path("sums.csv").write_text("question,result\n" + "\n".join(",".join(row) for row in SUMS))
    read = ("--split", "character", "--input-column", "question", "--target-column", "result")
    assert genorder("train", "sums.csv", *read, *TINY, "--steps", 3, "--out", "sums").code == 0
    return Path("sums")


def test_inputs_are_read_as_the_run_s_data_was(genorder: Genorder, sums_run: Path) -> None:
    genorder("export", sums_run, "--to", "hf", "exported")
    forms = {
        "text": "12+13", "spaced": "1 2 + 1 3", "list": '["1", "2", "+", "1", "3"]',
        "object": '{"question": "12+13"}', "object with a list": '{"question": ["1", "2", "+", 1, "3"]}',
    }  # fmt: skip
    for model in (sums_run, sums_run / "model", "exported"):
        for form in forms.values():
            shown = genorder("predict", "--model", model, "--threads", 1, "--json", stdin=form.encode())
            assert len(shown.result()["predictions"][0]) <= 3
    refused = genorder("predict", "--model", sums_run, "--threads", 1, stdin=b'{"input": "12+13"}').error()
    assert refused == "standard input:1: no 'question' among the keys ['input']"


def test_or_as_one_says(genorder: Genorder, sums_run: Path) -> None:
    command = ("predict", "--model", sums_run, "--threads", 1)
    assert genorder(*command, "--split", "comma", stdin=b"1, 2, +, 1, 3\n").code == 0
    assert genorder(*command, "--split-tokens", "whitespace", stdin=b"1 2 + 1 3\n").code == 0
    assert genorder(*command, "--input-column", "q", stdin=b'{"q": "12+13", "question": ""}\n').code == 0
    refused = genorder(*command, "--split", "whitespace", stdin=b"12+13\n").error()
    assert refused == "standard input:1: the input has 1 tokens; the model was trained on 5"
    refused = genorder(*command, "--split", "letter", stdin=b"12+13\n").error()
    assert refused == "--split 'letter': expected one of whitespace, comma, character"


def test_shuffled_columns_come_in_the_task_s_own_sequence(genorder: Genorder) -> None:
    settings = {
        "samples.train": 5000, "samples.validation": 20, "samples.test": 100, "model.layers": 1,
        "model.width": 64, "model.feedforward": 256, "training.learning_rate": 0.005,
    }  # fmt: skip
    changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    hidden = ("--hidden-order-seed", 3, "--order", "random:1")
    assert genorder("train", *RELU_3, *changes, *hidden, "--steps", 400, "--threads", 1, "--out", "r").code == 0
    columns = stored_columns(make_task("relu", 3), 3)
    assert list(columns) != [0, 1, 2]
    genorder("generate", *RELU_3, "--samples", 100, "--split", "test", "--seed", 9, "--out", "true.jsonl")
    true = [
        [str(token) for token in json.loads(line)["target"]] for line in Path("true.jsonl").read_text().splitlines()
    ]
    genorder("export", "r", "--to", "hf", "exported")
    said = f"targets in the task's own sequence, not in the run's shuffled columns: {columns.short()}\n"
    for model in ("r", "r/model", "exported"):
        shown = genorder("predict", "--model", model, "true.jsonl", "--threads", 1, "--json")
        predicted = shown.result()["predictions"]
        assert sum(guess == target for guess, target in zip(predicted, true, strict=True)) > 80
        assert shown.err.count(said) == 1


@pytest.mark.parametrize("length", [1, 2, 3, 4, 6])
def test_the_task_s_own_sequence_of_targets_of_several_lengths(length: int) -> None:
    """Of lengths 2, 4 and 6; also of others, which a model may emit that has not learnt enough."""
    origin = ModelOrigin(ReadOptions(), Order((1, 0, 3, 2, 4, 5)))
    true = [f"y{index}" for index in range(length)]
    if length % 2 == 0:
        stored = [true[index] for index in origin.true_of_column or () if index < length]
        assert origin.in_own_sequence(stored) == true
    assert sorted(origin.in_own_sequence(true)) == true
