"""Strategies that propose orders; the race of finalists decides among them."""

from genorder.search.any_order import AnyOrder
from genorder.search.base import (
    MOST_PROPOSALS,
    Budget,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    Search,
    SearchProblem,
    SearchResult,
    Stage,
    proposals_of,
)
from genorder.search.dependencies import Dependencies
from genorder.search.diagnosis import NO_ORDER, NOT_SETTLED, NOTHING_LEARNT, ORDER_FOUND
from genorder.search.evolutionary import Evolutionary
from genorder.search.global_local import GlobalLocal
from genorder.search.initial_pool import NAMED_POOLS
from genorder.search.random_search import RandomSearch
from genorder.search.soft_permutation import SoftPermutation

__all__ = [
    "MOST_PROPOSALS",
    "NAMED_POOLS",
    "NOTHING_LEARNT",
    "NOT_SETTLED",
    "NO_ORDER",
    "ORDER_FOUND",
    "AnyOrder",
    "Budget",
    "Dependencies",
    "Evolutionary",
    "GlobalLocal",
    "OwnModelSearch",
    "PlannedRun",
    "Proposal",
    "RandomSearch",
    "Search",
    "SearchProblem",
    "SearchResult",
    "SoftPermutation",
    "Stage",
    "proposals_of",
]
