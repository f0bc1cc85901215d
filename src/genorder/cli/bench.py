"""`genorder bench`: speed, measured as ratios on this machine."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

import torch
import typer

from genorder.bench import (
    ReadingRow,
    ScoringRow,
    TrainingRow,
    WorkersRow,
    bench_reading,
    bench_scoring,
    bench_training,
    bench_workers,
)
from genorder.cli import options
from genorder.cli.console import emit_json, say
from genorder.errors import InputError
from genorder.execution import choose_device, set_threads

Row = TrainingRow | ScoringRow | WorkersRow | ReadingRow

_BENCHES: dict[str, Callable[[torch.device], Iterator[Row]]] = {
    "training": bench_training,
    "scoring": bench_scoring,
    "workers": bench_workers,
    "reading": bench_reading,
}
_MINUTES = {
    "training": "about five minutes",
    "scoring": "about half an hour",
    "workers": "about three minutes",
    "reading": "about one minute",
}


def bench(
    name: Annotated[str, typer.Argument(help=f"Which one: {', '.join(_BENCHES)}.")],
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Measure speed against a baseline, both in the same run and in turns.

    Example: genorder bench training
    """
    if name not in _BENCHES:
        raise InputError(f"no benchmark {name!r}; there are: {', '.join(_BENCHES)}")
    chosen = choose_device(device)
    used = set_threads(threads)
    say(f"{used} threads on {chosen.type}; {_MINUTES[name]} on two CPU cores")
    rows = []
    for row in _BENCHES[name](chosen):
        say(str(row))
        rows.append(asdict(row))
    if json:
        emit_json({"threads": used, "device": chosen.type, "rows": rows})
