"""Ranking orders by short training runs of small models: loss profiling, and the any-order oracle."""

from genorder.profiling.any_order import AnyOrderConfig
from genorder.profiling.mixture import Profile, ProfilerConfig, profile_orders
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
    "Profile",
    "ProfilerConfig",
    "RacingConfig",
    "Scores",
    "exact_scores",
    "plain_scores",
    "profile_orders",
    "racing_scores",
    "seconds_per_candidate",
]
