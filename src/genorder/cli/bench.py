"""`genorder bench`: speed, measured as ratios on this machine."""

from typing import Annotated

import typer

from genorder.bench import BenchRow, bench_training
from genorder.cli import options
from genorder.cli.console import emit_json, say
from genorder.errors import InputError
from genorder.execution import choose_device, set_threads

_BENCHES = {"training": bench_training}


def bench(
    name: Annotated[str, typer.Argument(help=f"Which one: {', '.join(_BENCHES)}.")],
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Measure speed against a baseline, both in the same run, taking turns.

    Example: genorder bench training
    """
    if name not in _BENCHES:
        raise InputError(f"no benchmark {name!r}; there are: {', '.join(_BENCHES)}")
    chosen = choose_device(device)
    used = set_threads(threads)
    say(f"{used} threads on {chosen.type}; about four minutes on two CPU cores")

    def show(row: BenchRow) -> None:
        say(
            f"{row.name}: {row.ratio:.2f} x {row.baseline} ({row.steps_per_second:.1f} against "
            f"{row.baseline_steps_per_second:.1f} steps/s; {100 * row.share_of_matmul_peak:.0f} % of matmul peak)"
        )

    rows = _BENCHES[name](chosen, show)
    if json:
        emit_json({"threads": used, "device": chosen.type, "rows": [row.to_dict() for row in rows]})
