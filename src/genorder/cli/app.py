"""The command line: verbs, exit codes, and one clear line for what goes wrong."""

import os
import sys

import click
import typer

from genorder.cli import bench, doctor, evaluate, generate, predict, status, tasks, train
from genorder.cli.console import say, show_warnings
from genorder.errors import GenorderError, InputError, Interrupted

app = typer.Typer(
    name="genorder",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the order in which a Transformer should emit its target tokens so that training succeeds.",
)
app.command("tasks")(tasks.tasks)
app.command("generate")(generate.generate)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("bench")(bench.bench)

_FAILED, _BAD_INPUT, _INTERRUPTED = 1, 2, 130


def run(arguments: list[str]) -> int:
    """The exit code: 0, 1 (failed), 2 (bad input), 130 (interrupted, resumable)."""
    show_warnings()
    try:
        code = app(arguments, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return _BAD_INPUT
    except click.ClickException as error:
        say(f"error: {error.format_message()}")
        return _BAD_INPUT
    except InputError as error:
        say(f"error: {error}")
        return _BAD_INPUT
    except (Interrupted, KeyboardInterrupt, click.Abort) as error:
        say(f"interrupted: {error}" if isinstance(error, Interrupted) else "interrupted")
        return _INTERRUPTED
    except GenorderError as error:
        say(f"failed: {error}")
        return _FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except Exception as error:
        if os.environ.get("GENORDER_DEBUG"):
            raise
        reason = (str(error).splitlines() or [""])[0]
        say(f"failed: {type(error).__name__}: {reason} (a defect of genorder; GENORDER_DEBUG=1 shows where)")
        return _FAILED


def main() -> None:
    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(code)
