"""What a run keeps on disk, so that no crash loses finished work and the same command continues it."""

from genorder.store.atomic import (
    ensure_writable_directory,
    replace_atomic,
    write_bytes_atomic,
    write_json_atomic,
)
from genorder.store.differences import config_differences
from genorder.store.fingerprint import fingerprint, fingerprint_arrays, sha256_bytes, sha256_file, to_plain
from genorder.store.holder import Holder
from genorder.store.journal import FinishedJob, Journal
from genorder.store.lock import RunLock, lock_holder
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
    "Holder",
    "Journal",
    "RunDirectory",
    "RunLock",
    "RunStatus",
    "config_differences",
    "ensure_writable_directory",
    "fingerprint",
    "fingerprint_arrays",
    "lock_holder",
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
