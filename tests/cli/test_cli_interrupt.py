"""Runs that are stopped, damaged, watched or wanted twice; the same command always continues."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cli_helpers import ENVIRONMENT, PROGRAM, RELU_3, TINY, Genorder

from genorder.cli import train
from genorder.training import Progress

STEPS = 18
STOPPED_AT = 12
COMMAND = ("train", *RELU_3, *TINY, "--steps", STEPS, "--set", "model.dropout=0.1", "--checkpoint-every", 0)


@pytest.fixture
def interrupted(genorder: Genorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a run that Ctrl-C has stopped, with two checkpoints in it."""

    @contextmanager
    def stopping_progress(label: str, steps: int) -> Iterator[object]:
        def report(progress: Progress) -> None:
            if progress.step == STOPPED_AT - 1:
                os.kill(os.getpid(), signal.SIGINT)

        yield report

    with monkeypatch.context() as patched:
        patched.setattr(train, "training_progress", stopping_progress)
        stopped = genorder(*COMMAND, "--out", "run", "--json")
    assert stopped.code == 130
    assert stopped.out == ""
    last = stopped.err.splitlines()[-1]
    assert last == f"interrupted: stopped at step {STOPPED_AT} of {STEPS}; the same command continues from there"
    return tmp_path / "run"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    from genorder.cli.app import run

    path = tmp_path_factory.mktemp("undisturbed") / "run"
    assert run([*map(str, COMMAND), "--out", str(path)]) == 0
    digest = json.loads((path / "result.json").read_text())["weights_sha256"]
    assert isinstance(digest, str)
    return digest


def checkpoints(run: Path) -> list[Path]:
    """Newest first."""
    return sorted(run.glob("checkpoints/*/step-*.safetensors"), reverse=True)


def test_interrupted_run_continues_to_the_same_weights(genorder: Genorder, interrupted: Path, undisturbed: str) -> None:
    assert [path.stem for path in checkpoints(interrupted)] == ["step-000000012", "step-000000011"]
    status = genorder("status", interrupted, "--json").result()
    assert status["state"] == "interrupted"
    assert status["result"] is None
    assert status["progress"]["step"] == STOPPED_AT
    shown = genorder("status", interrupted).err
    assert "the command that started it continues it" in shown
    assert f"step {STOPPED_AT} of {STEPS}" in shown
    finished = genorder(*COMMAND, "--out", interrupted, "--json")
    assert finished.result()["weights_sha256"] == undisturbed
    assert "warning" not in finished.err
    assert checkpoints(interrupted) == []


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "missing", "description"])
def test_damaged_checkpoint_gives_way_to_the_one_before(
    genorder: Genorder, interrupted: Path, undisturbed: str, damage: str
) -> None:
    newest = checkpoints(interrupted)[0]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        newest.unlink()
    elif damage == "description":
        newest.with_suffix(".json").write_text("{")
    else:
        newest.write_bytes({"flipped": content, "cut": content[:-100], "empty": b""}[damage])
    finished = genorder(*COMMAND, "--out", interrupted, "--json")
    warnings = [line for line in finished.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: checkpoint step-000000012 is damaged (")
    assert warnings[0].endswith("; trying the one before")
    assert finished.result()["weights_sha256"] == undisturbed


def test_no_whole_checkpoint_starts_from_the_beginning(genorder: Genorder, interrupted: Path, undisturbed: str) -> None:
    for path in checkpoints(interrupted):
        path.write_bytes(path.read_bytes()[:-1])
    finished = genorder(*COMMAND, "--out", interrupted, "--json")
    assert "starting from the first step" in finished.err
    assert finished.result()["weights_sha256"] == undisturbed


@contextmanager
def started(*arguments: object, wait_for: bytes) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
    """The program, once its stderr has shown `wait_for`; and what it had said until then."""
    with subprocess.Popen(
        [PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        try:
            assert process.stderr is not None
            said = b""
            while wait_for not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            yield process, said
        finally:
            process.kill()


def test_a_second_process_is_refused_and_the_first_stops_politely(genorder: Genorder, tmp_path: Path) -> None:
    command = ("train", *RELU_3, *TINY, "--steps", 10_000_000, "--out", tmp_path / "run", "--json")
    with started(*command, wait_for=b"training: step") as (process, said):
        assert b" left" in said
        refused = genorder(*command).error()
        assert f"process {process.pid}" in refused
        assert refused.startswith(f"{tmp_path / 'run'} is in use by ")
        assert refused.endswith("; wait for it, stop it, or choose another --out")
        status = genorder("status", tmp_path / "run", "--json").result()
        assert status["state"] == "running"
        assert f"held by process {process.pid} on " in genorder("status", tmp_path / "run").err
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err
    assert err.splitlines()[-1].startswith(b"interrupted: stopped at step ")
    assert len(checkpoints(tmp_path / "run")) == 1


def test_ctrl_c_while_data_is_generated(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import sys, time\n"
        "from genorder.tasks import RecurrenceTask, register_task\n"
        "def step(x, y):\n"
        "    print('drawing', file=sys.stderr, flush=True)\n"
        "    time.sleep(60)\n"
        "    return x + y\n"
        "@register_task('slow', summary='')\n"
        "def slow(lengths):\n"
        "    return RecurrenceTask('slow', lengths, low=0, high=9, step=step)\n"
    )
    command = ("train", "--task", "slow.py:slow", *TINY, "--out", "run", "--json")
    with started(*command, wait_for=b"drawing") as (process, _):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")
    assert not (tmp_path / "run").exists()


def test_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120"}
    command = [PROGRAM, "train", *RELU_3, *TINY, "--steps", "30", "--out", "run", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        with suppress(OSError):  # how a pseudo-terminal says that nobody writes any more
            while part := os.read(master, 65536):
                shown += part
        os.close(master)
        assert process.stdout is not None
        result = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert result["steps"] == 30
    assert b"30/30 steps" in shown
    assert b"loss" in shown
    assert b"left" in shown
    assert b"Traceback" not in shown
