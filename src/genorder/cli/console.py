"""What the user sees: everything for people goes to stderr, results to stdout."""

import json
import logging
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from genorder.reports.wording import abbreviated as abbreviated
from genorder.reports.wording import count_of as count_of
from genorder.reports.wording import duration as duration
from genorder.reports.wording import percent as percent

if TYPE_CHECKING:  # it imports torch, which takes seconds
    from genorder.race import RaceProgress
    from genorder.training import Progress as TrainingProgress

screen = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
_PLAIN_LINE_SECONDS = 10.0


def say(text: str) -> None:
    """A line for the user, as written (square brackets and :names: are not markup), but harmless."""
    screen.print(harmless(text), markup=False)


def harmless(text: str) -> str:
    """The text with all that is not printable, such as the escape sequences of a terminal, shown as its code."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in text)


def emit_line(text: str) -> None:
    """A line of the result: as it is for a program that reads it, harmless for a terminal."""
    shown = harmless(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown.encode(errors="backslashreplace").decode() + "\n")


def say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def emit_json(result: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(result, allow_nan=False) + "\n")


class _WarningsToScreen(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"warning: {record.getMessage()}")


def show_warnings() -> None:
    log = logging.getLogger("genorder")
    if not log.handlers:
        log.addHandler(_WarningsToScreen(level=logging.WARNING))


class _Bar(Progress):
    """A bar with a line under it."""

    under = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.under:
            yield Text(harmless(self.under), no_wrap=True, overflow="ellipsis")


class ProgressLine:
    """What is being done now, how far it is and how long it will take: a bar on a terminal, else a line at times.

    The line under the bar shows the best order so far and the time left for the whole run.
    """

    def __init__(self, bar: _Bar | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=1, visible=False, detail="", left="") if bar else None
        self._last = -math.inf
        self._label = ""
        self._best = ""

    def training(self, label: str, progress: "TrainingProgress", left_in_all: float | None = None) -> None:
        trained = progress.loss is not None
        detail = f"step {progress.step}/{progress.steps}" if trained else f"{progress.step} of {progress.steps} done"
        detail += f", loss {progress.loss:.4f}" if trained else ""
        self._show(label, progress.step, progress.steps, detail, progress.seconds_left, left_in_all)

    def racing(self, progress: "RaceProgress", best: str, left_in_all: float | None = None) -> None:
        """`best` is the best order of the rung so far, in words; empty: none is finished."""
        if best:
            self.best(best, progress.best_loss)
        loss = f", loss {progress.loss:.4f}" if math.isfinite(progress.loss) else ""
        detail = f"{progress.done} of {progress.total} done, step {progress.step}{loss}"
        detail = detail if self._bar or not best else f"{detail}, best {best}"
        label = "final training" if progress.rung is None else f"race, rung {progress.rung + 1}"
        left = progress.seconds_left if math.isfinite(progress.seconds_left) else None
        self._show(label, progress.done, progress.total, detail, left, left_in_all)

    def best(self, order: str, loss: float | None) -> None:
        """Show this order, in words, as the best so far, under the bar."""
        known = f" (loss {loss:.4f})" if loss is not None and math.isfinite(loss) else ""
        self._best = f"best so far{known}: {order}"

    def _show(
        self, label: str, done: int, total: int, detail: str, left: float | None, left_in_all: float | None
    ) -> None:
        shown_left = "" if left is None else f"{duration(left)} left"
        in_all = "" if left_in_all is None else f"about {duration(left_in_all)} left in all"
        if self._bar is not None and self._task is not None:
            self._bar.under = "; ".join(filter(None, (in_all, self._best)))
            self._bar.update(self._task, description=label, completed=done, total=total, detail=detail,
                             left=shown_left, visible=done < total, refresh=True)  # fmt: skip
            return
        now = time.monotonic()
        if label != self._label or now - self._last >= _PLAIN_LINE_SECONDS:
            self._label, self._last = label, now
            say(", ".join(filter(None, (f"{label}: {detail}", shown_left, in_all))))


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    if not screen.is_terminal:
        yield ProgressLine(None)
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=None), TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(), TextColumn("{task.fields[left]}"),
    )  # fmt: skip
    with _Bar(*columns, console=screen, expand=True) as bar:
        yield ProgressLine(bar)


@contextmanager
def training_progress(label: str, steps: int) -> Iterator[Any]:
    """A bar with loss and time left on a terminal; elsewhere a plain line now and then."""
    if screen.is_terminal:
        columns = (
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} steps"),
            TextColumn("loss {task.fields[loss]}"), TimeElapsedColumn(), TextColumn("{task.fields[left]}"),
        )  # fmt: skip
        with Progress(*columns, console=screen) as bar:
            task = bar.add_task(label, total=steps, loss="-", left="")

            def update(progress: "TrainingProgress") -> None:
                left = f"{duration(progress.seconds_left)} left"
                bar.update(task, completed=progress.step, loss=f"{progress.loss:.4f}", left=left)

            yield update
        return
    last = time.monotonic() - _PLAIN_LINE_SECONDS

    def report(progress: "TrainingProgress") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PLAIN_LINE_SECONDS or progress.step == progress.steps:
            last = now
            say(
                f"{label}: step {progress.step}/{progress.steps}, loss {progress.loss:.4f}, "
                f"{duration(progress.seconds)} so far, {duration(progress.seconds_left)} left"
            )

    yield report
