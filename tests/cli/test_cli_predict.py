"""Predictions come back in the user's order of targets, whatever order the model emits."""

import json
from pathlib import Path

import pytest
from cli_helpers import RELU_3, Genorder


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
