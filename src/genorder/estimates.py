"""How long a discovery will take on this machine, and how much of a search fits into a time."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch

from genorder.discovery import Discovery, beside_proposals
from genorder.errors import InputError
from genorder.execution import using_threads
from genorder.fixed_order import seconds_per_step
from genorder.orders import Order
from genorder.profiling import seconds_per_candidate
from genorder.race import AT_ONCE, expected_steps
from genorder.search import MOST_PROPOSALS, Budget, OwnModelSearch, PlannedRun, Search, SearchProblem

# What racing saves of scoring, by whether the model is told what comes next: on the safe side of what
# `genorder bench scoring` gives, since a search also scores families that are smaller or differ less.
_RACING_SAVES = {True: 20.0, False: 4.0}
_USUAL_STEPS = 1_250  # of the winner's training; what is learnt slowly takes more


@final
@dataclass(frozen=True)
class Estimate:
    """In seconds. Rough: how much scoring and racing can skip is not known yet."""

    parts: dict[str, float]  # propose, race, train
    step: float  # of proposing, one training step
    steps: int  # of proposing, that are planned
    more_race: float = 0.0  # at most, if the search proposes as many orders as it may
    slow: float = 0.0  # more, if it is learnt slowly and all steps are taken

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def besides(self) -> float:
        """Of proposing, what takes as long whatever the steps."""
        return self.parts["propose"] - self.step * self.steps

    def more(self, runs: Sequence[PlannedRun]) -> float:
        """How much longer it may take at most, if the trainings of these runs are late to settle, many orders are
        proposed, and the winner is learnt slowly.
        """
        return self.more_race + self.slow + self.step * sum(run.more_steps for run in runs)


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
    steps = sum(run.steps for run in runs)
    parts = {"propose": step * steps + besides}
    race, training = discovery.config.race, discovery.config.final.training
    threads = torch.get_num_threads()
    at_once = discovery.workers or (min(AT_ONCE, threads) if discovery.device.type == "cpu" else 1)
    with using_threads(max(1, threads // AT_ONCE)):
        alone = seconds_per_step(final, final.new_model(), budget=1.0)
    per_step = alone / at_once
    most = training.steps
    usual = min(most, _USUAL_STEPS) if race.enabled else most
    beside = len(beside_proposals(problem, discovery.also))
    proposals, most_proposals = _proposals(discovery.search, problem, runs)

    def racing(steps: int, proposals: int) -> float:
        contestants = problem.count_orders(proposals + beside)
        return per_step * expected_steps(race, steps, contestants) if race.enabled else 0.0

    parts["race"] = racing(usual, proposals)
    if not discovery.explore_only:
        trainings = 2 if discovery.baseline else 1
        share = race.decay_share / (1 + race.decay_share) if race.enabled else 1.0
        parts["train"] = share * usual * alone * trainings / min(at_once, trainings)
    more_race = racing(usual, most_proposals) - parts["race"]
    return Estimate(parts, step, steps, more_race, slow=racing(most, proposals) - parts["race"])


def _proposals(search: Search, problem: SearchProblem, runs: Sequence[PlannedRun]) -> tuple[int, int]:
    """How many to expect, one of each run at least, and how many may come."""
    most = problem.budget.proposals or MOST_PROPOSALS
    if isinstance(search, OwnModelSearch):
        most = min(most, max(1, sum(run.candidates for run in runs)))
    return min(most, max(search.finalists, len(runs))), most


def budget_within(seconds: float, discovery: Discovery, problem: SearchProblem) -> Budget:
    """So many profiling runs, or steps, as fit into the seconds of exploring. Raises InputError if not even one does.

    A strategy that trains a model of its own takes fewer steps, but at least half of those of its first run; and no
    more orders are raced than are expected, if the time for more is wanted for proposing.
    """
    estimate = estimated(dataclasses.replace(discovery, explore_only=True), problem)
    runs = discovery.search.plan(problem)
    left = seconds - estimate.parts["race"]
    per_run = estimate.parts["propose"] / max(1, len(runs))
    own = isinstance(discovery.search, OwnModelSearch)
    least = estimate.besides + estimate.step * estimate.steps / max(1, len(runs)) / 2 if own else per_run
    if left < least:
        raise InputError(
            f"--budget {seconds:.0f} s is too small for one profiling run and the race after it, which take about "
            f"{per_run + estimate.parts['race']:.0f} s here; give more, or fewer steps by --set"
        )
    if not runs:  # there is one order only
        return discovery.budget
    if own:
        proposals = discovery.budget.proposals
        if left - estimate.more_race >= estimate.parts["propose"]:
            left -= estimate.more_race
        else:
            proposals, _ = _proposals(discovery.search, problem, runs)
        steps = (left - estimate.besides) / estimate.step
        return dataclasses.replace(discovery.budget, steps=max(1, int(steps)), proposals=proposals)
    affordable = int(left / per_run) if per_run else len(runs)
    return dataclasses.replace(discovery.budget, runs=min(affordable, discovery.budget.runs or affordable))
