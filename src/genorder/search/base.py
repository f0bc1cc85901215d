"""What a search is: a problem, a strategy, a result.

A strategy proposes orders; it does not decide. It may ask the problem for mixture profiling runs, which are counted
against the budget and kept in the journal, or train a model of its own. The race of finalists comes after it.
"""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, final

import torch

from genorder.data import EncodedDataset
from genorder.dependencies.mining import MiningConfig
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.orders import CandidateSource, Constraints, Order, deduplicated
from genorder.profiling import AnyOrderConfig, Profile, ProfilerConfig, profile_orders
from genorder.profiling.scoring import finite_or_none
from genorder.seeding import derive_seed
from genorder.store import Journal, fingerprint, fingerprint_arrays
from genorder.training import Progress

_KEPT_CANDIDATES = 20  # of a stage, in its summary; all of them are in the journal
MOST_PROPOSALS = 8


@final
@dataclass(frozen=True)
class Budget:
    """What a search may spend, and the race after it. A strategy that needs more stops early with what it has."""

    runs: int | None = None  # mixture profiling runs; None: as many as the strategy plans
    candidates: int | None = None  # per run; None: as many as the strategy plans
    steps: int | None = None  # of a strategy that trains a model of its own; None: as many as it needs
    proposals: int | None = None  # of the strategy, that are raced; None: at most MOST_PROPOSALS

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InputError(f"a budget of {self.runs} profiling runs is too small: a search needs at least one")
        if self.candidates is not None and self.candidates < 2:
            raise InputError(f"a budget of {self.candidates} candidates per run is too small: expected at least 2")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"a budget of {self.steps} training steps is too small: expected at least 1")
        if self.proposals is not None and self.proposals < 1:
            raise InputError(f"a budget of {self.proposals} proposals is too small: expected at least 1")

    def described(self) -> dict[str, int | None]:
        """For a run's configuration, in which `proposals` stands only where it is asked for."""
        return {name: value for name, value in vars(self).items() if value is not None or name != "proposals"}


@final
@dataclass(frozen=True)
class Proposal:
    order: Order
    loss: float | None = None  # as the strategy measured it; comparable within one result only
    error: float | None = None
    tied: bool = False  # with the first proposal, within the standard error

    def to_dict(self) -> dict[str, Any]:
        return {
            "order": list(self.order),
            "loss": self.loss,
            "standard_error": self.error,
            "tied_with_best": self.tied,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "Proposal":
        return cls(Order(tuple(saved["order"])), saved["loss"], saved["standard_error"], saved["tied_with_best"])


@final
@dataclass(frozen=True)
class Stage:
    """One step on a search's path, for the report."""

    name: str
    candidates: int
    kept: int  # survivors that the next stage starts from
    best: list[Proposal]  # the first of them, best first
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "candidates": self.candidates,
            "kept": self.kept,
            "best": [proposal.to_dict() for proposal in self.best],
            "seconds": self.seconds,
        }


@final
@dataclass(frozen=True)
class SearchResult:
    proposals: list[Proposal]  # best first, the ties of the best among them
    stages: list[Stage]
    details: dict[str, Any] = field(default_factory=dict)  # what only this strategy knows, as plain data

    def to_dict(self) -> dict[str, Any]:
        return {
            "proposals": [proposal.to_dict() for proposal in self.proposals],
            "stages": [stage.to_dict() for stage in self.stages],
            "details": self.details,
        }


@final
@dataclass(frozen=True)
class PlannedRun:
    """One training that a search will do, for an estimate of its time."""

    name: str
    candidates: int  # to be scored after it
    steps: int
    more_steps: int = 0  # at most, of a training that goes on until it has settled


@final
@dataclass(eq=False)
class SearchProblem:
    """The data, what may be spent, and the means of profiling. Holds the count of runs already spent.

    Raises InputError for constraints that no order of this data meets.
    """

    train: EncodedDataset
    validation: EncodedDataset
    source: CandidateSource
    profiler: ProfilerConfig
    seed: int
    journal: Journal
    folder: Path  # for checkpoints
    any_order: AnyOrderConfig = field(default_factory=AnyOrderConfig)
    mining: MiningConfig = field(default_factory=MiningConfig)
    budget: Budget = field(default_factory=Budget)
    constraints: Constraints = field(default_factory=Constraints)  # that every candidate meets
    on_stage: Callable[[Stage], None] | None = None
    on_progress: Callable[[str, Progress], None] | None = None
    stop: StopRequest | None = None
    stages: list[Stage] = field(default_factory=list)
    runs: int = 0

    def __post_init__(self) -> None:
        self.constraints.check(self.length)

    @property
    def length(self) -> int:
        return self.train.target_width

    @cached_property
    def only_order(self) -> Order | None:
        """The one that there is nothing to search for beside."""
        return next(self.constraints.all_orders(self.length)) if self.count_orders(2) == 1 else None

    def count_orders(self, most: int) -> int:
        """How many orders there are to search among, but `most` where there are more."""
        return self.constraints.count(self.length, most)

    def allowed(self, orders: Sequence[Order]) -> list[Order]:
        """Candidates as they may be profiled and proposed: repaired to meet the constraints, none twice."""
        return deduplicated(map(self.constraints.repaired, orders)) if self.constraints else list(orders)

    def may_profile(self) -> bool:
        return self.budget.runs is None or self.runs < self.budget.runs

    def spend_run(self, name: str) -> None:
        """Count one run. Raises InputError beyond the budget: ask `may_profile` first."""
        if not self.may_profile():
            raise InputError(f"the budget of {self.budget.runs} profiling runs is spent; {name} would be another")
        self.runs += 1

    @cached_property
    def _data(self) -> str:
        """What the training and validation samples are, for fingerprints."""
        splits = (self.train, self.validation)
        tensors = [t for split in splits for t in (split.inputs_NW, split.targets_NL, split.target_lengths_N)]
        return fingerprint_arrays(*(tensor.cpu().numpy() for tensor in tensors))

    def profile(self, name: str, orders: Sequence[Order], keep: int = 1) -> Profile:
        """One mixture profiling run of the orders, of what is allowed of them, from the journal if it was done before.

        `name` must be of this run alone: it seeds it. `keep` says how many survive, for the summary. Raises
        InputError beyond the budget.
        """
        self.spend_run(name)
        orders = self.allowed(orders)
        seed = derive_seed(self.seed, "profile", name)
        described = {
            "orders": fingerprint([list(order) for order in orders]),
            "profiler": self.profiler.model_dump(),
            "seed": seed,
        }
        folder = self.folder_of("profile", described)
        on_progress = self.on_progress

        def work() -> dict[str, Any]:
            profile = profile_orders(
                self.train,
                self.validation,
                orders,
                self.profiler,
                seed=seed,
                folder=folder,
                on_progress=(lambda progress: on_progress(name, progress)) if on_progress else None,
                stop=self.stop,
            )
            return profile.to_dict()

        profile = Profile.from_dict(self.journal.run(self._key("profile", described), f"profile {name}", work))
        shutil.rmtree(folder, ignore_errors=True)
        seconds = {"train": profile.train_seconds, "score": profile.score_seconds}
        best = proposals_of(profile, _KEPT_CANDIDATES)
        self.finish_stage(Stage(name, len(orders), min(keep, len(orders)), best, seconds))
        return profile

    def finish_stage(self, stage: Stage) -> None:
        self.stages.append(stage)
        if self.on_stage:
            self.on_stage(stage)

    def timed(self, name: str, described: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A job of the strategy's own, from the journal if it was done before; its seconds are added."""

        def measured() -> dict[str, Any]:
            started = time.monotonic()
            return {**work(), "seconds": time.monotonic() - started}

        return self.journal.run(self._key(name, described), name, measured)

    def folder_of(self, name: str, described: dict[str, Any]) -> Path:
        """For the checkpoints of a job of the strategy's own: of this job alone, like its entry in the journal."""
        return self.folder / f"{name.replace(' ', '-')}-{fingerprint(self._key(name, described))[:16]}"

    def _key(self, name: str, described: dict[str, Any]) -> dict[str, Any]:
        return {
            "job": name,
            "data": self._data,
            "seed": self.seed,
            "device": self.train.inputs_NW.device.type,
            "threads": torch.get_num_threads(),
            **({"constraints": self.constraints.to_dict()} if self.constraints else {}),
            **described,
        }


def proposals_of(profile: Profile, most: int = MOST_PROPOSALS) -> list[Proposal]:
    """The best candidates of a run, its ties first among equals."""
    return [
        Proposal(
            profile.orders[index],
            finite_or_none(profile.losses[index]),
            finite_or_none(profile.errors[index]),
            bool(profile.tied[index]),
        )
        for index in profile.ranking[:most].tolist()
    ]


class Search(ABC):
    """A strategy. Implementations are frozen values: their settings, and nothing that changes.

    Candidates that the problem profiles meet its constraints; what a strategy scores by itself goes through
    `problem.allowed` first.
    """

    name: ClassVar[str]
    finalists: ClassVar[int] = MOST_PROPOSALS  # proposals to expect, for estimates and budgets in time

    @abstractmethod
    def check(self, problem: SearchProblem) -> None:
        """Raise InputError, before anything long starts, if this strategy cannot work on the problem."""

    @abstractmethod
    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        """The trainings that `propose` will do, within the budget."""

    @abstractmethod
    def propose(self, problem: SearchProblem) -> SearchResult:
        """Search. Same problem and seed, same result, also after it was killed and started again."""


class OwnModelSearch(Search):
    """A strategy that trains a model of its own instead of calling the profiler."""

    @abstractmethod
    def seconds_per_step(self, problem: SearchProblem) -> float:
        """Of its model, measured on this machine: for estimates, and for budgets in time."""

    def seconds_besides(self, problem: SearchProblem) -> float:
        """About how long all else takes that `propose` does."""
        return 0.0
