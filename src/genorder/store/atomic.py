"""Atomic file writes: after a crash, a file has either its complete old content or its complete new content."""

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from genorder.errors import InputError

# A killed process leaves its temporary file behind; the prefix identifies it.
# The target's name comes last, because some writers (numpy.save) choose or add a suffix by it.
_TEMPORARY_PREFIX = ".genorder-tmp-"

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
# Errors that a writer inside `replace_atomic` can only get from the disk.
_DISK_ERRORS = _NO_SPACE | {errno.EROFS, errno.EFBIG, errno.EIO}


def write_error(path: Path | str, error: OSError) -> InputError:
    """The one-line message for the user when `path` cannot be written."""
    reason = error.strerror or str(error)
    advice = "free space or choose another --out" if error.errno in _NO_SPACE else "choose another --out"
    return InputError(f"cannot write {path}: {reason}; {advice}")


@contextmanager
def explaining_write_errors(path: Path | str) -> Iterator[None]:
    """Turn every OSError of the block into the InputError that names `path`."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from error


@contextmanager
def replace_atomic(path: Path | str, *, durable: bool = True) -> Iterator[Path]:
    """Yield an empty temporary file beside `path`, which replaces `path` when the block ends without an error.

    With `durable` the new content is on the disk on return. If the block or the replacement fails, the temporary file
    is removed and the old file is unchanged. A symbolic link is followed, not replaced.

    Raises InputError for errors of the disk; other errors of the block pass through unchanged.
    """
    target = Path(os.path.realpath(path))
    with explaining_write_errors(path):
        _refuse_special_file(target)
        temporary = _create_temporary(target.parent, target.name)
    try:
        try:
            yield temporary
        except OSError as error:
            if error.errno in _DISK_ERRORS or error.filename in (temporary, str(temporary)):
                raise write_error(path, error) from error
            raise
        with explaining_write_errors(path):
            if durable:
                _fsync_file(temporary)
            os.replace(temporary, target)  # noqa: PTH105 - named as in the documentation of its atomicity
            if durable:
                fsync_directory(target.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_bytes_atomic(path: Path | str, data: bytes, *, durable: bool = True) -> None:
    with replace_atomic(path, durable=durable) as temporary:
        temporary.write_bytes(data)


def write_json_atomic(path: Path | str, obj: object, *, durable: bool = True) -> None:
    """Write `obj` with its key order kept. Raises ValueError for NaN and infinities, which JSON does not have."""
    # ASCII only: command lines may contain lone surrogates (undecodable bytes), which UTF-8 cannot encode.
    text = json.dumps(obj, indent=2, allow_nan=False) + "\n"
    write_bytes_atomic(path, text.encode(), durable=durable)


def ensure_writable_directory(path: Path | str) -> Path:
    """Create `path` and its parents where needed, and check by writing that files can be made in it.

    Permission bits are not enough: root ignores them, and they do not show a read-only file system.
    """
    directory = Path(path)
    with explaining_write_errors(directory):
        missing = [step for step in (directory, *directory.parents) if not step.exists()]
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from error
        for created in missing:
            fsync_directory(created.parent)
        probe = _create_temporary(directory, "probe")
        try:
            probe.write_bytes(b"probe")
            _fsync_file(probe)
        finally:
            probe.unlink(missing_ok=True)
    return directory


def temporary_path(directory: Path, name: str) -> Path:
    """An unused name in `directory`, which `is_temporary` recognises if the file is left behind."""
    return directory / f"{_TEMPORARY_PREFIX}{secrets.token_hex(6)}-{name[-40:]}"


def is_temporary(path: Path) -> bool:
    """Whether `temporary_path` made the name."""
    return path.name.startswith(_TEMPORARY_PREFIX)


def fsync_directory(directory: Path) -> None:
    """Make renames and creations in `directory` survive a power cut, if the file system supports that."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # a directory may be writable without being readable
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported for directories here
            raise
    finally:
        os.close(descriptor)


def _create_temporary(directory: Path, name: str) -> Path:
    # Not tempfile.mkstemp: its files are readable by the owner only, and the result would keep that mode.
    temporary = temporary_path(directory, name)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    return temporary


def _refuse_special_file(target: Path) -> None:
    """Raise OSError for anything but a regular file: root could otherwise replace /dev/null or a pipe."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return  # absent or unreachable: making the temporary file then raises the reason
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(target))


def _fsync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
