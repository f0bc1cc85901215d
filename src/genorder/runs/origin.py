"""What the run that a model comes from says to those who use the model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from genorder.data import ReadOptions
from genorder.errors import InputError
from genorder.models.gpt2_folder import DESCRIPTION, read_about
from genorder.orders import Order
from genorder.runs.finished import WITH_ORDER, FinishedRun
from genorder.store import read_status


@final
@dataclass(frozen=True)
class ModelOrigin:
    reading: ReadOptions  # how the run's data was read
    true_of_column: Order | None  # which of a task's own targets each stored column holds, where they are shuffled

    @property
    def note(self) -> str | None:
        """In which sequence targets are read and shown, where that is not the run's."""
        if self.true_of_column is None:
            return None
        return f"targets in the task's own sequence, not in the run's shuffled columns: {self.true_of_column.short()}"

    def in_own_sequence(self, target: Sequence[str]) -> list[str]:
        """A target of the stored columns in the sequence of its task.

        It may be of any length that the task has: the targets of each stand in as many of the first columns.
        """
        columns = self.true_of_column
        if columns is None:
            return list(target)
        return [target[column] for column in sorted(range(len(target)), key=columns.indices.__getitem__)]


def origin_of_model(path: Path) -> ModelOrigin:
    """Of the model in a run directory, in a folder of one, or exported; of a model alone, nothing is known."""
    if (path / DESCRIPTION).exists():
        about = read_about(path)
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
