"""One run in its directory: opened, continued or found finished, and closed with its result."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, final

import torch

from genorder.data import Names
from genorder.errors import Interrupted
from genorder.execution import describe_machine, using_threads
from genorder.models import is_saved
from genorder.outcomes import RunOutcome
from genorder.race import RaceProgress
from genorder.runs.finished import model_is_gone
from genorder.runs.request import RunRequest
from genorder.runs.source import Source
from genorder.settings import RENAMED
from genorder.store import RunDirectory

_log = logging.getLogger(__name__)


AnyOutcome = TypeVar("AnyOutcome", bound=RunOutcome)


@final
@dataclass(frozen=True, eq=False)
class RunSpec(Generic[AnyOutcome]):
    """The run directory of a request, the run's description in config.json, and the kind of its outcome."""

    path: Path
    described: dict[str, object]
    source: Source
    outcome: type[AnyOutcome]
    free: tuple[str, ...] = ()  # entries of config.json that may change: see RunDirectory.open
    is_complete: Callable[[AnyOutcome], bool] = lambda outcome: True  # whether an outcome is all that is requested


def run_spec(
    request: RunRequest,
    source: Source,
    name: str,
    described: Mapping[str, object],
    outcome: type[AnyOutcome],
    suffix: str = "",
) -> RunSpec[AnyOutcome]:
    """The spec of a run that is `described`, apart from its data, seed, preset and machine.

    `name` and `suffix` are parts of the run directory's name, unless the request has its own.
    """
    described = {**described, "data": source.description, "preset": request.preset, "seed": request.seed}
    path = request.run_path("-".join(filter(None, (name, source.label, suffix))), described)
    return RunSpec(path, {**described, **request.machine.described(path)}, source, outcome)


@final
@dataclass(frozen=True, eq=False)
class SessionResult(Generic[AnyOutcome]):
    outcome: AnyOutcome
    was_finished: bool  # by an earlier session; nothing was done in this one


def run_session(
    spec: RunSpec[AnyOutcome], work: Callable[[RunDirectory], AnyOutcome], *, command: Sequence[str]
) -> SessionResult[AnyOutcome]:
    """The outcome of `work` in the run directory, or that of an earlier session that finished it."""
    threads_before, threads = torch.get_num_threads(), int(str(spec.described["threads"]))
    with (
        using_threads(threads),
        RunDirectory.open(
            spec.path,
            spec.described,
            command=command,
            environment=describe_machine(),
            free=spec.free,
            labels=spec.source.names.to_dict(),
            renamed=RENAMED,
        ) as directory,
        _recording_failure(directory),
    ):
        names = Names.from_dict(directory.labels)
        saved = directory.read_result()
        found = None if saved is None else spec.outcome.from_dict(saved, directory.path)
        if found is not None and spec.is_complete(found):
            for folder in (directory.path / name for name in found.models):
                if not is_saved(folder):
                    _log.warning(model_is_gone(folder))
            outcome = found.with_names(names)  # they may have changed since
            if outcome.names != found.names:
                directory.write_result(outcome.to_dict())
            return SessionResult(outcome, was_finished=True)
        if threads != threads_before:
            _log.warning("%s was started with --threads %d, which changes bits: it keeps to that", spec.path, threads)
        directory.discard_result()
        spec.source.save(directory.path)
        outcome = work(directory).with_names(names)
        directory.write_result(outcome.to_dict())
        return SessionResult(outcome, was_finished=False)


def race_status(progress: RaceProgress) -> dict[str, object]:
    """How far a race is, for `genorder status`."""
    rung = None if progress.rung is None else progress.rung + 1
    return {"stage": "race", "rung": rung, "step": progress.step, "jobs": progress.done, "of": progress.total}


@contextmanager
def _recording_failure(directory: RunDirectory) -> Iterator[None]:
    """Write the reason of a failure to the run directory. An interrupted run has not failed."""
    try:
        yield
    except Interrupted:
        raise
    except Exception as error:
        directory.write_failure((str(error) or type(error).__name__).splitlines()[0])
        raise
