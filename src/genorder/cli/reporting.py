"""What a verb leaves in its run directory: the result, and the report."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from genorder.cli.console import say
from genorder.errors import InputError, Interrupted
from genorder.runs import Place, keep_result
from genorder.store import RunDirectory


def kept(place: Place, work: Callable[[RunDirectory], dict[str, Any]]) -> dict[str, Any]:
    """The result of `work`, or of an earlier run of the same command, with its report beside it."""
    result, was_there = keep_result(place, work, command=sys.argv, around=reported)
    if was_there:
        say(f"{place.path} holds the finished run of this command; showing its result")
    return result


@contextmanager
def reported(directory: RunDirectory) -> Iterator[None]:
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
    except InputError as error:  # a full disk must not take back a finished run
        say(f"warning: no report was written: {error}")


def _report(directory: RunDirectory) -> None:
    from genorder.reports.page import report_is_current, write_report  # only now: it loads plotly

    if not report_is_current(directory.path):
        say(f"report in {write_report(directory.path)}")
