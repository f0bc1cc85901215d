import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from genorder.errors import InputError
from genorder.execution import DEVICES, choose_device, describe_machine, flushing_denormals, set_threads


@pytest.fixture
def restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def pretend(monkeypatch: pytest.MonkeyPatch, *, cuda: bool, mps: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_takes_the_fastest_device(monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, expected: str) -> None:
    pretend(monkeypatch, cuda=cuda, mps=mps)
    assert choose_device("auto").type == expected
    assert choose_device("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_an_unavailable_device_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pretend(monkeypatch, cuda=name != "cuda", mps=name != "mps")
    there = "mps" if name == "cuda" else "cuda"
    with pytest.raises(InputError, match=f"^--device {name}: .* no such device; there is: cpu, {there}$"):
        choose_device(name)


@pytest.mark.parametrize("name", ["gpu", "", "CPU", "cuda:0"])
def test_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"--device '{name}': expected one of {', '.join(DEVICES)}"):
        choose_device(name)


def test_threads_are_set(restored_threads: None) -> None:
    assert set_threads(1) == torch.get_num_threads() == 1
    assert set_threads(2) == torch.get_num_threads() == 2
    assert set_threads(None) == torch.get_num_threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("threads", [0, -1, 1_000_000])
def test_invalid_threads_are_refused(restored_threads: None, threads: int) -> None:
    torch.set_num_threads(1)
    with pytest.raises(InputError, match=f"--threads {threads}: expected a number from 1 to {4 * affinity()} "):
        set_threads(threads)
    assert torch.get_num_threads() == 1


def affinity() -> int:
    return len(os.sched_getaffinity(0))


def test_description_is_json_and_names_versions_and_hardware(restored_threads: None) -> None:
    torch.set_num_threads(2)
    described = json.loads(json.dumps(describe_machine()))
    assert described["threads"] == 2
    assert described["packages"]["torch"] == torch.__version__
    assert {"genorder", "torch", "numpy", "scipy", "safetensors"} == set(described["packages"])
    assert described["python"].startswith("3.")
    assert described["cores"] == os.cpu_count()
    assert described["processor"].strip()


def test_denormals_are_zero_in_the_block_only() -> None:
    tiny = torch.full((4,), 1e-39)
    with flushing_denormals():
        assert not (tiny * 1.5).any()
        with flushing_denormals():
            pass
        assert not (tiny * 1.5).any()
    assert (tiny * 1.5).all()


def test_all_threads_flush_denormals() -> None:
    """In a fresh process, because a thread keeps the denormal mode of its start."""
    script = """
import torch
from genorder.execution import flushing_denormals, set_threads
set_threads(2)
tiny = torch.full((4,), 1e-39)
assert tiny.all() and 1e-310 > 0
with flushing_denormals():
    assert not (torch.full((4_000_000,), 1e-30) * 1e-9).any()
assert (tiny * 1.5).all()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
