import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from store_helpers import next_line, program

from genorder.errors import InputError
from genorder.store import LockHolder, RunLock, lock_state

HOLDER = """
import sys
from genorder.store import RunLock
with RunLock(sys.argv[1], command=["genorder", "discover", "my data"]):
    print("ready", flush=True)
    sys.stdin.read()
"""

# Starts a child that outlives it (by exec, and by fork), then waits to be killed.
HOLDER_WITH_CHILDREN = """
import os, subprocess, sys, time
from genorder.store import RunLock
with RunLock(sys.argv[1]):
    child = subprocess.Popen(["sleep", "20"], stdout=subprocess.DEVNULL, close_fds=False)
    forked = os.fork()
    if forked == 0:
        time.sleep(20)
        os._exit(0)
    print("ready", flush=True)
    print(child.pid, forked, flush=True)
    sys.stdin.read()
"""

HOLDER_WITH_RELEASING_CHILD = """
import os, sys
from genorder.store import RunLock
with RunLock(sys.argv[1]) as lock:
    forked = os.fork()
    if forked == 0:
        lock.release()
        os._exit(0)
    os.waitpid(forked, 0)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def without_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_a_second_process_is_refused_at_once_with_a_description_of_the_holder(tmp_path: Path) -> None:
    assert lock_state(tmp_path) == (False, None)
    with program(HOLDER, tmp_path) as process:
        start = time.monotonic()
        with pytest.raises(InputError) as caught:
            RunLock(tmp_path).acquire()
        assert time.monotonic() - start < 2
        held, holder = lock_state(tmp_path)
        assert held
        assert holder is not None
        assert holder.pid == process.pid
        assert holder.command == "genorder discover 'my data'"
        assert str(caught.value) == (
            f"{tmp_path} is in use by process {process.pid} on {holder.host} since {holder.since} "
            "(command: genorder discover 'my data'); wait for it, stop it, or choose another --out"
        )
        process.communicate()
    assert lock_state(tmp_path) == (False, None)
    with RunLock(tmp_path):
        pass


def test_a_killed_holder_does_not_block_the_next(tmp_path: Path) -> None:
    with program(HOLDER, tmp_path) as process:
        process.kill()
        process.wait()
        assert LockHolder.read(tmp_path / "lock") is not None  # the file still names it
        assert lock_state(tmp_path) == (False, None)
        with RunLock(tmp_path):
            assert lock_state(tmp_path)[0]


def test_children_do_not_keep_the_lock_of_a_killed_parent(tmp_path: Path) -> None:
    with program(HOLDER_WITH_CHILDREN, tmp_path) as process:
        children = [int(pid) for pid in next_line(process).split()]
        try:
            process.kill()
            process.wait()
            for pid in children:
                os.kill(pid, 0)  # they are alive
            with RunLock(tmp_path):
                pass
        finally:
            for pid in children:
                os.kill(pid, 9)


def test_a_forked_child_does_not_release_the_lock(tmp_path: Path) -> None:
    with program(HOLDER_WITH_RELEASING_CHILD, tmp_path):
        assert lock_state(tmp_path)[0]


def test_the_same_process_is_refused_the_second_time(tmp_path: Path) -> None:
    with RunLock(tmp_path) as lock:
        for second in (lock, RunLock(tmp_path)):
            with pytest.raises(InputError, match="already in use by this process"):
                second.acquire()
        assert lock_state(tmp_path)[0]
    with lock:  # and can be acquired again later
        assert lock_state(tmp_path)[0]
    lock.release()  # a second release has no effect
    assert lock_state(tmp_path) == (False, None)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"pid": "x"}', b'{"pid": -1}'])
def test_a_leftover_file_of_any_content_is_harmless(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    assert lock_state(tmp_path) == (False, None)
    with RunLock(tmp_path):
        holder = lock_state(tmp_path)[1]
        assert holder is not None
        assert holder.pid == os.getpid()


def test_reading_the_state_does_not_make_a_start_fail(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert lock_state(tmp_path) == (False, None)
        timer = threading.Timer(0.05, fcntl.flock, (looking, fcntl.LOCK_UN))  # while acquire is trying
        timer.start()
        with RunLock(tmp_path):
            pass
        timer.join()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*/none/lock: No such file"):
        RunLock(tmp_path / "none").acquire()


@pytest.mark.usefixtures("without_flock")
class TestWithoutFlock:
    def test_acquires_refuses_and_releases(self, tmp_path: Path) -> None:
        assert lock_state(tmp_path) == (False, None)
        with RunLock(tmp_path) as lock:
            for second in (lock, RunLock(tmp_path)):
                with pytest.raises(InputError, match="already in use by this process"):
                    second.acquire()
            held, holder = lock_state(tmp_path)
            assert held
            assert holder is not None
            assert holder.pid == os.getpid()
        assert lock_state(tmp_path) == (False, None)
        assert not (tmp_path / "lock.pid").exists()

    @pytest.mark.parametrize("own", [False, True])
    def test_a_dead_owner_is_cleared_away(self, tmp_path: Path, own: bool) -> None:
        """Also one with our own pid, as in a restarted container."""
        self.leave(tmp_path, pid=os.getpid() if own else dead_pid())
        assert lock_state(tmp_path) == (False, None)
        with RunLock(tmp_path):
            assert lock_state(tmp_path)[0]
        assert [entry.name for entry in tmp_path.iterdir()] == ["lock"]

    def test_a_live_owner_is_respected(self, tmp_path: Path) -> None:
        self.leave(tmp_path, pid=os.getppid())
        with pytest.raises(InputError, match=rf"in use by process {os.getppid()} on .*remove .*lock\.pid"):
            RunLock(tmp_path).acquire()
        assert lock_state(tmp_path)[0]

    def test_an_owner_on_another_host_is_respected(self, tmp_path: Path) -> None:
        self.leave(tmp_path, pid=dead_pid(), host="elsewhere")
        with pytest.raises(InputError, match=r"on elsewhere .*if that process has ended, remove .*lock\.pid"):
            RunLock(tmp_path).acquire()

    def test_an_owner_that_has_not_written_yet_is_respected(self, tmp_path: Path) -> None:
        (tmp_path / "lock.pid").touch()
        with pytest.raises(InputError, match="in use by another process"):
            RunLock(tmp_path).acquire()

    @staticmethod
    def leave(directory: Path, **changes: object) -> None:
        fields = json.loads(LockHolder.this_process().to_json())
        (directory / "lock.pid").write_text(json.dumps(fields | changes))
