import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from reports_helpers import EXPLORING, FINAL, FIXED, genorder, write_hostile_data

SQUARE_4 = ("--task", "square", "--length", "4", "--threads", "1")


@pytest.fixture(autouse=True, scope="session")
def _threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def discovery(runs: Path) -> Path:
    """Of a file of hostile tokens, by its own method."""
    data = write_hostile_data(runs)
    genorder("discover", data, "--threads", 1, "--out", runs / "discovery", settings=(*EXPLORING, *FINAL))
    return runs / "discovery"


@pytest.fixture(scope="session")
def exploration(runs: Path) -> Path:
    """By the paper's search, without a final training."""
    arguments = ("--strategy", "global-local", "--depth", 2, "--explore-only", "--out", runs / "exploration")
    genorder("discover", *SQUARE_4, *arguments, settings=(*EXPLORING, *FINAL))
    return runs / "exploration"


@pytest.fixture(scope="session")
def ranking(runs: Path) -> Path:
    genorder("rank", *SQUARE_4, "--candidates", "random:20,forward", "--out", runs / "ranking", settings=EXPLORING)
    return runs / "ranking"


@pytest.fixture(scope="session")
def raced_ranking(runs: Path) -> Path:
    arguments = ("--candidates", "random:3,forward", "--judge", "race", "--out", runs / "raced")
    genorder("rank", *SQUARE_4, *arguments, settings=EXPLORING)
    return runs / "raced"


@pytest.fixture(scope="session")
def training(runs: Path) -> Path:
    genorder("train", *SQUARE_4, "--order", "reverse", "--steps", 6, "--out", runs / "training", settings=FIXED)
    return runs / "training"


@pytest.fixture(scope="session")
def attention(runs: Path) -> Path:
    orders = ("--order", "forward", "--order", "one-swap", "--order", "reverse")
    genorder("analyze", "attention", *SQUARE_4, *orders, "--steps", 6, "--out", runs / "attention", settings=FIXED)
    return runs / "attention"


@pytest.fixture(scope="session")
def interrupted(runs: Path, discovery: Path) -> Path:
    """A discovery that was killed before its end."""
    path = runs / "interrupted"
    shutil.copytree(discovery, path)
    (path / "result.json").unlink()
    (path / "report.html").unlink()
    (path / "progress.json").write_text(json.dumps({"stage": "race", "rung": 2, "step": 9, "jobs": 1, "of": 3}))
    return path
