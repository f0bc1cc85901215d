import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from genorder.store import Journal

sys.path.append(str(Path(__file__).parents[1] / "profiling"))  # profiling_helpers: small data


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    assert torch.get_num_threads() == 1
    torch.set_num_threads(threads)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.sqlite") as opened:
        yield opened
