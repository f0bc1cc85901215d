import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from genorder.data import Vocabulary
from genorder.errors import InputError
from genorder.models import GPT, GPTConfig, SavedModel, load_model
from genorder.orders import Order
from genorder.seeding import torch_generator

CPU = torch.device("cpu")


@pytest.fixture
def saved() -> SavedModel:
    config = GPTConfig(layers=2, heads=2, width=8, feedforward=12, dropout=0.1)
    vocabulary = Vocabulary.of(["a", "7", "é", "\ud800"])
    model = GPT(config, vocabulary=7, positions=9, rng=torch_generator(5))
    return SavedModel(model, vocabulary, Order((2, 0, 3, 1)), input_width=4, shortest_input=3)


@pytest.fixture
def folder(saved: SavedModel, tmp_path: Path) -> Path:
    saved.save(tmp_path / "runs" / "model")
    return tmp_path / "runs" / "model"


def refused(folder: Path, *expected: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(folder, CPU)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    for text in expected:
        assert text in message


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_round_trip(saved: SavedModel, folder: Path) -> None:
    again = load_model(folder, CPU)
    assert again.vocabulary == saved.vocabulary
    assert again.order == saved.order
    assert (again.shortest_input, again.input_width, again.target_width) == (3, 4, 4)
    assert again.model.config == saved.model.config
    assert not again.model.training
    before, after = saved.model.state_dict(), again.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "weights.safetensors"]


def test_digest_is_that_of_the_weights(saved: SavedModel, tmp_path: Path) -> None:
    first = saved.save(tmp_path / "a")
    assert saved.save(tmp_path / "b") == first
    with torch.no_grad():
        saved.model.norm_out.bias[0] += 1
    assert saved.save(tmp_path / "a") != first
    assert load_model(tmp_path / "a", CPU).model.norm_out.bias[0] == 1


def test_flipped_byte_anywhere_in_the_weights(folder: Path) -> None:
    path = folder / "weights.safetensors"
    content = path.read_bytes()
    rng = random.Random(0)
    for place in [0, 8, len(content) - 1, *rng.choices(range(len(content)), k=20)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        refused(folder, "weights.safetensors is damaged", "train again")


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_weights_cut_short(folder: Path, kept: int) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    refused(folder, "damaged")


def test_missing_files(folder: Path, tmp_path: Path) -> None:
    refused(tmp_path / "absent", "model.json", "No such file", "expected the folder of a trained model")
    (folder / "weights.safetensors").unlink()
    refused(folder, "weights.safetensors", "No such file")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"not json"])
def test_description_that_is_not_json(folder: Path, content: bytes) -> None:
    (folder / "model.json").write_bytes(content)
    refused(folder, "model.json is not JSON")


@pytest.mark.parametrize("content", ["[]", "{}", "7", "null", '{"format": "genorder-model/2"}', '{"format": [1]}'])
def test_foreign_json(folder: Path, content: str) -> None:
    (folder / "model.json").write_text(content)
    refused(folder, "is not of the format genorder-model/1")


def test_description_cut_short(folder: Path) -> None:
    path = folder / "model.json"
    path.write_bytes(path.read_bytes()[:-30])
    refused(folder, "not JSON")


@pytest.mark.parametrize("key", ["gpt", "input_width", "shortest_input", "order", "weights_sha256", "vocabulary"])
@pytest.mark.parametrize("value", ["absent", None, "x", -7, {}, [[1]], {"width": 3}])
def test_description_that_is_incomplete_or_wrong(folder: Path, key: str, value: object) -> None:
    path = folder / "model.json"
    description = json.loads(path.read_text())
    description[key] = value
    if value == "absent":
        del description[key]
    path.write_text(json.dumps(description))
    with pytest.raises(InputError) as caught:
        load_model(folder, CPU)
    assert "\n" not in str(caught.value)


def test_description_of_another_model(folder: Path) -> None:
    edit(folder, input_width=5)
    refused(folder, "does not hold a complete model")
    edit(folder, input_width=4, vocabulary=["a", "b"])
    refused(folder, "does not hold a complete model")
