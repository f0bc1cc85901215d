from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from export_helpers import trained


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    monkeypatch.chdir(tmp_path)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def fixed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four targets, emitted in an order that is neither forward nor its own inverse."""
    path = tmp_path_factory.mktemp("fixed") / "run"
    return trained(path, "--task", "relu", "--length", 4, "--order", "2,0,3,1", steps=300, samples__train=4000)


@pytest.fixture(scope="session")
def variable_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("variable") / "run"
    return trained(path, "--task", "relu", "--length", "3-6", "--order", "2,0,5,3,1,4", steps=300, samples__train=4000)
