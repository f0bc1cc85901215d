"""A file that `genorder generate` wrote gets the same run as the task itself: no name decides anything."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_helpers import RUNNING_XOR, Genorder

from genorder.data import EncodedDataset, encode_for_exploring
from genorder.execution import choose_device
from genorder.presets import DISCOVERIES, EXPLORATIONS, PRESETS, DiscoveryConfig
from genorder.runs import DataSpec, Machine, RunRequest, Source, resolve_request
from genorder.settings import resolve, resolve_discovery, resolve_exploration

SAMPLES = {"train": 400, "validation": 60, "test": 50}
HIDDEN = ("--hidden-order-seed", "3")
DELAY = ("--task", "delay-relu", "--length", "8", *HIDDEN)
OWN = ("train.jsonl", "--validation", "validation.jsonl", "--test", "test.jsonl")
SMALL_MODEL = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32}
SMALL = {
    **{f"samples.{split}": samples for split, samples in SAMPLES.items()},
    "any_order.training.steps": 5,
    "race.first_rung": 2,
    "final.training.steps": 4,
    **{f"final.model.{name}": value for name, value in SMALL_MODEL.items()},
}  # fmt: skip


@pytest.fixture
def write(genorder: Genorder) -> Any:
    def of_task(*task: str) -> None:
        for split, samples in SAMPLES.items():
            arguments = ("--samples", samples, "--split", split, "--out", f"{split}.jsonl")
            assert genorder("generate", *task, *arguments).code == 0

    return of_task


def configured(resolver: Any, preset: str, settings: list[str], **data: Any) -> tuple[Any, Source]:
    machine = Machine.as_set("cpu")
    request = RunRequest(data=DataSpec(**data), machine=machine, preset=preset, settings=tuple(settings))
    return resolve_request(request, resolver)


def tensors(encoded: EncodedDataset) -> list[Any]:
    parts = (encoded.inputs_NW, encoded.targets_NL, encoded.target_lengths_N)
    return [encoded.model_vocabulary, *(part.tolist() for part in parts)]


@pytest.mark.parametrize(
    ("task", "length"),
    [
        ("delay-relu", "36"), ("delay-hidden-cause", "36"), ("prod", "10"), ("prod", "4-10"), ("index:d=2", "13"),
        ("sine", "20"), ("relu", "20"), ("relu", "3-6"), ("square", "1-2"), ("own.py:running-xor", "5"),
    ],
)  # fmt: skip
def test_same_configuration_and_same_samples(write: Any, task: str, length: str) -> None:
    Path("own.py").write_text(RUNNING_XOR)
    write("--task", task, "--length", length, *HIDDEN)
    settings = [f"samples.{split}={samples}" for split, samples in SAMPLES.items()]
    by_task = {"task": task, "length": length, "hidden_order_seed": 3}
    by_file = {"data": "train.jsonl", "validation": "validation.jsonl", "test": "test.jsonl"}
    for preset in PRESETS:
        for resolver in (resolve, resolve_exploration, resolve_discovery):
            of_task, task_source = configured(resolver, preset, settings, **by_task)
            of_file, file_source = configured(resolver, preset, settings, **by_file)
            assert of_task == of_file
            assert task_source.splits.fingerprint() == file_source.splits.fingerprint()
            assert task_source.splits.train.vocabulary == file_source.splits.train.vocabulary
            assert task_source.length == file_source.length
    device = choose_device("cpu")
    for one, other in zip(
        encode_for_exploring(task_source.splits, device), encode_for_exploring(file_source.splits, device), strict=True
    ):
        assert tensors(one) == tensors(other)


def test_the_numbers_of_samples_may_come_from_the_files_alone(write: Any) -> None:
    write(*DELAY)
    settings = [f"samples.{split}={samples}" for split, samples in SAMPLES.items()]
    for preset in DISCOVERIES:
        of_task, _ = configured(resolve_discovery, preset, settings, task="delay-relu", length="8", hidden_order_seed=3)
        of_file, _ = configured(
            resolve_discovery, preset, [], data="train.jsonl", validation="validation.jsonl", test="test.jsonl"
        )
        assert isinstance(of_file, DiscoveryConfig)
        assert of_task == of_file
    assert EXPLORATIONS.keys() == DISCOVERIES.keys()


def test_a_discovery_proposes_and_races_the_same(genorder: Genorder, write: Any) -> None:
    write(*DELAY)
    changes = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]
    common = (*changes, "--explore-only", "--threads", 1, "--seed", 5, "--json")
    found, configs = [], []
    for name, data in (("by-task", DELAY), ("by-file", OWN)):
        found.append(genorder("discover", *data, *common, "--out", name).result())
        configs.append(json.loads(Path(name, "config.json").read_text()))
    by_task, by_file = found
    assert configs[0]["config"] == configs[1]["config"]
    assert configs[0]["seed"] == configs[1]["seed"] == 5
    assert configs[0]["data"]["fingerprint"] == configs[1]["data"]["fingerprint"]
    proposals = [[row["order"] for row in result["proposed"]["proposals"]] for result in found]
    assert len(proposals[0]) > 0
    assert proposals[0] == proposals[1]
    races = [[(row["order"], row["losses"]) for row in result["race"]] for result in found]
    assert races[0] == races[1]
    assert by_task["order"] == by_file["order"]
    assert "order_in_true_indices" in by_task  # the task knows what the columns are, and changes nothing by it
    assert "order_in_true_indices" not in by_file


def test_training_is_the_same(genorder: Genorder, write: Any) -> None:
    write(*DELAY)
    settings = {f"samples.{split}": samples for split, samples in SAMPLES.items()}
    settings |= {f"model.{name}": value for name, value in SMALL_MODEL.items()} | {"training.batch_size": 8}
    changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    common = ("--order", "reverse", "--steps", 5, "--threads", 1, "--json", *changes)
    by_task, by_file = (
        genorder("train", *data, *common, "--out", name).result() for name, data in (("t", DELAY), ("f", OWN))
    )
    assert by_task["weights_sha256"] == by_file["weights_sha256"]
    assert by_task["loss"] == by_file["loss"]


def test_fewer_samples_of_a_sorted_file_are_from_all_over_it(genorder: Genorder) -> None:
    rows = [{"input": [number // 100, number % 100], "target": [number // 100]} for number in range(1_000)]
    Path("train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("validation.jsonl").write_text('{"input": [9, 9], "target": [9]}\n')
    Path("test.jsonl").write_text('{"input": [8, 8], "target": [8]}\n')
    settings = ["samples.train=200"]
    _, source = configured(
        resolve, "cpu", settings, data="train.jsonl", validation="validation.jsonl", test="test.jsonl"
    )
    train = source.splits.train
    assert len(train) == 200
    assert {train.target(row)[0] for row in range(200)} == set(map(str, range(10)))
    encoded, _ = encode_for_exploring(source.splits, torch.device("cpu"))
    assert len(encoded.head(50).targets_NL.unique()) > 5
