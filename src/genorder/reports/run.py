"""A run directory as it lies there, finished or not, read for a report. Changes nothing in it."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, final

from genorder.errors import InputError
from genorder.orders import Order
from genorder.reports.findings import Findings, findings_of
from genorder.reports.wording import abbreviated, listed, visible
from genorder.store import FinishedJob, read_status, verb_of

State = Literal["finished", "running", "interrupted", "failed"]
NAME_WIDTH = 40  # of a column's name: it must fit beside a figure
TRAINED = {"model": "found order", "given": "given order"}  # folders of trained models


@final
@dataclass(frozen=True, eq=False)
class ReportedRun:
    path: Path
    state: State
    failure: str | None  # why it failed
    config: dict[str, Any]
    result: dict[str, Any]  # empty as long as the run is not finished
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
    def order(self) -> list[int] | None:
        """The order that the run found, ranked first or was asked to train."""
        if "ranking" in self.result:
            first: list[int] = self.result["ranking"][0]["order"]
            return first
        return self.result.get("order") or (self.config.get("order") if self.verb == "train" else None)

    @cached_property
    def findings(self) -> Findings:
        return findings_of(self.result)

    @property
    def in_given_order(self) -> bool:
        return self.order is not None and self.order == list(range(len(self.order)))

    def trained_title(self, folder: str) -> str:
        """Of a trained model, by its folder: `found order`, `given order`, or the folder's own name."""
        if folder == "model" and self.findings.keeps_given:
            return "given order" if self.in_given_order else "this order"
        return TRAINED.get(folder, visible(folder))

    @cached_property
    def true_of_column(self) -> dict[int, int]:
        """Of a built-in task: the true index of each stored target column. Empty where none is known."""
        about = self.result["ranking"][0] if "ranking" in self.result else self.result
        if "order_in_true_indices" not in about:
            return {}
        return dict(zip(about["order"], about["order_in_true_indices"], strict=True))

    @property
    def shuffled(self) -> bool:
        """Are the stored columns of a built-in task in another sequence than its own?"""
        return any(column != true for column, true in self.true_of_column.items())

    @property
    def attention(self) -> list[dict[str, Any]]:
        """The orders whose attention was summarised, each under a name that can be seen; empty for other verbs."""
        return [{**row, "name": visible(row["name"])} for row in self.result.get("attention", [])]

    def target(self, column: int) -> str:
        """The name of a target column: the user's own where the data has names."""
        return self._name("target_names", column, "y")

    def input(self, column: int) -> str:
        return self._name("input_names", column, "x")

    def _name(self, names: str, column: int, letter: str) -> str:
        known = self.config.get("labels", {}).get(names)
        return visible(str(known[column]), NAME_WIDTH) if known and column < len(known) else f"{letter}{column}"

    def order_text(self, order: list[int], most: int = 24) -> str:
        """Names of the stored columns in the sequence of emission."""
        names = listed([self.target(column) for column in order[:most]])
        return names if len(order) <= most else f"{names} … ({len(order)} targets)"

    def true_text(self, order: list[int]) -> str:
        """The order in the true indices of a built-in task, in short form; empty where none are known."""
        if not self.true_of_column:
            return ""
        return abbreviated(Order(tuple(self.true_of_column[column] for column in order)))


def read_run(path: Path | str) -> ReportedRun:
    """Raises InputError if `path` is no run directory, or one whose files are damaged."""
    path = Path(path)
    status = read_status(path)
    verb_of(path, status.config)
    # A result counts more than a lock: the report of a finished run is written while its process still holds it.
    state: State = "finished" if status.result is not None else "failed" if status.failure else status.state
    return ReportedRun(
        path=path,
        state=state,
        failure=status.failure,
        config=status.config,
        result=status.result or {},
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
    """Empty where there is no such file: a run may be looked at before it has written it."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    return content if isinstance(content, list) else []
