"""The progress and the result of a race."""

from dataclasses import dataclass, field
from typing import Literal, final

from genorder.orders import Order
from genorder.race.rules import Outcome, RaceConfig

Ended = Literal["solved", "decided", "converged", "diverged", "steps spent"]


@final
@dataclass(frozen=True, eq=False)
class RaceProgress:
    """The state of a race when one of its trainings has made progress, or has finished its rung."""

    rung: int | None  # from 0; None: the decay after the race
    done: int  # finished trainings of the rung
    total: int
    order: Order
    repeat: int  # which training of the order, from 0
    step: int
    loss: float  # training loss; of a finished training the validation loss, infinite if it diverged
    finished: bool
    curve: list[float] = field(repr=False)  # the training's losses in the rung, once it is finished
    best: Order | None  # of the finished trainings
    best_loss: float
    seconds_left: float  # of the rung, by the time per step so far
    # Of all trainings, decay included, if the best order continues to learn as fast as so far. NaN in the first rung
    # and until a step is timed.
    run_seconds_left: float


@final
@dataclass(frozen=True, eq=False)
class Contestant:
    order: Order
    rungs: list[Outcome]  # in which it took part
    curves: list[list[float]] = field(repr=False)  # training losses in each rung, first seed
    dropped_after: int | None  # the rung (from 0) after which it was dropped; None: never
    tied_with_best: bool = False
    is_baseline: bool = False  # it is trained for comparison only, and cannot win

    @property
    def loss(self) -> float:
        return self.rungs[-1].loss

    @property
    def diverged(self) -> bool:
        return not self.rungs[-1].finite


@final
@dataclass(frozen=True, eq=False)
class RaceResult:
    contestants: list[Contestant]  # from best to worst; diverged ones last
    unigram: Outcome
    ended: Ended
    config: RaceConfig
    seconds: float = 0.0  # of all jobs, by their own clocks: includes the time before an interruption

    @property
    def best(self) -> Contestant:
        """The best contestant that is not a baseline."""
        return next(contestant for contestant in self.contestants if not contestant.is_baseline)

    @property
    def winner(self) -> Order:
        return self.best.order

    @property
    def tied(self) -> list[Order]:
        return [contestant.order for contestant in self.contestants if contestant.tied_with_best]

    def of(self, order: Order) -> Contestant:
        return next(contestant for contestant in self.contestants if contestant.order == order)

    @property
    def beats_baseline(self) -> bool:
        """Whether the best order was significantly below the unigram baseline after some rung."""
        return any(self.unigram.significantly_worse(rung, self.config) for rung in self.best.rungs)

    def separates(self, one: Order, other: Order) -> bool:
        """Whether the first order is significantly better than the second."""
        return self.of(other).rungs[-1].significantly_worse(self.of(one).rungs[-1], self.config)

    @property
    def still_improving(self) -> bool:
        """Whether the last rung improved the best order."""
        rungs = self.best.rungs
        return len(rungs) > 1 and rungs[-1].improves_on(rungs[-2], self.config)

    @property
    def overfits(self) -> bool:
        """Whether the validation loss of the best order has risen since an earlier rung."""
        *before, last = self.best.rungs
        return last.finite and any(last.significantly_worse(rung, self.config) for rung in before)
