"""The default strategy: mine what determines each target, sort that graph, propose the sorts.

    mine (counting) -> the learned oracle for what is left -> one graph with evidence -> topological sorts

Where counting determines every target, nothing is trained to propose. Otherwise the targets that it determines come
first, and the rest is a problem of its own for the learned oracle (any_order.py), in which the determined targets are
inputs. A target that counting determines only once others are known follows right after them.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, final

import torch

from genorder.data import EncodedDataset
from genorder.dependencies.graph import TargetDependency
from genorder.dependencies.mining import Mined, mine_dependencies
from genorder.dependencies.relations import Determinant
from genorder.orders import CandidateSource, Constraints, DependencyGraph, Order, deduplicated, order_cost
from genorder.orders.cost import best_cost
from genorder.search.any_order import AnyOrder
from genorder.search.base import (
    MOST_PROPOSALS,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    SearchProblem,
    SearchResult,
    Stage,
)
from genorder.search.diagnosis import NO_ORDER, NOT_SETTLED, NOTHING_LEARNT, ORDER_FOUND
from genorder.search.linearise import learnability, linearise
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import ProgressReporter

_SORTS = 3  # of a graph, that are proposed
_MOST_MOVED = 64  # targets: with more, what constraints cost is not looked at move by move
_TIMED_ROWS = 4_000  # of the screen's matrix product, by which the time of mining is estimated


@final
@dataclass(frozen=True)
class Dependencies(OwnModelSearch):
    name: ClassVar[str] = "dependencies"
    finalists: ClassVar[int] = _SORTS

    restarts: int = 1  # of the learned oracle
    rounds: int = 3

    def __post_init__(self) -> None:
        self._oracle()  # which checks the settings

    def _oracle(self) -> AnyOrder:
        return AnyOrder(self.restarts, self.rounds)

    def check(self, problem: SearchProblem) -> None:
        self._oracle().check(problem)

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        """Nothing is trained unless counting leaves something open."""
        return [
            PlannedRun(f"if counting is not enough: {run.name}", run.candidates, 0, run.steps + run.more_steps)
            for run in self._oracle().plan(problem)
        ]

    def seconds_per_step(self, problem: SearchProblem) -> float:
        return self._oracle().seconds_per_step(problem)

    def seconds_besides(self, problem: SearchProblem) -> float:
        """By the time that the screen takes, which grows with the positions, the targets and the pairs of samples."""
        if problem.only_order:
            return 0.0
        positions = problem.train.input_width + problem.length
        values_MP = torch.ones(_TIMED_ROWS, positions)

        def product() -> float:
            started = time.monotonic()
            _ = values_MP.T @ values_MP
            return time.monotonic() - started

        return 1.0 + 10 * problem.length * min(product() for _ in range(3))

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.only_order:
            return SearchResult([Proposal(problem.only_order)], [])
        mined, seconds = self._mine(problem)
        learned = self._learn(problem, mined) if mined.open else None
        first, *more = learned.orders() if learned else [[]]
        sequence, chosen = _assembled(mined, first)
        graph = _graph(mined, learned, sequence, chosen)
        rng = numpy_generator(derive_seed(problem.seed, "sorts"))
        parents = [{*one.targets, *_other_parents(mined, chosen, sequence, one.target)} for one in graph]
        report = ProgressReporter(problem.on_progress, problem.stop)
        after = [_nested(chosen, target) for target in range(problem.length)]
        sorts = linearise(
            parents, Order.of(sequence), problem.constraints, rng, most=_SORTS, after=after, report=report
        )
        if learned:  # what counting determines stays first
            sorts = problem.allowed([Order.of(sorted(sort, key=mined.open.__contains__)) for sort in sorts])
            sorts.sort(key=lambda sort: -learnability(sort, parents))
        if problem.constraints and not mined.open and problem.length <= _MOST_MOVED:
            sorts = [_cheapest(sort, graph, problem.constraints) for sort in sorts]
        others = [Order.of(_assembled(mined, left)[0]) for left in more]
        most = min(MOST_PROPOSALS, problem.budget.candidates or MOST_PROPOSALS)
        proposals = [Proposal(order) for order in deduplicated([*sorts, *problem.allowed(others)])][:most]
        name, advice = verdict(mined, chosen, learned)
        problem.finish_stage(Stage("dependencies", len(proposals), len(proposals), proposals, {"mine": seconds}))
        details = {
            **(learned.details if learned else {}),
            "verdict": name,
            "advice": advice,
            "dependencies": [one.to_dict() for one in graph],
            "noise": mined.noise,
        }
        return SearchResult(proposals, problem.stages, details)

    def _mine(self, problem: SearchProblem) -> tuple[Mined, float]:
        """From the journal if it was done before."""
        config = problem.mining
        if not config.enabled:
            nothing: dict[int, tuple[Determinant, ...]] = dict.fromkeys(range(problem.length), ())
            return Mined(problem.train.input_width, problem.length, {}, nothing, (), 0.0), 0.0

        def work() -> dict[str, Any]:
            report = ProgressReporter(problem.on_progress, problem.stop)
            mined = mine_dependencies(problem.train, config, seed=problem.seed, report=report)
            return {
                "known": [asdict(one) for one in mined.determinants.values()],
                "found": [asdict(one) for found in mined.found.values() for one in found],
                "ambiguous": list(mined.ambiguous),
                "noise": mined.noise,
            }

        saved = problem.timed("mine dependencies", {"mining": config.model_dump()}, work)
        known, every = ([_determinant(row) for row in saved[name]] for name in ("known", "found"))
        found = {target: tuple(one for one in every if one.target == target) for target in range(problem.length)}
        determinants = {one.target: one for one in known}
        width = problem.train.input_width
        mined = Mined(width, problem.length, determinants, found, tuple(saved["ambiguous"]), saved["noise"])
        return mined, saved["seconds"]

    def _learn(self, problem: SearchProblem, mined: Mined) -> "Learned":
        """What the oracle says of the targets that counting left open."""
        known, left = list(mined.determinants), mined.open
        train, validation = (_left_open(split, known, left) for split in (problem.train, problem.validation))
        if len(left) == 1 or len(validation) < 2:
            return Learned([Proposal(Order.forward(len(left)))], known, left)
        own = replace(
            problem,
            train=train,
            validation=validation,
            source=CandidateSource(Order.forward(len(left))),
            constraints=Constraints() if known else problem.constraints,
            on_stage=None,
            stages=[],
        )
        result = self._oracle().propose(own)
        seconds = {name: sum(stage.seconds.get(name, 0.0) for stage in own.stages) for name in ("train", "construct")}
        count = len(result.proposals)
        problem.stages.append(Stage("learned oracle", count, count, [], seconds))
        told = ("losses", "steps", "agreement")
        kept: dict[str, Any] = {name: value for name, value in result.details.items() if name in told}
        rows = [TargetDependency.from_dict(row) for row in result.details["dependencies"]]
        return Learned(
            result.proposals,
            known,
            left,
            result.details["verdict"],
            result.details["advice"],
            {one.target: one for one in rows},
            kept,
        )


@final
@dataclass(frozen=True)
class Learned:
    """What the oracle says; its inputs are those of the data and the `known` targets, its targets are `left`."""

    proposals: list[Proposal]
    known: list[int]
    left: list[int]
    verdict: str | None = None  # None: there was nothing to learn an order of
    advice: str = ""
    dependencies: dict[int, TargetDependency] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def orders(self) -> list[list[int]]:
        """Of the targets that are left, best first; as they were given if nothing was learnt of them."""
        if self.verdict == NOTHING_LEARNT:
            return [self.left]
        return [[self.left[place] for place in proposal.order] for proposal in self.proposals]

    def dependency(self, target: int, inputs: int) -> TargetDependency:
        """Of a target of the data, over the data's columns."""
        one = self.dependencies.get(self.left.index(target))
        if one is None or self.verdict == NOTHING_LEARNT:
            return TargetDependency(target=target, found_by="none")
        read_known = tuple(self.known[position - inputs] for position in one.inputs if position >= inputs)
        return TargetDependency(
            target=target,
            inputs=tuple(position for position in one.inputs if position < inputs),
            targets=(*read_known, *(self.left[parent] for parent in one.targets)),
            loss=one.loss,
            loss_without={self._name(name, inputs): rise for name, rise in one.loss_without.items()},
        )

    def reads_known(self, inputs: int) -> bool:
        """Is any of the targets that are left computed from a known one?"""
        return any(position >= inputs for one in self.dependencies.values() for position in one.inputs)

    def _name(self, name: str, inputs: int) -> str:
        number = int(name[1:])
        if name[0] == "y":
            return f"y{self.left[number]}"
        return name if number < inputs else f"y{self.known[number - inputs]}"


def _determinant(row: dict[str, Any]) -> Determinant:
    return Determinant(**{**row, "positions": tuple(row["positions"])})


def _left_open(split: EncodedDataset, known: Sequence[int], left: Sequence[int]) -> EncodedDataset:
    """The samples with the known targets among the inputs; those that are too short for any other are left out."""
    columns = torch.tensor(list(left), device=split.targets_NL.device)
    lengths_N = (columns < split.target_lengths_N[:, None]).sum(dim=1)
    kept_N = lengths_N > 0
    inputs_NW = torch.cat([split.inputs_NW, split.targets_NL[:, list(known)]], dim=1)
    return EncodedDataset(
        inputs_NW[kept_N], split.targets_NL[:, columns][kept_N], lengths_N[kept_N], split.model_vocabulary
    )


def _assembled(mined: Mined, left: Sequence[int]) -> tuple[list[int], dict[int, Determinant]]:
    """All targets in sequence: what is mined, then what is left in its order, each followed by the targets that it
    determines together with those before it. First those that no other tokens determine. And the determinants by which
    that is so.
    """
    chosen = dict(mined.determinants)
    sequence = list(chosen)
    for target in sorted(left, key=lambda target: bool(mined.found[target])):
        if target not in sequence:
            sequence.append(target)
        while determined := _determined(mined, sequence):
            chosen[determined.target] = determined
            sequence.append(determined.target)
    return sequence, chosen


def _graph(
    mined: Mined, learned: Learned | None, sequence: Sequence[int], chosen: Mapping[int, Determinant]
) -> list[TargetDependency]:
    """What each target is computed from, of the targets before it in the sequence."""
    graph = [TargetDependency.of(one, mined.inputs) for one in chosen.values()]
    for target in mined.open if learned else []:
        if target not in chosen and learned:
            one = learned.dependency(target, mined.inputs)
            before = sequence[: sequence.index(target)]
            graph.append(replace(one, targets=tuple(parent for parent in one.targets if parent in before)))
    return sorted(graph, key=lambda one: one.target)


def _other_parents(mined: Mined, chosen: Mapping[int, Determinant], sequence: Sequence[int], target: int) -> set[int]:
    """Targets that could take part in computing this one, by another set as small as the one that was chosen: a model
    that may read them, too, has more ways to learn it. They come before it in the sequence.
    """
    if target not in chosen:
        return set()
    before = {*range(mined.inputs), *(mined.inputs + earlier for earlier in sequence[: sequence.index(target)])}
    size = len(chosen[target].positions)
    sets = [one.positions for one in mined.found[target] if len(one.positions) <= size]
    return {
        p - mined.inputs for positions in sets if before.issuperset(positions) for p in positions if p >= mined.inputs
    }


def _nested(chosen: Mapping[int, Determinant], target: int) -> set[int]:
    """Targets that a part of this one's determinant determines. They may be steps on the way to it, such as the lower
    digits of a product, and can wait for nothing that it does not wait for.
    """
    if target not in chosen:
        return set()
    own = set(chosen[target].positions)
    return {one.target for one in chosen.values() if one.positions and own > set(one.positions)}


def _determined(mined: Mined, sequence: Sequence[int]) -> Determinant | None:
    """The simplest determinant of a target that is not in the sequence, by the inputs and the targets that are."""
    known = {*range(mined.inputs), *(mined.inputs + target for target in sequence)}
    usable = [
        one
        for target in mined.open
        if target not in sequence
        for one in mined.found[target]
        if known.issuperset(one.positions)
    ]
    return min(usable, key=lambda one: one.complexity, default=None)


def _cheapest(order: Order, graph: Sequence[TargetDependency], constraints: Constraints) -> Order:
    """Constraints may forbid every topological sort: move one target at a time for as long as that saves operations."""
    computed = DependencyGraph(len(order), tuple(one.targets for one in graph), tuple(one.inputs for one in graph))
    cost, least = order_cost(order, computed), best_cost(computed)
    improved = True
    while improved and cost > least:
        improved = False
        for step, target in enumerate(order):
            left = [other for other in order if other != target]
            for place in range(len(order)):
                moved = Order.of([*left[:place], target, *left[place:]])
                if place != step and constraints.allows(moved) and (moved_cost := order_cost(moved, computed)) < cost:
                    order, cost, improved = moved, moved_cost, True
                    break
            if improved:
                break
    return order


def verdict(mined: Mined, chosen: Mapping[int, Determinant], learned: Learned | None) -> tuple[str, str]:
    """In two or three words, and in a sentence for the user."""
    if not mined.open and not any(one.positions for one in chosen.values()):
        return NO_ORDER, "Every target is the same in all samples: any order will do."
    oracle = learned.verdict if learned else None
    if learned and oracle and not mined.determinants:
        return oracle, learned.advice
    counted = f"Counting determines {len(chosen)} of {mined.targets} targets"
    if oracle in (NOTHING_LEARNT, NOT_SETTLED):
        learnt = "nothing" if oracle == NOTHING_LEARNT else "too little"
        return NOT_SETTLED, (
            f"{counted}, which come first. Of the others a model learnt {learnt}: their order is open. "
            "More samples may help."
        )
    if oracle == ORDER_FOUND:
        return ORDER_FOUND, f"{counted}; a model learnt the order of the others."
    needs_order = not all(_inputs_suffice(mined, one) for one in chosen.values())
    if learned and oracle is None:
        others = f"{counted}, which come first: the samples do not show what determines the rest."
        return ORDER_FOUND if needs_order else NOT_SETTLED, others
    if learned and (needs_order or learned.reads_known(mined.inputs)):
        return ORDER_FOUND, f"{counted}, which come first; a model learnt that the order of the rest does not matter."
    if not needs_order:
        return NO_ORDER, "The inputs alone determine the targets, by as few tokens as with other targets among them."
    if mined.ambiguous:
        count = len(mined.ambiguous)
        return NOT_SETTLED, (
            f"{count} target{' has' if count == 1 else 's have'} several equally small determinants, which lead to "
            "different orders. The counts cannot tell which is better; training may."
        )
    noise = f", apart from noise in about {mined.noise:.0%} of the tokens" if mined.noise else ""
    return ORDER_FOUND, f"Each target is determined by tokens that come before it{noise}."


def _inputs_suffice(mined: Mined, one: Determinant) -> bool:
    """Do the inputs determine the target, by as few positions as the determinant that was chosen?"""
    return any(
        len(each.positions) <= len(one.positions) and max(each.positions, default=-1) < mined.inputs
        for each in (one, *mined.found[one.target])
    )
