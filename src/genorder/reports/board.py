"""A run for TensorBoard: a folder of RUN_DIR/tensorboard, and so a line in its charts, for each training.

A board is a watcher of the run; at the end it adds what it has missed from the run directory. After an interruption
some steps are repeated: the first new event of a folder invalidates the earlier events from its step on (purge_step),
so that TensorBoard shows each step once.
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
from genorder.reports.tables import ranking_of, thinned
from genorder.reports.wording import by_name
from genorder.search import SearchResult, Stage
from genorder.store import fingerprint
from genorder.training import Progress

FOLDER = "tensorboard"
TRAINING = "training"  # the stage of `genorder train`
_LOSS, _VALIDATION, _BEST, _SUCCESS = "training loss", "validation loss", "best loss so far", "success rate"
_SEARCH, _RANKING = "search", "ranking"
_STRIDE = 20  # steps for which one loss is written: their mean
_LONGEST = 60  # characters of an order in a folder's name
_FLUSH_SECONDS = 10
_log = logging.getLogger(__name__)


def require_tensorboard() -> None:
    """Raises InputError if TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        raise InputError("--tensorboard needs tensorboard, which is not installed: pip install 'genorder[tensorboard]'")


@contextmanager
def board_in(run_dir: Path, wanted: bool, names: Sequence[str] = ()) -> Iterator["Board | None"]:
    """A board for the run, closed at the end of the block; None if it is not wanted. `names` are the targets' names."""
    if not wanted:
        yield None
        return
    with Board(run_dir / FOLDER, names) as board:
        yield board


def complete_board(run_dir: Path) -> None:
    """Add to the board of a finished run what it lacks, or has of a part of the run only."""
    run = read_run(run_dir)
    with Board(run_dir / FOLDER, run.outcome.names.targets if run.outcome else ()) as board:
        board.complete(run)


@final
class Board:
    """A watcher of a discovery; other verbs call its methods too. A full disk ends the board, not the run."""

    def __init__(self, folder: Path, names: Sequence[str] = ()) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import: not while a training is timed

        self._new_writer = SummaryWriter
        self._folder, self._names = folder, names
        self._writers: dict[str, Any] = {}  # of the current training, and of the search
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
            self._add_rung(progress.order, progress.curve, progress.loss, progress.step, repeat)

    def complete(self, run: ReportedRun) -> None:
        """Trainings are written again from their saved losses: parts of them may have run without a board."""
        models = run.outcome.models if run.outcome else {}
        for name, losses in run.training_losses.items():
            title = TRAINING if run.verb == "train" else TRAINED.get(name, name)
            self._begin(title)
            self._add(title, _LOSS, smoothed(losses))
            if name in models:
                self._add(title, _SUCCESS, [(len(losses), models[name].evaluation.success_rate)])
        if run.discovery and not self._has(_SEARCH):
            for stage in run.discovery.search.stages:
                if stage.best:
                    self._add_stage(stage.name, stage.best[0].order, stage.best[0].loss)
        self._begin(_RANKING)
        if run.ranked:
            losses_by_rank = [(rank, one.loss) for rank, one in enumerate(run.ranked.ranking, start=1)]
            self._add(_RANKING, f"{_VALIDATION} by rank", losses_by_rank)
        for one in ranking_of(run):
            if not self._has(_race_name(one.order)):
                for rung in one.rungs:
                    self._add_rung(one.order, rung.curve, rung.loss, rung.steps)

    def _add_stage(self, name: str, order: Order, loss: float | None) -> None:
        self._stages += 1
        self._add(_SEARCH, _BEST, [(self._stages, loss)])
        with self._reporting_errors():
            text = f"{name}: {order.short()}{by_name(order, self._names)}"
            if not self._broken:
                self._writer(_SEARCH, self._stages).add_text("best order so far", f"    {text}", self._stages)

    def _add_rung(self, order: Order, curve: Sequence[float], loss: float | None, step: int, repeat: str = "") -> None:
        """The training losses of a rung that ends at `step`, and the validation loss there."""
        name = _race_name(order, repeat)
        before = step - len(curve)
        if not before:
            self._begin(name)
        self._add(name, _LOSS, [(before + number, value) for number, value in smoothed(curve)])
        self._add(name, _VALIDATION, [(step, loss)])

    def _has(self, name: str) -> bool:
        return (self._folder / _safe(name)).exists()

    def _begin(self, name: str) -> None:
        """Remove what was written to this folder."""
        self._close(name)
        with self._reporting_errors():
            for file in (self._folder / _safe(name)).glob("events.*"):
                file.unlink(missing_ok=True)

    def _add(self, name: str, tag: str, points: Iterable[tuple[int, float | None]]) -> None:
        known = [(step, value) for step, value in points if value is not None and math.isfinite(value)]
        if not known or self._broken:
            return
        with self._reporting_errors():
            writer = self._writer(name, known[0][0])
            for step, value in known:
                writer.add_scalar(tag, value, step)
            writer.flush()  # to the system, so that it outlives this process

    def _writer(self, name: str, step: int) -> Any:
        if name not in self._writers:
            folder = self._folder / _safe(name)
            self._writers[name] = self._new_writer(str(folder), purge_step=step, flush_secs=_FLUSH_SECONDS)
        return self._writers[name]

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._broken:
                _log.warning("%s cannot be written (%s); the run continues without it", self._folder, error.strerror)
            self._broken = True

    def _close(self, name: str) -> None:
        writer = self._writers.pop(name, None)
        if writer is not None:
            with self._reporting_errors():
                writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._writers):
            self._close(name)


def smoothed(losses: Sequence[float]) -> list[tuple[int, float]]:
    """Steps and losses, each the mean of the steps since the point before; steps count from 1."""
    return list(zip(*thinned(losses, -(-len(losses) // _STRIDE)), strict=True)) if losses else []


def _race_name(order: Order, repeat: str = "") -> str:
    names = {Order.forward(len(order)): "given order", Order.reverse(len(order)): "given order reversed"}
    text = names.get(order) or f"order {order.short()}"
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... {fingerprint(list(order))[:6]}"
    return f"race, {text}{repeat}"


def _safe(name: str) -> str:
    """The name as a folder's name: the stages of a user's own search may have any name."""
    plain = re.sub(r"[^\w ,.()+-]", "-", name).strip(" .")
    return plain if plain == name and len(name) <= 120 else f"{plain[:100]} {fingerprint(name)[:6]}"
