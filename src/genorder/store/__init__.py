"""The files of a run, written so that no crash loses finished work and the same command continues the run."""

from genorder.store.atomic import (
    ensure_writable_directory,
    replace_atomic,
    write_bytes_atomic,
    write_json_atomic,
)
from genorder.store.fingerprint import (
    JsonObject,
    config_differences,
    fingerprint,
    fingerprint_arrays,
    sha256_bytes,
    sha256_file,
    to_plain,
)
from genorder.store.journal import FinishedJob, Journal
from genorder.store.lock import LockHolder, LockState, RunLock, lock_state
from genorder.store.run_directory import (
    RunDirectory,
    RunStatus,
    read_config,
    read_progress,
    read_status,
    run_version,
    verb_of,
)

__all__ = [
    "FinishedJob",
    "Journal",
    "JsonObject",
    "LockHolder",
    "LockState",
    "RunDirectory",
    "RunLock",
    "RunStatus",
    "config_differences",
    "ensure_writable_directory",
    "fingerprint",
    "fingerprint_arrays",
    "lock_state",
    "read_config",
    "read_progress",
    "read_status",
    "replace_atomic",
    "run_version",
    "sha256_bytes",
    "sha256_file",
    "to_plain",
    "verb_of",
    "write_bytes_atomic",
    "write_json_atomic",
]
