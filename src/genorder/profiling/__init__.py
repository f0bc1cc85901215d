"""Ranking orders by short runs of small models."""

from genorder.profiling.any_order import AnyOrderConfig
from genorder.profiling.mixture import Profile, ProfilerConfig, profile_orders
from genorder.profiling.race import Contestant, RaceProgress, RaceResult, race
from genorder.profiling.race_rules import RaceConfig, race_steps
from genorder.profiling.scoring import (
    RacingConfig,
    Scores,
    exact_scores,
    plain_scores,
    racing_scores,
    seconds_per_candidate,
)

__all__ = [
    "AnyOrderConfig",
    "Contestant",
    "Profile",
    "ProfilerConfig",
    "RaceConfig",
    "RaceProgress",
    "RaceResult",
    "RacingConfig",
    "Scores",
    "exact_scores",
    "plain_scores",
    "profile_orders",
    "race",
    "race_steps",
    "racing_scores",
    "seconds_per_candidate",
]
