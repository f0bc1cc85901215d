"""The rules of a race: its rounds, and who goes on after each of them."""

import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from genorder.models import GPTConfig
from genorder.training import TrainingConfig

_CLEARLY = 0.1  # nats: two losses that are both nearly zero are not far apart


class RaceConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: GPTConfig
    training: TrainingConfig  # its steps are replaced by each round's
    round_steps: tuple[int, ...] = Field(default=(150, 300, 600), min_length=1, strict=False)
    kept_share: float = Field(default=0.5, gt=0, lt=1)  # of the orders, after each round, and more if they are close
    close: float = Field(default=0.05, ge=0)  # a loss at most so far above the best, relative to it, stays
    far: float = Field(default=0.5, gt=0)  # a loss so far above the best, relative to it, leaves, whatever the share
    seeds: int = Field(default=1, ge=1)  # trainings per order and round


def kept_after_round(losses: Sequence[float], config: RaceConfig) -> list[int]:
    """Which of the contestants, whose losses are from best to worst, go on.

    A hard task shows nothing for hundreds of steps, and then the right order's loss falls: while all are close, nobody
    is dropped. An easy one is decided at once.
    """
    best, places = losses[0], range(len(losses))
    if not math.isfinite(best):
        return list(places)
    better = max(1, math.ceil(config.kept_share * len(losses)))
    far, close = max(best * (1 + config.far), best + _CLEARLY), best * (1 + config.close)
    return [place for place in places if losses[place] <= far and (place < better or losses[place] <= close)]


def race_steps(config: RaceConfig, contestants: int, first_round: int = 0) -> int:
    """Training steps of a race, from a round on, in which the share decides; for estimates."""
    total = 0
    for steps in config.round_steps[first_round:]:
        total += steps * contestants * config.seeds
        contestants = max(1, math.ceil(config.kept_share * contestants))
    return total
