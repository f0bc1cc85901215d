"""The options that verbs share, each with its one meaning."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from genorder.data import Names, parse_names
from genorder.data.readers import FORMATS, SPLITTERS, ReadOptions
from genorder.runs import DataSpec, Machine, RunRequest

_DATA_PANEL = "How DATA is read"
_ORDERS_PANEL = "Which orders are allowed"


def _order_option(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=_ORDERS_PANEL)


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="File of samples (JSON Lines, CSV, TSV, text, Parquet), hf:NAME, or - for stdin."
    ),
]
DataToInspect = Annotated[str, typer.Argument(metavar="DATA", help="File of samples, hf:NAME, or - for stdin.")]
Task = Annotated[
    str | None, typer.Option(help="Built-in task instead of DATA, e.g. relu, index:d=4, my_tasks.py:mine.")
]
Length = Annotated[str | None, typer.Option(help="Target length of the task, e.g. 20, or 20-30 for variable length.")]
HiddenOrderSeed = Annotated[
    int | None, typer.Option(help="Store the task's target columns shuffled by a secret order of this seed.")
]
HiddenByDefault = Annotated[
    int | None, typer.Option(help="Seed of the secret order that a task's target columns are stored in; default 0.")
]
Preset = Annotated[
    str,
    typer.Option(
        help="cpu (minutes on two cores) or the paper's sizes: paper (recurrences), paper-prod (multiplication), "
        "paper-delay (delay networks)."
    ),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="TOML file of settings, by section.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change one setting, e.g. samples.train=50000."),
]
Seed = Annotated[int, typer.Option(help="Root of all randomness of the run.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Threads = Annotated[int | None, typer.Option(help="Threads for tensors; default: one per core.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, all else on stderr.")]
KeepFirst = Annotated[int, _order_option("N", "Emit the first N target columns first, in their sequence.")]
KeepLast = Annotated[int, _order_option("N", "Emit the last N (of the longest target) last, in their sequence.")]
Groups = Annotated[int, _order_option("N", "Move the others in blocks of N neighbours, in their sequence inside.")]
Before = Annotated[list[str] | None, _order_option("I<J", "Emit column I before J, counted from 0, e.g. '3<7'.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that share a race's trainings; default: two."),
]
Out = Annotated[Path | None, typer.Option("--out", help="Run directory; the same command continues in it.")]


def _checked_tensorboard(wanted: bool) -> bool:
    """Refused before any work is done."""
    if wanted:
        from genorder.reports.board import require_tensorboard

        require_tensorboard()
    return wanted


TensorBoard = Annotated[
    bool,
    typer.Option(
        "--tensorboard", callback=_checked_tensorboard, help="Write losses for TensorBoard into RUN_DIR/tensorboard."
    ),
]
RunDir = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Directory of a run.")]


def _data_option(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=_DATA_PANEL)


InputNames = Annotated[
    str | None, _data_option(metavar="A,B,...", help="What you call the inputs, or @FILE with a name on each line.")
]
TargetNames = Annotated[
    str | None, _data_option(metavar="A,B,...", help="What you call the targets: in the answer and the report.")
]


Validation = Annotated[str | None, _data_option(metavar="FILE", help="Validation samples; default: cut off DATA.")]
Test = Annotated[str | None, _data_option(metavar="FILE", help="Test samples; default: cut off DATA.")]

Verb = Callable[..., None]
_Added = dict[str, tuple[Any, Any]]  # annotation and default of each parameter that is added to a verb
_SOURCE: _Added = {"data": (Data, None), "task": (Task, None), "length": (Length, None)}
_RUN: _Added = {
    "preset": (Preset, "cpu"),
    "config": (ConfigFile, None),
    "settings": (Settings, None),
    "seed": (Seed, 0),
    "device": (Device, "auto"),
    "threads": (Threads, None),
    "out": (Out, None),
    "validation": (Validation, None),
    "test": (Test, None),
    "input_names": (InputNames, None),
    "target_names": (TargetNames, None),
}


def with_run_options(*, hidden: bool) -> Callable[[Verb], Verb]:
    """Give a verb, in place of its parameter `request`, the options of all verbs that start a run.

    `hidden`: whether the columns of a task are shuffled by default.
    """

    def build(given: dict[str, Any]) -> RunRequest:
        if hidden and given["task"] is not None and given["hidden_order_seed"] is None:
            given["hidden_order_seed"] = 0
        machine = Machine.choose(given.pop("device"), given.pop("threads"))
        names = Names(parse_names(given.pop("input_names")), parse_names(given.pop("target_names")))
        settings = tuple(given.pop("settings") or ())
        run = {"config_file": given.pop("config"), **{name: given.pop(name) for name in ("preset", "seed", "out")}}
        data = DataSpec(reading=_reading(given), names=names, **given)
        return RunRequest(data=data, machine=machine, settings=settings, **run)

    source = {**_SOURCE, "hidden_order_seed": (HiddenByDefault if hidden else HiddenOrderSeed, None)}
    return _adding("request", source, {**_RUN, **_read_options("--split", "--split-tokens")}, build)


def with_read_options(*split_names: str) -> Callable[[Verb], Verb]:
    """Give a verb, in place of its parameter `reading`, the options that say how DATA is read.

    `split_names` are those of the option that says how strings are split; a verb may have another use for --split.
    """
    return _adding("reading", {}, _read_options(*split_names), _reading)


def with_reading_changes(*split_names: str) -> Callable[[Verb], Verb]:
    """The same for a verb that reads DATA as a run did: its parameter `changes` has the options that are given."""
    return _adding("changes", {}, _read_options(*split_names, of_run=True), _read_changes)


def _read_options(*split_names: str, of_run: bool = False) -> _Added:
    """`of_run`: the defaults are those of the run."""
    defaults = ReadOptions()
    each = "a,b or FIRST..LAST: one token each."
    default = "Default: the run's, or" if of_run else "Default:"
    splitters = ", ".join(SPLITTERS)
    return {
        "format": (Annotated[str | None, _data_option(help=f"{', '.join(FORMATS)}; default: by the extension.")], None),
        "input_column": (Annotated[str | None, _data_option(help=f"{default} input, or problem. {each}")], None),
        "target_column": (Annotated[str | None, _data_option(help=f"{default} target, or answer. {each}")], None),
        "separator": (
            Annotated[str | None, _data_option(help="Between input and target, in text.")],
            None if of_run else defaults.separator,
        ),
        "split_tokens": (
            Annotated[str | None, _data_option(*split_names, help=f"What cuts a string into tokens: {splitters}.")],
            None if of_run else defaults.split,
        ),
    }


def _reading(given: dict[str, Any]) -> ReadOptions:
    """The read options, removed from the verb's other options."""
    return ReadOptions(**_read_changes(given))


def _read_changes(given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, by their names in ReadOptions, removed from the verb's other options."""
    names = ("format", "input_column", "target_column", "separator")
    values = {"split": given.pop("split_tokens"), **{name: given.pop(name) for name in names}}
    return {name: value for name, value in values.items() if value is not None}


def _adding(name: str, here: _Added, last: _Added, build: Callable[[dict[str, Any]], Any]) -> Callable[[Verb], Verb]:
    """Replace a verb's parameter `name` by others, of which its value is built; some come `last` in its help."""

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def wider(**given: Any) -> None:
            added = {other: given.pop(other) for other in {**here, **last}}
            verb(**{name: build(added)}, **given)

        own = list(inspect.signature(verb).parameters.values())
        place = [parameter.name for parameter in own].index(name)
        parameters = [*own[:place], *_parameters(here), *own[place + 1 :], *_parameters(last)]
        named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        wider.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        wider.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
        return wider

    return decorate


def _parameters(added: _Added) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
