"""Propose orders, race them, train the winner, evaluate it: the way from a dataset to a model, on one page."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, final

import torch

from genorder.data import Splits, encode_for_exploring
from genorder.dependencies.graph import TargetDependency, is_topological
from genorder.errors import GenorderError, InputError, Interrupted
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, train_and_evaluate
from genorder.orders import CandidateSource, Constraints, Order, deduplicated
from genorder.presets import DiscoveryConfig
from genorder.profiling import RaceProgress, RaceResult, race
from genorder.search import (
    MOST_PROPOSALS,
    NO_ORDER,
    NOTHING_LEARNT,
    ORDER_FOUND,
    Budget,
    Proposal,
    Search,
    SearchProblem,
    SearchResult,
    Stage,
)
from genorder.seeding import derive_seed
from genorder.store import RunDirectory
from genorder.training import Progress

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

    proposals = [proposal.order for proposal in proposed.proposals[: discovery.budget.proposals or MOST_PROPOSALS]]
    finalists = deduplicated([*proposals, *beside_proposals(problem, discovery.also)])
    raced = race(
        problem.train,
        problem.validation,
        finalists,
        discovery.config.race,
        seed=derive_seed(discovery.seed, "race"),
        folder=directory.checkpoints("race"),
        journal=directory.journal,
        workers=discovery.workers,
        on_job=watcher.race if watcher else None,
        stop=stop,
    )
    found = proposed.details
    winner, tied = answer(found, raced, finalists, problem.constraints.repaired(given), discovery.config.race.close)
    result: dict[str, Any] = {
        "verdict": found.get("verdict"),
        "advice": found.get("advice"),
        "order": list(winner),
        "tied_orders": [list(order) for order in tied],
        "dependencies": found.get("dependencies", []),
        "strategy": discovery.search.name,
        "proposed": proposed.to_dict(),
        "race": raced.to_dict(),
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


def answer(
    found: Mapping[str, Any], raced: RaceResult, finalists: list[Order], given: Order, close: float
) -> tuple[Order, list[Order]]:
    """The order, and those that the race could not separate from it.

    Where no order is preferred, or nothing was learnt, the given one. Where counting has found the order, the race only
    chooses among its topological sorts: what takes long to learn may not have been learnt when a race ends.
    """
    verdict = found.get("verdict")
    if verdict in (NO_ORDER, NOTHING_LEARNT):
        return given, []
    graph = [TargetDependency.from_dict(row) for row in found.get("dependencies", [])]
    if verdict == ORDER_FOUND and graph and not any(one.found_by == "model" for one in graph):
        sorts = [one for one in raced.contestants if is_topological(one.order, graph) and not one.diverged]
        raced = RaceResult(sorts or raced.contestants)
    winner, *tied = undecided(raced, finalists, close)
    return winner, tied


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
        and (contestant.tied_with_best or (contestant.losses[-1] <= best * (1 + close) and not first.learnt))
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
        mining=discovery.config.mining,
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


def beside_proposals(problem: SearchProblem, also: tuple[Order, ...]) -> list[Order]:
    """What is raced too: the user's own, the given order and its reverse, the last two where they are allowed."""
    both = Order.forward(problem.length), Order.reverse(problem.length)
    return deduplicated([*also, *(order for order in both if problem.constraints.allows(order))])


def _search_seconds(proposed: SearchResult) -> float:
    return sum(sum(stage.seconds.values()) for stage in proposed.stages)
