"""What `make` does with programs that are there, and with those that are not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that is set up, but for the browser, with stand-ins for the programs that are asked for."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", ".venv/.ready"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def make(project: Path, *arguments: str, **programs: int) -> str:
    """Run it with programs that end with these codes; what it said."""
    folder = project / "bin"
    folder.mkdir(exist_ok=True)
    for name, code in programs.items():
        (folder / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (folder / name).chmod(0o755)
    outer = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}  # of a make that runs these tests
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    done = subprocess.run(["make", *arguments], cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_browser_that_cannot_be_had_is_tried_again(project: Path) -> None:
    said = make(project, "setup", chromium=0, npm=1)
    assert "the accessibility tests will be skipped" in said
    assert not (project / ".venv/.browser").exists()
    make(project, "setup", chromium=0, npm=0)
    assert (project / ".venv/.browser").exists()
    assert "npm" not in make(project, "setup", npm=1)


def test_benchmarks_need_no_browser(project: Path) -> None:
    assert make(project, "--dry-run", "bench").splitlines() == [".venv/bin/genorder bench training"]
