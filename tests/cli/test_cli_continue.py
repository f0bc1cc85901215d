"""The same command in a directory whose run is done, or was begun elsewhere, or asked for less."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_helpers import RELU_3, TINY, Genorder
from test_discover import COMMAND, EXPLORING, FINAL, SQUARE_4, changes, without_time

from genorder.cli.discovery_screen import DiscoveryScreen
from genorder.execution import machine

UNTOLD = ("discover", *SQUARE_4, *changes({**EXPLORING, **FINAL}), "--strategy", "global-local", "--depth", "2")
TRAIN = ("train", *RELU_3, *TINY[2:], "--steps", "5", "--out", "r")  # TINY begins with the threads


def config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("r/config.json").read_text())
    return found


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the number of cores that the machine seems to have."""
    return lambda number: monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(number)))


@pytest.mark.parametrize("command", [(*UNTOLD, "--explore-only", "--out", "r"), TRAIN], ids=["discover", "train"])
def test_on_a_machine_of_another_number_of_cores(genorder: Genorder, cores: Any, command: tuple[str, ...]) -> None:
    cores(1)
    first = genorder(*command, "--json").result()
    cores(2)
    shown = genorder(*command, "--json")
    assert shown.result() == first
    assert "threads" not in shown.err  # there is nothing left to do
    Path("r/result.json").unlink()
    Path("r/journal.sqlite").unlink()
    again = genorder(*command, "--json")
    assert without_time(again.result()) == without_time(first)
    assert again.err.count("r was started with --threads 1, which changes bits: it keeps to that\n") == 1
    assert config()["threads"] == 1
    assert torch.get_num_threads() == 2


def test_threads_that_are_asked_for_are_not_changed(genorder: Genorder) -> None:
    genorder(*TRAIN, "--threads", 1)
    refused = genorder(*TRAIN, "--threads", 2)
    assert refused.code == 2
    assert "threads: 1 in the run directory, 2 requested" in refused.err
    assert genorder(*TRAIN).code == 0


def test_a_model_that_was_removed(genorder: Genorder) -> None:
    command = (*TRAIN, "--threads", 1, "--json")
    first = genorder(*command).result()
    weights = Path("r/model/weights.safetensors").read_bytes()
    shutil.rmtree("r/model")
    shown = genorder(*command)
    assert shown.result() == first
    folder = Path("r").resolve()
    line = f"{folder}/model is gone; remove {folder}/result.json, and the same command trains it again"
    assert f"warning: {line}\n" in shown.err
    assert genorder("export", folder, "--to", "hf", "x").error() == line
    Path("r/result.json").unlink()
    again = genorder(*command)
    assert again.result() == first
    assert f"warning: {folder}/model is gone: training it again\n" in again.err
    assert Path("r/model/weights.safetensors").read_bytes() == weights
    assert "gone" not in genorder(*command).err


def test_the_given_order_s_model_that_was_removed(genorder: Genorder) -> None:
    result = genorder(*COMMAND, "--out", "r", "--json").result()
    assert result["order"] != result["given_order"]
    assert "gone" not in genorder(*COMMAND, "--out", "r").err
    shutil.rmtree("r/given")
    assert "r/given is gone; remove" in genorder(*COMMAND, "--out", "r").err


@pytest.mark.parametrize("out", [("--out", "r"), ()], ids=["named", "by default"])
def test_exploring_goes_on_to_the_whole_run(
    genorder: Genorder, monkeypatch: pytest.MonkeyPatch, out: tuple[str, ...]
) -> None:
    whole = genorder(*COMMAND, "--out", "whole", "--json").result()
    explored = genorder(*COMMAND, *out, "--explore-only", "--json").result()
    monkeypatch.setattr(DiscoveryScreen, "race", lambda _, progress: None)
    done = {job["name"]: job["finished_at"] for job in jobs(genorder, explored)}
    result = genorder(*COMMAND, *out, "--json").result()
    assert without_time(result) == without_time(whole)
    assert result["run_dir"] == explored["run_dir"]
    after = {job["name"]: job["finished_at"] for job in jobs(genorder, explored)}
    assert {name: after[name] for name in done} == done  # the explored part is kept
    assert json.loads((Path(result["run_dir"]) / "config.json").read_text())["explore_only"] is False


def jobs(genorder: Genorder, result: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = genorder("status", result["run_dir"], "--json").result()["jobs"]
    return found


def test_a_whole_run_answers_what_exploring_asks(genorder: Genorder) -> None:
    whole = genorder(*COMMAND, "--out", "r", "--json").result()
    shown = genorder(*COMMAND, "--out", "r", "--explore-only", "--json")
    assert shown.result() == whole
    assert "showing its result" in shown.err
    assert config()["explore_only"] is False


def test_exploring_of_another_configuration_is_refused_still(genorder: Genorder) -> None:
    genorder(*COMMAND, "--out", "r", "--explore-only")
    before = Path("r/result.json").read_bytes()
    assert "seed: 0 in the run directory, 1 requested" in genorder(*COMMAND, "--out", "r", "--seed", 1).err
    assert Path("r/result.json").read_bytes() == before
    assert config()["explore_only"] is True
