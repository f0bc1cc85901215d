"""The device, the threads and the versions that a run uses."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import torch

from genorder.errors import InputError

_SHARED = 1_000_000  # elements: enough for torch to split the work among its threads
DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str) -> torch.device:
    """`auto` takes CUDA, then MPS, then the CPU. Raises InputError for a device that is not available."""
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if name not in available:
        raise InputError(f"--device {name!r}: expected one of {', '.join(DEVICES)}")
    if not available[name]:
        there = ", ".join(kind for kind, present in available.items() if present)
        raise InputError(f"--device {name}: this machine or torch build has no such device; there is: {there}")
    device = torch.device(name)
    prefer_deterministic_kernels(device)
    return device


def prefer_deterministic_kernels(device: torch.device) -> None:
    """On a GPU, use deterministic kernels where they exist; CPU kernels are always deterministic."""
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """Use `threads` threads for tensors in the block, even if there are fewer cores; then restore the number."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def flushing_denormals() -> Iterator[None]:
    """Treat numbers below 1e-38 as zero in the block, on this thread and on threads that torch starts in the block.

    Gradients of tokens that are almost never predicted get that small, and processors compute with such numbers many
    times more slowly: training with some hundred tokens is half as fast without this.
    """
    tiny = torch.full((1,), 1e-39)
    before = bool((tiny + tiny == 0).item())
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def set_threads(threads: int | None) -> int:
    """Use `threads` threads for tensors (None: one per usable core). Returns the number."""
    cores = usable_cores()
    if threads is not None and not 1 <= threads <= 4 * cores:
        raise InputError(f"--threads {threads}: expected a number from 1 to {4 * cores} on this machine")
    start_threads(threads or cores)
    return torch.get_num_threads()


def start_threads(threads: int) -> None:
    """Use `threads` threads for tensors, and start them now, because they keep the denormal mode of their start."""
    torch.set_num_threads(threads)
    with flushing_denormals():
        torch.ones(_SHARED).mul_(2)


def describe_machine() -> dict[str, object]:
    """Versions and hardware that a result may depend on, for the records of a run."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "cuda": torch.version.cuda,
        "packages": package_versions(),
        "executable": sys.executable,
    }


def package_versions() -> dict[str, str]:
    """The versions of the packages that results may depend on."""
    return {name: metadata.version(name) for name in ("genorder", "torch", "numpy", "scipy", "safetensors")}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
