"""Strategies by name, with their settings."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from genorder.errors import InputError
from genorder.search.any_order import AnyOrder
from genorder.search.base import Search
from genorder.search.dependencies import Dependencies
from genorder.search.evolutionary import Evolutionary
from genorder.search.global_local import GlobalLocal
from genorder.search.random_search import RandomSearch
from genorder.search.soft_permutation import SoftPermutation

STRATEGIES: dict[str, type[Search]] = {
    kind.name: kind for kind in (Dependencies, AnyOrder, GlobalLocal, Evolutionary, RandomSearch, SoftPermutation)
}
AUTO = "auto"
STRATEGY_NAMES = (AUTO, *STRATEGIES)
_AUTOMATIC = Dependencies


def make_search(name: str, settings: Mapping[str, Any]) -> Search:
    """The strategy of that name with these settings. Raises InputError for what it does not have."""
    if name not in STRATEGY_NAMES:
        raise InputError(f"--strategy {name!r}: expected one of {', '.join(STRATEGY_NAMES)}")
    kind = STRATEGIES.get(name, _AUTOMATIC)
    name = kind.name
    types = get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for setting, value in settings.items():
        if setting not in known:
            raise InputError(f"--strategy {name} has no setting {setting}; it has: {', '.join(known)}")
        _check_kind(name, setting, value, types[setting])
    return kind(**settings)


def _check_kind(strategy: str, setting: str, value: Any, kind: Any) -> None:
    allowed = get_args(kind) or (kind,)
    fits = value in allowed if all(isinstance(one, str) for one in allowed) else _is_one_of(value, allowed)
    if not fits:
        names = ", ".join(one if isinstance(one, str) else one.__name__ for one in allowed)
        raise InputError(f"--strategy {strategy}: setting {setting} = {value!r}; expected {names}")


def _is_one_of(value: Any, kinds: tuple[Any, ...]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (isinstance(value, int) and float in kinds)
