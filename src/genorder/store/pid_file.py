"""A lock for file systems without flock: the file is the lock, and its dead owner's file is cleared away."""

import os
from contextlib import suppress
from pathlib import Path

from genorder.store.atomic import temporary_path
from genorder.store.holder import Holder

_ATTEMPTS = 5

# Which files this process has claimed. A restarted container often gets the pid of its predecessor, so a
# file that names our own pid is ours only if it is also in here.
_claimed: set[Path] = set()


def claim_pid_file(path: Path, me: Holder) -> bool:
    """Whether the file is now ours. Raises OSError if the directory refuses."""
    path = path.absolute()
    for _ in range(_ATTEMPTS):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            if pid_file_is_held(path):
                return False
            _remove_stale(path)
            continue
        try:
            os.write(descriptor, me.to_json())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        _claimed.add(path)
        return True
    return False


def release_pid_file(path: Path) -> None:
    path = path.absolute()
    _claimed.discard(path)
    with suppress(OSError):
        path.unlink(missing_ok=True)


def pid_file_is_held(path: Path) -> bool:
    """An unreadable owner counts as one: it may be writing its details just now."""
    path = path.absolute()
    if not path.exists():
        return False
    holder = Holder.read(path)
    if holder is None:
        return True
    if holder.pid == os.getpid():
        return path in _claimed
    return holder.may_be_alive()


def _remove_stale(path: Path) -> None:
    """Take the file away by a rename: of several processes that saw the same dead owner only one gets it.

    A later one may in this way get the file of the new owner; it sees that and puts it back.
    """
    aside = temporary_path(path.parent, path.name)
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    holder = Holder.read(aside)
    if holder is not None and holder.pid != os.getpid() and holder.may_be_alive():
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    aside.unlink(missing_ok=True)
