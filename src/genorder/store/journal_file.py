"""Opening the SQLite file of a journal: its schema version, its modes, and what SQLite's errors mean."""

import errno
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from genorder.errors import InputError
from genorder.store.atomic import write_refusal

_SCHEMA_VERSION = 1
_APPLICATION_ID = 0x67656E6F  # "geno": tells a journal from any other SQLite file
_SCHEMA = """
CREATE TABLE jobs (
    fingerprint TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    result TEXT NOT NULL,
    seconds REAL NOT NULL,
    finished_at TEXT NOT NULL
)
"""
_BUSY_SECONDS = 10.0


@contextmanager
def explaining_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the file itself into an InputError that names `path`."""
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the primary code; errors of the Python module itself have none.
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_FULL:
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise write_refusal(path, full) from error
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
                advice = "check the disk and the rights to it, or choose another --out"
                raise InputError(f"cannot use {path}: {error}; {advice}") from error
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                raise InputError(f"{path} is no journal ({error}); choose another --out") from error
            case sqlite3.SQLITE_BUSY:
                raise InputError(f"{path} is kept busy by another program; try again later") from error
            case _:
                raise


def is_blank(connection: sqlite3.Connection, path: Path) -> bool:
    """False for a journal, True for a database without content: new, or its writer was killed making it.

    Raises InputError if it is anything else.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == _APPLICATION_ID and 1 <= version <= _SCHEMA_VERSION:
        return False
    if application == _APPLICATION_ID:
        raise InputError(
            f"{path} is a journal of version {version}, this program knows up to {_SCHEMA_VERSION}; "
            "use a newer genorder or choose another --out"
        )
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables or version or application:
        raise InputError(f"{path} is a database of another program; choose another --out")
    return True


def open_for_writing(path: Path) -> sqlite3.Connection:
    # No implicit transactions: a statement commits by itself, durably, before it returns.
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        blank = is_blank(connection, path)  # before the switch to WAL, which writes into the file
        _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        if blank:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path) -> tuple[sqlite3.Connection, tempfile.TemporaryDirectory[str] | None]:
    """A connection, and the directory that must live as long as it does, if one was needed.

    To read a WAL database SQLite needs its side files, and makes them where they are missing. Where it may
    not make them (a read-only disk, another user's directory) no writer is at work either: a running writer
    has made them. So the file can then be taken as it lies there or, if a killed writer left side files
    that must still be worked in, be copied first.
    """
    uri = path.absolute().as_uri()
    try:
        return _checked(f"{uri}?mode=ro", path), None
    except sqlite3.OperationalError as error:
        refused = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in refused:
            raise
    side_files = [side for suffix in ("-wal", "-journal") if (side := path.with_name(path.name + suffix)).exists()]
    if not side_files:
        return _checked(f"{uri}?mode=ro&immutable=1", path), None
    copy = tempfile.TemporaryDirectory(prefix="genorder-journal-")
    try:
        for source in (path, *side_files):
            shutil.copyfile(source, Path(copy.name, source.name))
        # Not read-only: the copy is ours, and working in its side files is the point of it.
        return _checked(Path(copy.name, path.name).as_uri(), path), copy
    except BaseException as error:
        copy.cleanup()
        if isinstance(error, OSError):
            raise InputError(f"cannot read {path}: {error.strerror or error}") from error
        raise


def _checked(uri: str, path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        is_blank(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Where WAL is not offered (some network file systems) SQLite stays in its old mode, durable as well."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # A reader of a brand-new file is in the way; SQLite does not wait by itself at this switch.
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
