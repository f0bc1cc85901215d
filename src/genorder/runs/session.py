"""One run in its directory: opened, continued or found finished, and closed with its result."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import Names
from genorder.errors import Interrupted
from genorder.execution import describe_machine, using_threads
from genorder.race import RaceProgress
from genorder.runs.finished import lost_models, model_is_gone
from genorder.runs.request import RunRequest
from genorder.runs.source import Source
from genorder.store import RunDirectory, to_plain

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, eq=False)
class RunSpec:
    """The run directory of a request, the run's description in config.json, and when its result is complete."""

    path: Path
    described: dict[str, Any]
    source: Source
    free: tuple[str, ...] = ()  # entries of config.json that may change: see RunDirectory.open
    is_complete: Callable[[Mapping[str, Any]], bool] = lambda result: True  # whether a result is all that is requested


def run_spec(request: RunRequest, source: Source, name: str, described: Mapping[str, Any], suffix: str = "") -> RunSpec:
    """The spec of a run that is `described`, apart from its data, seed, preset and machine.

    `name` and `suffix` are parts of the run directory's name, unless the request has its own.
    """
    described = {**described, "data": source.description, "preset": request.preset, "seed": request.seed}
    path = request.run_path("-".join(filter(None, (name, source.label, suffix))), described)
    return RunSpec(path, {**described, **request.machine.described(path)}, source)


@final
@dataclass(frozen=True, eq=False)
class SessionResult:
    result: dict[str, Any]  # of result.json
    was_finished: bool  # by an earlier call; nothing was done this time


def run_session(
    spec: RunSpec, work: Callable[[RunDirectory], Mapping[str, Any]], *, command: Sequence[str]
) -> SessionResult:
    """The result of `work` in the run directory, or that of an earlier session that finished it."""
    threads_before, threads = torch.get_num_threads(), spec.described["threads"]
    with (
        using_threads(threads),
        RunDirectory.open(
            spec.path,
            spec.described,
            command=command,
            environment=describe_machine(),
            free=spec.free,
            labels=spec.source.names.to_dict(),
        ) as directory,
        _recording_failure(directory),
    ):
        names = Names.from_dict(directory.labels)
        found = directory.read_result()
        if found is not None and spec.is_complete(found):
            for folder in lost_models(directory.path, found):
                _log.warning(model_is_gone(folder))
            result = _named(found, names)
            if result != found:
                directory.write_result(result)
            return SessionResult(result, was_finished=True)
        if threads != threads_before:
            _log.warning("%s was started with --threads %d, which changes bits: it keeps to that", spec.path, threads)
        directory.discard_result()
        spec.source.save(directory.path)
        result = _named(to_plain(work(directory)), names)
        directory.write_result(result)
        return SessionResult(result, was_finished=False)


def race_status(progress: RaceProgress) -> dict[str, object]:
    """How far a race is, for `genorder status`."""
    rung = None if progress.rung is None else progress.rung + 1
    return {"stage": "race", "rung": rung, "step": progress.step, "jobs": progress.done, "of": progress.total}


def _named(result: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """The result with the user's names, which may have changed since a run finished."""
    named = {**result, **names.to_dict()}
    if "order" in result:
        named["order_in_names"] = [
            names.targets[column] if names.targets else f"y{column}" for column in result["order"]
        ]
    return named


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
