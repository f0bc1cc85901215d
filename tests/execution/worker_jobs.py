"""Jobs for worker processes in tests; a module, so that they can be imported by name."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from genorder.errors import InputError
from genorder.execution import StopRequest

Report = Callable[[Any], None]


def square(number: int, *, report: Report, stop: StopRequest | None) -> int:
    return number * number


def count_up_to(number: int, *, report: Report, stop: StopRequest | None) -> int:
    """Reports every number on the way."""
    for reached in range(1, number + 1):
        report(reached)
    return number


def threads_and_process(pause: float, *, report: Report, stop: StopRequest | None) -> tuple[int, int]:
    time.sleep(pause)
    return torch.get_num_threads(), os.getpid()


def die_once(job: tuple[int, str], *, report: Report, stop: StopRequest | None) -> int:
    """The job with a marker kills its worker at its first attempt."""
    number, marker = job
    if marker and not Path(marker).exists():
        Path(marker).write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die_always(marker: str, *, report: Report, stop: StopRequest | None) -> None:
    with Path(marker).open("a") as file:
        file.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


def fail(kind: str, *, report: Report, stop: StopRequest | None) -> None:
    if kind == "input":
        raise InputError("entry 3 is broken")
    if kind == "other":
        raise ZeroDivisionError("division by zero")


def touch_and_sleep(path: str, *, report: Report, stop: StopRequest | None) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(60)
