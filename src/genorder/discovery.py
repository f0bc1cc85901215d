"""From a dataset to an order and a tested model: propose orders, race them, train the winner, test it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, final

import torch

from genorder.data import Splits, encode_for_exploring
from genorder.dependencies.graph import is_topological
from genorder.errors import GenorderError
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun, evaluate_saved_model, save_model
from genorder.models import is_saved
from genorder.orders import CandidateSource, Constraints, Order, deduplicated
from genorder.outcomes import DiscoveryOutcome, RaceOutcome, RankedOrder, SearchOutcome, TrainedModel
from genorder.presets import DiscoveryConfig
from genorder.race import Contestant, Race, RaceProgress, RaceResult
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


class Watcher(Protocol):
    """Receives the progress of a discovery. A stage that trains nothing, such as mining, reports no loss."""

    def progress(self, stage: str, progress: Progress) -> None: ...
    def stage(self, stage: Stage) -> None: ...
    def proposed(self, proposed: SearchResult) -> None: ...
    def race(self, progress: RaceProgress) -> None: ...


@final
@dataclass(frozen=True, eq=False)
class Discovery:
    """The data, the search, the configuration and the limits of a discovery."""

    splits: Splits
    source: CandidateSource
    config: DiscoveryConfig
    search: Search
    seed: int
    device: torch.device
    budget: Budget = field(default_factory=Budget)
    workers: int | None = None  # processes of the race; None: two
    explore_only: bool = False  # stop after the race
    baseline: bool = True  # train the given order too
    constraints: Constraints = field(default_factory=Constraints)  # that the order must meet
    also: tuple[Order, ...] = ()  # the user's own orders, which race too

    @cached_property
    def problem(self) -> SearchProblem:
        """What the search works on, encoded once. Raises InputError for constraints that no order meets."""
        return SearchProblem(
            *encode_for_exploring(self.splits, self.device),
            source=self.source,
            profiler=self.config.profiler,
            any_order=self.config.any_order,
            mining=self.config.mining,
            seed=derive_seed(self.seed, "search"),
            budget=self.budget,
            constraints=self.constraints,
        )

    def final_run(self, order: Order) -> FixedOrderRun:
        return FixedOrderRun(self.splits, order, self.config.final_run(), derive_seed(self.seed, "final"), self.device)


def discover(
    discovery: Discovery, directory: RunDirectory, *, watcher: Watcher | None = None, stop: StopRequest | None = None
) -> DiscoveryOutcome:
    """Propose orders, race them, train the winner and the given order to the end, and test both.

    Finished jobs are in the journal of the run directory: the same call continues an interrupted discovery.
    """
    problem, config, explore_only = discovery.problem, discovery.config, discovery.explore_only
    problem.begin(
        directory.journal,
        directory.checkpoints("search"),
        on_stage=watcher.stage if watcher else None,
        on_progress=watcher.progress if watcher else None,
        stop=stop,
    )
    proposed = _repaired(discovery.search.propose(problem), problem)
    if watcher:
        watcher.proposed(proposed)
    found, contestants = proposed.details, contestants_of(discovery, proposed)
    given = Order.forward(problem.length)
    kept = problem.constraints.repaired(given) if found.verdict in (NO_ORDER, NOTHING_LEARNT) else None
    with Race(
        problem.train,
        problem.validation,
        config.final,
        config.race,
        seed=derive_seed(discovery.seed, "race"),
        folder=directory.checkpoints("race"),
        journal=directory.journal,
        workers=discovery.workers,
        on_progress=watcher.race if watcher else None,
        stop=stop,
    ) as race:
        raced: RaceResult | None = None
        if config.race.enabled:
            baselines = [*([given] if discovery.baseline and not explore_only else []), *([kept] if kept else [])]
            raced = race.run(contestants, baselines=baselines, to_the_end=not explore_only)
        winner = kept or (_winner(raced, contestants) if raced else contestants[0])
        outcome = DiscoveryOutcome(
            strategy=discovery.search.name,
            order=winner,
            verdict=found.verdict,
            advice=found.advice,
            dependencies=found.dependencies,
            search=SearchOutcome.of(proposed),
            race=_race_outcome(raced, winner, given, kept=kept is not None) if raced else None,
            unigram_loss=raced.unigram.loss if raced else None,
            constraints=discovery.constraints,
            seed=discovery.seed,
            seconds={"propose": sum(sum(stage.seconds.values()) for stage in proposed.stages), "race": race.seconds},
            run_dir=directory.path,
        )
        if explore_only:
            return outcome
        before = race.seconds
        orders = list(dict.fromkeys([winner, *([given] if discovery.baseline else [])]))
        finalists = [raced.of(order) if raced else Contestant(order, [], [], None) for order in orders]
        models, given_failed = _train_to_the_end(discovery, directory, race, finalists, stop)
        seconds = {
            "train": race.seconds - before,
            "evaluate": sum(model.evaluation_seconds or 0.0 for model in models.values()),
        }
        return replace(
            outcome,
            model=models[winner],
            given=models.get(given),
            given_failed=given_failed,
            seconds=outcome.seconds | seconds,
        )


def contestants_of(discovery: Discovery, proposed: SearchResult) -> list[Order]:
    """The orders that race, and the user's own orders.

    The given order alone if no order is preferred, or nothing was learnt. The topological sorts among the proposals if
    mining alone has found the order: no other order can be better. Otherwise the proposals, the given order and its
    reverse.
    """
    problem, found = discovery.problem, proposed.details
    proposals = [one.order for one in proposed.proposals[: problem.budget.proposals or MOST_PROPOSALS]]
    if found.verdict in (NO_ORDER, NOTHING_LEARNT):
        return deduplicated([problem.constraints.repaired(Order.forward(problem.length)), *discovery.also])
    graph = found.dependencies
    if found.verdict == ORDER_FOUND and graph and not any(one.found_by == "model" for one in graph):
        sorts = [order for order in proposals if is_topological(order, graph)]
        return deduplicated([*(sorts or proposals), *discovery.also])
    return deduplicated([*proposals, *beside_proposals(problem, discovery.also)])


def beside_proposals(problem: SearchProblem, also: tuple[Order, ...]) -> list[Order]:
    """The orders that race beside the proposals: the user's own, and where allowed the given order and its reverse."""
    both = Order.forward(problem.length), Order.reverse(problem.length)
    return deduplicated([*also, *(order for order in both if problem.constraints.allows(order))])


def _repaired(proposed: SearchResult, problem: SearchProblem) -> SearchResult:
    """The proposals of a search that may ignore constraints, repaired to meet them; a repaired one has no loss.

    The searches of this library only propose orders that meet the constraints.
    """
    if not problem.constraints:
        return proposed
    unique: dict[Order, Proposal] = {}
    for proposal in proposed.proposals:
        order = problem.constraints.repaired(proposal.order)
        unique.setdefault(order, proposal if order == proposal.order else Proposal(order))
    return replace(proposed, proposals=list(unique.values()))


def _winner(raced: RaceResult, contestants: Sequence[Order]) -> Order:
    """The winner of the race; if no order beats the unigram baseline, the first contestant that was not dropped."""
    left = [order for order in contestants if raced.of(order).dropped_after is None and not raced.of(order).diverged]
    return raced.winner if raced.beats_baseline or not left else left[0]


def _train_to_the_end(
    discovery: Discovery,
    directory: RunDirectory,
    race: Race,
    finalists: Sequence[Contestant],
    stop: StopRequest | None,
) -> tuple[dict[Order, TrainedModel], str | None]:
    """The trained and tested models of the winner and the given order, and why the training of the latter failed.

    Raises GenorderError if the training of the winner failed.
    """
    models: dict[Order, TrainedModel] = {}
    given_failed: str | None = None
    for name, finalist, end in zip((_WINNER, _GIVEN), finalists, race.finish(finalists), strict=False):
        if end.losses is not None:
            curve = [*(loss for rung in finalist.curves for loss in rung), *end.curve]
            models[finalist.order] = _saved_and_tested(discovery, directory, race, finalist, name, curve, stop)
        elif name == _WINNER:
            raise GenorderError(end.failure)
        else:
            given_failed = end.failure
    race.forget()
    return models, given_failed


def _saved_and_tested(
    discovery: Discovery,
    directory: RunDirectory,
    race: Race,
    finalist: Contestant,
    name: str,
    curve: list[float],
    stop: StopRequest | None,
) -> TrainedModel:
    """Save the model in the folder `name` of the run directory, and test it."""
    splits, folder, order = discovery.splits, directory.path / name, finalist.order
    described = {"order": list(order), "name": name, **discovery.final_run(order).description, "steps": len(curve)}

    def save() -> dict[str, object]:
        digest = save_model(race.trained_model(finalist), splits, order, curve, folder)
        return {"weights_sha256": digest, "steps": len(curve)}

    def test() -> dict[str, object]:
        return evaluate_saved_model(folder, splits, order, discovery.device, stop)

    saved = directory.journal.run({"job": "save", **described}, f"save {name}", save)
    if not is_saved(folder):  # removed since
        save()
    tested = directory.journal.run({"job": "test", **described}, f"evaluate {name}", test)
    return TrainedModel.from_dict({**tested, **saved})


def _race_outcome(raced: RaceResult, winner: Order, given: Order, *, kept: bool) -> RaceOutcome:
    """`kept` says that the winner is the given order, repaired, by the verdict of the search and not by the race."""
    steps = f"{raced.best.rungs[-1].steps:,} steps"
    why = None
    if not raced.beats_baseline:
        why = f"no order beats the unigram baseline after {steps}: "
        if raced.overfits:
            why += "the models overfit. More samples would help, more steps would not"
        elif raced.ended == "steps spent":
            why += "the steps are spent. More may help (--set final.training.steps)"
        elif raced.ended == "decided":
            why += "the race ended there, since one order was left"
        else:
            why += "nothing was learnt. A larger model may help (--set final.model.layers, final.model.width)"
    elif winner == given or kept:
        why = "the answer is the given order"
    elif all(one.order != given for one in raced.contestants):
        why = "the given order was not trained"
    elif not raced.separates(winner, given):
        why = f"its loss after {steps} does not differ significantly from that of the given order"
    return RaceOutcome(
        ranking=[RankedOrder.of(one) for one in raced.contestants],
        ended=raced.ended,
        tied_orders=[] if kept else [order for order in raced.tied if order != winner],
        shown_by_training=why is None,
        not_shown_because=why,
        overfits=raced.overfits,
        loss_still_falling=raced.ended == "steps spent" and raced.still_improving,
    )
