"""The paper's evolutionary baseline: tournaments, partially mapped crossover, swaps and elitism."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final, get_args

import numpy as np

from genorder.errors import InputError
from genorder.orders import Order, deduplicated, distinct_orders, random_orders
from genorder.profiling import Profile
from genorder.race import Race, RaceConfig, Recipe
from genorder.search.base import PlannedRun, Proposal, Search, SearchProblem, SearchResult, Stage, proposals_of
from genorder.search.initial_pool import check_initial_pool, initial_pool
from genorder.seeding import derive_seed, numpy_generator
from genorder.store import fingerprint

Fitness = Literal["mixture", "separate"]

DEFAULT_POPULATION: dict[Fitness, int] = {
    "mixture": 1_440,  # 2 x 6!, the candidates per run of the global-local search at depth 6
    "separate": 16,  # each of them is trained
}
DEFAULT_GENERATIONS = 14
_REPORTED = 20  # individuals of a generation in its summary
_PAIRS_PER_CHILD = 10  # pairs of parents per place; places that duplicates still leave open go to random orders


@final
@dataclass(frozen=True)
class Evolutionary(Search):
    """With `fitness` "mixture", one profiling run on their mixture scores all individuals of a generation.

    With "separate", a new model is trained on each for `separate_steps` steps, as in the paper. In both cases a
    generation is one run of the budget.
    """

    name: ClassVar[str] = "evolutionary"

    population: int | None = None  # None: DEFAULT_POPULATION; never more than there are orders
    generations: int | None = None  # None: the runs of the budget, or else DEFAULT_GENERATIONS
    init: str = "random"
    crossover_probability: float = 0.9
    mutation_probability: float = 0.3
    tournament: int = 3
    elite_share: float = 0.1
    fitness: Fitness = "mixture"
    separate_steps: int = 200

    def __post_init__(self) -> None:
        if self.population is not None and self.population < 2:
            raise InputError(f"population {self.population}: expected at least 2 orders")
        for setting in ("generations", "tournament", "separate_steps"):
            value = getattr(self, setting)
            if value is not None and value < 1:
                raise InputError(f"{setting.replace('_', ' ')} {value}: expected at least 1")
        for setting in ("crossover_probability", "mutation_probability"):
            value = getattr(self, setting)
            if not 0 <= value <= 1:
                raise InputError(f"{setting.replace('_', ' ')} {value}: expected a number from 0 to 1")
        if not 0 <= self.elite_share < 1:
            raise InputError(f"elite share {self.elite_share}: expected a number from 0 to below 1")
        if self.fitness not in get_args(Fitness):
            raise InputError(f"fitness {self.fitness!r}: expected one of {', '.join(get_args(Fitness))}")

    def check(self, problem: SearchProblem) -> None:
        check_initial_pool(self.init, problem.source, problem.constraints)

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        if problem.only_order:
            return []
        size = self._size(problem)
        steps = problem.profiler.training.steps if self.fitness == "mixture" else size * self.separate_steps
        return [PlannedRun(_name(n), size, steps) for n in range(1, self._generations(problem) + 1)]

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        if problem.only_order:
            return SearchResult([Proposal(problem.only_order)], [])
        last = self._generations(problem)
        population = self._first_generation(problem)
        found = self._evaluate(problem, 1, population, last)
        for generation in range(2, last + 1):
            if not problem.may_profile():
                break
            ranked = [found.orders[index] for index in found.ranking.tolist()]
            rng = _generator(problem, generation)
            population = next_generation(ranked, self, rng, problem.constraints.repaired)
            found = self._evaluate(problem, generation, population, last)
        return SearchResult(proposals_of(found), problem.stages)

    def elites(self, size: int) -> int:
        return math.ceil(self.elite_share * size)

    def _first_generation(self, problem: SearchProblem) -> list[Order]:
        """The initial pool, filled up with random orders to the size of the population."""
        size, rng = self._size(problem), _generator(problem, 1)
        pool = deduplicated(initial_pool(self.init, size, problem.source, rng, problem.constraints))
        return _filled(pool, Order.forward(problem.length), size, rng, problem.constraints.repaired)

    def _evaluate(self, problem: SearchProblem, generation: int, population: list[Order], last: int) -> Profile:
        kept = self.elites(len(population)) if generation < last else 1
        if self.fitness == "mixture":
            return problem.profile(_name(generation), population, kept)
        return self._train_each(problem, _name(generation), population, kept)

    def _train_each(self, problem: SearchProblem, name: str, population: list[Order], kept: int) -> Profile:
        problem.spend_run(name)
        profiler = problem.profiler
        recipe = Recipe(model=profiler.model, training=profiler.training)
        config = RaceConfig(check_steps=self.separate_steps)
        described = {
            "orders": fingerprint([list(order) for order in population]),
            "recipe": recipe.model_dump(),
            "steps": self.separate_steps,
        }

        def work() -> Mapping[str, object]:
            # With one seed for all generations, losses stay comparable and the journal already holds the elites.
            seed = derive_seed(problem.seed, "evolution fitness")
            with Race(
                problem.train, problem.validation, recipe, config,
                seed=seed, folder=problem.checkpoints, journal=problem.journal, stop=problem.stop,
            ) as race:  # fmt: skip
                result = race.run(population, rungs_end=[self.separate_steps])
                race.forget()
            return Profile(
                orders=[contestant.order for contestant in result.contestants],
                losses=np.array([contestant.loss for contestant in result.contestants]),
                errors=np.array([contestant.rungs[-1].standard_error for contestant in result.contestants]),
                tied=np.array([contestant.tied_with_best for contestant in result.contestants]),
                samples=np.full(len(population), len(problem.validation.target_lengths_N)),
            ).to_dict()

        measured = problem.timed(name, described, work)
        profile = Profile.from_dict(measured)
        seconds = {"train": measured["seconds"]}
        problem.finish_stage(Stage(name, len(population), kept, proposals_of(profile, _REPORTED), seconds))
        return profile

    def _size(self, problem: SearchProblem) -> int:
        size = self.population or DEFAULT_POPULATION[self.fitness]
        return problem.count_orders(min(size, problem.budget.candidates or size))

    def _generations(self, problem: SearchProblem) -> int:
        size = self._size(problem)
        if size == problem.count_orders(size + 1):
            return 1  # a population of all orders has nothing to evolve to
        allowed = problem.budget.runs
        wanted = self.generations or allowed or DEFAULT_GENERATIONS
        return min(wanted, allowed or wanted)


def next_generation(
    ranked: Sequence[Order],
    settings: Evolutionary,
    rng: np.random.Generator,
    repaired: Callable[[Order], Order] = lambda order: order,
) -> list[Order]:
    """As many different orders as in `ranked`, which are different and sorted from best to worst.

    The elites come first, unchanged. `repaired` turns a child into an allowed one. Renaming the target columns of all
    parents renames all children alike, if that holds for `repaired` too.
    """
    size = len(ranked)
    found = dict.fromkeys(ranked[: settings.elites(size)])
    for _ in range(_PAIRS_PER_CHILD * size):
        for child in _children(ranked, settings, rng):
            if len(found) < size:
                found.setdefault(repaired(child))
        if len(found) == size:
            break
    return _filled(list(found), ranked[0], size, rng, repaired)


def _children(ranked: Sequence[Order], settings: Evolutionary, rng: np.random.Generator) -> list[Order]:
    # The parents are sorted, so the lowest place wins a tournament.
    places = rng.integers(len(ranked), size=(2, settings.tournament)).min(axis=1)
    first, second = (ranked[place] for place in places.tolist())
    children = [first, second]
    if rng.random() < settings.crossover_probability:
        start, stop = sorted(rng.choice(len(first) + 1, size=2, replace=False).tolist())
        children = [partially_mapped(first, second, start, stop), partially_mapped(second, first, start, stop)]
    return [_swapped(child, rng) if rng.random() < settings.mutation_probability else child for child in children]


def partially_mapped(first: Order, second: Order, start: int, stop: int) -> Order:
    """Partially mapped crossover (Goldberg and Lingle, 1985): steps start..stop-1 of `first`, other steps of `second`.

    An index of `second` that the segment already holds is replaced by the index of `second` at the same step of the
    segment, repeatedly until it is free. Indices are only compared for equality, so renaming the target columns renames
    the child.
    """
    segment = first.indices[start:stop]
    replacement = dict(zip(segment, second.indices[start:stop], strict=True))

    def free(index: int) -> int:
        while index in replacement:
            index = replacement[index]
        return index

    before = (free(index) for index in second.indices[:start])
    after = (free(index) for index in second.indices[stop:])
    return Order((*before, *segment, *after))


def _swapped(order: Order, rng: np.random.Generator) -> Order:
    if len(order) == 1:
        return order
    one, other = rng.choice(len(order), size=2, replace=False).tolist()
    indices = list(order)
    indices[one], indices[other] = indices[other], indices[one]
    return Order(tuple(indices))


def _filled(
    orders: list[Order], names: Order, size: int, rng: np.random.Generator, repaired: Callable[[Order], Order]
) -> list[Order]:
    """The orders, then repaired shuffles of the steps of `names`, up to `size` orders in total.

    Repaired shuffles may coincide; then more are drawn as long as new ones come up.
    """
    if len(orders) == size:
        return orders
    fresh = [repaired(names.compose(shuffle)) for shuffle in random_orders(len(names), size, rng)]
    found = deduplicated([*orders, *fresh])[:size]
    return distinct_orders(lambda: [repaired(names.compose(Order.random(len(names), rng)))], size, first=found)


def _name(generation: int) -> str:
    return f"generation {generation}"


def _generator(problem: SearchProblem, generation: int) -> np.random.Generator:
    return numpy_generator(derive_seed(problem.seed, "evolution", generation))
