"""What TensorBoard itself reads of a run: each training by its name, each step once, also after `kill -9`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from reports_helpers import EXPLORING, FINAL, FIXED, genorder
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from genorder.errors import InputError
from genorder.orders import Order
from genorder.race import RaceProgress
from genorder.reports import board as board_module
from genorder.reports.board import Board, complete_board, require_tensorboard, smoothed
from genorder.search import Proposal, Stage
from genorder.training import Progress

SQUARE_4 = ("--task", "square", "--length", "4", "--threads", "1")
LOSS, VALIDATION, BEST, SUCCESS = "training loss", "validation loss", "best loss so far", "success rate"


def read(folder: Path) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """By folder and tag, the steps and values that TensorBoard shows."""
    found = {}
    for part in sorted({file.parent for file in folder.rglob("events.*")}):
        events = EventAccumulator(str(part), size_guidance={"scalars": 0})
        events.Reload()
        found[part.relative_to(folder).as_posix()] = {
            tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]
        }
    return found


def assert_each_step_once(found: dict[str, dict[str, list[tuple[int, float]]]]) -> None:
    for name, tags in found.items():
        for tag, points in tags.items():
            steps = [step for step, _ in points]
            assert max(Counter(steps).values()) == 1, (name, tag, steps)
            assert steps == sorted(steps), (name, tag, steps)


def about(points: list[tuple[int, float]]) -> list[Any]:
    return [(step, pytest.approx(value)) for step, value in points]


def texts(folder: Path) -> list[str]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return [event.tensor_proto.string_val[0].decode() for event in events.Tensors("best order so far/text_summary")]


def test_discovery(runs: Path) -> None:
    out = runs / "board"
    arguments = ("discover", *SQUARE_4, "--strategy", "global-local", "--depth", 2, "--out", out)
    genorder(*arguments, "--tensorboard", settings=(*EXPLORING, *FINAL))
    result = json.loads((out / "result.json").read_text())
    found = read(out / "tensorboard")
    assert_each_step_once(found)
    assert {"found order", "given order", "global 1", "global 2", "local 2 within", "search"} <= found.keys()
    for title, folder, tested in (("found order", "model", result), ("given order", "given", result["given"])):
        losses = json.loads((out / folder / "training_losses.json").read_text())
        assert found[title][LOSS] == about(smoothed(losses))
        assert found[title][SUCCESS] == [(len(losses), pytest.approx(tested["success_rate"]))]
    stages = result["proposed"]["stages"]
    assert found["search"][BEST] == [
        (number, pytest.approx(stage["best"][0]["loss"])) for number, stage in enumerate(stages, start=1)
    ]
    assert re.fullmatch(r" {4}global 1: [\d -]+", texts(out / "tensorboard" / "search")[0])
    raced = {name: tags for name, tags in found.items() if name.startswith("race, ")}
    assert len(raced) == len(result["race"])
    given = next(row for row in result["race"] if row["order"] == [0, 1, 2, 3])
    assert [step for step, _ in raced["race, given order"][LOSS]][: len(given["steps"])] == given["steps"]
    validated = raced["race, given order"][VALIDATION]
    assert validated[: len(given["steps"])] == about(list(zip(given["steps"], given["losses"], strict=True)))


def test_a_model_that_was_not_tested(runs: Path) -> None:
    """As after an interruption in the final trainings, when the same run is then only asked for the order."""
    untested = runs / "untested"
    genorder("discover", *SQUARE_4, "--strategy", "random", "--out", untested, settings=(*EXPLORING, *FINAL))
    result = json.loads((untested / "result.json").read_text())
    explored = {name: value for name, value in result.items() if "success_rate" not in name and name != "given"}
    (untested / "result.json").write_text(json.dumps(explored))
    complete_board(untested)
    found = read(untested / "tensorboard")
    assert found["found order"].keys() == found["given order"].keys() == {LOSS}


def test_a_finished_run_gets_its_board_later_and_the_result_is_the_same(runs: Path) -> None:
    command = ("discover", *SQUARE_4, "--strategy", "global-local", "--depth", 2)
    genorder(*command, "--out", runs / "later", settings=(*EXPLORING, *FINAL))
    assert not (runs / "later" / "tensorboard").exists()
    genorder(*command, "--out", runs / "later", "--tensorboard", settings=(*EXPLORING, *FINAL))
    first, later = (read(runs / name / "tensorboard") for name in ("board", "later"))
    told_only = [name for name in first if name not in later]
    assert all(re.fullmatch(r"(global|local) .*", name) for name in told_only), told_only
    assert {name: first[name] for name in later} == later
    weights = [json.loads((runs / name / "result.json").read_text())["weights_sha256"] for name in ("board", "later")]
    assert weights[0] == weights[1]
    genorder(*command, "--out", runs / "later", "--tensorboard", settings=(*EXPLORING, *FINAL))
    assert read(runs / "later" / "tensorboard") == later


def test_train_and_rank(runs: Path) -> None:
    genorder("train", *SQUARE_4, "--steps", 50, "--out", runs / "bt", "--tensorboard", settings=FIXED)
    found = read(runs / "bt" / "tensorboard")
    assert [step for step, _ in found["training"][LOSS]] == [17, 33, 50]
    assert found.keys() == {"training"}
    assert found["training"][SUCCESS][0][0] == 50
    rank = ("rank", *SQUARE_4, "--candidates", "random:3,forward", "--tensorboard")
    genorder(*rank, "--out", runs / "br", settings=EXPLORING)
    found = read(runs / "br" / "tensorboard")
    assert found.keys() == {"profiling", "ranking"}
    ranking = json.loads((runs / "br" / "result.json").read_text())["ranking"]
    assert found["ranking"][f"{VALIDATION} by rank"] == [(row["rank"], pytest.approx(row["loss"])) for row in ranking]
    genorder(*rank, "--judge", "race", "--out", runs / "brr", settings=EXPLORING)
    found = read(runs / "brr" / "tensorboard")
    assert sum(bool(re.match("race, (given )?order", name)) for name in found) == 4
    assert len(found["ranking"][f"{VALIDATION} by rank"]) == 4


def killed_once(out: Path, arguments: tuple[object, ...], settings: tuple[str, ...], seen: str) -> None:
    """Run, and kill without mercy as soon as `seen` has events; then run to the end."""
    changes = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "genorder", *map(str, arguments), *changes, "--out", str(out), "--tensorboard"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as process:
        folder = out / "tensorboard" / seen
        while process.poll() is None:
            if folder.exists() and any(len(points) >= 3 for points in read(folder).get(".", {}).values()):
                break
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        process.send_signal(signal.SIGKILL)
    before = read(out / "tensorboard")
    assert len(before[seen][LOSS]) >= 3
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
def test_killed_in_a_search_and_continued(runs: Path) -> None:
    """The stage has no checkpoint yet: its steps come again, from the first."""
    settings = (*EXPLORING, *FINAL, "any_order.training.steps=400", "search.rounds=1")
    killed_once(runs / "killed", ("discover", *SQUARE_4, "--strategy", "any-order"), settings, "any-order 1, round 1")
    found = read(runs / "killed" / "tensorboard")
    assert_each_step_once(found)
    assert [step for step, _ in found["any-order 1, round 1"][LOSS]] == list(range(20, 401, 20))
    assert [step for step, _ in found["found order"][LOSS]][-1] == 8


@pytest.mark.slow
def test_killed_in_a_training_and_continued(runs: Path) -> None:
    """From a checkpoint: the steps after it come again, those before it do not."""
    arguments = ("train", *SQUARE_4, "--steps", 600, "--checkpoint-every", 0.3)
    killed_once(runs / "killed-training", arguments, FIXED, "training")
    found = read(runs / "killed-training" / "tensorboard")
    assert_each_step_once(found)
    assert [step for step, _ in found["training"][LOSS]] == list(range(20, 601, 20))
    losses = json.loads((runs / "killed-training" / "model" / "training_losses.json").read_text())
    assert found["training"][LOSS] == about(smoothed(losses))


def test_steps_that_come_again_replace_the_earlier_ones(tmp_path: Path) -> None:
    with Board(tmp_path) as board:
        for step in range(20, 101, 20):
            board.progress("a", Progress(step, 200, 1.0, 1.0))
    time.sleep(1.1)  # the names of TensorBoard's files follow the second
    with Board(tmp_path) as board:
        for step in range(60, 201, 20):
            board.progress("a", Progress(step, 200, 2.0, 1.0))
    (found,) = read(tmp_path).values()
    assert found[LOSS] == [(step, 1.0 if step < 60 else 2.0) for step in range(20, 201, 20)]


def test_what_trains_nothing_is_not_on_the_board(tmp_path: Path) -> None:
    with Board(tmp_path) as board:
        board.progress("constructing greedily", Progress(3, 9, None, 1.0))
    assert not list(tmp_path.rglob("*tfevents*"))


def test_names_of_folders_stay_inside(tmp_path: Path) -> None:
    with Board(tmp_path / "b", ["<b>", "a\nb"]) as board:
        for name in ("../../out", "/etc", "a/b", "..", "x" * 300, "\x1b[31m"):
            board.progress(name, Progress(20, 200, 1.0, 1.0))
        board.stage(Stage("../s", 1, 1, [Proposal(Order((1, 0)), None)], {}))
        long = Order(tuple((7 * n) % 100 for n in range(100)))
        for order in (long, Order(long.indices[:-2] + long.indices[:-3:-1])):
            board.race(
                RaceProgress(
                    rung=0, done=1, total=1, order=order, repeat=1, step=1, curve=[1.0], loss=float("inf"), best=order,
                    best_loss=float("inf"), seconds_left=0.0, run_seconds_left=0.0, finished=True,
                )
            )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    folders = list((tmp_path / "b").iterdir())
    assert len(folders) == 6 + 1 + 2
    assert all(path.is_dir() and len(path.name) <= 140 and path.name.isprintable() for path in folders)
    assert texts(tmp_path / "b" / "search") == ["    ../s: 1 0, by name: a\\nb <b>"]


def test_a_folder_that_cannot_be_written_does_not_end_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    with Board(tmp_path / "file") as board:
        for step in (20, 40):
            board.progress("a", Progress(step, 200, 1.0, 1.0))
    assert len(caplog.messages) == 1
    assert "cannot be written" in caplog.messages[0]


def test_without_the_extra_it_is_one_line_at_once(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from genorder.cli.app import run

    monkeypatch.setattr(board_module, "find_spec", lambda name: None)
    with pytest.raises(InputError):
        require_tensorboard()
    for verb in ("discover", "train", "rank"):
        assert run([verb, *SQUARE_4, "--out", str(runs / "none"), "--tensorboard"]) == 2
        said = capsys.readouterr().err
        assert said == (
            "error: --tensorboard needs tensorboard, which is not installed: pip install 'genorder[tensorboard]'\n"
        )
    assert not (runs / "none").exists()


def test_nothing_of_it_is_loaded_without_the_option() -> None:
    code = "import sys, genorder.cli.verbs, genorder.reports.board; sys.exit('tensorboard' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_run_without_result_is_completed_as_far_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"verb": "discover"}')
    complete_board(tmp_path)
    assert read(tmp_path) == {}
