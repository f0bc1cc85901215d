"""The directory of one run: its configuration, journal, checkpoints and result."""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, Self, final

from genorder.errors import InputError
from genorder.store.atomic import (
    ensure_writable_directory,
    explaining_write_errors,
    is_temporary,
    write_json_atomic,
)
from genorder.store.fingerprint import JsonObject, config_differences, to_plain
from genorder.store.journal import FinishedJob, Journal
from genorder.store.lock import LOCK_NAME, PID_NAME, LockHolder, RunLock, lock_state

_log = logging.getLogger(__name__)

_LABELS = "labels"  # in config.json: the user's own names, for instance of columns
_CONFIG = "config.json"
_ENVIRONMENT = "environment.json"
_JOURNAL = "journal.sqlite"
_PROGRESS = "progress.json"
_RESULT = "result.json"
_FAILURE = "failure.json"
_CHECKPOINTS = "checkpoints"

_STARTS_KEPT = 20
_DIFFERENCES_SHOWN = 8
_VERSIONED = (_JOURNAL, f"{_JOURNAL}-wal", _RESULT, _FAILURE)  # the files that `run_version` depends on

Ending = Literal["finished", "failed", "interrupted"]


@final
class RunDirectory:
    """A run directory that this process holds, from `open` to `close` or to the end of a `with` block."""

    def __init__(self, path: Path, labels: JsonObject, journal: Journal, held: ExitStack) -> None:
        """Not for callers: use `open`."""
        self.path = path
        self.labels = labels
        self.journal = journal
        self._held = held

    @classmethod
    def open(
        cls,
        path: Path | str,
        config: Mapping[str, object],
        *,
        command: Sequence[str],
        environment: Mapping[str, object],
        free: Collection[str] = (),
        labels: Mapping[str, object] | None = None,
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Start the run of `config` in `path`, or continue it if it was started there.

        A run continues only with an equal `config`, except for the entries named by `free`, which take their new
        values. `environment` (versions, device) is recorded and never compared. Neither are `labels`, the user's own
        names: a later start may replace some of them, and the others stay. `renamed` has the new names of settings that
        an earlier version saved in the entry `config`, such as {"profiler.old": "profiler.new"}.

        Raises InputError if the directory cannot be written, is held by another process, has a run of a different
        configuration (the message lists the differences) or contains files that do not belong to a run.
        """
        # Absolute, so that a later change of the working directory does not split the run in two.
        path = Path(path).absolute()
        _refuse_foreign(path)  # before anything is written, so that a foreign directory does not even get a lock file
        ensure_writable_directory(path)
        with ExitStack() as stack:
            stack.enter_context(RunLock(path, command=command))
            _refuse_foreign(path)  # again: only now can no other process be filling it
            kept = _start_or_continue(path, to_plain(config), free, to_plain(labels or {}), renamed)
            _remove_leftovers(path)
            with explaining_write_errors(path):
                (path / _FAILURE).unlink(missing_ok=True)  # the failure of an earlier start no longer counts
            _record_start(path, command, environment)
            journal = stack.enter_context(Journal(path / _JOURNAL))
            return cls(path, kept, journal, stack.pop_all())

    def checkpoints(self, name: str) -> Path:
        """The directory, made if absent, for the checkpoints of the job `name`."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise ValueError(f"checkpoint name {name!r}: expected a plain file name")
        directory = self.path / _CHECKPOINTS / name
        with explaining_write_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        return directory

    def read_result(self) -> JsonObject | None:
        """The result if the run has finished before, else None."""
        return _read_object(self.path / _RESULT)

    def write_result(self, result: Mapping[str, object]) -> None:
        """Write the result durably; from now on the run counts as finished."""
        write_json_atomic(self.path / _RESULT, to_plain(result))

    def discard_result(self) -> None:
        """Make the run count as unfinished again, for more work. Finished jobs stay in the journal."""
        with explaining_write_errors(self.path):
            (self.path / _RESULT).unlink(missing_ok=True)

    def write_failure(self, reason: str) -> None:
        """Record why the run ended without a result; the next start removes the record."""
        with suppress(InputError):  # the user must see the failure itself, not this one
            write_json_atomic(self.path / _FAILURE, {"reason": reason})

    def write_progress(self, progress: Mapping[str, object]) -> None:
        """Write how far the run is, for `status` and the report. Cheap, not durable: nothing resumes from it."""
        with suppress(InputError):  # a full disk must not end a run because of a progress record
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
    state: Ending | Literal["running"]
    config: JsonObject
    jobs: list[FinishedJob]
    result: JsonObject | None
    holder: LockHolder | None  # None also for a running run, if its holder could not be read
    progress: JsonObject | None  # the last record, also of a run that was interrupted since
    failure: str | None = None  # why the last start ended without a result, if it was not interrupted


def read_status(path: Path | str) -> RunStatus:
    """How far the run in `path` is. Changes nothing, and does not disturb a running run.

    Raises InputError if `path` is no run directory.
    """
    path = Path(path)
    config = _read_object(path / _CONFIG)
    if config is None:
        reason = "it has no config.json" if path.is_dir() else "no such directory"
        raise InputError(f"{path} is no run directory: {reason}; give the --out of an earlier command")
    # The lock before the result: a run that ends between the two must not look interrupted.
    held, holder = lock_state(path)
    result = _read_object(path / _RESULT)
    failure = _read_object(path / _FAILURE) if result is None else None
    ending: Ending = "finished" if result is not None else "failed" if failure else "interrupted"
    return RunStatus(
        state="running" if held else ending,
        config=config,
        jobs=_read_jobs(path / _JOURNAL),
        result=result,
        holder=holder,
        progress=_last_progress(path),
        failure=str(failure.get("reason", "")) if failure else None,
    )


def verb_of(path: Path, config: Mapping[str, object]) -> str:
    """The command that made the run. Raises InputError for the config.json of something else, such as a model."""
    if "verb" not in config:
        raise InputError(
            f"{path} is no run directory: its config.json does not belong to a run; give the --out of a run"
        )
    return str(config["verb"])


def read_config(path: Path | str) -> JsonObject | None:
    """The configuration of the run in `path`; None where there is no run. Raises InputError if it is damaged."""
    return _read_object(Path(path) / _CONFIG)


def read_progress(path: Path) -> JsonObject | None:
    """The last progress record of a run that has not ended, else None. Cheap, for callers that poll."""
    ended = (path / _RESULT).exists() or (path / _FAILURE).exists()
    return None if ended else _last_progress(path)


def run_version(path: Path) -> str:
    """A text that changes whenever a job of the run, or the run itself, has ended. Reading a run does not change it."""
    return " ".join(_file_version(path / name) for name in _VERSIONED)


def _file_version(path: Path) -> str:
    """The same for an empty file as for none: SQLite makes an empty side file to read a journal."""
    try:
        stat = path.stat()
    except OSError:
        return ""
    return f"{stat.st_mtime_ns}-{stat.st_size}" if stat.st_size else ""


def _last_progress(path: Path) -> JsonObject | None:
    try:
        return _read_object(path / _PROGRESS)
    except InputError:
        return None  # written without waiting for the disk, so a power cut may have emptied it


def _refuse_foreign(path: Path) -> None:
    """Raise InputError for a directory that has files but no config.json: it does not belong to a run."""
    if not path.is_dir() or (path / _CONFIG).exists():
        return
    try:
        # A first start that was killed may have left only the lock and temporary files.
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


def _start_or_continue(
    path: Path, config: JsonObject, free: Collection[str], labels: JsonObject, renamed: Mapping[str, str]
) -> JsonObject:
    """Write config.json, or check it against `config`. Returns the labels that the run has from now on."""
    saved = read_config(path)
    settings = (saved or {}).get("config")
    for (section, old), (_, new) in ((old.split("."), new.split(".")) for old, new in renamed.items()):
        values = settings.get(section) if isinstance(settings, dict) else None
        if isinstance(values, dict) and old in values:
            values[new] = values.pop(old)
    known = (saved or {}).get(_LABELS)
    labels = {**(known if isinstance(known, dict) else {}), **labels}
    config = {**config, **({_LABELS: labels} if labels else {})}
    if saved is not None:
        _refuse_different(path, saved, config, {*free, _LABELS})
    if config != read_config(path):
        write_json_atomic(path / _CONFIG, config)
    return labels


def _refuse_different(path: Path, saved: JsonObject, config: JsonObject, ignored: Collection[str]) -> None:
    """Raise InputError where the configurations differ in an entry that is not ignored."""
    old, new = ({key: value for key, value in each.items() if key not in ignored} for each in (saved, config))
    differences = config_differences(old, new)
    if differences:
        lines = differences[:_DIFFERENCES_SHOWN]
        if len(differences) > len(lines):
            lines.append(f"and {len(differences) - len(lines)} more")
        head = f"{path} holds a run of another configuration; choose another --out, or use the same settings:"
        raise InputError("\n  ".join([head, *lines]))


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of writers that were killed; under the lock no writer is alive."""
    for entry in [entry for entry in path.rglob("*") if is_temporary(entry)]:
        with suppress(OSError):
            entry.unlink()


def _record_start(path: Path, command: Sequence[str], environment: Mapping[str, object]) -> None:
    """Append this start to environment.json, and warn if the environment differs from that of the last start."""
    file = path / _ENVIRONMENT
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        content = []  # absent or damaged: an informative file must not prevent a run from continuing
    earlier = content if isinstance(content, list) else []
    versions = to_plain(environment)
    before = earlier[-1].get("versions") if earlier else None
    changed = config_differences(before, versions) if isinstance(before, dict) else []
    if changed:
        _log.warning("continuing in a different environment, so bits may differ: %s", "; ".join(changed[:4]))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    start = {"time": now, "command": list(command), "versions": versions}
    write_json_atomic(file, [*earlier, start][-_STARTS_KEPT:])


def _read_jobs(path: Path) -> list[FinishedJob]:
    if not path.exists():  # the run was killed, or read, before the journal was made
        return []
    with Journal.open_read_only(path) as journal:
        return journal.jobs()


def _read_object(path: Path) -> JsonObject | None:
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
