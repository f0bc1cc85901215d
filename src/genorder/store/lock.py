"""One process per run directory. The operating system holds the lock, so that it goes with the process."""

import errno
import fcntl
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, final

from genorder.errors import InputError
from genorder.store.atomic import refusing_write_errors
from genorder.store.holder import Holder
from genorder.store.pid_file import claim_pid_file, pid_file_is_held, release_pid_file

LOCK_NAME = "lock"
PID_NAME = "lock.pid"  # only where the file system has no flock

_UNSUPPORTED = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})
# `lock_holder` takes the lock for an instant to see whether it is free; a run that starts in that instant
# must not be refused. The same wait lets a holder that has only just started write down who it is.
_ATTEMPTS = 10
_PAUSE_SECONDS = 0.02

_held: set["RunLock"] = set()


@final
class RunLock:
    """Held from `acquire` (or `with`) to `release`, or to the end of the process, however it ends.

    The lock file stays behind, because removing it would race with a process that has just opened it;
    it says nothing without the lock on it.
    """

    def __init__(self, directory: Path | str, *, command: Sequence[str] | None = None) -> None:
        """`command` is what others are told about the holder; sys.argv if None."""
        self.directory = Path(directory).absolute()
        self._command = command
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises InputError naming the holder if any process, also this one, holds the directory."""
        if self in _held:
            raise self._refusal(PID_NAME if self._descriptor is None else LOCK_NAME)
        path = self.directory / LOCK_NAME
        me = Holder.this_process(self._command)
        with refusing_write_errors(path):
            # Close-on-exec, or a program started by this process would go on holding the lock after it.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                flock_works = self._flock(descriptor)
                if flock_works:
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, me.to_json(), 0)
                elif not claim_pid_file(self.directory / PID_NAME, me):
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
        if self not in _held:  # never taken, or this is a forked child and the lock is the parent's
            return
        _held.discard(self)
        if self._descriptor is None:
            release_pid_file(self.directory / PID_NAME)
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
        """True with the lock taken, False if there are no such locks here. Raises InputError if held."""
        for _ in range(_ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                time.sleep(_PAUSE_SECONDS)
            except OSError as error:
                if error.errno in _UNSUPPORTED:
                    return False
                raise
        raise self._refusal(LOCK_NAME)

    def _refusal(self, name: str) -> InputError:
        path = self.directory / name
        holder = Holder.read(path)
        if holder is not None and holder.pid == os.getpid():
            return InputError(f"{self.directory} is in use already by this very process, {holder}")
        message = (
            f"{self.directory} is in use by {holder or 'another process'}; "
            "wait for it, stop it, or choose another --out"
        )
        if name == PID_NAME:  # unlike a flock it can outlive its owner, which cannot be seen from another host
            message += f"; if it is surely gone, remove {path}"
        return InputError(message)


def lock_holder(directory: Path | str) -> tuple[bool, Holder | None]:
    """Whether the directory is held, and by whom if that is known. Needs no right to write there."""
    path = Path(directory) / LOCK_NAME
    held = _flock_is_held(path)
    if held is None:
        path = path.with_name(PID_NAME)
        held = pid_file_is_held(path)
    return held, Holder.read(path) if held else None


def _flock_is_held(path: Path) -> bool | None:
    """None if there are no such locks here."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        # Shared, so that two who only look do not take each other for a holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return False


def _forget_in_child() -> None:
    """A forked child shares the open file, and with it the lock: it must let go, without unlocking it."""
    for lock in _held:
        if lock._descriptor is not None:
            os.close(lock._descriptor)
            lock._descriptor = None
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
