"""The journal of a run: every finished job is one durable row, found again by its fingerprint."""

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from genorder.errors import GenorderError, InputError
from genorder.store.fingerprint import canonical_json, fingerprint, to_plain
from genorder.store.journal_file import explaining_errors, is_blank, open_for_reading, open_for_writing


@final
@dataclass(frozen=True, kw_only=True)
class FinishedJob:
    fingerprint: str
    name: str
    result: dict[str, Any]
    seconds: float
    finished_at: str  # ISO 8601, UTC


@final
class Journal:
    """One writer at a time (the run lock sees to it), any number of readers; for the thread that opened it.

    The fingerprint alone says which job it is. The name is a label for people: two jobs of the same content
    share their result even if their labels differ.
    """

    def __init__(self, path: Path | str) -> None:
        """Open for writing; the file is made if absent. Raises InputError naming `path`."""
        self.path = Path(path)
        self._read_only = False
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._connection: sqlite3.Connection
        with explaining_errors(self.path):
            self._connection = open_for_writing(self.path)

    @classmethod
    def open_read_only(cls, path: Path | str) -> Self:
        """Open for reading, also while another process writes. Raises InputError naming `path`."""
        journal = cls.__new__(cls)
        journal.path = Path(path)
        journal._read_only = True
        if not journal.path.is_file():
            raise InputError(f"cannot read {path}: no such file")
        with explaining_errors(journal.path):
            journal._connection, journal._copy = open_for_reading(journal.path)
        return journal

    def get(self, job_fingerprint: str) -> dict[str, Any] | None:
        """The stored result, or None if this job has not finished."""
        rows = self._select("SELECT result FROM jobs WHERE fingerprint = ?", (job_fingerprint,))
        return _decode(rows[0][0]) if rows else None

    def record(self, job_fingerprint: str, name: str, result: Mapping[str, Any], seconds: float) -> None:
        """Store a finished job; on return it survives a crash of the process and of the machine.

        The same result again changes nothing; another result raises GenorderError. A result that JSON cannot
        hold raises TypeError, or ValueError for NaN and infinities. A full disk raises InputError, and the
        rows stored before stay.
        """
        text = json.dumps(to_plain(result), allow_nan=False)
        finished_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with explaining_errors(self.path):
            cursor = self._connection.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?) ON CONFLICT (fingerprint) DO NOTHING",
                (job_fingerprint, name, text, float(seconds), finished_at),
            )
        if cursor.rowcount == 0 and canonical_json(self.get(job_fingerprint)) != canonical_json(result):
            raise GenorderError(
                f"job {name} ({job_fingerprint[:12]}) is recorded in {self.path} with another result; "
                "the same job must give the same result"
            )

    def run(
        self, fingerprint_of: Mapping[str, Any], name: str, work: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """The stored result of the job described by `fingerprint_of`, or else that of `work`, now recorded.

        What is returned has been through JSON either way, so that a first run and a resumed one go on with
        the same values.
        """
        key = fingerprint(fingerprint_of)
        stored = self.get(key)
        if stored is not None:
            return stored
        start = time.perf_counter()
        result: dict[str, Any] = to_plain(work())
        self.record(key, name, result, time.perf_counter() - start)
        return result

    def jobs(self) -> list[FinishedJob]:
        """All finished jobs, in the order in which they were recorded."""
        return [
            FinishedJob(fingerprint=key, name=name, result=_decode(text), seconds=seconds, finished_at=at)
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
        with explaining_errors(self.path):
            # A reader may come before the writer has made the table.
            if self._read_only and is_blank(self._connection, self.path):
                return []
            return self._connection.execute(query, parameters).fetchall()


def _decode(text: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(text)
    return result
