"""What a run is done on, what it is called, and how its result is kept."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import Names
from genorder.execution import choose_device, describe_machine, set_threads
from genorder.profiling import RaceProgress
from genorder.runs.given import keep_data
from genorder.runs.source import Source
from genorder.store import RunDirectory, fingerprint, to_plain


@final
@dataclass(frozen=True)
class Machine:
    """The device and threads that a run uses, and what was asked for."""

    device: torch.device
    threads: int
    asked_device: str
    asked_threads: int | None

    @classmethod
    def choose(cls, device: str, threads: int | None) -> "Machine":
        """Sets torch's threads: one per core for None. Raises InputError for what is not there."""
        chosen = choose_device(device)
        return cls(chosen, set_threads(threads), device, threads)

    @classmethod
    def as_set(cls, device: str, threads: int) -> "Machine":
        """With the threads that torch has, for programs that set them themselves."""
        return cls(choose_device(device), threads, device, None)

    def described(self) -> dict[str, Any]:
        return {"device": self.device.type, "threads": self.threads}


def run_path(out: Path | None, name: str, described: Mapping[str, Any], machine: Machine) -> Path:
    """`out`, or else a name that follows what was asked for, not what this machine made of it.

    Elsewhere, the same command finds it.
    """
    asked = fingerprint({**described, "device": machine.asked_device, "threads": machine.asked_threads})
    return out or Path("runs") / f"{name}-{asked[:8]}"


def keep_result(
    path: Path,
    described: Mapping[str, Any],
    source: Source,
    work: Callable[[RunDirectory], dict[str, Any]],
    *,
    command: Sequence[str],
    around: Callable[[RunDirectory], AbstractContextManager[None]] | None = None,
) -> tuple[dict[str, Any], bool]:
    """The result of `work` in the run directory, and whether it is there from an earlier time.

    `around` is entered when the directory is open, and left when the result is there or the work has failed.
    """
    with (
        RunDirectory.open(
            path, described, command=command, environment=describe_machine(), labels=source.names.to_dict()
        ) as directory,
        around(directory) if around else nullcontext(),
    ):
        found = directory.read_result()
        if found is None:
            keep_data(source, directory.path)
        result = _named(to_plain(work(directory)) if found is None else found, Names.from_dict(directory.labels))
        if result != found:
            directory.write_result(result)
        return result, found is not None


def race_told(progress: RaceProgress) -> dict[str, Any]:
    """How far a race is, for those who ask for the run's status."""
    return {"stage": "race", "round": progress.round + 1, "jobs": progress.done, "of": progress.total}


def _named(result: dict[str, Any], names: Names) -> dict[str, Any]:
    """The result with the user's own names, also of a finished run whose names have changed since."""
    named = {**result, **names.to_dict()}
    if names.targets and "order" in result:
        named["order_in_names"] = [names.targets[column] for column in result["order"]]
    return named
