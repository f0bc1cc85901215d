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
from genorder.search.evolutionary import Evolutionary
from genorder.search.global_local import GlobalLocal
from genorder.search.initial_pool import NAMED_POOLS
from genorder.search.random_search import RandomSearch
from genorder.search.soft_permutation import SoftPermutation

__all__ = [
    "MOST_PROPOSALS",
    "NAMED_POOLS",
    "AnyOrder",
    "Budget",
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
