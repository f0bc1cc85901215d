"""Orders compete: trainings that go on from rung to rung, the worse ones dropped."""

from genorder.race.race import AT_ONCE, Contestant, Race, RaceProgress, RaceResult
from genorder.race.rules import RaceConfig, Recipe, expected_steps

__all__ = [
    "AT_ONCE",
    "Contestant",
    "Race",
    "RaceConfig",
    "RaceProgress",
    "RaceResult",
    "Recipe",
    "expected_steps",
]
