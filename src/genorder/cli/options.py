"""The options that verbs share, each with its one meaning."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path | None, typer.Argument(metavar="DATA", help="JSON Lines file of input and target sequences.")]
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
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes that share the runs of a race; default: one per thread.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Run directory; the same command continues in it.")]
RunDir = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Directory of a run.")]
