"""What a run is done on, what it is called, and how its result is kept."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import Names
from genorder.errors import Interrupted
from genorder.execution import choose_device, describe_machine, set_threads, using_threads
from genorder.race import RaceProgress
from genorder.runs.finished import gone, lost_models
from genorder.runs.given import save_data
from genorder.runs.source import Source
from genorder.store import RunDirectory, fingerprint, read_config, to_plain

_log = logging.getLogger(__name__)


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

    def described(self, path: Path) -> dict[str, Any]:
        """What the run in `path` is done on.

        Sums are rounded by the number of threads: unless one is asked for, it is that which the run was begun with.
        """
        begun = read_config(path) if self.asked_threads is None else None
        threads = (begun or {}).get("threads", self.threads)
        return {"device": self.device.type, "threads": threads if type(threads) is int else self.threads}


@final
@dataclass(frozen=True, eq=False)
class RunSpec:
    """The run directory of what is asked for, and what is to be found there in the end."""

    path: Path
    described: dict[str, Any]  # of config.json
    source: Source
    free: tuple[str, ...] = ()  # entries of config.json that may change: see RunDirectory.open
    suffices: Callable[[dict[str, Any]], bool] = lambda result: True  # whether a result is all that is asked for


def run_path(out: Path | None, name: str, described: Mapping[str, Any], machine: Machine) -> Path:
    """`out`, or else a name that follows what was asked for, not what this machine made of it.

    Elsewhere, the same command finds it.
    """
    asked = fingerprint({**described, "device": machine.asked_device, "threads": machine.asked_threads})
    return out or Path("runs") / f"{name}-{asked[:8]}"


def run_spec(out: Path | None, name: str, described: Mapping[str, Any], source: Source, machine: Machine) -> RunSpec:
    """The place of a run that is `described`, but for what it is done on."""
    path = run_path(out, name, described, machine)
    return RunSpec(path, {**described, **machine.described(path)}, source)


def run_session(
    place: RunSpec,
    work: Callable[[RunDirectory], dict[str, Any]],
    *,
    command: Sequence[str],
    around: Callable[[RunDirectory], AbstractContextManager[None]] | None = None,
) -> tuple[dict[str, Any], bool]:
    """The result of `work` in the run directory, and whether it is there from an earlier time.

    `around` is entered when the directory is open, and left when the result is there or the work has failed.
    """
    usual, threads = torch.get_num_threads(), place.described["threads"]
    with (
        using_threads(threads),
        RunDirectory.open(
            place.path,
            place.described,
            command=command,
            environment=describe_machine(),
            free=place.free,
            labels=place.source.names.to_dict(),
        ) as directory,
        around(directory) if around else nullcontext(),
        _failure_noted(directory),
    ):
        names = Names.from_dict(directory.labels)
        found = directory.read_result()
        if found is not None and place.suffices(found):
            _warn_of_lost_models(directory.path, found)
            result = _named(found, names)
            if result != found:
                directory.write_result(result)
            return result, True
        if threads != usual:
            _log.warning("%s was begun with --threads %d, on which bits depend: it keeps to that", place.path, threads)
        directory.forget_result()
        save_data(place.source, directory.path)
        result = _named(to_plain(work(directory)), names)
        directory.write_result(result)
        return result, False


def race_progress(progress: RaceProgress) -> dict[str, Any]:
    """How far a race is, for those who ask for the run's status."""
    rung = None if progress.rung is None else progress.rung + 1
    return {"stage": "race", "rung": rung, "step": progress.step, "jobs": progress.done, "of": progress.total}


def _named(result: dict[str, Any], names: Names) -> dict[str, Any]:
    """The result with the user's own names, also of a finished run whose names have changed since."""
    named = {**result, **names.to_dict()}
    if "order" in result:
        named["order_in_names"] = [
            names.targets[column] if names.targets else f"y{column}" for column in result["order"]
        ]
    return named


@contextmanager
def _failure_noted(directory: RunDirectory) -> Iterator[None]:
    """Why the block fails is kept for those who look at the run later; an interrupted run has not failed."""
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        directory.write_failure((str(error) or type(error).__name__).splitlines()[0])
        raise


def _warn_of_lost_models(path: Path, result: dict[str, Any]) -> None:
    for folder in lost_models(path, result):
        _log.warning(gone(folder))
