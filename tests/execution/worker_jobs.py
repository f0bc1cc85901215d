"""What worker processes are made to do in tests: they import this by name."""

import os
import signal
import time
from pathlib import Path

import torch

from genorder.errors import InputError


def square(number: int) -> int:
    return number * number


def threads_and_process(pause: float) -> tuple[int, int]:
    time.sleep(pause)
    return torch.get_num_threads(), os.getpid()


def die_once(job: tuple[int, str]) -> int:
    """The job with a marker kills its worker unless it finds that it has done so before."""
    number, marker = job
    if marker and not Path(marker).exists():
        Path(marker).write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die_always(marker: str) -> None:
    with Path(marker).open("a") as file:
        file.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


def fail(kind: str) -> None:
    if kind == "input":
        raise InputError("entry 3 is broken")
    if kind == "other":
        raise ZeroDivisionError("division by zero")


def touch_and_sleep(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(60)
