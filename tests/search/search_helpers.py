"""Problems whose profiling runs are answered at once, without a model."""

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import Any, cast

import numpy as np
import torch

from genorder.data import EncodedDataset
from genorder.errors import InputError
from genorder.models import GPTConfig
from genorder.orders import CandidateSource, Order
from genorder.profiling import Profile, ProfilerConfig
from genorder.search import SearchProblem, Stage
from genorder.search.base import proposals_of
from genorder.training import TrainingConfig

PROFILER = ProfilerConfig(
    model=GPTConfig(layers=1, heads=1, width=8, feedforward=8),
    training=TrainingConfig(steps=5, batch_size=2, learning_rate=1e-3),
)


def all_orders(length: int) -> list[Order]:
    return [Order(indices) for indices in permutations(range(length))]


def inversions(order: Order) -> int:
    return sum(one > other for one, other in combinations(order, 2))


def perfect_problem(
    length: int, loss: Callable[[Order], float], *, source: CandidateSource | None = None, **options: Any
) -> tuple[SearchProblem, dict[str, list[Order]]]:
    """A problem that knows the loss of every order, and the candidates of each run as they come to be profiled."""
    return answered_problem(length, lambda _, orders: [loss(order) for order in orders], source=source, **options)


def answered_problem(
    length: int,
    answer: Callable[[str, Sequence[Order]], Sequence[float]],
    *,
    source: CandidateSource | None = None,
    **options: Any,
) -> tuple[SearchProblem, dict[str, list[Order]]]:
    """The same, with the losses of a run given its name and its candidates."""
    encoded = EncodedDataset(
        torch.zeros(2, 1, dtype=torch.long), torch.zeros(2, length, dtype=torch.long), torch.full((2,), length), 4
    )
    source = source or CandidateSource(Order.forward(length))
    given = {"profiler": PROFILER, "seed": 0, "journal": None, "folder": None, **options}
    problem = SearchProblem(encoded, encoded, source, **given)
    profiled: dict[str, list[Order]] = {}

    def profile(name: str, orders: Sequence[Order], keep: int = 1) -> Profile:
        if not problem.may_profile():
            raise InputError("the budget is spent")
        assert name not in profiled
        problem.runs += 1
        profiled[name] = problem.allowed(orders)
        losses = np.array(answer(name, profiled[name]), dtype=float)
        count = len(profiled[name])
        found = Profile(profiled[name], losses, np.zeros(count), losses == losses.min(), np.ones(count, dtype=int))
        problem.finish_stage(Stage(name, count, min(keep, count), proposals_of(found, count), {}))
        return found

    cast(Any, problem).profile = profile
    return problem, profiled
