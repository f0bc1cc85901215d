"""How long a discovery will take on this machine, and how much of a search fits into a given time."""

import dataclasses
from dataclasses import dataclass
from typing import final

import torch

from genorder.discovery import Discovery, beside_proposals
from genorder.errors import InputError
from genorder.execution import using_threads
from genorder.fixed_order import seconds_per_step
from genorder.orders import Order
from genorder.race import AT_ONCE, expected_steps
from genorder.search import Budget, SearchEstimate, SearchProblem

_EXPECTED_STEPS = 1_250  # of the winner's training; orders that are learned slowly take more


@final
@dataclass(frozen=True)
class Estimate:
    """The seconds of a discovery. Rough: it is not known yet how much scoring and racing will skip."""

    parts: dict[str, float]  # propose, race, train
    search: SearchEstimate
    more_race: float = 0.0  # added if the search proposes as many orders as it may
    slow: float = 0.0  # added if the winner is learned slowly and takes all steps

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def more_seconds(self) -> float:
        """The most that is added if trainings converge late, many orders race, and the winner is learned slowly."""
        return self.more_race + self.slow + self.search.more_seconds


def estimated(discovery: Discovery, problem: SearchProblem) -> Estimate:
    """The estimate from real training steps on this machine."""
    search = discovery.search.estimate(problem)
    final = discovery.final_run(Order.forward(problem.length))
    race, most = discovery.config.race, discovery.config.final.training.steps
    threads = torch.get_num_threads()
    at_once = discovery.workers or (min(AT_ONCE, threads) if discovery.device.type == "cpu" else 1)
    with using_threads(max(1, threads // AT_ONCE)):
        step_seconds = seconds_per_step(final, final.new_model(), budget=1.0)
    expected = min(most, _EXPECTED_STEPS) if race.enabled else most
    beside = len(beside_proposals(problem, discovery.also))

    def racing(steps: int, proposals: int) -> float:
        contestants = problem.count_orders(proposals + beside)
        return step_seconds / at_once * expected_steps(race, steps, contestants) if race.enabled else 0.0

    parts = {"propose": search.seconds, "race": racing(expected, search.proposals)}
    if not discovery.explore_only:
        trainings = 2 if discovery.baseline else 1
        share = race.decay_share / (1 + race.decay_share) if race.enabled else 1.0
        parts["train"] = share * expected * step_seconds * trainings / min(at_once, trainings)
    return Estimate(
        parts,
        search,
        more_race=racing(expected, search.most_proposals) - parts["race"],
        slow=racing(most, search.proposals) - parts["race"],
    )


def budget_within(seconds: float, discovery: Discovery, problem: SearchProblem) -> Budget:
    """The budget of runs or steps for `seconds` of proposing and racing. Raises InputError if these are too few.

    A strategy that is limited by steps takes at least half of the steps of its first run. If the time does not suffice
    for the planned steps and for racing as many orders as may be proposed, only the expected number of orders is raced.
    """
    estimate = estimated(dataclasses.replace(discovery, explore_only=True), problem)
    search, budget = estimate.search, discovery.budget
    left = seconds - estimate.parts["race"]
    by_steps = search.limited_by == "steps"
    run_seconds = search.seconds / max(1, len(search.runs))
    first_run = search.step_seconds * search.steps / max(1, len(search.runs))
    if left < (search.other_seconds + first_run / 2 if by_steps else run_seconds):
        raise InputError(
            f"--budget {seconds:.0f} s is too small for one profiling run and the race after it, which take about "
            f"{run_seconds + estimate.parts['race']:.0f} s here; give more, or fewer steps by --set"
        )
    if not search.runs:  # there is only one order
        return budget
    if not by_steps:
        affordable = int(left / run_seconds) if run_seconds else len(search.runs)
        return dataclasses.replace(budget, runs=min(affordable, budget.runs or affordable))
    proposals = budget.proposals
    if left - estimate.more_race >= search.seconds:
        left -= estimate.more_race
    else:
        proposals = search.proposals
    steps = (left - search.other_seconds) / search.step_seconds
    return dataclasses.replace(budget, steps=max(1, int(steps)), proposals=proposals)
