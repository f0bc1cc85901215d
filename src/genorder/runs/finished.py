"""A finished run of `train` or `discover`, read back: its order, its models, its data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from genorder.data import ReadOptions
from genorder.errors import InputError
from genorder.models.gpt2 import EXPORT_DESCRIPTION
from genorder.models.saved import read_export_description
from genorder.orders import Order
from genorder.runs.source import Source, reload_source
from genorder.store import read_status, verb_of
from genorder.tasks import make_task, stored_columns

WITH_ORDER = ("train", "discover")  # the verbs whose runs choose an order


@final
@dataclass(frozen=True, eq=False)
class FinishedRun:
    path: Path
    config: dict[str, Any]
    result: dict[str, Any]

    @property
    def order(self) -> Order:
        return Order(tuple(self.result["order"]))

    @property
    def given_order(self) -> Order:
        return Order.forward(len(self.result["order"]))

    @property
    def true_of_column(self) -> Order | None:
        """The true index of each stored column, for a built-in task."""
        if "order_in_true_indices" not in self.result:
            data = self.config["data"]  # of an unfinished run
            known = "task" in data and "hidden_order_seed" in data
            return stored_columns(make_task(data["task"], data["length"]), data["hidden_order_seed"]) if known else None
        return Order(tuple(self.result["order_in_true_indices"])).compose(self.order.inverse())

    @cached_property
    def source(self) -> Source:
        return source_of_run(self.path, self.config)

    def model_folder(self, *, given: bool = False) -> Path:
        """The folder of the model in the run's order, or in the given order. Raises InputError if there is none."""
        if not (self.path / "model" / "model.json").exists():
            if "weights_sha256" in self.result:
                raise InputError(model_is_gone(self.path / "model"))
            raise InputError(
                f"{self.path} has no model: it only explored; run the command without --explore-only, "
                "or `genorder train` with the order"
            )
        if not given or self.order == self.given_order:
            return self.path / "model"
        if not (self.path / "given" / "model.json").exists():
            raise InputError(f"{self.path} has no model of the given order; it trained one in its own order alone")
        return self.path / "given"


def read_finished_run(path: Path) -> FinishedRun:
    """Raises InputError for a directory that holds no finished run of `train` or `discover`."""
    status = read_status(path)
    verb = verb_of(path, status.config)
    if verb not in WITH_ORDER:
        raise InputError(f"{path} is a run of {verb!r}, which chooses no order; give one of train or discover")
    if status.result is None:
        reason = "is still running" if status.state == "running" else "was interrupted; the same command continues it"
        raise InputError(f"{path} holds no finished run: it {reason}")
    return FinishedRun(path, status.config, status.result)


def model_is_gone(folder: Path) -> str:
    """The message that a model was removed, and what to do."""
    return f"{folder} is gone; remove {folder.with_name('result.json')}, and the same command trains it again"


def source_of_run(path: Path, config: dict[str, Any]) -> Source:
    """The samples of the run in `path`. Raises InputError if they have changed since."""
    verb_of(path, config)
    return reload_source(path, config["data"])


@final
@dataclass(frozen=True)
class ModelOrigin:
    """What the run that trained a model says about the data: needed to read inputs and to show targets."""

    reading: ReadOptions  # how the run's data was read
    true_of_column: Order | None  # the true index of each stored column, if the run's columns were shuffled

    @property
    def note(self) -> str | None:
        """A line for the user if targets are shown in another sequence than the run's columns."""
        if self.true_of_column is None:
            return None
        return f"targets in the task's own sequence, not in the run's shuffled columns: {self.true_of_column.short()}"

    def in_own_sequence(self, target: Sequence[str]) -> list[str]:
        """A target of the stored columns in the sequence of its task.

        A shorter target fills as many of the first columns as it has tokens.
        """
        columns = self.true_of_column
        if columns is None:
            return list(target)
        return [target[column] for column in sorted(range(len(target)), key=columns.indices.__getitem__)]


def origin_of_model(path: Path) -> ModelOrigin:
    """The origin of the model in a run directory, in a folder of one, or in an exported folder.

    Of a model folder alone, nothing is known.
    """
    if (path / EXPORT_DESCRIPTION).exists():
        about = read_export_description(path)
        return _origin(about.get("data", {}), about.get("true_of_column"))
    run = _run_in(path) or _run_in(path.parent)
    return _origin({}, None) if run is None else _origin(run.config["data"], run.true_of_column)


def _origin(data: dict[str, Any], columns: Iterable[int] | None) -> ModelOrigin:
    true_of_column = None if columns is None else Order(tuple(columns))
    shuffled = true_of_column is not None and true_of_column != Order.forward(len(true_of_column))
    return ModelOrigin(ReadOptions(**data.get("reading", {})), true_of_column if shuffled else None)


def _run_in(path: Path) -> FinishedRun | None:
    try:
        status = read_status(path)
    except InputError:
        return None
    return FinishedRun(path, status.config, status.result or {}) if status.config.get("verb") in WITH_ORDER else None
