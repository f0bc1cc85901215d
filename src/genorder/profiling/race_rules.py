"""The rules of a race: its rounds, and who goes on after each of them."""

import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from genorder.models import GPTConfig
from genorder.training import TrainingConfig

_CLEARLY = 0.1  # nats: two losses that are both nearly zero are not far apart
_FAR_BELOW = 0.5  # of the best loss


class RaceConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: GPTConfig
    training: TrainingConfig  # its steps are replaced by each round's
    round_steps: tuple[int, ...] = Field(default=(150, 300, 600), min_length=1, strict=False)
    kept_share: float = Field(default=0.5, gt=0, lt=1)  # of the orders, after each round, and more if they are close
    close: float = Field(default=0.05, ge=0)  # a loss at most so far above the best, relative to it, stays
    far: float = Field(default=0.5, gt=0)  # a loss so far above the best, relative to it, leaves, whatever the share
    seeds: int = Field(default=1, ge=1)  # trainings per order and round


def kept_after_round(losses: Sequence[float], promised: Sequence[bool], config: RaceConfig) -> list[int]:
    """Which of the contestants, whose losses are from best to worst, go on.

    A hard task shows nothing for hundreds of steps, and then the right order's loss falls: while all are close, nobody
    is dropped. An easy one is decided at once. Where some are `promised` to get far below all losses so far, they are
    the ones to wait for: of these none is dropped until one of them leads, and then only those that are far from it.
    While all of them are close, the others need not stay for being so too.
    """
    best, places = losses[0], range(len(losses))
    if not math.isfinite(best):
        return list(places)
    ranked = sorted(places, key=lambda place: promised[0] and not promised[place])
    better = ranked[: max(1, math.ceil(config.kept_share * len(losses)))]

    close = [loss <= best * (1 + config.close) for loss in losses]
    nothing_learnt = any(promised) and all(near for near, own in zip(close, promised, strict=True) if own)

    def goes_on(place: int) -> bool:
        if promised[place] and not promised[0]:
            return True
        if losses[place] > max(best * (1 + config.far), best + _CLEARLY):
            return False
        return promised[place] or place in better or (close[place] and not nothing_learnt)

    return [place for place in places if goes_on(place)]


def far_below(shown: float | None, best: float) -> bool:
    """Is the loss that a search has shown in an order, if any, far below the best of a race so far?

    Then the race is not over for that order: what it promises has not been learnt yet. Once a race has learnt nearly
    everything in some order, it needs no advice.
    """
    return shown is not None and shown < min(_FAR_BELOW * best, best - _CLEARLY)


def race_steps(config: RaceConfig, contestants: int, first_round: int = 0) -> int:
    """Training steps of a race, from a round on, in which the share decides; for estimates."""
    total = 0
    for steps in config.round_steps[first_round:]:
        total += steps * contestants * config.seeds
        contestants = max(1, math.ceil(config.kept_share * contestants))
    return total
