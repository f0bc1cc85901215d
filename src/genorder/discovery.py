"""Propose orders, race them, train the winner to its end, test it: the way from a dataset to a model, on one page."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import torch

from genorder.data import Splits, encode, encode_for_exploring
from genorder.dependencies.graph import TargetDependency, is_topological
from genorder.errors import GenorderError
from genorder.evaluation import evaluate
from genorder.execution import StopRequest
from genorder.fixed_order import FixedOrderRun
from genorder.models import SavedModel, is_saved, load_model
from genorder.orders import CandidateSource, Constraints, Order, deduplicated
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
from genorder.store import RunDirectory, write_json_atomic
from genorder.training import Progress

_WINNER, _GIVEN = "model", "given"  # folders of the trained models


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
    workers: int | None = None  # processes of the race; None: two
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

    found = proposed.details
    contestants = contestants_of(discovery, proposed, problem)
    kept = problem.constraints.repaired(given) if found.get("verdict") in (NO_ORDER, NOTHING_LEARNT) else None
    with Race(
        problem.train,
        problem.validation,
        discovery.config.final,
        discovery.config.race,
        seed=derive_seed(discovery.seed, "race"),
        folder=directory.checkpoints("race"),
        journal=directory.journal,
        workers=discovery.workers,
        on_progress=watcher.race if watcher else None,
        stop=stop,
    ) as race:
        baseline = [given] if discovery.baseline and not discovery.explore_only else []
        raced: RaceResult | None = None
        if discovery.config.race.enabled:
            along = [*baseline, *([kept] if kept else [])]
            raced = race.run(contestants, along=along, to_the_end=not discovery.explore_only)
        winner = kept or (_decided(raced, contestants) if raced else contestants[0])
        result: dict[str, Any] = {
            "verdict": found.get("verdict"),
            "advice": found.get("advice"),
            "order": list(winner),
            "tied_orders": [list(order) for order in raced.tied if order != winner] if raced and not kept else [],
            "dependencies": found.get("dependencies", []),
            "strategy": discovery.search.name,
            "proposed": proposed.to_dict(),
            "race": [one.to_dict() for one in raced.contestants] if raced else [],
            "race_ended": raced.ended if raced else None,
            "unigram_loss": raced.unigram.loss if raced else None,
            **(_training_shows(raced, winner, given, kept=kept is not None) if raced else {}),
            "given_order": list(given),
            "constraints": discovery.constraints.to_dict() if discovery.constraints else None,
            "seed": discovery.seed,
            "seconds": {"propose": _search_seconds(proposed), "race": race.seconds},
            "run_dir": str(directory.path),
        }
        if not discovery.explore_only:
            orders = list(dict.fromkeys([winner, *([given] if discovery.baseline else [])]))
            trained = [raced.of(order) if raced else Contestant(order, [], [], None) for order in orders]
            _finish(discovery, directory, race, trained, result, stop)
    result["seconds"]["total"] = sum(result["seconds"].values())
    return result


def contestants_of(discovery: Discovery, proposed: SearchResult, problem: SearchProblem) -> list[Order]:
    """The orders that race, and the user's own beside them.

    Where no order is preferred, or nothing was learnt, the given one alone. Where counting has found the order, those
    of the proposals that are topological sorts: no other can be better. Else the given order and its reverse too.
    """
    found = proposed.details
    verdict = found.get("verdict")
    proposals = [proposal.order for proposal in proposed.proposals[: discovery.budget.proposals or MOST_PROPOSALS]]
    given = Order.forward(problem.length)
    if verdict in (NO_ORDER, NOTHING_LEARNT):
        return deduplicated([problem.constraints.repaired(given), *discovery.also])
    graph = [TargetDependency.from_dict(row) for row in found.get("dependencies", [])]
    if verdict == ORDER_FOUND and graph and not any(one.found_by == "model" for one in graph):
        sorts = [order for order in proposals if is_topological(order, graph)]
        return deduplicated([*(sorts or proposals), *discovery.also])
    return deduplicated([*proposals, *beside_proposals(problem, discovery.also)])


def _decided(raced: RaceResult, contestants: Sequence[Order]) -> Order:
    """The winner of the race; where nobody beats the unigram baseline, the first of those that are left."""
    left = [order for order in contestants if raced.of(order).left_after is None and not raced.of(order).diverged]
    return raced.winner if raced.beats_baseline or not left else left[0]


def _training_shows(raced: RaceResult, winner: Order, given: Order, *, kept: bool) -> dict[str, Any]:
    """Whether training has shown that the order is better than the given one, and if not, why."""
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
    return {
        "shown_by_training": why is None,
        "not_shown_because": why,
        "overfits": raced.overfits,
        "loss_still_falling": raced.ended == "steps spent" and raced.still_improving,
    }


def _finish(
    discovery: Discovery,
    directory: RunDirectory,
    race: Race,
    trained: Sequence[Contestant],
    result: dict[str, Any],
    stop: StopRequest | None,
) -> None:
    """Train the winner to its end, and the given order beside it; test both, and add that to the result."""
    before = race.seconds
    tested: dict[str, dict[str, Any]] = {}
    for name, one, end in zip((_WINNER, _GIVEN), trained, race.finish(trained), strict=False):
        if end["losses"] is None:
            if name == _WINNER:
                raise GenorderError(end["why"])
            result["given_failed"] = end["why"]  # which says something of the given order, and not of the winner
            continue
        curve = [*(loss for rung in one.curves for loss in rung), *end["curve"]]
        tested[name] = _tested(discovery, directory, race, one, name, curve, stop)
    race.forget()
    result |= {name: value for name, value in tested[_WINNER].items() if name != "evaluation_seconds"}
    given_result = tested.get(_GIVEN) or (tested[_WINNER] if result["order"] == result["given_order"] else None)
    result["given"] = given_result
    result["success_rate_given_order"] = given_result["success_rate"] if given_result else None
    result["seconds"] |= {
        "train": race.seconds - before,
        "evaluate": sum(one["evaluation_seconds"] for one in tested.values()),
    }


def _tested(
    discovery: Discovery,
    directory: RunDirectory,
    race: Race,
    contestant: Contestant,
    name: str,
    curve: list[float],
    stop: StopRequest | None,
) -> dict[str, Any]:
    """Save the trained model in the folder `name` of the run directory, and test it."""
    splits, folder, order = discovery.splits, directory.path / name, contestant.order
    described = {"order": list(order), "name": name, **discovery.final_run(order).description, "steps": len(curve)}

    def save() -> dict[str, Any]:
        model = race.trained_model(contestant)
        saved = SavedModel(model, splits.train.vocabulary, order, splits.input_width, splits.shortest_input)
        digest = saved.save(folder)
        write_json_atomic(folder / "training_losses.json", curve)
        return {"weights_sha256": digest, "steps": len(curve)}

    def test() -> dict[str, Any]:
        model = load_model(folder, discovery.device).model
        started = time.monotonic()
        split = encode(splits.test, input_width=splits.input_width, target_width=splits.target_width)
        evaluation = evaluate(model, split.to(discovery.device), order, stop=stop)
        examples = evaluation.examples_in(splits.test.vocabulary.tokens)
        return {**evaluation.to_dict(), "examples": examples, "evaluation_seconds": time.monotonic() - started}

    saved = directory.journal.run({"job": "save", **described}, f"save {name}", save)
    if not is_saved(folder):  # somebody has removed it since
        save()
    return {**directory.journal.run({"job": "test", **described}, f"evaluate {name}", test), **saved}


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
