"""A run as TensorBoard reads it: in RUN_DIR/tensorboard a folder, thus a line in its charts, for each training.

A board is told what the run's watchers are told, and at the run's end completes itself from the run directory. After an
interruption some steps come again: the first new event of a folder says from which step on the earlier ones no longer
count, so that each step is read once.
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, final

from genorder.errors import InputError
from genorder.orders import Order
from genorder.race import RaceProgress
from genorder.reports.run import TRAINED, ReportedRun, read_run
from genorder.reports.tables import thinned
from genorder.reports.wording import by_name
from genorder.search import SearchResult, Stage
from genorder.store import fingerprint
from genorder.training import Progress

FOLDER = "tensorboard"
TRAINING = "training"  # what `genorder train` tells of its training
_LOSS, _VALIDATION, _BEST, _SUCCESS = "training loss", "validation loss", "best loss so far", "success rate"
_SEARCH, _RANKING = "search", "ranking"
_STRIDE = 20  # steps of which one loss is written: the mean, as a run tells it
_LONGEST = 60  # signs of an order in a folder's name
_FLUSH_SECONDS = 10
_log = logging.getLogger(__name__)


def require_tensorboard() -> None:
    """Raises InputError where it is not installed."""
    if find_spec("tensorboard") is None:
        raise InputError("--tensorboard needs tensorboard, which is not installed: pip install 'genorder[tensorboard]'")


@contextmanager
def board_in(run_dir: Path, wanted: bool, names: Sequence[str] = ()) -> Iterator["Board | None"]:
    """A board for the run, closed at the block's end; None where none is wanted. `names` are the targets'."""
    if not wanted:
        yield None
        return
    with Board(run_dir / FOLDER, names) as board:
        yield board


def complete_board(run_dir: Path) -> None:
    """Write what a finished run holds and the board lacks, or has from a part of the run only."""
    run = read_run(run_dir)
    with Board(run_dir / FOLDER, run.result.get("target_names", ())) as board:
        board.complete(run)


@final
class Board:
    """A watcher of a discovery; other runs tell it the same by its methods. A full disk ends it, and not the run."""

    def __init__(self, folder: Path, names: Sequence[str] = ()) -> None:
        from torch.utils.tensorboard import SummaryWriter  # here, and not while a training is timed: it takes seconds

        self._new_writer = SummaryWriter
        self._folder, self._names = folder, names
        self._writers: dict[str, Any] = {}  # of the training that is told now, and of the search
        self._stages = 0
        self._broken = False

    def progress(self, stage: str, progress: Progress) -> None:
        if progress.loss is None:
            return
        for other in self._writers.keys() - {stage, _SEARCH}:
            self._close(other)
        self._add(stage, _LOSS, [(progress.step, progress.loss)])

    def stage(self, stage: Stage) -> None:
        if stage.best:
            self._add_stage(stage.name, stage.best[0].order, stage.best[0].loss)

    def proposed(self, proposed: SearchResult) -> None: ...

    def race(self, progress: RaceProgress) -> None:
        if progress.finished and progress.rung is not None:  # the final trainings have folders of their own
            repeat = f", repeat {progress.repeat + 1}" if progress.repeat else ""
            self._add_raced(progress.order, progress.curve, progress.loss, progress.step, repeat)

    def complete(self, run: ReportedRun) -> None:
        """Trainings are written anew from their kept losses: told ones may lack what was done without a board."""
        for name, losses in run.training_losses.items():
            title = TRAINING if run.verb == "train" else TRAINED.get(name, name)
            self._begin(title)
            self._add(title, _LOSS, smoothed(losses))
            tested = run.result.get(name) if name == "given" else run.result
            if tested and "success_rate" in tested:
                self._add(title, _SUCCESS, [(len(losses), tested["success_rate"])])
        if not self._has(_SEARCH):
            for stage in run.result.get("proposed", {}).get("stages", []):
                if stage["best"]:
                    self._add_stage(stage["name"], Order(tuple(stage["best"][0]["order"])), stage["best"][0]["loss"])
        rows = run.result.get("ranking", [])
        self._begin(_RANKING)
        self._add(_RANKING, f"{_VALIDATION} by rank", [(row["rank"], row["loss"]) for row in rows])
        for row in (*rows, *run.result.get("race", [])):
            order = Order(tuple(row["order"]))
            if not row.get("curves") or self._has(_raced_name(order)):
                continue
            for curve, step, loss in zip(row["curves"], row["steps"], row["losses"], strict=True):
                self._add_raced(order, curve, loss, step)

    def _add_stage(self, name: str, order: Order, loss: float | None) -> None:
        self._stages += 1
        self._add(_SEARCH, _BEST, [(self._stages, loss)])
        with self._going_on():
            text = f"{name}: {order.short()}{by_name(order, self._names)}"
            if not self._broken:
                self._writer(_SEARCH, self._stages).add_text("best order so far", f"    {text}", self._stages)

    def _add_raced(self, order: Order, curve: Sequence[float], loss: float | None, step: int, repeat: str = "") -> None:
        """A rung of a training, up to that step, and the validation loss there."""
        name = _raced_name(order, repeat)
        before = step - len(curve)
        if not before:
            self._begin(name)
        self._add(name, _LOSS, [(before + number, value) for number, value in smoothed(curve)])
        self._add(name, _VALIDATION, [(step, loss)])

    def _has(self, name: str) -> bool:
        return (self._folder / _safe(name)).exists()

    def _begin(self, name: str) -> None:
        """Let nothing that was written of this folder count."""
        self._close(name)
        with self._going_on():
            for file in (self._folder / _safe(name)).glob("events.*"):
                file.unlink(missing_ok=True)

    def _add(self, name: str, tag: str, points: Iterable[tuple[int, float | None]]) -> None:
        known = [(step, value) for step, value in points if value is not None and math.isfinite(value)]
        if not known or self._broken:
            return
        with self._going_on():
            writer = self._writer(name, known[0][0])
            for step, value in known:
                writer.add_scalar(tag, value, step)
            writer.flush()  # to the system, so that what is told outlives this process

    def _writer(self, name: str, step: int) -> Any:
        if name not in self._writers:
            folder = self._folder / _safe(name)
            self._writers[name] = self._new_writer(str(folder), purge_step=step, flush_secs=_FLUSH_SECONDS)
        return self._writers[name]

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._broken:
                _log.warning("%s cannot be written (%s); the run goes on without", self._folder, error.strerror)
            self._broken = True

    def _close(self, name: str) -> None:
        writer = self._writers.pop(name, None)
        if writer is not None:
            with self._going_on():
                writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._writers):
            self._close(name)


def smoothed(losses: Sequence[float]) -> list[tuple[int, float]]:
    """Steps and losses, each the mean of the steps since the point before; steps count from 1."""
    return list(zip(*thinned(losses, -(-len(losses) // _STRIDE)), strict=True)) if losses else []


def _raced_name(order: Order, repeat: str = "") -> str:
    names = {Order.forward(len(order)): "given order", Order.reverse(len(order)): "given order reversed"}
    text = names.get(order) or f"order {order.short()}"
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... {fingerprint(list(order))[:6]}"
    return f"race, {text}{repeat}"


def _safe(name: str) -> str:
    """The name as that of a folder: a search of one's own may call its stages anything."""
    plain = re.sub(r"[^\w ,.()+-]", "-", name).strip(" .")
    return plain if plain == name and len(name) <= 120 else f"{plain[:100]} {fingerprint(name)[:6]}"
