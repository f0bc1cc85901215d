"""A race of orders: their trainings continue from rung to rung, and the worse ones are dropped."""

from genorder.race.jobs import JobResult
from genorder.race.race import AT_ONCE, Race
from genorder.race.result import Contestant, RaceProgress, RaceResult
from genorder.race.rules import RaceConfig, Recipe, expected_steps

__all__ = [
    "AT_ONCE",
    "Contestant",
    "JobResult",
    "Race",
    "RaceConfig",
    "RaceProgress",
    "RaceResult",
    "Recipe",
    "expected_steps",
]
