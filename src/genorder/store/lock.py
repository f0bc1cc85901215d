"""The lock of a run directory: one process at a time, and a description of that process for others to read.

The operating system holds the lock (flock) and drops it when the process ends, however it ends. On file systems without
flock, the existence of the file `lock.pid` is the lock; the file of a dead process is removed.

`filelock` cannot replace this module: a reader without write permission must see whether the lock is held, network file
systems refuse flock with ENOLCK or ENOTSUP rather than ENOSYS, and its marker file has no room for the command.
"""

import errno
import fcntl
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, final

from genorder.errors import InputError
from genorder.store.atomic import explaining_write_errors, temporary_path

LOCK_NAME = "lock"
PID_NAME = "lock.pid"  # only where the file system has no flock

_NO_FLOCK = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})
# `lock_state` takes the lock for an instant to see whether it is free, which must not make a starting run fail. The
# same wait gives a process that has just taken the lock the time to write its description.
_ATTEMPTS = 10
_PAUSE_SECONDS = 0.02
_PID_FILE_ATTEMPTS = 5

_held: set["RunLock"] = set()
# The pid files that this process has made. A restarted container often gets the pid of its predecessor, so a file with
# our own pid is ours only if it is also in here.
_own_pid_files: set[Path] = set()


@final
@dataclass(frozen=True, kw_only=True)
class LockHolder:
    """The process that holds a run directory, as its lock file describes it."""

    pid: int
    host: str
    since: str  # ISO 8601, UTC
    command: str

    @classmethod
    def this_process(cls, command: Sequence[str] | None = None) -> Self:
        return cls(
            pid=os.getpid(),
            host=socket.gethostname(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            command=shlex.join(sys.argv if command is None else command),
        )

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The holder in a lock file; None if the file is missing, empty (released, or not written yet) or foreign."""
        try:
            holder = cls(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        valid = isinstance(holder.command, str) and isinstance(holder.pid, int) and 0 < holder.pid < 2**31
        return holder if valid else None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    def __str__(self) -> str:
        command = " ".join(self.command.split())  # on one line, because error messages are one line
        return f"process {self.pid} on {self.host} since {self.since} (command: {command})"

    def may_be_alive(self) -> bool:
        """False only if the holder ran on this host and no process has its pid."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # a process of another user
        return True


class LockState(NamedTuple):
    held: bool
    holder: LockHolder | None  # None also if the holder's description cannot be read


@final
class RunLock:
    """The lock of one directory, held from `acquire` (or `with`) to `release` or to the end of the process.

    The lock file stays behind: removing it would race with a process that has just opened it. Without the lock on it,
    its content means nothing.
    """

    def __init__(self, directory: Path | str, *, command: Sequence[str] | None = None) -> None:
        """`command` describes this process to others; sys.argv if None."""
        self.directory = Path(directory).absolute()
        self._command = command
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises InputError naming the holder if any process, including this one, holds the directory."""
        if self in _held:
            raise self._refusal(PID_NAME if self._descriptor is None else LOCK_NAME)
        path = self.directory / LOCK_NAME
        holder = LockHolder.this_process(self._command)
        with explaining_write_errors(path):
            # Close-on-exec, or a program started by this process would keep the lock after it.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                flock_works = self._flock(descriptor)
                if flock_works:
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, holder.to_json(), 0)
                elif not _claim_pid_file(self.directory / PID_NAME, holder):
                    raise self._refusal(PID_NAME)
            except BaseException:
                os.close(descriptor)
                raise
        if flock_works:
            self._descriptor = descriptor
        else:
            os.close(descriptor)
        _held.add(self)

    def release(self) -> None:
        if self not in _held:  # never acquired, or this is a forked child and the lock is the parent's
            return
        _held.discard(self)
        if self._descriptor is None:
            path = self.directory / PID_NAME
            _own_pid_files.discard(path)
            with suppress(OSError):
                path.unlink(missing_ok=True)
            return
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _flock(self, descriptor: int) -> bool:
        """True with the lock taken, False if the file system has no flock. Raises InputError if the lock is held."""
        for _ in range(_ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                time.sleep(_PAUSE_SECONDS)
            except OSError as error:
                if error.errno in _NO_FLOCK:
                    return False
                raise
        raise self._refusal(LOCK_NAME)

    def _refusal(self, name: str) -> InputError:
        path = self.directory / name
        holder = LockHolder.read(path)
        if holder is not None and holder.pid == os.getpid():
            return InputError(f"{self.directory} is already in use by this process, {holder}")
        message = (
            f"{self.directory} is in use by {holder or 'another process'}; "
            "wait for it, stop it, or choose another --out"
        )
        if name == PID_NAME:  # unlike a flock it can outlive its process, which another host cannot check
            message += f"; if that process has ended, remove {path}"
        return InputError(message)


def lock_state(directory: Path | str) -> LockState:
    """Whether the directory is held, and by which process. Needs no write permission."""
    path = Path(directory) / LOCK_NAME
    held = _flock_is_held(path)
    if held is None:
        path = path.with_name(PID_NAME)
        held = _pid_file_is_held(path)
    return LockState(held, LockHolder.read(path) if held else None)


def _flock_is_held(path: Path) -> bool | None:
    """None if the file system has no flock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        # Shared, so that two readers do not see each other as holders.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno in _NO_FLOCK:
            return None
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return False


def _claim_pid_file(path: Path, holder: LockHolder) -> bool:
    """Make the pid file; False if another process holds it. Raises OSError if the directory cannot be written."""
    for _ in range(_PID_FILE_ATTEMPTS):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            if _pid_file_is_held(path):
                return False
            _remove_stale_pid_file(path)
            continue
        try:
            os.write(descriptor, holder.to_json())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        _own_pid_files.add(path)
        return True
    return False


def _pid_file_is_held(path: Path) -> bool:
    """A file without a readable description counts as held: its process may be writing the description."""
    path = path.absolute()
    if not path.exists():
        return False
    holder = LockHolder.read(path)
    if holder is None:
        return True
    return path in _own_pid_files if holder.pid == os.getpid() else holder.may_be_alive()


def _remove_stale_pid_file(path: Path) -> None:
    """Move the file away and delete it: of several processes that saw the same dead holder, one succeeds.

    A slower process may move away the file of the new holder instead; it then puts the file back.
    """
    aside = temporary_path(path.parent, path.name)
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    holder = LockHolder.read(aside)
    if holder is not None and holder.pid != os.getpid() and holder.may_be_alive():
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    aside.unlink(missing_ok=True)


def _drop_locks_in_child() -> None:
    """Close a forked child's copies of the lock files without unlocking them: the parent keeps its locks."""
    for lock in _held:
        if lock._descriptor is not None:
            os.close(lock._descriptor)
            lock._descriptor = None
    _held.clear()


os.register_at_fork(after_in_child=_drop_locks_in_child)
