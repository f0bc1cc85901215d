"""What a search is: a problem, a strategy, a result.

A strategy proposes orders; it does not decide. It may request mixture profiling runs from the problem, which count
against the budget and are kept in the journal, or train a model of its own. The race compares its proposals afterwards.
"""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, final

import torch

from genorder.data import EncodedDataset
from genorder.dependencies.graph import TargetDependency
from genorder.dependencies.mining import MiningConfig
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.models import fresh_gpt
from genorder.models.losses import mean_loss
from genorder.orders import CandidateSource, Constraints, Order, deduplicated
from genorder.profiling import AnyOrderConfig, Profile, ProfilerConfig, profile_orders, seconds_per_candidate
from genorder.profiling.scoring import finite_or_none
from genorder.seeding import derive_seed
from genorder.store import Journal, fingerprint, fingerprint_arrays
from genorder.training import BatchPlan, Progress, fit, marginal_seconds

MOST_PROPOSALS = 8
_KEPT_CANDIDATES = 20  # of a stage, in its summary; the journal holds all of them
# The factor by which racing shortens scoring, by whether the model knows which target comes next. It is lower than the
# factor that `genorder bench scoring` measures, since a search also scores families that are smaller or differ less.
_RACING_SAVES = {True: 20.0, False: 4.0}

Verdict = Literal["order found", "no order preferred", "nothing learnt", "not settled"]
ORDER_FOUND: Final = "order found"
NO_ORDER: Final = "no order preferred"
NOTHING_LEARNT: Final = "nothing learnt"
NOT_SETTLED: Final = "not settled"


@final
@dataclass(frozen=True)
class Budget:
    """The limits of a search and of the race after it. A strategy that needs more ends early with what it has found."""

    runs: int | None = None  # mixture profiling runs; None: as many as the strategy plans
    candidates: int | None = None  # per run; None: as many as the strategy plans
    steps: int | None = None  # training steps of a strategy with a model of its own; None: as many as it needs
    proposals: int | None = None  # proposals that are raced; None: at most MOST_PROPOSALS

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
        """The budget as part of a run's configuration, which lacks `proposals` unless they are limited."""
        return {name: value for name, value in vars(self).items() if value is not None or name != "proposals"}


@final
@dataclass(frozen=True)
class Proposal:
    order: Order
    loss: float | None = None  # measured by the strategy; comparable within one result only
    error: float | None = None  # standard error of the loss
    tied: bool = False  # with the first proposal, within the standard error

    def to_dict(self) -> dict[str, object]:
        return {
            "order": list(self.order),
            "loss": self.loss,
            "standard_error": self.error,
            "tied_with_best": self.tied,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Proposal":
        return cls(Order(tuple(saved["order"])), saved["loss"], saved["standard_error"], saved["tied_with_best"])


@final
@dataclass(frozen=True)
class Stage:
    """A summary of one part of a search, for the report."""

    name: str
    candidates: int
    kept: int  # candidates that the next stage starts from
    best: list[Proposal]  # the best candidates, best first
    seconds: dict[str, float]  # by activity: train, score, ...

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "candidates": self.candidates,
            "kept": self.kept,
            "best": [proposal.to_dict() for proposal in self.best],
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True)
class SearchDetails:
    """The findings of a strategy beside its proposals. A strategy with further findings extends this class."""

    verdict: Verdict | None = None  # None: the strategy gives none
    advice: str | None = None  # one or two sentences for the user
    dependencies: list[TargetDependency] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        if self.verdict is None:
            return {}
        rows = [dependency.to_dict() for dependency in self.dependencies]
        return {"verdict": self.verdict, "advice": self.advice, "dependencies": rows}


@final
@dataclass(frozen=True)
class SearchResult:
    proposals: list[Proposal]  # best first, the ties of the best among them
    stages: list[Stage]
    details: SearchDetails = field(default_factory=SearchDetails)

    def to_dict(self) -> dict[str, object]:
        return {
            "proposals": [proposal.to_dict() for proposal in self.proposals],
            "stages": [stage.to_dict() for stage in self.stages],
            "details": self.details.to_dict(),
        }


@final
@dataclass(frozen=True)
class PlannedRun:
    """One training that a search will do, for an estimate of its time."""

    name: str
    candidates: int  # candidates that are scored after it
    steps: int
    more_steps: int = 0  # the most that may be added, if the training continues until it has converged


@final
@dataclass(frozen=True, kw_only=True)
class SearchEstimate:
    """How long `propose` will take on this machine, in seconds, and how many orders it will propose."""

    runs: list[PlannedRun]
    step_seconds: float  # of one training step
    other_seconds: float  # of everything whose time does not depend on the steps
    proposals: int  # expected
    most_proposals: int
    limited_by: Literal["runs", "steps"] = "runs"  # the part of the budget that limits the time of this strategy

    @property
    def steps(self) -> int:
        return sum(run.steps for run in self.runs)

    @property
    def seconds(self) -> float:
        return self.step_seconds * self.steps + self.other_seconds

    @property
    def more_seconds(self) -> float:
        """The most that is added if trainings converge late."""
        return self.step_seconds * sum(run.more_steps for run in self.runs)


@final
@dataclass(eq=False)
class SearchProblem:
    """The data, the budget, and the means of profiling. Counts the profiling runs that were done.

    Raises InputError for constraints that no order of this data meets.
    """

    train: EncodedDataset
    validation: EncodedDataset
    source: CandidateSource
    profiler: ProfilerConfig
    seed: int
    journal: Journal = field(default_factory=Journal.in_memory)  # until `begin`: a plan keeps nothing
    folder: Path | None = None  # for checkpoints
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

    def begin(
        self,
        journal: Journal,
        folder: Path,
        *,
        on_stage: Callable[[Stage], None] | None = None,
        on_progress: Callable[[str, Progress], None] | None = None,
        stop: StopRequest | None = None,
    ) -> None:
        """Start the search of a problem that was planned: from now on finished jobs are kept in the journal."""
        self.journal, self.folder = journal, folder
        self.on_stage, self.on_progress, self.stop = on_stage, on_progress, stop
        self.stages, self.runs = [], 0

    @property
    def checkpoints(self) -> Path:
        """The folder for checkpoints, once the search has begun."""
        assert self.folder is not None
        return self.folder

    @property
    def length(self) -> int:
        return self.train.target_width

    @cached_property
    def only_order(self) -> Order | None:
        """The order, if the constraints allow only one."""
        return next(self.constraints.all_orders(self.length)) if self.count_orders(2) == 1 else None

    def count_orders(self, most: int) -> int:
        """The number of allowed orders, or `most` if there are more."""
        return self.constraints.count(self.length, most)

    def allowed(self, orders: Sequence[Order]) -> list[Order]:
        """The candidates, repaired to meet the constraints and without duplicates."""
        return deduplicated(map(self.constraints.repaired, orders)) if self.constraints else list(orders)

    def may_profile(self) -> bool:
        return self.budget.runs is None or self.runs < self.budget.runs

    def spend_run(self, name: str) -> None:
        """Count one run. Raises InputError beyond the budget; call `may_profile` first."""
        if not self.may_profile():
            raise InputError(f"the budget of {self.budget.runs} profiling runs is spent; {name} would be another")
        self.runs += 1

    @cached_property
    def _data(self) -> str:
        """A fingerprint of the training and validation samples."""
        splits = (self.train, self.validation)
        tensors = [t for split in splits for t in (split.inputs_NW, split.targets_NL, split.target_lengths_N)]
        return fingerprint_arrays(*(tensor.cpu().numpy() for tensor in tensors))

    def profile(self, name: str, orders: Sequence[Order], keep: int = 1) -> Profile:
        """One mixture profiling run of the orders, repaired to be allowed; from the journal if it was done before.

        `name` seeds the run, so each name may be used once. `keep` is the number of survivors, for the summary. Raises
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

        def work() -> Mapping[str, object]:
            return profile_orders(
                self.train,
                self.validation,
                orders,
                self.profiler,
                seed=seed,
                folder=folder,
                on_progress=self.progress_of(name),
                stop=self.stop,
            ).to_dict()

        profile = Profile.from_dict(self.journal.run(self._key("profile", described), f"profile {name}", work))
        shutil.rmtree(folder, ignore_errors=True)
        seconds = {"train": profile.train_seconds, "score": profile.score_seconds}
        best = proposals_of(profile, _KEPT_CANDIDATES)
        self.finish_stage(Stage(name, len(orders), min(keep, len(orders)), best, seconds))
        return profile

    def progress_of(self, name: str) -> Callable[[Progress], None] | None:
        """The callback for the progress of one training, which is reported under `name`."""
        on_progress = self.on_progress
        return (lambda progress: on_progress(name, progress)) if on_progress else None

    def finish_stage(self, stage: Stage) -> None:
        self.stages.append(stage)
        if self.on_stage:
            self.on_stage(stage)

    def timed(
        self, name: str, described: Mapping[str, object], work: Callable[[], Mapping[str, object]]
    ) -> dict[str, Any]:
        """A job of the strategy, from the journal if it was done before. Adds the seconds that it took."""

        def measured() -> Mapping[str, object]:
            started = time.monotonic()
            return {**work(), "seconds": time.monotonic() - started}

        return self.journal.run(self._key(name, described), name, measured)

    def folder_of(self, name: str, described: Mapping[str, object]) -> Path:
        """The folder for the checkpoints of a job of the strategy; each job has its own."""
        return self.checkpoints / f"{name.replace(' ', '-')}-{fingerprint(self._key(name, described))[:16]}"

    def _key(self, name: str, described: Mapping[str, object]) -> Mapping[str, object]:
        return {
            "job": name,
            "data": self._data,
            "seed": self.seed,
            "device": self.train.inputs_NW.device.type,
            "threads": torch.get_num_threads(),
            **({"constraints": self.constraints.to_dict()} if self.constraints else {}),
            **described,
        }


def _profiling_seconds(problem: SearchProblem) -> tuple[float, float]:
    """The seconds of one training step, and of scoring one candidate, in a profiling run; both are measured."""
    train, profiler = problem.train, problem.profiler
    seed = derive_seed(problem.seed, "estimate")
    model = fresh_gpt(profiler.model, train, seed)
    forward_1L = torch.arange(problem.length, device=train.inputs_NW.device)[None]
    batch_at = BatchPlan(train, forward_1L, profiler.training.batch_size, seed)

    def seconds(steps: int) -> float:
        training = profiler.training.model_copy(update={"steps": steps})
        return fit(model, lambda step: mean_loss(model, batch_at(step)), training, seed=seed).seconds

    step = marginal_seconds(seconds, budget=1.0)
    candidate = seconds_per_candidate(model, problem.validation)
    return step, candidate if profiler.exact else candidate / _RACING_SAVES[profiler.order_conditioned]


def proposals_of(profile: Profile, most: int = MOST_PROPOSALS) -> list[Proposal]:
    """The best candidates of a profiling run, best first."""
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
    """A strategy. Implementations are frozen dataclasses whose fields are the settings.

    The problem repairs candidates that it profiles to meet the constraints. Candidates that a strategy scores itself
    must go through `problem.allowed` first.
    """

    name: ClassVar[str]
    finalists: ClassVar[int] = MOST_PROPOSALS  # expected number of proposals, for estimates and budgets in time

    @abstractmethod
    def check(self, problem: SearchProblem) -> None:
        """Raise InputError, before anything long starts, if this strategy cannot work on the problem."""

    @abstractmethod
    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        """The trainings that `propose` will do, within the budget."""

    @abstractmethod
    def propose(self, problem: SearchProblem) -> SearchResult:
        """Search. Same problem and seed, same result, also after it was killed and started again."""

    def estimate(self, problem: SearchProblem) -> SearchEstimate:
        """How long `propose` will take, from a measurement of about a second. Here: for profiling runs only."""
        runs = self.plan(problem)
        step_seconds, candidate_seconds = _profiling_seconds(problem)
        most = problem.budget.proposals or MOST_PROPOSALS
        return SearchEstimate(
            runs=runs,
            step_seconds=step_seconds,
            other_seconds=candidate_seconds * sum(run.candidates for run in runs),
            proposals=min(most, max(self.finalists, len(runs))),
            most_proposals=most,
        )


class OwnModelSearch(Search):
    """A strategy that trains a model of its own instead of calling the profiler."""

    @abstractmethod
    def seconds_per_step(self, problem: SearchProblem) -> float:
        """The time of one training step of the model, measured on this machine."""

    def seconds_besides(self, problem: SearchProblem) -> float:
        """The approximate time of everything in `propose` that is not training."""
        return 0.0

    def estimate(self, problem: SearchProblem) -> SearchEstimate:
        runs = self.plan(problem)
        most = min(problem.budget.proposals or MOST_PROPOSALS, max(1, sum(run.candidates for run in runs)))
        return SearchEstimate(
            runs=runs,
            step_seconds=self.seconds_per_step(problem),
            other_seconds=self.seconds_besides(problem),
            proposals=min(most, max(self.finalists, len(runs))),
            most_proposals=most,
            limited_by="steps",
        )
