"""The directory of one run: its configuration, journal, checkpoints and result."""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, final

from genorder.errors import InputError
from genorder.store.atomic import (
    ensure_writable_directory,
    is_temporary,
    refusing_write_errors,
    write_json_atomic,
)
from genorder.store.differences import config_differences
from genorder.store.fingerprint import to_plain
from genorder.store.holder import Holder
from genorder.store.journal import FinishedJob, Journal
from genorder.store.lock import LOCK_NAME, PID_NAME, RunLock, lock_holder

_log = logging.getLogger(__name__)

_LABELS = "labels"  # in config.json: what the user calls things
_CONFIG = "config.json"
_ENVIRONMENT = "environment.json"
_JOURNAL = "journal.sqlite"
_PROGRESS = "progress.json"
_RESULT = "result.json"
_FAILURE = "failure.json"
_CHECKPOINTS = "checkpoints"

_STARTS_KEPT = 20
_DIFFERENCES_SHOWN = 8
_CHANGING = (_JOURNAL, f"{_JOURNAL}-wal", _RESULT, _FAILURE)  # with what there is to read about a run


@final
class RunDirectory:
    """A run directory that this process holds: `open` takes it, `close` or leaving `with` gives it back."""

    def __init__(self, path: Path, labels: dict[str, Any], journal: Journal, held: ExitStack) -> None:
        """Not for callers: use `open`."""
        self.path = path
        self.labels = labels
        self.journal = journal
        self._held = held

    @classmethod
    def open(
        cls,
        path: Path | str,
        config: Mapping[str, Any],
        *,
        command: Sequence[str],
        environment: Mapping[str, Any],
        free: Collection[str] = (),
        labels: Mapping[str, Any] | None = None,
    ) -> Self:
        """Start the run of `config` in `path`, or continue it if it was started there.

        `environment` (versions, device) is kept for the reader; it has no say in whether a run may continue. Neither
        have the entries of `config` that are `free`: the run goes on with their new values. Nor have `labels`, what
        the user calls things: a later start may change them, and those that it does not give stay.

        Raises InputError if the directory cannot be written, is held by another process, belongs to another
        configuration (the message lists the differences) or holds files that are not a run's.
        """
        # Absolute, so that a later change of the working directory does not split the run in two.
        path = Path(path).absolute()
        _refuse_foreign(path)  # first of all, so that a foreign directory is left without even a lock file
        ensure_writable_directory(path)
        with ExitStack() as stack:
            stack.enter_context(RunLock(path, command=command))
            _refuse_foreign(path)  # again: only now can no other process be filling it
            kept = _start_or_continue(path, to_plain(config), free, to_plain(labels or {}))
            _remove_leftovers(path)
            with refusing_write_errors(path):
                (path / _FAILURE).unlink(missing_ok=True)  # a new start is a new chance
            _note_start(path, command, environment)
            journal = stack.enter_context(Journal(path / _JOURNAL))
            return cls(path, kept, journal, stack.pop_all())

    def checkpoints(self, name: str) -> Path:
        """The directory, made if absent, for the checkpoints of the job `name`."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise ValueError(f"checkpoint name {name!r}: expected a plain file name")
        directory = self.path / _CHECKPOINTS / name
        with refusing_write_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        return directory

    def read_result(self) -> dict[str, Any] | None:
        """The result if the run has finished before, else None."""
        return _read_object(self.path / _RESULT)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the result durably; from now on the run counts as finished."""
        write_json_atomic(self.path / _RESULT, to_plain(result))

    def forget_result(self) -> None:
        """The run counts as unfinished again: it is to give more than it did. Its work stays in the journal."""
        with refusing_write_errors(self.path):
            (self.path / _RESULT).unlink(missing_ok=True)

    def write_failure(self, reason: str) -> None:
        """Note, for those who look at the run later, why it ended without a result; the next start forgets it."""
        with suppress(InputError):  # the failure itself is what the user must hear of
            write_json_atomic(self.path / _FAILURE, {"reason": reason})

    def write_progress(self, progress: Mapping[str, Any]) -> None:
        """Tell watchers how far the run is. Cheap, and lost in a power cut: nothing is resumed from it."""
        with suppress(InputError):  # a full disk must not end a run for the sake of a notice
            write_json_atomic(self.path / _PROGRESS, to_plain(progress), durable=False)

    def close(self) -> None:
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@final
@dataclass(frozen=True, kw_only=True)
class RunStatus:
    state: Literal["finished", "running", "interrupted", "failed"]
    config: dict[str, Any]
    jobs: list[FinishedJob]
    result: dict[str, Any] | None
    holder: Holder | None  # None also for a running run, if its holder could not be read
    progress: dict[str, Any] | None  # as last told, also by a run that was interrupted since
    failure: str | None = None  # why the last start ended without a result, if it was not interrupted


def read_status(path: Path | str) -> RunStatus:
    """How far the run in `path` is. Changes nothing, and does not disturb a run that is at work.

    Raises InputError if `path` is no run directory.
    """
    path = Path(path)
    config = _read_object(path / _CONFIG)
    if config is None:
        reason = "it has no config.json" if path.is_dir() else "no such directory"
        raise InputError(f"{path} is no run directory: {reason}; give the --out of an earlier command")
    # The lock before the result: a run that ends between the two must not look interrupted.
    held, holder = lock_holder(path)
    result = _read_object(path / _RESULT)
    failure = _read_object(path / _FAILURE) if result is None else None
    ended: Literal["finished", "failed", "interrupted"] = "failed" if failure else "interrupted"
    return RunStatus(
        state="running" if held else ended if result is None else "finished",
        config=config,
        jobs=_read_jobs(path / _JOURNAL),
        result=result,
        holder=holder,
        progress=_read_told(path),
        failure=str(failure.get("reason", "")) if failure else None,
    )


def verb_of(path: Path, config: dict[str, Any]) -> Any:
    """Raises InputError for a directory whose config.json is not a run's, such as an exported model's."""
    if "verb" not in config:
        raise InputError(f"{path} is no run directory: its config.json is of something else; give the --out of a run")
    return config["verb"]


def read_progress(path: Path) -> dict[str, Any] | None:
    """What a run last told of how far it is; None once it has ended. Cheap, for those who ask often."""
    ended = (path / _RESULT).exists() or (path / _FAILURE).exists()
    return None if ended else _read_told(path)


def run_version(path: Path) -> str:
    """A text that changes whenever a job of the run, or the run itself, has ended. Reading a run does not change it."""
    return " ".join(_file_version(path / name) for name in _CHANGING)


def _file_version(path: Path) -> str:
    """The same for an empty file as for none: SQLite makes an empty side file to read a journal."""
    try:
        stat = path.stat()
    except OSError:
        return ""
    return f"{stat.st_mtime_ns}-{stat.st_size}" if stat.st_size else ""


def _read_told(path: Path) -> dict[str, Any] | None:
    try:
        return _read_object(path / _PROGRESS)
    except InputError:
        return None  # written without waiting for the disk, so a power cut may have emptied it


def _refuse_foreign(path: Path) -> None:
    """Refuse a directory that has content but no config.json: it is somebody's, and not a run."""
    if not path.is_dir() or (path / _CONFIG).exists():
        return
    try:
        # A first start that was killed may have left these, and nothing else, before its config.json.
        foreign = sorted(
            entry.name
            for entry in path.iterdir()
            if entry.name not in (LOCK_NAME, PID_NAME) and not is_temporary(entry)
        )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; choose another --out") from error
    if foreign:
        raise InputError(
            f"{path} is not empty and is no run directory: it has {foreign[0]} but no config.json; choose another --out"
        )


def read_config(path: Path | str) -> dict[str, Any] | None:
    """What the run in `path` was started with; None where there is no run yet. Raises InputError if it is damaged."""
    return _read_object(Path(path) / _CONFIG)


def _start_or_continue(
    path: Path, config: dict[str, Any], free: Collection[str], labels: dict[str, Any]
) -> dict[str, Any]:
    """The labels that the run has from now on."""
    saved = read_config(path)
    known = (saved or {}).get(_LABELS, {})
    labels = {**known, **labels}
    config = {**config, **({_LABELS: labels} if labels else {})}
    if saved is not None:
        _refuse_other(path, saved, config, (*free, _LABELS))
    if config != saved:
        write_json_atomic(path / _CONFIG, config)
    return labels


def _refuse_other(path: Path, saved: dict[str, Any], config: dict[str, Any], free: Collection[str]) -> None:
    """Raises InputError where the configurations differ in more than what is free."""
    differences = config_differences(*({k: v for k, v in one.items() if k not in free} for one in (saved, config)))
    if differences:
        lines = differences[:_DIFFERENCES_SHOWN]
        if len(differences) > len(lines):
            lines.append(f"and {len(differences) - len(lines)} more")
        head = f"{path} holds a run of another configuration; choose another --out, or ask for the same:"
        raise InputError("\n  ".join([head, *lines]))


def _remove_leftovers(path: Path) -> None:
    """Clear away the temporaries of writers that were killed; under the lock there is no live one."""
    for entry in [entry for entry in path.rglob("*") if is_temporary(entry)]:
        with suppress(OSError):
            entry.unlink()


def _note_start(path: Path, command: Sequence[str], environment: Mapping[str, Any]) -> None:
    file = path / _ENVIRONMENT
    try:
        starts = json.loads(file.read_bytes())
    except (OSError, ValueError):
        starts = []  # absent, or spoiled by hand: a note for the reader must not keep a run from going on
    before = starts[-1].get("versions") if isinstance(starts, list) and starts else None
    changed = config_differences(before, to_plain(environment)) if isinstance(before, dict) else []
    if changed:
        _log.warning("continuing under other conditions, so bits may differ: %s", "; ".join(changed[:4]))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    start = {"time": now, "command": list(command), "versions": to_plain(environment)}
    write_json_atomic(file, [*(starts if isinstance(starts, list) else []), start][-_STARTS_KEPT:])


def _read_jobs(path: Path) -> list[FinishedJob]:
    if not path.exists():  # killed, or looked at, before the journal was made
        return []
    with Journal.open_read_only(path) as journal:
        return journal.jobs()


def _read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in `path`, None if there is no such file. Raises InputError for anything else."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: expected a JSON object ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: expected a JSON object, found {type(content).__name__}")
    return content
