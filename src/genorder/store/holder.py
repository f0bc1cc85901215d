"""Who holds a run directory, as written down in its lock file for others to read."""

import json
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, final


@final
@dataclass(frozen=True, kw_only=True)
class Holder:
    pid: int
    host: str
    since: str  # ISO 8601, UTC
    command: str

    @classmethod
    def this_process(cls, command: Sequence[str] | None = None) -> Self:
        return cls(
            pid=os.getpid(),
            host=socket.gethostname(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            command=shlex.join(sys.argv if command is None else command),
        )

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None if the file is missing, empty (released, or not written yet) or not one of ours."""
        try:
            fields = json.loads(path.read_bytes())
            holder = cls(**fields)
        except (OSError, ValueError, TypeError):
            return None
        return (
            holder
            if isinstance(holder.command, str) and isinstance(holder.pid, int) and 0 < holder.pid < 2**31
            else None
        )

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    def __str__(self) -> str:
        command = " ".join(self.command.split())  # an error is one line, whatever was quoted in the command
        return f"process {self.pid} on {self.host} since {self.since} (command: {command})"

    def may_be_alive(self) -> bool:
        """False only if this is the holder's host and no such process is there."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # it is there, and another user's
        return True
