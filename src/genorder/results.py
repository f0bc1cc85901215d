"""What a run found, for a Python program: the outcome in result.json, with its model, tables and report."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, final

import torch

from genorder.dependencies.graph import TargetDependency
from genorder.errors import InputError
from genorder.evaluation import predict
from genorder.export import Exported, export_run
from genorder.models import SavedModel, load_model
from genorder.orders import Constraints, Order
from genorder.outcomes import AttentionEntry, AttentionOutcome, DiscoveryOutcome, RankOutcome, RunOutcome, TrainOutcome
from genorder.store import write_json_atomic


@dataclass(frozen=True, eq=False, repr=False)
class RunResult(ABC):
    outcome: RunOutcome  # rates are fractions from 0 to 1, times are seconds

    @property
    def success_rate(self) -> float | None:
        """The share of test samples with an exact match; None if no model was trained to the end."""
        model = self.outcome.models.get("model")
        return model.evaluation.success_rate if model else None

    @property
    def run_dir(self) -> Path:
        return self.outcome.run_dir

    @property
    def content(self) -> dict[str, Any]:
        """The content of result.json."""
        return self.to_dict()

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The table of `to_dataframe`, as plain data."""

    def to_dict(self) -> dict[str, Any]:
        """A copy of the content of result.json; the keys are those of `--json` on the command line."""
        return deepcopy(self.outcome.to_dict())

    def to_dataframe(self) -> Any:
        """`rows` as a pandas data frame. Raises InputError if pandas is not installed."""
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise InputError(
                "a data frame needs pandas, which is not installed: pip install 'genorder[pandas]'"
            ) from None
        return pandas.DataFrame(self.rows())

    def save(self, path: Path | str) -> Path:
        """Write the result as a JSON file, in one atomic step; the run directory keeps its own."""
        write_json_atomic(path, self.to_dict())
        return Path(path)

    def report(self) -> Path:
        """Write the report of the run, one HTML page, and return its path."""
        from genorder.reports.page import write_report  # only now: it loads plotly

        return write_report(self.run_dir)

    def __repr__(self) -> str:
        order = self.outcome.best_order
        facts = {
            "order": None if order is None else repr(order.short()),
            "success_rate": self.success_rate,
            "run_dir": repr(str(self.run_dir)),
        }
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in facts.items() if v is not None)})"


@dataclass(frozen=True, eq=False, repr=False)
class ModelResult(RunResult):
    """The result of a run that has one order and, unless it only explored, a model trained in this order."""

    outcome: DiscoveryOutcome | TrainOutcome

    @property
    def order(self) -> Order:
        """The order that the run found or used: `order[k]` is the target index emitted at step k."""
        return self.outcome.order

    @property
    def seed(self) -> int:
        return self.outcome.seed

    @property
    def success_rate_interval(self) -> tuple[float, float] | None:
        """95 % confidence interval (Wilson)."""
        return self.outcome.model.evaluation.success_rate_interval if self.outcome.model else None

    def model(self, device: str = "cpu") -> SavedModel:
        """The trained model. Raises InputError if the run only explored."""
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
    outcome: DiscoveryOutcome

    @property
    def strategy(self) -> str:
        return self.outcome.strategy

    @property
    def verdict(self) -> str | None:
        """`order found`, `no order preferred`, `nothing learnt` or `not settled`; None: the strategy gives no verdict.

        If no order is preferred or nothing was learnt, `order` is the given one, as far as the constraints allow it.
        """
        return self.outcome.verdict

    @property
    def advice(self) -> str | None:
        """What the verdict means for this data, and what to do next."""
        return self.outcome.advice

    @property
    def order_in_names(self) -> list[str]:
        """The targets in the order of emission, by your own names; `y0`, `y1`, ... if the data has none."""
        return self.outcome.order_in_names

    @property
    def dependencies(self) -> list[TargetDependency]:
        """The tokens that each target is computed from; empty if they are not known."""
        return self.outcome.dependencies

    @property
    def tied_orders(self) -> list[Order]:
        """The orders that the race could not separate from `order`."""
        return self.outcome.race.tied_orders if self.outcome.race else []

    @property
    def constraints(self) -> Constraints:
        """What every order of the search had to meet."""
        return self.outcome.constraints

    @property
    def success_rate_given_order(self) -> float | None:
        return self.outcome.given.evaluation.success_rate if self.outcome.given else None

    @property
    def seconds(self) -> dict[str, float]:
        """Of each part, and in total."""
        return self.outcome.all_seconds

    def rows(self) -> list[dict[str, Any]]:
        """The race of the finalists, best first."""
        return [
            {
                "order": list(one.order),
                "loss": one.loss,
                "standard_error": one.standard_error,
                "steps": one.steps,
                "success_rate": one.rungs[-1].success_rate,
                "tied_with_best": one.tied_with_best,
            }
            for one in self.outcome.ranking
        ]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TrainResult(ModelResult):
    outcome: TrainOutcome

    @property
    def success_rate(self) -> float:
        return self.outcome.model.evaluation.success_rate

    def rows(self) -> list[dict[str, Any]]:
        """One row for each target index, with the step that it is emitted at."""
        tested, steps = self.outcome.model.evaluation, self.order.inverse()
        measured = zip(tested.error_rate_by_target, tested.loss_by_target, strict=True)
        return [
            {"target": index, "step": steps[index], "error_rate": error, "loss": loss}
            for index, (error, loss) in enumerate(measured)
        ]


@final
@dataclass(frozen=True, eq=False, repr=False)
class RankResult(RunResult):
    outcome: RankOutcome

    @property
    def order(self) -> Order:
        """The order that ranks first: `order[k]` is the target index emitted at step k."""
        return self.outcome.best_order

    @property
    def orders(self) -> list[Order]:
        """Best first."""
        return [one.order for one in self.outcome.ranking]

    @property
    def seed(self) -> int:
        return self.outcome.seed

    def rows(self) -> list[dict[str, Any]]:
        """The ranking, best first."""
        return [
            {
                "rank": rank,
                "order": list(one.order),
                "loss": one.loss,
                "standard_error": one.standard_error,
                "tied_with_best": one.tied_with_best,
                "samples": one.samples,
            }
            for rank, one in enumerate(self.outcome.ranking, start=1)
        ]


@final
@dataclass(frozen=True, eq=False, repr=False)
class AttentionResult(RunResult):
    outcome: AttentionOutcome

    @property
    def attention(self) -> list[AttentionEntry]:
        """The attention map of each order's model, with its sparsity."""
        return self.outcome.attention

    def rows(self) -> list[dict[str, Any]]:
        """One row for each order: its sparsity S, and how well its model does."""
        return [
            {
                "name": one.name,
                "order": list(one.order),
                "sparsity": one.sparsity,
                "success_rate": one.success_rate,
                "loss": one.loss,
            }
            for one in self.attention
        ]
