"""A run of a verb from its session to its report."""

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from genorder.cli.console import say
from genorder.errors import InputError, Interrupted
from genorder.runs import RunSpec, run_session
from genorder.runs.session import AnyOutcome
from genorder.store import RunDirectory


def run_and_report(
    spec: RunSpec[AnyOutcome], work: Callable[[RunDirectory], AnyOutcome], *, tensorboard: bool = False
) -> AnyOutcome:
    """The outcome of `work`, or of an earlier run of the same command; its report is written last.

    A failed run gets a report too. An interrupted one gets none, since it will be continued.
    """
    run_dir = spec.path.absolute()
    started = False

    def start(directory: RunDirectory) -> AnyOutcome:
        nonlocal started
        started = True
        return work(directory)

    try:
        session = run_session(spec, start, command=sys.argv)
    except Interrupted:
        raise
    except Exception:
        if started:
            with suppress(InputError):  # the failure itself is what the user must see
                _write_report(run_dir)
        raise
    try:
        _write_report(run_dir)
        if tensorboard:
            _complete_board(run_dir)
    except InputError as error:  # a full disk must not take back a finished run
        say(f"warning: no report was written: {error}")
    if session.was_finished:
        say(f"{spec.path} holds the finished run of this command; showing its result")
    return session.outcome


def _write_report(run_dir: Path) -> None:
    from genorder.reports.page import report_is_current, write_report  # only now: it loads plotly

    if not report_is_current(run_dir):
        say(f"report in {write_report(run_dir)}")


def _complete_board(run_dir: Path) -> None:
    from genorder.reports.board import FOLDER, complete_board

    complete_board(run_dir)
    say(f"for TensorBoard: tensorboard --logdir {shlex.quote(str(run_dir / FOLDER))}")
