"""Ranking orders by short runs of small models."""

from genorder.profiling.mixture import Profile, ProfilerConfig, profile_orders
from genorder.profiling.race import Contestant, RaceConfig, RaceResult, race
from genorder.profiling.scoring import RacingConfig, Scores, exact_scores, plain_scores, racing_scores

__all__ = [
    "Contestant",
    "Profile",
    "ProfilerConfig",
    "RaceConfig",
    "RaceResult",
    "RacingConfig",
    "Scores",
    "exact_scores",
    "plain_scores",
    "profile_orders",
    "race",
    "racing_scores",
]
