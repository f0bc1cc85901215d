"""What a verb leaves in its run directory: the result, and the report."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from genorder.cli.console import say
from genorder.errors import InputError, Interrupted
from genorder.runs import RunSpec, run_session
from genorder.store import RunDirectory


def kept(
    place: RunSpec, work: Callable[[RunDirectory], dict[str, Any]], *, tensorboard: bool = False
) -> dict[str, Any]:
    """The result of `work`, or of an earlier run of the same command, with its report beside it."""
    around = partial(reported, tensorboard=tensorboard)
    result, was_there = run_session(place, work, command=sys.argv, around=around)
    if was_there:
        say(f"{place.path} holds the finished run of this command; showing its result")
    return result


@contextmanager
def reported(directory: RunDirectory, *, tensorboard: bool = False) -> Iterator[None]:
    """When the block ends, well or badly, the directory gets its report. An interrupted run gets none: it goes on."""
    try:
        yield
    except Interrupted:
        raise
    except Exception:
        with suppress(InputError):  # the failure itself is what the user must hear of
            _report(directory)
        raise
    try:
        _report(directory)
        if tensorboard:
            _complete_board(directory)
    except InputError as error:  # a full disk must not take back a finished run
        say(f"warning: no report was written: {error}")


def _complete_board(directory: RunDirectory) -> None:
    from genorder.reports.board import FOLDER, complete_board

    complete_board(directory.path)
    say(f"for TensorBoard: tensorboard --logdir {shlex.quote(str(directory.path / FOLDER))}")


def _report(directory: RunDirectory) -> None:
    from genorder.reports.page import report_is_current, write_report  # only now: it loads plotly

    if not report_is_current(directory.path):
        say(f"report in {write_report(directory.path)}")
