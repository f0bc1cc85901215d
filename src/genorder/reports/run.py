"""A run directory, finished or not, read for a report. Changes nothing in it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from genorder.errors import InputError
from genorder.orders import Order
from genorder.outcomes import AttentionOutcome, DiscoveryOutcome, RankOutcome, RunOutcome, read_outcome
from genorder.reports.wording import abbreviated, joined, visible
from genorder.store import FinishedJob, read_status, verb_of

State = Literal["finished", "running", "interrupted", "failed"]
COLUMN_NAME_WIDTH = 40  # characters of a column's name, which must fit beside a figure
TRAINED = {"model": "found order", "given": "given order"}  # folders of trained models


@final
@dataclass(frozen=True, eq=False)
class ReportedRun:
    path: Path
    state: State
    failure: str | None  # why it failed
    config: dict[str, Any]
    outcome: RunOutcome | None  # None: not finished, or of a verb without a report of its own
    jobs: list[FinishedJob]
    progress: dict[str, Any] | None
    starts: list[dict[str, Any]]  # time, command and versions of every start
    training_losses: dict[str, list[float]]  # of every step, by the folder of the model

    @property
    def verb(self) -> str:
        return str(self.config.get("verb", "run"))

    @property
    def title(self) -> str:
        data = self.config.get("data", {})
        if "task" in data:
            return f"{visible(Path(str(data['task'])).name)}, {data['length']} targets"
        return visible(Path(str(data.get("path", self.path.name))).name)

    @property
    def discovery(self) -> DiscoveryOutcome | None:
        return self.outcome if isinstance(self.outcome, DiscoveryOutcome) else None

    @property
    def ranked(self) -> RankOutcome | None:
        return self.outcome if isinstance(self.outcome, RankOutcome) else None

    @property
    def attended(self) -> AttentionOutcome | None:
        return self.outcome if isinstance(self.outcome, AttentionOutcome) else None

    @property
    def order(self) -> Order | None:
        """The order that the run found, ranked first or trains."""
        if self.outcome is None and self.verb == "train" and "order" in self.config:
            return Order(tuple(self.config["order"]))
        return self.outcome.best_order if self.outcome else None

    @property
    def in_given_order(self) -> bool:
        return self.order is not None and self.order == Order.forward(len(self.order))

    @property
    def keeps_given(self) -> bool:
        """Whether the verdict of a discovery is that the given order is the answer."""
        return self.discovery is not None and self.discovery.keeps_given

    def trained_title(self, folder: str) -> str:
        """The title of a trained model, by its folder: `found order`, `given order`, or the folder's name."""
        if folder == "model" and self.keeps_given:
            return "given order" if self.in_given_order else "this order"
        return TRAINED.get(folder, visible(folder))

    @property
    def shuffled(self) -> bool:
        """Whether the columns of a built-in task are stored in another sequence than the task's own."""
        truth = self.outcome.truth if self.outcome else None
        return truth is not None and truth.true_of_column != Order.forward(len(truth.true_of_column))

    def target(self, column: int) -> str:
        """The name of a target column: the user's, else `y3`."""
        return self._name("target_names", column, "y")

    def input(self, position: int) -> str:
        return self._name("input_names", position, "x")

    def _name(self, names: str, place: int, letter: str) -> str:
        known = self.config.get("labels", {}).get(names)
        return visible(str(known[place]), COLUMN_NAME_WIDTH) if known and place < len(known) else f"{letter}{place}"

    def order_text(self, order: Iterable[int], most: int = 24) -> str:
        """The names of the target columns in the sequence of emission."""
        columns = list(order)
        names = joined([self.target(column) for column in columns[:most]])
        return names if len(columns) <= most else f"{names} … ({len(columns)} targets)"

    def true_text(self, order: Order) -> str:
        """The order in the true indices of a built-in task, in short form; empty if they are not known."""
        truth = self.outcome.truth if self.outcome else None
        return abbreviated(truth.true_order(order)) if truth else ""


def read_run(path: Path | str) -> ReportedRun:
    """Raises InputError if `path` is no run directory, or its files are damaged or of an older version."""
    path = Path(path)
    status = read_status(path)
    verb = verb_of(path, status.config)
    # The report of a finished run is written while its process still holds the lock: the result decides.
    state: State = "finished" if status.result is not None else "failed" if status.failure else status.state
    return ReportedRun(
        path=path,
        state=state,
        failure=status.failure,
        config=status.config,
        outcome=None if status.result is None else read_outcome(str(verb), status.result, path),
        jobs=status.jobs,
        progress=status.progress if status.result is None else None,
        starts=_read_list(path / "environment.json"),
        training_losses={
            folder.name: losses
            for folder in sorted(path.iterdir())
            if folder.is_dir() and (losses := _read_list(folder / "training_losses.json"))
        },
    )


def _read_list(path: Path) -> list[Any]:
    """Empty if there is no such file: a run may not have written it yet."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    return content if isinstance(content, list) else []
