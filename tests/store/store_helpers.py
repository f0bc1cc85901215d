"""Real disks and real processes for the store's tests."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest


@contextmanager
def small_disk(directory: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of that size at `directory`; skips the test where mounting is not allowed."""
    directory.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(directory))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting needs root")
    try:
        yield directory
    finally:
        _run("umount", str(directory))


def make_read_only(disk: Path) -> None:
    _run("mount", "-o", "remount,ro", str(disk))


@contextmanager
def program(script: str, *arguments: Path | str) -> Iterator[subprocess.Popen[str]]:
    """A running Python program that has printed `ready`; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert next_line(process) == "ready"
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    output: IO[str] | None = process.stdout
    assert output is not None
    return output.readline().strip()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
