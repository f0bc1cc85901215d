import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cli_helpers import RELU_3, TINY, Genorder

from genorder.cli.app import run
from genorder.tasks import registry

sys.path.append(str(Path(__file__).parents[1] / "store"))  # store_helpers: disks that are small or read-only
sys.path.append(str(Path(__file__).parents[1] / "reports"))  # reports_helpers: made results


@pytest.fixture(autouse=True)
def _nothing_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Relative paths land in tmp_path; threads and registered tasks are as before afterwards."""
    threads = torch.get_num_threads()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def genorder(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Genorder:
    return Genorder(capsys, monkeypatch)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that has learned nothing. To be read, or copied, only."""
    path = tmp_path_factory.mktemp("tiny") / "run"
    assert run(["train", *RELU_3, *TINY, "--steps", "5", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def good_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a model that emits [1, 0, 2] and is nearly always right."""
    path = tmp_path_factory.mktemp("good") / "run"
    settings = {
        "samples.train": 5000, "samples.validation": 20, "samples.test": 200, "model.layers": 1,
        "model.width": 64, "model.feedforward": 256, "training.learning_rate": 0.005,
    }  # fmt: skip
    changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    arguments = ["train", *RELU_3, *changes, "--steps", "400", "--order", "random:1"]
    assert run([*arguments, "--threads", "1", "--out", str(path)]) == 0
    return path
