"""The outcomes of runs as typed values: the content of result.json.

`to_dict` gives the JSON of result.json and of `--json`. `from_dict` reads it back, also from older run directories:
optional parts that are missing are None, and a missing required part is an InputError of one clear line.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self, final

from genorder.data import Names
from genorder.dependencies.graph import TargetDependency
from genorder.errors import InputError
from genorder.evaluation import DecodedExample, Evaluation
from genorder.orders import Constraints, DependencyGraph, Order, cost_ratio
from genorder.profiling.scoring import finite_or_none
from genorder.race import Contestant
from genorder.search import NO_ORDER, NOTHING_LEARNT, Proposal, SearchResult, Stage

CONSTANT_TARGETS = "constant targets"  # a verdict of earlier versions
_KEEPS_GIVEN = (NO_ORDER, NOTHING_LEARNT, CONSTANT_TARGETS)


@final
@dataclass(frozen=True)
class GroundTruth:
    """What is known of a built-in task: the true index of each stored target column, and the cost of orders."""

    true_of_column: Order
    cost_ratios: Mapping[Order, float] = field(default_factory=dict)  # of orders over the stored columns

    @classmethod
    def of(cls, true_of_column: Order, graph: DependencyGraph, orders: Iterable[Order]) -> "GroundTruth":
        return cls(true_of_column, {order: cost_ratio(order, graph) for order in dict.fromkeys(orders)})

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "GroundTruth | None":
        """From rows of result.json that hold an order each. None if the task's own order is not known."""
        if not rows or "order_in_true_indices" not in rows[0]:
            return None
        true_of_column = _order(rows[0]["order_in_true_indices"]).compose(_order(rows[0]["order"]).inverse())
        return cls(true_of_column, {_order(row["order"]): row["cost_ratio"] for row in rows if "cost_ratio" in row})

    def true_order(self, order: Order) -> Order:
        """An order over the stored columns, in the true indices of the task."""
        return self.true_of_column.compose(order)

    def about(self, order: Order) -> dict[str, object]:
        cost = {"cost_ratio": self.cost_ratios[order]} if order in self.cost_ratios else {}
        return {"order_in_true_indices": list(self.true_order(order)), **cost}


@final
@dataclass(frozen=True)
class SearchOutcome:
    """What a search proposed, and how it got there."""

    proposals: list[Proposal] = field(default_factory=list)  # best first
    stages: list[Stage] = field(default_factory=list)
    details: Mapping[str, Any] = field(default_factory=dict)  # SearchDetails.to_dict() of the strategy

    @classmethod
    def of(cls, result: SearchResult) -> "SearchOutcome":
        return cls(result.proposals, result.stages, result.details.to_dict())

    @property
    def agreement(self) -> float:
        """The share of pairs of targets that models of different seeds put in the same sequence."""
        return float(self.details.get("agreement", 1.0))

    @property
    def losses(self) -> Mapping[str, float]:
        """Losses under the model of the search, by what was measured."""
        losses: Mapping[str, float] = self.details.get("losses", {})
        return losses

    def to_dict(self, truth: GroundTruth | None) -> dict[str, object]:
        return {
            "proposals": [{**one.to_dict(), **_about(one.order, truth)} for one in self.proposals],
            "stages": [stage.to_dict() for stage in self.stages],
            "details": dict(self.details),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "SearchOutcome":
        stages = [
            Stage(row["name"], row["candidates"], row["kept"], _proposals(row["best"]), row["seconds"])
            for row in saved["stages"]
        ]
        return cls(_proposals(saved["proposals"]), stages, saved["details"])


@final
@dataclass(frozen=True)
class Rung:
    """A rung of the race, of one order."""

    steps: int  # of training, from the beginning
    loss: float | None  # on the validation samples; None: the training diverged
    standard_error: float | None = None
    success_rate: float | None = None
    curve: list[float] = field(default_factory=list, repr=False)  # training loss of each step of the rung


@final
@dataclass(frozen=True, kw_only=True)
class RankedOrder:
    """An order with its validation loss: by a mixture run, or after its last rung of a race."""

    order: Order
    loss: float | None  # None: not finite
    standard_error: float | None = None
    tied_with_best: bool = False
    samples: int | None = None  # validation samples; None: all of them
    curve: list[float | None] = field(default_factory=list, repr=False)  # mixture: losses at the `curve_steps`
    rungs: list[Rung] = field(default_factory=list, repr=False)  # race: the rungs that it took part in
    left_after_rung: int | None = None  # race: from 0; None: it was not dropped

    @classmethod
    def of(cls, contestant: Contestant, samples: int | None = None) -> "RankedOrder":
        """A contestant of a race; `samples` are the validation samples."""
        rungs = [
            Rung(rung.steps, finite_or_none(rung.loss), finite_or_none(rung.standard_error), rung.success_rate, curve)
            for rung, curve in zip(contestant.rungs, contestant.curves, strict=True)
        ]
        return cls(
            order=contestant.order,
            loss=rungs[-1].loss,
            standard_error=rungs[-1].standard_error,
            tied_with_best=contestant.tied_with_best,
            samples=samples,
            rungs=rungs,
            left_after_rung=contestant.dropped_after,
        )

    @property
    def steps(self) -> int | None:
        """Steps of the race that the order was trained for; None if there was no race."""
        return self.rungs[-1].steps if self.rungs else None

    @property
    def training_losses(self) -> list[float]:
        """Of every step of the race."""
        return list(chain.from_iterable(rung.curve for rung in self.rungs))

    def race_row(self) -> dict[str, object]:
        """The JSON of a race of `discover`."""
        return {
            "order": list(self.order),
            "steps": [rung.steps for rung in self.rungs],
            "losses": [rung.loss for rung in self.rungs],
            "standard_errors": [rung.standard_error for rung in self.rungs],
            "success_rates": [rung.success_rate for rung in self.rungs],
            "left_after_rung": self.left_after_rung,
            "tied_with_best": self.tied_with_best,
            "diverged": self.loss is None,
            "curves": [rung.curve for rung in self.rungs],
        }

    @classmethod
    def from_race_row(cls, saved: Mapping[str, Any]) -> "RankedOrder":
        steps, losses, curves = saved["steps"], saved["losses"], saved.get("curves") or [[]] * len(saved["steps"])
        columns = (steps, losses, saved["standard_errors"], saved["success_rates"], curves)
        return cls(
            order=_order(saved["order"]),
            loss=losses[-1],
            standard_error=saved["standard_errors"][-1],
            tied_with_best=saved["tied_with_best"],
            rungs=[Rung(*values) for values in zip(*columns, strict=True)],
            left_after_rung=saved["left_after_rung"],
        )

    def ranking_row(self, rank: int) -> dict[str, object]:
        """The JSON of a ranking of `rank`."""
        raced = {
            "losses": [rung.loss for rung in self.rungs],
            "steps": [rung.steps for rung in self.rungs],
            "left_after_rung": self.left_after_rung,
            "curves": [rung.curve for rung in self.rungs],
        }
        return {
            "rank": rank,
            "loss": self.loss,
            "standard_error": self.standard_error,
            "tied_with_best": self.tied_with_best,
            "samples": self.samples,
            **(raced if self.rungs else {"curve": self.curve}),
            "finite": self.loss is not None,
        }

    @classmethod
    def from_ranking_row(cls, saved: Mapping[str, Any]) -> "RankedOrder":
        steps = saved.get("steps", [])
        columns = (steps, saved.get("losses", []), saved.get("curves") or [[]] * len(steps))
        rungs = [Rung(steps, loss, curve=curve) for steps, loss, curve in zip(*columns, strict=True)]
        return cls(
            order=_order(saved["order"]),
            loss=saved["loss"],
            standard_error=saved["standard_error"],
            tied_with_best=saved["tied_with_best"],
            samples=saved.get("samples"),
            curve=saved.get("curve", []),
            rungs=rungs,
            left_after_rung=saved.get("left_after_rung"),
        )


@final
@dataclass(frozen=True, kw_only=True)
class RaceOutcome:
    ranking: list[RankedOrder]  # from best to worst; those that diverged last
    ended: str | None  # solved, decided, converged, diverged or steps spent
    tied_orders: list[Order]  # with the order of the outcome
    shown_by_training: bool | None  # whether the order is significantly better than the given one
    not_shown_because: str | None
    overfits: bool | None  # whether the validation loss of the best order rose
    loss_still_falling: bool | None  # at the end of the race


@final
@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model that was trained to the end, and its test."""

    evaluation: Evaluation  # on the test samples
    examples: list[DecodedExample] = field(default_factory=list, repr=False)  # test samples, the first wrong ones first
    weights_sha256: str
    steps: int  # of training
    seconds: float | None = None  # of training; None: not kept for this model alone
    evaluation_seconds: float | None = None
    loss_still_falling: bool | None = None  # at the end of the training; None: not measured

    def to_dict(self) -> dict[str, object]:
        optional = {"seconds": self.seconds, "loss_still_falling": self.loss_still_falling}
        return {
            **self.evaluation.to_dict(),
            "examples": [example.to_dict() for example in self.examples],
            **({} if self.evaluation_seconds is None else {"evaluation_seconds": self.evaluation_seconds}),
            "weights_sha256": self.weights_sha256,
            "steps": self.steps,
            **{name: value for name, value in optional.items() if value is not None},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "TrainedModel":
        return cls(
            evaluation=Evaluation.from_dict(saved),
            examples=[DecodedExample.from_dict(row) for row in saved.get("examples", [])],
            weights_sha256=saved["weights_sha256"],
            steps=saved["steps"],
            seconds=saved.get("seconds"),
            evaluation_seconds=saved.get("evaluation_seconds"),
            loss_still_falling=saved.get("loss_still_falling"),
        )


@dataclass(frozen=True, kw_only=True)
class RunOutcome(ABC):
    """What all outcomes have in common. Properties that do not apply to a verb are empty."""

    run_dir: Path
    truth: GroundTruth | None = None  # for built-in tasks
    names: Names = field(default_factory=Names)  # the user's names of the positions
    race: RaceOutcome | None = None  # of a discovery
    unigram_loss: float | None = None  # of guessing each target by its frequencies; None if there was no race

    @property
    def best_order(self) -> Order | None:
        """The order that the run found, trained or ranked first."""
        return None

    @property
    def ranking(self) -> list[RankedOrder]:
        """The orders that were ranked or raced, best first."""
        return []

    @property
    def models(self) -> dict[str, TrainedModel]:
        """The tested models by their folder in the run directory: `model`, and `given` for the given order."""
        return {}

    @property
    @abstractmethod
    def seconds_by_part(self) -> dict[str, float]: ...

    @property
    def orders(self) -> list[Order]:
        """All orders for which the outcome can hold true indices and costs."""
        best = [] if self.best_order is None else [self.best_order]
        return [*best, *(one.order for one in self.ranking)]

    @abstractmethod
    def to_dict(self) -> dict[str, object]: ...

    @classmethod
    @abstractmethod
    def _parse(cls, saved: Mapping[str, Any]) -> Self: ...

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], run_dir: Path | None = None) -> Self:
        """The outcome in result.json. Raises InputError, naming the file in `run_dir`, if it cannot be read."""
        file = (run_dir or Path(str(saved.get("run_dir", "")))) / "result.json"
        try:
            return cls._parse(saved)
        except KeyError as error:
            raise InputError(
                f"{file} was written by an older version: no {error}; run the command again, with another --out"
            ) from None
        except (TypeError, ValueError, IndexError, AttributeError, InputError) as error:
            raise InputError(f"{file} cannot be read: {error}") from None

    def with_truth(self, true_of_column: Order | None, graph: DependencyGraph | None) -> Self:
        """The outcome with true indices and cost ratios, for a built-in task."""
        if true_of_column is None or graph is None:
            return self
        return replace(self, truth=GroundTruth.of(true_of_column, graph, self.orders))

    def with_names(self, names: Names) -> Self:
        return replace(self, names=names)

    @property
    def cost_ratio(self) -> float | None:
        """Operations of the best order of the outcome, relative to the least possible; None if not known."""
        if self.truth is None or self.best_order is None:
            return None
        return self.truth.cost_ratios.get(self.best_order)

    def target_name(self, column: int) -> str:
        """The user's name of a target; else `y3`, by its true index for a built-in task."""
        if self.names.targets:
            return self.names.targets[column]
        return f"y{column if self.truth is None else self.truth.true_of_column[column]}"

    def input_name(self, position: int) -> str:
        return self.names.inputs[position] if self.names.inputs else f"x{position}"

    @property
    def order_in_names(self) -> list[str]:
        """The targets in the sequence of the best order, by the user's names, else `y0`, `y1` of the stored columns."""
        names = self.names.targets
        return [names[column] if names else f"y{column}" for column in self.best_order or ()]


@final
@dataclass(frozen=True, kw_only=True)
class DiscoveryOutcome(RunOutcome):
    strategy: str
    order: Order
    verdict: str | None = None  # None: the strategy gives no verdict
    advice: str | None = None
    dependencies: list[TargetDependency] = field(default_factory=list)  # one per target; empty: not known
    search: SearchOutcome = field(default_factory=SearchOutcome)
    constraints: Constraints = field(default_factory=Constraints)
    seed: int
    seconds: dict[str, float]  # propose, race; after a final training also train, evaluate
    model: TrainedModel | None = None  # None: the run only explored
    given: TrainedModel | None = None  # in the given order; None: not trained
    given_failed: str | None = None  # why the training in the given order failed

    @property
    def given_order(self) -> Order:
        return Order.forward(len(self.order))

    @property
    def best_order(self) -> Order:
        return self.order

    @property
    def ranking(self) -> list[RankedOrder]:
        return self.race.ranking if self.race else []

    @property
    def models(self) -> dict[str, TrainedModel]:
        other = self.given if self.order != self.given_order else None
        return {name: one for name, one in (("model", self.model), ("given", other)) if one is not None}

    @property
    def seconds_by_part(self) -> dict[str, float]:
        return self.seconds

    @property
    def orders(self) -> list[Order]:
        return [*super().orders, *(one.order for one in self.search.proposals)]

    @property
    def all_seconds(self) -> dict[str, float]:
        """Of each part, and in total."""
        return {**self.seconds, "total": sum(self.seconds.values())}

    @property
    def keeps_given(self) -> bool:
        """Whether the verdict names no order of its own, so that the given one is the answer."""
        return self.verdict in _KEEPS_GIVEN

    @property
    def repaired(self) -> bool:
        """Whether the given order is the answer, changed where the constraints require it."""
        return self.keeps_given and bool(self.constraints) and self.order != self.given_order

    @property
    def holds_other_order(self) -> bool:
        """Whether the given order is the answer but `order` is the winner of the race: in earlier versions."""
        return self.keeps_given and not self.repaired and self.order != self.given_order

    @property
    def decided_by_race(self) -> bool:
        """Whether the order is the first of the race or tied with it, and is the answer."""
        if self.keeps_given or self.race is None or not self.race.ranking:
            return False
        first = self.race.ranking[0].order
        return first == self.order or first in self.race.tied_orders

    @property
    def shown_dependencies(self) -> list[TargetDependency]:
        """The dependencies as far as they mean anything: those of a model that learnt nothing are chance."""
        return [] if self.verdict == NOTHING_LEARNT else self.dependencies

    @property
    def read_off_model(self) -> bool:
        """Whether a trained model, and not mining alone, gave the dependencies."""
        return any(one.found_by == "model" for one in self.shown_dependencies)

    @property
    def not_shown_because(self) -> str | None:
        """Why training does not show that the order is better than the given one, if another order is the answer."""
        if self.race is None or self.keeps_given or self.order == self.given_order:
            return None
        return self.race.not_shown_because

    def to_dict(self) -> dict[str, object]:
        race, truth = self.race, self.truth
        ranking = [{**one.race_row(), **_about(one.order, truth)} for one in self.ranking]
        training = {
            "shown_by_training": race.shown_by_training,
            "not_shown_because": race.not_shown_because,
            "overfits": race.overfits,
            "loss_still_falling": race.loss_still_falling,
        } if race else {}  # fmt: skip
        tested = {
            **replace(self.model, evaluation_seconds=None).to_dict(),
            "given": self.given.to_dict() if self.given else None,
            "success_rate_given_order": self.given.evaluation.success_rate if self.given else None,
        } if self.model else {}  # fmt: skip
        return {
            "verdict": self.verdict,
            "advice": self.advice,
            "order": list(self.order),
            "tied_orders": [list(order) for order in race.tied_orders] if race else [],
            "dependencies": [one.to_dict() for one in self.dependencies],
            "strategy": self.strategy,
            "proposed": self.search.to_dict(truth),
            "race": ranking,
            "race_ended": race.ended if race else None,
            "unigram_loss": self.unigram_loss,
            **training,
            "given_order": list(self.given_order),
            "constraints": self.constraints.to_dict() if self.constraints else None,
            "seed": self.seed,
            "seconds": self.all_seconds,
            "run_dir": str(self.run_dir),
            **({} if self.given_failed is None else {"given_failed": self.given_failed}),
            **tested,
            **_about(self.order, truth),
            **self.names.to_dict(),
            "order_in_names": self.order_in_names,
        }

    @classmethod
    def _parse(cls, saved: Mapping[str, Any]) -> "DiscoveryOutcome":
        search = SearchOutcome.from_dict(saved["proposed"])
        raced = saved.get("race") or []
        race = RaceOutcome(
            ranking=[RankedOrder.from_race_row(row) for row in raced],
            ended=saved.get("race_ended"),
            tied_orders=[_order(order) for order in saved.get("tied_orders") or []],
            shown_by_training=saved.get("shown_by_training"),
            not_shown_because=saved.get("not_shown_because"),
            overfits=saved.get("overfits"),
            loss_still_falling=saved.get("loss_still_falling"),
        )
        given = saved.get("given")
        # Earlier versions have the verdict and the dependencies in the details of the search only.
        found = {**search.details, **saved}
        of_the_run = {"seconds": None, "loss_still_falling": None}  # not of its model
        return cls(
            strategy=saved["strategy"],
            order=_order(saved["order"]),
            verdict=found.get("verdict"),
            advice=found.get("advice"),
            dependencies=[TargetDependency.from_dict(row) for row in found.get("dependencies") or []],
            search=search,
            race=race if raced else None,
            unigram_loss=saved.get("unigram_loss"),
            constraints=Constraints.from_dict(saved.get("constraints") or {}),
            seed=saved["seed"],
            seconds={name: part for name, part in saved["seconds"].items() if name != "total"},
            run_dir=Path(saved["run_dir"]),
            model=TrainedModel.from_dict({**saved, **of_the_run}) if "success_rate" in saved else None,
            given=TrainedModel.from_dict(given) if given else None,
            given_failed=saved.get("given_failed"),
            truth=GroundTruth.from_rows([saved, *raced, *saved["proposed"]["proposals"]]),
            names=Names.from_dict(saved),
        )


@final
@dataclass(frozen=True, kw_only=True)
class TrainOutcome(RunOutcome):
    order: Order
    model: TrainedModel
    seed: int

    @property
    def best_order(self) -> Order:
        return self.order

    @property
    def models(self) -> dict[str, TrainedModel]:
        return {"model": self.model}

    @property
    def seconds_by_part(self) -> dict[str, float]:
        return {"train": self.model.seconds or 0.0, "evaluate": self.model.evaluation_seconds or 0.0}

    def to_dict(self) -> dict[str, object]:
        return {
            **self.model.to_dict(),
            "order": list(self.order),
            **_about(self.order, self.truth),
            "seed": self.seed,
            "run_dir": str(self.run_dir),
            **self.names.to_dict(),
            "order_in_names": self.order_in_names,
        }

    @classmethod
    def _parse(cls, saved: Mapping[str, Any]) -> "TrainOutcome":
        return cls(
            order=_order(saved["order"]),
            model=TrainedModel.from_dict(saved),
            seed=saved["seed"],
            run_dir=Path(saved["run_dir"]),
            truth=GroundTruth.from_rows([saved]),
            names=Names.from_dict(saved),
        )


@final
@dataclass(frozen=True, kw_only=True)
class RankOutcome(RunOutcome):
    ranked: list[RankedOrder]  # best first
    seconds: dict[str, float]
    curve_steps: list[int] | None = None  # mixture: steps at which the orders were scored
    seed: int

    @property
    def best_order(self) -> Order:
        return self.ranked[0].order

    @property
    def ranking(self) -> list[RankedOrder]:
        return self.ranked

    @property
    def seconds_by_part(self) -> dict[str, float]:
        return self.seconds

    def to_dict(self) -> dict[str, object]:
        raced = self.curve_steps is None
        return {
            "ranking": [
                {"order": list(one.order), **_about(one.order, self.truth), **one.ranking_row(rank)}
                for rank, one in enumerate(self.ranked, start=1)
            ],
            "seconds": self.seconds,
            **({"unigram_loss": self.unigram_loss} if raced else {"curve_steps": self.curve_steps}),
            "seed": self.seed,
            "run_dir": str(self.run_dir),
            **self.names.to_dict(),
        }

    @classmethod
    def _parse(cls, saved: Mapping[str, Any]) -> "RankOutcome":
        if not saved["ranking"]:
            raise ValueError("no order was ranked")
        return cls(
            ranked=[RankedOrder.from_ranking_row(row) for row in saved["ranking"]],
            seconds=saved["seconds"],
            curve_steps=saved.get("curve_steps"),
            unigram_loss=saved.get("unigram_loss"),
            seed=saved["seed"],
            run_dir=Path(saved["run_dir"]),
            truth=GroundTruth.from_rows(saved["ranking"]),
            names=Names.from_dict(saved),
        )


@final
@dataclass(frozen=True)
class AttentionEntry:
    """The attention of a model of one layer and one head that was trained in one order."""

    name: str  # of the order, as the user wrote it
    order: Order
    sparsity: float  # the paper's S: mean entropy of the rows of the map, in nats
    samples: int  # test samples over which the map is the mean
    map: list[list[float]] = field(repr=False)  # rows are the positions that read, columns those that are read
    success_rate: float
    loss: float

    def to_dict(self) -> dict[str, object]:
        return {**vars(self), "order": list(self.order)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "AttentionEntry":
        names = ("sparsity", "samples", "map", "success_rate", "loss")
        return cls(saved["name"], _order(saved["order"]), **{name: saved[name] for name in names})


@final
@dataclass(frozen=True, kw_only=True)
class AttentionOutcome(RunOutcome):
    attention: list[AttentionEntry]
    seconds: dict[str, float]  # of each order, by its name

    @property
    def seconds_by_part(self) -> dict[str, float]:
        return self.seconds

    @property
    def orders(self) -> list[Order]:
        return [one.order for one in self.attention]

    def to_dict(self) -> dict[str, object]:
        return {
            "attention": [{**one.to_dict(), **_about(one.order, self.truth)} for one in self.attention],
            "seconds": self.seconds,
            "run_dir": str(self.run_dir),
            **self.names.to_dict(),
        }

    @classmethod
    def _parse(cls, saved: Mapping[str, Any]) -> "AttentionOutcome":
        return cls(
            attention=[AttentionEntry.from_dict(row) for row in saved["attention"]],
            seconds=saved["seconds"],
            run_dir=Path(saved["run_dir"]),
            truth=GroundTruth.from_rows(saved["attention"]),
            names=Names.from_dict(saved),
        )


_OUTCOME_OF: dict[str, type[RunOutcome]] = {
    "discover": DiscoveryOutcome,
    "train": TrainOutcome,
    "rank": RankOutcome,
    "analyze attention": AttentionOutcome,
}


def read_outcome(verb: str, saved: Mapping[str, Any], run_dir: Path) -> RunOutcome | None:
    """The outcome of a run of this verb; None for other verbs. Raises InputError if it cannot be read."""
    kind = _OUTCOME_OF.get(verb)
    return None if kind is None else kind.from_dict(saved, run_dir)


def _order(indices: Sequence[int]) -> Order:
    return Order(tuple(indices))


def _proposals(rows: Sequence[dict[str, Any]]) -> list[Proposal]:
    return [Proposal.from_dict(row) for row in rows]


def _about(order: Order, truth: GroundTruth | None) -> dict[str, object]:
    return {} if truth is None else truth.about(order)
