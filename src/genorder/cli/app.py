"""The command line: exit codes, and one clear line for what goes wrong."""

import os
import sys
from typing import Any

import typer

from genorder.cli.console import say, show_warnings
from genorder.errors import GenorderError, InputError, Interrupted

_PROGRAM = "genorder"
_FAILED, _BAD_INPUT, _INTERRUPTED = 1, 2, 130
# typer holds a click of its own or uses the installed one, by version; this name is public in both.
_UsageError: Any = typer.BadParameter.__bases__[0]


def run(arguments: list[str]) -> int:
    """The exit code: 0, 1 (failed), 2 (bad input), 130 (interrupted, resumable)."""
    show_warnings()
    try:
        code = _invoke(arguments)
        sys.stdout.flush()  # here, so that a reader who is gone, or a full disk, is noticed below
    except _UsageError as error:
        verb = error.ctx.command_path if error.ctx else _PROGRAM
        say(f"error: {' '.join(error.format_message().split()).rstrip('.')}; see `{verb} --help`")
        return _BAD_INPUT
    except InputError as error:
        say(f"error: {error}")
        return _BAD_INPUT
    except Interrupted as error:
        say(f"interrupted: {error}")
        return _INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except GenorderError as error:
        say(f"failed: {error}")
        return _FAILED
    except (BrokenPipeError, SystemExit):  # typer exits by itself for a pipe that broke in the midst of a verb
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except OSError as error:
        say(f"failed: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return _FAILED
    except Exception as error:
        if os.environ.get("GENORDER_DEBUG"):
            raise
        reason = (str(error).splitlines() or [""])[0]
        say(f"failed: {type(error).__name__}: {reason} (not foreseen; GENORDER_DEBUG=1 shows where)")
        return _FAILED
    if code == _INTERRUPTED:
        say("interrupted")
    return code


def _invoke(arguments: list[str]) -> int:
    # Only now, because it takes seconds (torch), in which Ctrl-C must already end without a traceback.
    from genorder.cli.verbs import app

    code = app(arguments or ["--help"], prog_name=_PROGRAM, standalone_mode=False)
    if not arguments:
        return _BAD_INPUT
    return code if isinstance(code, int) else 0


def main() -> None:
    sys.exit(run(sys.argv[1:]))
