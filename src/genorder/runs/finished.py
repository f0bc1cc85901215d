"""A finished run of `train` or `discover`, read back: its order, its models, its data."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from genorder.errors import InputError
from genorder.models import is_saved
from genorder.orders import Order
from genorder.runs.given import read_kept
from genorder.runs.source import Source, reload_source, same_data
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
        """Which of a task's own targets each stored column holds, where that is known."""
        if "order_in_true_indices" not in self.result:
            data = self.config["data"]  # of a run that is not finished, its task says it
            known = "task" in data and "hidden_order_seed" in data
            return stored_columns(make_task(data["task"], data["length"]), data["hidden_order_seed"]) if known else None
        return Order(tuple(self.result["order_in_true_indices"])).compose(self.order.inverse())

    @cached_property
    def source(self) -> Source:
        return source_of_run(self.path, self.config)

    def model_folder(self, *, given: bool = False) -> Path:
        """Of the model in the run's order, or in the given one. Raises InputError where there is none."""
        if not (self.path / "model" / "model.json").exists():
            if "weights_sha256" in self.result:
                raise InputError(gone(self.path / "model"))
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
        reason = "is still at work" if status.state == "running" else "was interrupted; the same command continues it"
        raise InputError(f"{path} holds no finished run: it {reason}")
    return FinishedRun(path, status.config, status.result)


def gone(folder: Path) -> str:
    """That a model was removed, and what to do."""
    return f"{folder} is gone; remove {folder.with_name('result.json')}, and the same command trains it again"


def lost_models(path: Path, result: dict[str, Any]) -> list[Path]:
    """The folders of models that the run in `path` trained, and that are no longer there."""
    trained = ["model"] if "weights_sha256" in result else []
    if result.get("given") and result["given_order"] != result["order"]:
        trained.append("given")
    return [path / name for name in trained if not is_saved(path / name)]


def source_of_run(path: Path, config: dict[str, Any]) -> Source:
    """The data of the run in `path`. Raises InputError if it is no longer the same."""
    verb_of(path, config)
    description = config["data"]
    if "kept" not in description:
        return reload_source(description)
    return same_data(read_kept(path), description, path / "data")
