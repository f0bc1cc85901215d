"""Propose orders, race them, train the winner, evaluate it: the way from a dataset to a model, on one page."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, final

import torch

from genorder.data import Splits, encode_for_exploring
from genorder.errors import GenorderError, InputError, Interrupted
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, seconds_per_step, train_and_evaluate
from genorder.orders import CandidateSource, Constraints, Order, deduplicated
from genorder.presets import DiscoveryConfig
from genorder.profiling import RaceProgress, RaceResult, far_below, race, race_steps, seconds_per_candidate
from genorder.search import (
    MOST_PROPOSALS,
    Budget,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    Search,
    SearchProblem,
    SearchResult,
    Stage,
)
from genorder.seeding import derive_seed
from genorder.store import RunDirectory
from genorder.training import Progress

# What racing saves of scoring, by whether the model is told what comes next: on the safe side of what
# `genorder bench scoring` gives, since a search also scores families that are smaller or differ less.
_RACING_SAVES = {True: 20.0, False: 4.0}
_WINNER, _GIVEN = "model", "given"  # folders of the trained models
TRAININGS = {_WINNER: "training the winner", _GIVEN: "training the given order"}  # what watchers are told of them


class Watcher(Protocol):
    """Told how far a discovery is. What trains nothing, such as counting, has progress without a loss."""

    def progress(self, stage: str, progress: Progress) -> None: ...
    def stage(self, stage: Stage) -> None: ...
    def proposed(self, proposed: SearchResult) -> None: ...
    def race(self, progress: RaceProgress) -> None: ...


@final
@dataclass(frozen=True, eq=False)
class Discovery:
    splits: Splits
    source: CandidateSource
    config: DiscoveryConfig
    search: Search
    seed: int
    device: torch.device
    budget: Budget = field(default_factory=Budget)
    workers: int | None = None  # processes of the race; None: one per thread
    explore_only: bool = False
    baseline: bool = True  # train the given order too
    constraints: Constraints = field(default_factory=Constraints)  # that the order must meet
    also: tuple[Order, ...] = ()  # orders of the user's own that are raced too

    def final_run(self, order: Order) -> FixedOrderRun:
        return FixedOrderRun(self.splits, order, self.config.final_run(), derive_seed(self.seed, "final"), self.device)


def discover(
    discovery: Discovery, directory: RunDirectory, *, watcher: Watcher | None = None, stop: StopRequest | None = None
) -> dict[str, Any]:
    """Everything that is finished is in the run directory's journal; the same call continues an interrupted one."""
    problem = new_problem(discovery, directory, watcher, stop)
    given = Order.forward(problem.length)
    proposed = _allowed(discovery.search.propose(problem), problem)
    if watcher:
        watcher.proposed(proposed)

    shown = {proposal.order: proposal.loss for proposal in proposed.proposals if proposal.loss is not None}
    finalists = deduplicated([*_finalists(proposed), *_beside_proposals(problem, discovery.also)])
    raced = race(
        problem.train,
        problem.validation,
        finalists,
        discovery.config.race,
        seed=derive_seed(discovery.seed, "race"),
        folder=directory.checkpoints("race"),
        journal=directory.journal,
        workers=discovery.workers,
        shown=shown,
        on_job=watcher.race if watcher else None,
        stop=stop,
    )
    standing = surpassing(raced, shown)
    winner, *tied = undecided(standing or raced, finalists, discovery.config.race.close)
    result: dict[str, Any] = {
        "order": list(winner),
        "tied_orders": [list(order) for order in tied],
        "strategy": discovery.search.name,
        "proposed": proposed.to_dict(),
        "race": raced.to_dict(),
        "race_overruled": standing is not None,
        "given_order": list(given),
        "constraints": discovery.constraints.to_dict() if discovery.constraints else None,
        "seed": discovery.seed,
        "seconds": {"propose": _search_seconds(proposed), "race": raced.seconds},
        "run_dir": str(directory.path),
    }
    if not discovery.explore_only:
        _train(discovery, directory, winner, given, result, watcher, stop)
    result["seconds"]["total"] = sum(result["seconds"].values())
    return result


def surpassing(raced: RaceResult, shown: Mapping[Order, float]) -> RaceResult | None:
    """The race among those whose loss, as the search's own model has `shown`, is far below that of the race's best.

    None if there are none, or the best is among them. What takes long to learn may not have been learnt when a race
    ends, and then its best is the best of those that never will be.
    """
    best = raced.contestants[0]
    standing = [
        one for one in raced.contestants if far_below(shown.get(one.order), best.losses[-1]) and not one.diverged
    ]
    return RaceResult(standing) if standing and best not in standing else None


def undecided(raced: RaceResult, finalists: list[Order], close: float) -> list[Order]:
    """The orders that the race could not separate from its best, in the sequence of the proposals: they decide then.

    Short trainings on which nothing was learnt yet differ by chance, even if significantly.
    """
    first = raced.contestants[0]
    best = first.losses[-1]
    within = {
        contestant.order
        for contestant in raced.contestants
        if contestant.left_after == first.left_after
        and (contestant.tied_with_best or contestant.losses[-1] <= best * (1 + close))
        and not contestant.diverged
    }
    return [order for order in finalists if order in within] or [raced.winner]


def _train(
    discovery: Discovery,
    directory: RunDirectory,
    winner: Order,
    given: Order,
    result: dict[str, Any],
    watcher: Watcher | None,
    stop: StopRequest | None,
) -> None:
    """Train the winner, and the given order beside it; add their evaluations to the result."""
    runs = [(winner, _WINNER)]
    if discovery.baseline and given != winner:
        runs.append((given, _GIVEN))
    trained = {}
    for order, name in runs:
        try:
            trained[name] = train_and_evaluate(
                discovery.final_run(order),
                directory,
                name=name,
                on_progress=partial(watcher.progress, TRAININGS[name]) if watcher else None,
                stop=stop,
            )
        except (InputError, Interrupted):
            raise
        except GenorderError as error:  # such as a loss that is not a number
            if name == _WINNER:
                raise
            result["given_failed"] = str(error)  # which says something of the given order, and not of the winner
    result |= {name: value for name, value in trained[_WINNER].items() if name != "seconds"}
    given_result = trained.get(_GIVEN) or (trained[_WINNER] if given == winner else None)
    result["given"] = given_result
    result["success_rate_given_order"] = given_result["success_rate"] if given_result else None
    result["seconds"] |= {
        "train": sum(one["seconds"] for one in trained.values()),
        "evaluate": sum(one["evaluation_seconds"] for one in trained.values()),
    }


def new_problem(
    discovery: Discovery,
    directory: RunDirectory,
    watcher: Watcher | None = None,
    stop: StopRequest | None = None,
) -> SearchProblem:
    return SearchProblem(
        *encode_for_exploring(discovery.splits, discovery.device),
        source=discovery.source,
        profiler=discovery.config.profiler,
        any_order=discovery.config.any_order,
        seed=derive_seed(discovery.seed, "search"),
        journal=directory.journal,
        folder=directory.checkpoints("search"),
        budget=discovery.budget,
        constraints=discovery.constraints,
        on_stage=watcher.stage if watcher else None,
        on_progress=watcher.progress if watcher else None,
        stop=stop,
    )


def _allowed(proposed: SearchResult, problem: SearchProblem) -> SearchResult:
    """The result of a search that may know nothing of constraints: what it proposes is repaired, and has no loss then.

    Without effect on the searches of this library, and where there are no constraints.
    """
    if not problem.constraints:
        return proposed
    unique: dict[Order, Proposal] = {}
    for proposal in proposed.proposals:
        order = problem.constraints.repaired(proposal.order)
        unique.setdefault(order, proposal if order == proposal.order else Proposal(order))
    return dataclasses.replace(proposed, proposals=list(unique.values()))


def _beside_proposals(problem: SearchProblem, also: tuple[Order, ...]) -> list[Order]:
    """What is raced too: the user's own, the given order and its reverse, the last two where they are allowed."""
    both = Order.forward(problem.length), Order.reverse(problem.length)
    return deduplicated([*also, *(order for order in both if problem.constraints.allows(order))])


def _finalists(proposed: SearchResult) -> list[Order]:
    return [proposal.order for proposal in proposed.proposals[:MOST_PROPOSALS]]


def _search_seconds(proposed: SearchResult) -> float:
    return sum(sum(stage.seconds.values()) for stage in proposed.stages)


@final
@dataclass(frozen=True)
class Estimate:
    """In seconds. Rough: how much scoring and racing can skip is not known yet."""

    parts: dict[str, float]  # propose, race, train
    training: float  # of proposing, what grows with the steps that are trained

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def besides(self) -> float:
        """Of proposing, what takes as long whatever the steps."""
        return self.parts["propose"] - self.training

    def unsettled(self, runs: Sequence[PlannedRun]) -> float:
        """How much longer these runs may take at most, if their trainings are late to settle."""
        steps = sum(run.steps for run in runs)
        return self.training * sum(run.more_steps for run in runs) / steps if steps else 0.0


def estimated(discovery: Discovery, problem: SearchProblem) -> Estimate:
    """From real steps on this machine."""
    final = discovery.final_run(Order.forward(problem.length))
    runs = discovery.search.plan(problem)
    besides = 0.0
    if isinstance(discovery.search, OwnModelSearch):
        step = discovery.search.seconds_per_step(problem)
        besides = discovery.search.seconds_besides(problem)
    else:
        explorer = dataclasses.replace(final, config=discovery.config.profiling_run())
        model = explorer.new_model()
        step = seconds_per_step(explorer, model, budget=1.0)
        scoring = seconds_per_candidate(model, problem.validation)
        if not discovery.config.profiler.exact:
            scoring /= _RACING_SAVES[discovery.config.profiler.told]
        besides = scoring * sum(run.candidates for run in runs)
    training = step * sum(run.steps for run in runs)
    parts = {"propose": training + besides}
    racer = dataclasses.replace(final, config=discovery.config.race_run())
    race_step = seconds_per_step(racer, racer.new_model(), budget=1.0)
    finalists = problem.count_orders(discovery.search.finalists + len(_beside_proposals(problem, discovery.also)))
    parts["race"] = race_step * race_steps(discovery.config.race, finalists)
    if not discovery.explore_only:
        trainings = 2 if discovery.baseline else 1
        steps = trainings * final.config.training.steps
        parts["train"] = steps * seconds_per_step(final, final.new_model(), budget=1.0)
    return Estimate(parts, training)


def budget_within(seconds: float, discovery: Discovery, problem: SearchProblem) -> Budget:
    """So many profiling runs, or steps, as fit into the seconds of exploring. Raises InputError if not even one does.

    A strategy that trains a model of its own takes fewer steps, but at least half of those of its first run.
    """
    estimate = estimated(dataclasses.replace(discovery, explore_only=True), problem)
    runs = discovery.search.plan(problem)
    left = seconds - estimate.parts["race"]
    per_run = estimate.parts["propose"] / max(1, len(runs))
    own = isinstance(discovery.search, OwnModelSearch)
    least = estimate.besides + estimate.training / max(1, len(runs)) / 2 if own else per_run
    if left < least:
        raise InputError(
            f"--budget {seconds:.0f} s is too small for one profiling run and the race after it, which take about "
            f"{per_run + estimate.parts['race']:.0f} s here; give more, or fewer steps by --set"
        )
    if not runs:  # there is one order only
        return discovery.budget
    if own:
        steps = sum(run.steps for run in runs) * (left - estimate.besides) / estimate.training
        return dataclasses.replace(discovery.budget, steps=max(1, int(steps)))
    affordable = int(left / per_run) if per_run else len(runs)
    return dataclasses.replace(discovery.budget, runs=min(affordable, discovery.budget.runs or affordable))
