"""What a run found, for a Python program: typed, frozen, the same content as the run directory's `result.json`."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast, final

import torch

from genorder.dependencies.graph import TargetDependency
from genorder.errors import InputError
from genorder.evaluation import predict
from genorder.export import Exported, export_run
from genorder.models import SavedModel, load_model
from genorder.orders import Constraints, Order
from genorder.reports.findings import dependencies_of, findings_of
from genorder.store import write_json_atomic


@dataclass(frozen=True, eq=False, repr=False)
class RunResult(ABC):
    content: Mapping[str, Any]  # of result.json; rates are fractions from 0 to 1, times are seconds

    @property
    @abstractmethod
    def order(self) -> Order:
        """The order that the run found, used or ranked first: `order[k]` is the target index emitted at step k."""

    @property
    def success_rate(self) -> float | None:
        """The share of test samples generated without an error; None where nothing was trained to the end."""
        rate: float | None = self.content.get("success_rate")
        return rate

    @property
    def seed(self) -> int:
        return int(self.content["seed"])

    @property
    def run_dir(self) -> Path:
        return Path(self.content["run_dir"])

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The table of `to_dataframe`, as plain data."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data of one's own; the keys are those of `--json` on the command line."""
        return copy.deepcopy(dict(self.content))

    def to_dataframe(self) -> Any:
        """`rows` as a pandas data frame. Raises InputError where pandas is not installed."""
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise InputError(
                "a data frame needs pandas, which is not installed: pip install 'genorder[pandas]'"
            ) from None
        return pandas.DataFrame(self.rows())

    def save(self, path: Path | str) -> Path:
        """Write the result as a JSON file, whole or not at all; the run directory keeps its own."""
        write_json_atomic(path, self.to_dict())
        return Path(path)

    def report(self) -> Path:
        """Write the report of the run, one HTML page, and return its path."""
        return _write_report(self.run_dir)

    def __repr__(self) -> str:
        rate = "" if self.success_rate is None else f", success_rate={self.success_rate}"
        return f"{type(self).__name__}(order={self.order.short()!r}{rate}, run_dir={str(self.run_dir)!r})"


@dataclass(frozen=True, eq=False, repr=False)
class ModelResult(RunResult):
    """The result of a run that chooses an order, and trains a model in it unless it was told to explore only."""

    @property
    def order(self) -> Order:
        return Order(tuple(self.content["order"]))

    @property
    def success_rate_interval(self) -> tuple[float, float] | None:
        """95 % confidence interval (Wilson)."""
        interval = self.content.get("success_rate_interval")
        return None if interval is None else (interval[0], interval[1])

    def model(self, device: str = "cpu") -> SavedModel:
        """The trained model. Raises InputError where the run only explored."""
        return load_model(self.run_dir / "model", torch.device(device))

    def predict(self, inputs: Sequence[Sequence[object]]) -> list[list[str]]:
        """The targets of each input, by the trained model, in the original order of the target indices."""
        return predict(self.model(), [[str(token) for token in row] for row in inputs])

    def export(
        self, kind: str, path: Path | str, *, given: bool = False, split: str = "all", force: bool = False
    ) -> Exported:
        """As `genorder export`: the kinds are hf, dataset, calt and int2int."""
        return export_run(self.run_dir, kind, path, given=given, split=split, force=force)


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscoveryResult(ModelResult):
    @property
    def strategy(self) -> str:
        return cast(str, self.content["strategy"])

    @property
    def verdict(self) -> str | None:
        """`order found`, `no order preferred`, `nothing learnt` or `not settled`; None: the strategy judges nothing.

        Where no order is preferred or nothing was learnt, `order` is the given one, as far as the constraints allow it.
        """
        return findings_of(self.content).verdict

    @property
    def advice(self) -> str | None:
        """What the verdict means for this data, and what to do next."""
        return findings_of(self.content).advice

    @property
    def order_in_names(self) -> list[str]:
        """The targets in the order of emission, by your own names; `y0`, `y1`, ... where the data has none."""
        names = self.content.get("target_names")
        known: list[str] | None = self.content.get("order_in_names")
        return list(known or ((names[column] if names else f"y{column}") for column in self.order))

    @property
    def dependencies(self) -> list[TargetDependency]:
        """The tokens that each target is computed from; empty where that is not known."""
        return dependencies_of(self.content)

    @property
    def tied_orders(self) -> list[Order]:
        """Those that the race could not separate from the order."""
        return [Order(tuple(order)) for order in self.content["tied_orders"]]

    @property
    def constraints(self) -> Constraints:
        """What every order that was searched had to meet."""
        return Constraints.from_dict(self.content.get("constraints") or {})

    @property
    def success_rate_given_order(self) -> float | None:
        rate: float | None = self.content.get("success_rate_given_order")
        return rate

    @property
    def seconds(self) -> dict[str, float]:
        """Of each part, and in total."""
        return dict(self.content["seconds"])

    def rows(self) -> list[dict[str, Any]]:
        """The race of the finalists, best first."""
        return [
            {
                "order": row["order"],
                "loss": row["losses"][-1],
                "standard_error": row["standard_errors"][-1],
                "steps": row["steps"][-1],
                "success_rate": row["success_rates"][-1],
                "tied_with_best": row["tied_with_best"],
            }
            for row in self.content["race"]
        ]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TrainResult(ModelResult):
    @property
    def success_rate(self) -> float:
        return float(self.content["success_rate"])

    def rows(self) -> list[dict[str, Any]]:
        """One row for each target index, with the step that it is emitted at."""
        steps = self.order.inverse()
        measured = zip(self.content["error_rate_by_target"], self.content["loss_by_target"], strict=True)
        return [
            {"target": index, "step": steps[index], "error_rate": error, "loss": loss}
            for index, (error, loss) in enumerate(measured)
        ]


@final
@dataclass(frozen=True, eq=False, repr=False)
class RankResult(RunResult):
    @property
    def order(self) -> Order:
        return self.orders[0]

    @property
    def orders(self) -> list[Order]:
        """Best first."""
        return [Order(tuple(row["order"])) for row in self.content["ranking"]]

    def rows(self) -> list[dict[str, Any]]:
        """The ranking, best first."""
        columns = ("rank", "order", "loss", "standard_error", "tied_with_best", "samples")
        return [{name: row[name] for name in columns} for row in self.content["ranking"]]


def _write_report(run_dir: Path) -> Path:
    from genorder.reports.page import write_report  # only now: it loads plotly

    return write_report(run_dir)
