"""Strategies that propose orders; a race of the proposals decides among them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from genorder.errors import InputError
from genorder.search.any_order import AnyOrder, AnyOrderDetails
from genorder.search.base import (
    MOST_PROPOSALS,
    NO_ORDER,
    NOT_SETTLED,
    NOTHING_LEARNT,
    ORDER_FOUND,
    Budget,
    OwnModelSearch,
    PlannedRun,
    Proposal,
    Search,
    SearchDetails,
    SearchEstimate,
    SearchProblem,
    SearchResult,
    Stage,
    Verdict,
    proposals_of,
)
from genorder.search.dependencies import Dependencies, DependenciesDetails
from genorder.search.evolutionary import Evolutionary
from genorder.search.global_local import GlobalLocal
from genorder.search.initial_pool import NAMED_POOLS
from genorder.search.random_search import RandomSearch
from genorder.search.soft_permutation import SoftPermutation, SoftPermutationDetails

__all__ = [
    "AUTO",
    "MOST_PROPOSALS",
    "NAMED_POOLS",
    "NOTHING_LEARNT",
    "NOT_SETTLED",
    "NO_ORDER",
    "ORDER_FOUND",
    "STRATEGIES",
    "STRATEGY_NAMES",
    "AnyOrder",
    "AnyOrderDetails",
    "Budget",
    "Dependencies",
    "DependenciesDetails",
    "Evolutionary",
    "GlobalLocal",
    "OwnModelSearch",
    "PlannedRun",
    "Proposal",
    "RandomSearch",
    "Search",
    "SearchDetails",
    "SearchEstimate",
    "SearchProblem",
    "SearchResult",
    "SoftPermutation",
    "SoftPermutationDetails",
    "Stage",
    "Verdict",
    "make_search",
    "proposals_of",
]

STRATEGIES: dict[str, type[Search]] = {
    kind.name: kind for kind in (Dependencies, AnyOrder, GlobalLocal, Evolutionary, RandomSearch, SoftPermutation)
}
AUTO = "auto"
STRATEGY_NAMES = (AUTO, *STRATEGIES)
_AUTOMATIC = Dependencies


def make_search(name: str, settings: Mapping[str, object]) -> Search:
    """The strategy of that name with these settings. Raises InputError for unknown names and wrong types."""
    if name not in STRATEGY_NAMES:
        raise InputError(f"--strategy {name!r}: expected one of {', '.join(STRATEGY_NAMES)}")
    kind = STRATEGIES.get(name, _AUTOMATIC)
    types = get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for setting, value in settings.items():
        if setting not in known:
            raise InputError(f"--strategy {kind.name} has no setting {setting}; it has: {', '.join(known)}")
        allowed = get_args(types[setting]) or (types[setting],)
        if not _fits(value, allowed):
            names = ", ".join(one if isinstance(one, str) else one.__name__ for one in allowed)
            raise InputError(f"--strategy {kind.name}: setting {setting} = {value!r}; expected {names}")
    return kind(**settings)


def _fits(value: object, allowed: tuple[Any, ...]) -> bool:
    """Whether a value is one of the allowed strings, or has one of the allowed types."""
    if all(isinstance(one, str) for one in allowed):
        return value in allowed
    if isinstance(value, bool):
        return bool in allowed
    return isinstance(value, allowed) or (isinstance(value, int) and float in allowed)
