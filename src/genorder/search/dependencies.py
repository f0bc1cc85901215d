"""The default strategy: mine functional dependencies, sort the graph, propose the sorts.

    mine -> the learned oracle for the open targets -> one graph with evidence -> topological sorts

If mining determines every target, nothing is trained to propose. Otherwise the determined targets come first, and the
open ones are a problem of their own for the learned oracle (any_order.py), with the determined targets as inputs. A
target that is determined only once open targets are known follows right after them.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch

from genorder.data import EncodedDataset
from genorder.dependencies.graph import Determinant, FunctionalDependencies, TargetDependency
from genorder.dependencies.mining import mine_dependencies
from genorder.orders import CandidateSource, Constraints, DependencyGraph, Order, best_cost, deduplicated, order_cost
from genorder.search.any_order import AnyOrder, AnyOrderDetails
from genorder.search.base import (
    MOST_PROPOSALS,
    NO_ORDER,
    NOT_SETTLED,
    NOTHING_LEARNT,
    ORDER_FOUND,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    SearchDetails,
    SearchProblem,
    SearchResult,
    Stage,
    Verdict,
)
from genorder.search.linearise import learnability, linearise
from genorder.seeding import derive_seed, numpy_generator
from genorder.training import ProgressReporter

_SORTS = 3  # topological sorts of the graph that are proposed
_MOST_MOVED = 64  # targets; longer sorts under constraints are not improved move by move
_TIMED_ROWS = 4_000  # of the matrix product by which the time of mining is estimated


@final
@dataclass(frozen=True, kw_only=True)
class DependenciesDetails(SearchDetails):
    noise: float  # share of the targets' tokens that are drawn at random
    oracle: AnyOrderDetails | None = None  # None: no model was trained

    def to_dict(self) -> dict[str, object]:
        measured = self.oracle.measurements() if self.oracle else {}
        return {**measured, **super().to_dict(), "noise": self.noise}


@final
@dataclass(frozen=True)
class Dependencies(OwnModelSearch):
    name: ClassVar[str] = "dependencies"
    finalists: ClassVar[int] = _SORTS

    restarts: int = 1  # of the learned oracle; see AnyOrder
    rounds: int = 3

    def __post_init__(self) -> None:
        self._oracle()  # checks the settings

    def _oracle(self) -> AnyOrder:
        return AnyOrder(self.restarts, self.rounds)

    def check(self, problem: SearchProblem) -> None:
        self._oracle().check(problem)

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        """Training happens only if mining leaves targets open, so all its steps are `more_steps`."""
        return [
            PlannedRun(f"if mining is not enough: {run.name}", run.candidates, 0, run.steps + run.more_steps)
            for run in self._oracle().plan(problem)
        ]

    def seconds_per_step(self, problem: SearchProblem) -> float:
        return self._oracle().seconds_per_step(problem)

    def seconds_besides(self, problem: SearchProblem) -> float:
        """Estimated from the time of the screen, which grows with the positions, the targets and the pairs."""
        if problem.only_order:
            return 0.0
        positions = problem.train.input_width + problem.length
        values_MP = torch.ones(_TIMED_ROWS, positions)

        def seconds() -> float:
            started = time.monotonic()
            _ = values_MP.T @ values_MP
            return time.monotonic() - started

        return 1.0 + 10 * problem.length * min(seconds() for _ in range(3))

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
        if learned:  # the determined targets stay first
            sorts = problem.allowed([Order.of(sorted(sort, key=mined.open.__contains__)) for sort in sorts])
            sorts.sort(key=lambda sort: -learnability(sort, parents))
        if problem.constraints and not mined.open and problem.length <= _MOST_MOVED:
            sorts = [_cheapest(sort, graph, problem.constraints) for sort in sorts]
        others = [Order.of(_assembled(mined, open_targets)[0]) for open_targets in more]
        most = min(MOST_PROPOSALS, problem.budget.candidates or MOST_PROPOSALS)
        proposals = [Proposal(order) for order in deduplicated([*sorts, *problem.allowed(others)])][:most]
        problem.finish_stage(Stage("dependencies", len(proposals), len(proposals), proposals, {"mine": seconds}))
        verdict, advice = judge(mined, chosen, learned)
        details = DependenciesDetails(
            verdict=verdict,
            advice=advice,
            dependencies=graph,
            noise=mined.noise,
            oracle=learned.details if learned else None,
        )
        return SearchResult(proposals, problem.stages, details)

    def _mine(self, problem: SearchProblem) -> tuple[FunctionalDependencies, float]:
        """The functional dependencies, from the journal if they were mined before; and the seconds that it took."""
        config, inputs = problem.mining, problem.train.input_width
        if not config.enabled:
            return FunctionalDependencies.none(inputs, problem.length), 0.0

        def work() -> Mapping[str, object]:
            report = ProgressReporter(problem.on_progress, problem.stop)
            return mine_dependencies(problem.train, config, seed=problem.seed, report=report).to_dict()

        saved = problem.timed("mine dependencies", {"mining": config.model_dump()}, work)
        return FunctionalDependencies.from_dict(saved, inputs, problem.length), saved["seconds"]

    def _learn(self, problem: SearchProblem, mined: FunctionalDependencies) -> "LearnedTargets":
        """The answer of the oracle for the open targets."""
        known, open_targets = list(mined.determinants), mined.open
        train, validation = (_open_part(split, known, open_targets) for split in (problem.train, problem.validation))
        given = Order.forward(len(open_targets))
        if len(open_targets) == 1 or len(validation) < 2:
            return LearnedTargets([Proposal(given)], known, open_targets)
        part = replace(
            problem,
            train=train,
            validation=validation,
            source=CandidateSource(given),
            constraints=Constraints() if known else problem.constraints,
            on_stage=None,
            stages=[],
        )
        proposals, details = self._oracle().learn(part)
        seconds = {name: sum(stage.seconds.get(name, 0.0) for stage in part.stages) for name in ("train", "construct")}
        problem.stages.append(Stage("learned oracle", len(proposals), len(proposals), [], seconds))
        return LearnedTargets(proposals, known, open_targets, details)


@final
@dataclass(frozen=True)
class LearnedTargets:
    """The oracle's answer for the open targets. Its inputs are those of the data, then the known targets."""

    proposals: list[Proposal]  # over the open targets, numbered by their place
    known: list[int]
    open: list[int]
    details: AnyOrderDetails | None = None  # None: a single target, or too few samples to learn from

    @property
    def verdict(self) -> Verdict | None:
        return self.details.verdict if self.details else None

    def orders(self) -> list[list[int]]:
        """Sequences of the open targets, best first; the given sequence if nothing was learned."""
        if self.verdict == NOTHING_LEARNT:
            return [self.open]
        return [[self.open[place] for place in proposal.order] for proposal in self.proposals]

    def dependency(self, target: int, inputs: int) -> TargetDependency:
        """What the oracle found for an open target, over the columns of the data."""
        rows = self.details.dependencies if self.details and self.verdict != NOTHING_LEARNT else []
        one = next((row for row in rows if self.open[row.target] == target), None)
        if one is None:
            return TargetDependency(target=target, found_by="none")
        return replace(
            one,
            target=target,
            inputs=tuple(position for position in one.inputs if position < inputs),
            targets=(
                *(self.known[position - inputs] for position in one.inputs if position >= inputs),
                *(self.open[place] for place in one.targets),
            ),
            loss_without={self._name(name, inputs): rise for name, rise in one.loss_without.items()},
        )

    def reads_known(self, inputs: int) -> bool:
        """Whether any open target is computed from a known target."""
        rows = self.details.dependencies if self.details else []
        return any(position >= inputs for row in rows for position in row.inputs)

    def _name(self, name: str, inputs: int) -> str:
        number = int(name[1:])
        if name[0] == "y":
            return f"y{self.open[number]}"
        return name if number < inputs else f"y{self.known[number - inputs]}"


def _open_part(split: EncodedDataset, known: Sequence[int], open_targets: Sequence[int]) -> EncodedDataset:
    """The samples with the known targets among the inputs, without samples too short to have an open target."""
    columns = torch.tensor(list(open_targets), device=split.targets_NL.device)
    lengths_N = (columns < split.target_lengths_N[:, None]).sum(dim=1)
    kept_N = lengths_N > 0
    inputs_NW = torch.cat([split.inputs_NW, split.targets_NL[:, list(known)]], dim=1)
    return EncodedDataset(
        inputs_NW[kept_N], split.targets_NL[:, columns][kept_N], lengths_N[kept_N], split.model_vocabulary
    )


def _assembled(mined: FunctionalDependencies, open_targets: Sequence[int]) -> tuple[list[int], dict[int, Determinant]]:
    """All targets in sequence, and the determinants that justify it.

    First the determined targets, then the open ones: those without any determinant before the others. After each open
    target come the targets that it determines together with the targets before it.
    """
    chosen = dict(mined.determinants)
    sequence = list(chosen)
    for target in sorted(open_targets, key=lambda target: bool(mined.found[target])):
        if target not in sequence:
            sequence.append(target)
        while determined := _next_determined(mined, sequence):
            chosen[determined.target] = determined
            sequence.append(determined.target)
    return sequence, chosen


def _next_determined(mined: FunctionalDependencies, sequence: Sequence[int]) -> Determinant | None:
    """The simplest determinant of a target outside the sequence by the inputs and the targets in the sequence."""
    known = {*range(mined.inputs), *(mined.inputs + target for target in sequence)}
    usable = [
        one
        for target in mined.open
        if target not in sequence
        for one in mined.found[target]
        if known.issuperset(one.positions)
    ]
    return min(usable, key=lambda one: one.complexity, default=None)


def _graph(
    mined: FunctionalDependencies,
    learned: LearnedTargets | None,
    sequence: Sequence[int],
    chosen: Mapping[int, Determinant],
) -> list[TargetDependency]:
    """What each target is computed from, restricted to targets that precede it in the sequence."""
    graph = [TargetDependency.of(one, mined.inputs) for one in chosen.values()]
    for target in mined.open if learned else []:
        if target not in chosen and learned:
            one = learned.dependency(target, mined.inputs)
            before = sequence[: sequence.index(target)]
            graph.append(replace(one, targets=tuple(parent for parent in one.targets if parent in before)))
    return sorted(graph, key=lambda one: one.target)


def _other_parents(
    mined: FunctionalDependencies, chosen: Mapping[int, Determinant], sequence: Sequence[int], target: int
) -> set[int]:
    """The targets in the target's other determinants that are as small and precede it in the sequence.

    A model that may read them too has more ways to learn the target.
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
    """The targets whose determinant is a proper part of this target's determinant.

    They may be steps on the way to it, such as the lower digits of a product, and are available whenever it is.
    """
    if target not in chosen:
        return set()
    own = set(chosen[target].positions)
    return {one.target for one in chosen.values() if one.positions and own > set(one.positions)}


def _cheapest(order: Order, graph: Sequence[TargetDependency], constraints: Constraints) -> Order:
    """The order after moves of single targets that lower its cost: constraints may forbid every topological sort."""
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


def judge(
    mined: FunctionalDependencies, chosen: Mapping[int, Determinant], learned: LearnedTargets | None
) -> tuple[Verdict, str]:
    """The verdict, and advice to the user in a sentence or two."""
    if not mined.open and not any(one.positions for one in chosen.values()):
        return NO_ORDER, "Every target is the same in all samples: any order will do."
    oracle = learned.details if learned else None
    if oracle and oracle.verdict and not mined.determinants:
        return oracle.verdict, oracle.advice or ""
    determined = f"Mining determines {len(chosen)} of {mined.targets} targets"
    if oracle and oracle.verdict in (NOTHING_LEARNT, NOT_SETTLED):
        learnt = "nothing" if oracle.verdict == NOTHING_LEARNT else "too little"
        return NOT_SETTLED, (
            f"{determined}, which come first. Of the others a model learnt {learnt}: their order is open. "
            "More samples may help."
        )
    if oracle and oracle.verdict == ORDER_FOUND:
        return ORDER_FOUND, f"{determined}; a model learnt the order of the others."
    needs_order = not all(_inputs_suffice(mined, one) for one in chosen.values())
    if learned and oracle is None:
        others = f"{determined}, which come first: the samples do not show what determines the rest."
        return ORDER_FOUND if needs_order else NOT_SETTLED, others
    if learned and (needs_order or learned.reads_known(mined.inputs)):
        return (
            ORDER_FOUND,
            f"{determined}, which come first; a model learnt that the order of the rest does not matter.",
        )
    if not needs_order:
        return NO_ORDER, "The inputs alone determine the targets, by as few tokens as with other targets among them."
    if mined.ambiguous:
        count = len(mined.ambiguous)
        return NOT_SETTLED, (
            f"{count} target{' has' if count == 1 else 's have'} several equally small determinants, which lead to "
            "different orders. The samples do not show which is better; training may."
        )
    noise = f", apart from noise in about {mined.noise:.0%} of the tokens" if mined.noise else ""
    return ORDER_FOUND, f"Each target is determined by tokens that come before it{noise}."


def _inputs_suffice(mined: FunctionalDependencies, one: Determinant) -> bool:
    """Whether the inputs alone determine the target, by as few positions as the chosen determinant."""
    return any(
        len(each.positions) <= len(one.positions) and max(each.positions, default=-1) < mined.inputs
        for each in (one, *mined.found[one.target])
    )
