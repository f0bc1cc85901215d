"""The options that verbs share, each with its one meaning."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from genorder.data import Names, parse_names
from genorder.data.readers import FORMATS, SPLITTERS, ReadOptions

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
Preset = Annotated[str, typer.Option(help="cpu (minutes on two cores) or paper (the paper's sizes).")]
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
    int | None, typer.Option(min=1, help="Processes that share the runs of a race; default: one per thread.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Run directory; the same command continues in it.")]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="Write losses for TensorBoard into RUN_DIR/tensorboard.")
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


def names_of(inputs: str | None, targets: str | None) -> Names:
    return Names(parse_names(inputs), parse_names(targets))


def with_read_options(*split_names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb, in place of its parameter `reading`, the options that say how DATA is read.

    `split_names` are those of the option that says how strings are split; a verb may have another use for --split.
    """
    added = {
        "format": Annotated[str | None, _data_option(help=f"{', '.join(FORMATS)}; default: by the extension.")],
        "input_column": Annotated[
            str | None, _data_option(help="Default: input, or problem. a,b or FIRST..LAST: one token each.")
        ],
        "target_column": Annotated[
            str | None, _data_option(help="Default: target, or answer. a,b or FIRST..LAST: one token each.")
        ],
        "separator": Annotated[str, _data_option(help="Between input and target, in text.")],
        "split_tokens": Annotated[
            str, _data_option(*split_names, help=f"What cuts a string into tokens: {', '.join(SPLITTERS)}.")
        ],
    }

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def reading_verb(*, format: str | None, separator: str, split_tokens: str, **others: Any) -> None:
            columns = {name: others.pop(name) for name in ("input_column", "target_column")}
            verb(reading=ReadOptions(format=format, separator=separator, split=split_tokens, **columns), **others)

        usual = ReadOptions()
        defaults = {name: getattr(usual, "split" if name == "split_tokens" else name) for name in added}
        own = [given for name, given in inspect.signature(verb).parameters.items() if name != "reading"]
        new = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation)
            for name, annotation in added.items()
        ]
        reading_verb.__signature__ = inspect.Signature([*own, *new])  # type: ignore[attr-defined]
        reading_verb.__annotations__ = {given.name: given.annotation for given in [*own, *new]}
        return reading_verb

    return decorate
