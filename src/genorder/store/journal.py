"""The journal of a run: an SQLite file with one durable row per finished job, found by the job's fingerprint."""

import errno
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from genorder.errors import GenorderError, InputError
from genorder.store.atomic import write_error
from genorder.store.fingerprint import JsonObject, canonical_json, fingerprint, to_plain

_SCHEMA_VERSION = 1
_APPLICATION_ID = 0x67656E6F  # "geno": distinguishes a journal from any other SQLite file
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


@final
@dataclass(frozen=True, kw_only=True)
class FinishedJob:
    fingerprint: str
    name: str
    result: JsonObject
    seconds: float
    finished_at: str  # ISO 8601, UTC


@final
class Journal:
    """One writer at a time (the run lock ensures it), any number of readers; used by the thread that opened it.

    A job is identified by its fingerprint alone. Its name is a label for people: two jobs with the same content share
    their result even if their names differ.
    """

    def __init__(self, path: Path | str) -> None:
        """Open for writing; the file is made if absent. Raises InputError naming `path`."""
        self._connect(Path(path))

    @classmethod
    def in_memory(cls) -> Self:
        """A journal that is lost with the process, for estimates."""
        return cls(":memory:")

    @classmethod
    def open_read_only(cls, path: Path | str) -> Self:
        """Open for reading, also while another process writes. Raises InputError naming `path`."""
        journal = cls.__new__(cls)
        journal._connect(Path(path), read_only=True)
        return journal

    def _connect(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self._read_only = path, read_only
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        if read_only and not path.is_file():
            raise InputError(f"cannot read {path}: no such file")
        with _explaining_errors(path):
            if read_only:
                self._connection, self._copy = _open_for_reading(path)
            else:
                self._connection = _open_for_writing(path)

    def get(self, job_fingerprint: str) -> JsonObject | None:
        """The stored result, or None if this job has not finished."""
        rows = self._select("SELECT result FROM jobs WHERE fingerprint = ?", (job_fingerprint,))
        return json.loads(rows[0][0]) if rows else None

    def record(self, job_fingerprint: str, name: str, result: Mapping[str, object], seconds: float) -> None:
        """Store a finished job; on return it survives a crash of the process and of the machine.

        Recording the same result again changes nothing; another result raises GenorderError. A result that JSON cannot
        represent raises TypeError, or ValueError for NaN and infinities. A full disk raises InputError and leaves the
        rows stored before.
        """
        text = json.dumps(to_plain(result), allow_nan=False)
        finished_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with _explaining_errors(self.path):
            cursor = self._connection.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?) ON CONFLICT (fingerprint) DO NOTHING",
                (job_fingerprint, name, text, float(seconds), finished_at),
            )
        if cursor.rowcount == 0 and canonical_json(self.get(job_fingerprint)) != canonical_json(result):
            raise GenorderError(
                f"job {name} ({job_fingerprint[:12]}) is recorded in {self.path} with another result; "
                "the same job must give the same result"
            )

    def run(self, job: Mapping[str, object], name: str, work: Callable[[], Mapping[str, object]]) -> JsonObject:
        """The result of the job: the recorded one if there is one, else that of `work`, which is then recorded.

        `job` describes the job for its fingerprint. The returned result has been through JSON either way, so a first
        run and a resumed run continue with the same values.
        """
        key = fingerprint(job)
        stored = self.get(key)
        if stored is not None:
            return stored
        start = time.perf_counter()
        result: JsonObject = to_plain(work())
        self.record(key, name, result, time.perf_counter() - start)
        return result

    def jobs(self) -> list[FinishedJob]:
        """All finished jobs, in the order in which they were recorded."""
        return [
            FinishedJob(fingerprint=key, name=name, result=json.loads(text), seconds=seconds, finished_at=at)
            for key, name, text, seconds, at in self._select(
                "SELECT fingerprint, name, result, seconds, finished_at FROM jobs ORDER BY rowid"
            )
        ]

    def close(self) -> None:
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _select(self, query: str, parameters: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        with _explaining_errors(self.path):
            # A reader may come before the writer has made the table.
            if self._read_only and _is_blank(self._connection, self.path):
                return []
            return self._connection.execute(query, parameters).fetchall()


@contextmanager
def _explaining_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the file itself into an InputError that names `path`."""
    try:
        yield
    except sqlite3.Error as error:
        match _primary_code(error):
            case sqlite3.SQLITE_FULL:
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise write_error(path, full) from error
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
                advice = "check the disk and its permissions, or choose another --out"
                raise InputError(f"cannot use {path}: {error}; {advice}") from error
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                raise InputError(f"{path} is no journal ({error}); choose another --out") from error
            case sqlite3.SQLITE_BUSY:
                raise InputError(f"{path} is kept busy by another program; try again later") from error
            case _:
                raise


def _primary_code(error: sqlite3.Error) -> int:
    """The low byte of SQLite's error code; 0 for errors of the Python module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_blank(connection: sqlite3.Connection, path: Path) -> bool:
    """False for a journal, True for a database without content: new, or left by a writer that was killed early.

    Raises InputError for anything else.
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


def _open_for_writing(path: Path) -> sqlite3.Connection:
    # No implicit transactions: a statement commits by itself, durably, before it returns.
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        blank = _is_blank(connection, path)  # before the switch to WAL, which writes into the file
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


def _open_for_reading(path: Path) -> tuple[sqlite3.Connection, tempfile.TemporaryDirectory[str] | None]:
    """A connection, and the directory that must live as long as the connection, if one was needed.

    To read a WAL database SQLite needs its side files, and makes them where they are missing. Where it may not make
    them (a read-only disk, another user's directory) no writer is running either, because a writer makes them. The file
    can then be read as it is. If a killed writer left side files that SQLite must modify, all files are copied first.
    """
    uri = path.absolute().as_uri()
    try:
        return _connect_checked(f"{uri}?mode=ro", path), None
    except sqlite3.OperationalError as error:
        if _primary_code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR):
            raise
    side_files = [side for suffix in ("-wal", "-journal") if (side := path.with_name(path.name + suffix)).exists()]
    if not side_files:
        return _connect_checked(f"{uri}?mode=ro&immutable=1", path), None
    copy = tempfile.TemporaryDirectory(prefix="genorder-journal-")
    try:
        for source in (path, *side_files):
            shutil.copyfile(source, Path(copy.name, source.name))
        # Not read-only: SQLite must modify the side files of the copy.
        return _connect_checked(Path(copy.name, path.name).as_uri(), path), copy
    except BaseException as error:
        copy.cleanup()
        if isinstance(error, OSError):
            raise InputError(f"cannot read {path}: {error.strerror or error}") from error
        raise


def _connect_checked(uri: str, path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        _is_blank(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Where WAL is not available (some network file systems) SQLite stays in its old mode, which is durable as well."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # A reader of a brand-new file blocks the switch; SQLite's own timeout does not apply to it.
            if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
