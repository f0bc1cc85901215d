"""Strategies that propose orders; the race of finalists decides among them."""

from genorder.search.base import Budget, PlannedRun, Proposal, Search, SearchProblem, SearchResult, Stage
from genorder.search.global_local import GlobalLocal
from genorder.search.initial_pool import NAMED_POOLS

__all__ = [
    "NAMED_POOLS",
    "Budget",
    "GlobalLocal",
    "PlannedRun",
    "Proposal",
    "Search",
    "SearchProblem",
    "SearchResult",
    "Stage",
]
