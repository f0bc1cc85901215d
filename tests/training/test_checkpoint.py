import json
import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from genorder.training import CheckpointFolder
from genorder.training.checkpoint import TrainingState


def state(step: int) -> TrainingState:
    return TrainingState(step, step / 10, {"weights": torch.arange(6.0).view(2, 3) + step, "count": torch.tensor(step)})


def same(first: TrainingState, second: TrainingState) -> bool:
    return (
        first.step == second.step
        and first.tensors.keys() == second.tensors.keys()
        and all(torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors)
    )


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    """Two checkpoints, of steps 20 and 30."""
    made = CheckpointFolder(tmp_path / "runs" / "checkpoints")
    for step in (10, 20, 30):
        made.save(state(step))
    return made


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00garbage")


def other_json(path: Path) -> None:
    path.write_text('["step", 30]')


def half_json(path: Path) -> None:
    path.write_text('{"step": 30}')


Damage = Callable[[Path], None]
ways = pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        *((".safetensors", way) for way in (flip, truncate, empty, garbage, Path.unlink)),
        *((".json", way) for way in (truncate, empty, garbage, other_json, half_json)),
    ],
)


def test_saves_and_loads(folder: CheckpointFolder) -> None:
    loaded = folder.load_latest()
    assert loaded is not None
    assert same(loaded, state(30))
    assert loaded.seconds == 3.0


def test_the_last_two_are_kept(folder: CheckpointFolder) -> None:
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "step-000000020.json", "step-000000020.safetensors",
        "step-000000030.json", "step-000000030.safetensors",
    ]  # fmt: skip


def test_last_is_by_number_not_by_text(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    for step in (9, 1_000, 99_999, 100_000):
        folder.save(state(step))
    loaded = folder.load_latest()
    assert loaded is not None
    assert loaded.step == 100_000


def test_nothing_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert CheckpointFolder(tmp_path / "absent").load_latest() is None
    assert CheckpointFolder(tmp_path).load_latest() is None
    assert not caplog.records


@ways
def test_damaged_newest_gives_way_to_the_one_before(
    folder: CheckpointFolder, suffix: str, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(folder.path / f"step-000000030{suffix}")
    with caplog.at_level(logging.WARNING):
        loaded = folder.load_latest()
    assert loaded is not None
    assert same(loaded, state(20))
    assert len(caplog.records) == 1
    assert "checkpoint step-000000030 is damaged" in caplog.text


@ways
def test_all_damaged_is_a_start_from_the_beginning(
    folder: CheckpointFolder, suffix: str, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (20, 30):
        damage(folder.path / f"step-0000000{step}{suffix}")
    with caplog.at_level(logging.WARNING):
        assert folder.load_latest() is None
    assert "no checkpoint in" in caplog.text
    assert "starting from the first step" in caplog.text


def test_a_flipped_bit_is_noticed_wherever_it_is(folder: CheckpointFolder) -> None:
    """Only the seconds, which nothing is computed from, may come out other than they were."""
    rng = random.Random(0)
    for suffix in (".safetensors", ".json"):
        path = folder.path / f"step-000000030{suffix}"
        content = path.read_bytes()
        places = range(len(content)) if suffix == ".json" else rng.sample(range(len(content)), 50)
        for place in places:
            damaged = bytearray(content)
            damaged[place] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            loaded = folder.load_latest()
            assert loaded is not None
            assert same(loaded, state(30)) or same(loaded, state(20)), (suffix, place, bytes(damaged))
        path.write_bytes(content)


def test_missing_description_is_no_checkpoint(folder: CheckpointFolder) -> None:
    (folder.path / "step-000000030.json").unlink()  # killed after the tensors, before the description
    loaded = folder.load_latest()
    assert loaded is not None
    assert loaded.step == 20


def test_a_run_begun_again_keeps_its_own_checkpoints_not_the_damaged_later_ones(folder: CheckpointFolder) -> None:
    for step in (20, 30):
        flip(folder.path / f"step-0000000{step}.safetensors")
    assert folder.load_latest() is None
    for step in (5, 12):
        folder.save(state(step))
        loaded = folder.load_latest()
        assert loaded is not None
        assert same(loaded, state(step))
    assert sorted(path.stem for path in folder.path.glob("*.json")) == ["step-000000005", "step-000000012"]
    assert len(list(folder.path.iterdir())) == 4


def test_tensors_without_description_do_not_pile_up(folder: CheckpointFolder) -> None:
    (folder.path / "step-000000030.json").unlink()
    for step in (40, 50, 60):
        folder.save(state(step))
    assert len(list(folder.path.iterdir())) == 4


def test_saving_a_step_again_replaces_it(folder: CheckpointFolder) -> None:
    flip(folder.path / "step-000000030.safetensors")
    folder.save(state(30))
    loaded = folder.load_latest()
    assert loaded is not None
    assert same(loaded, state(30))
    assert len(list(folder.path.iterdir())) == 4


def test_delete(folder: CheckpointFolder) -> None:
    folder.delete()
    assert not folder.path.exists()
    assert folder.load_latest() is None
    folder.delete()


def test_files_are_what_they_are_called(folder: CheckpointFolder) -> None:
    description = json.loads((folder.path / "step-000000030.json").read_text())
    assert description["step"] == 30
    assert set(description) == {"step", "seconds", "sha256"}
