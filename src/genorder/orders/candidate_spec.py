"""Candidate sets by name, such as `random:128,forward`, and from files."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from genorder.errors import InputError
from genorder.orders.candidates import (
    block_orders,
    deduplicated,
    random_orders,
    relative_to,
    sort_orders,
    topological_sorts,
    within_time_orders,
)
from genorder.orders.graph import DependencyGraph
from genorder.orders.order import Order

_SIZED = ("random", "sort", "sort-reverse", "block", "topo")
_PLAIN = ("forward", "reverse", "given", "vars", "hand")
_SIZE = re.compile("0*[1-9][0-9]{0,6}")
FORMS = ", ".join([*(f"{name}:N" for name in _SIZED), *_PLAIN])


@final
@dataclass(frozen=True)
class CandidateSource:
    """What candidate sets are built from.

    `reference` is the order that `forward`, `reverse`, `sort` and `block` refer to: the true one of a built-in task,
    the given one of a user's data. All orders are over stored columns.
    """

    reference: Order
    graph: DependencyGraph | None = None
    variables: int | None = None  # per time step, where the targets are a time series
    hand_designed: Mapping[str, Order] = field(default_factory=dict)


def parse_candidates(text: str, source: CandidateSource, rng: np.random.Generator) -> list[Order]:
    """The orders that a list such as `random:127,forward` names, without duplicates, in its sequence."""
    found: list[Order] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, size = part.partition(":")
        if name in _SIZED:
            if not _SIZE.fullmatch(size):
                raise InputError(f"candidates {part!r}: expected {name}:N with a number of orders, such as {name}:64")
            found += _sized(name, int(size), source, rng)
        elif name in _PLAIN and not colon:
            found += _plain(name, source)
        else:
            raise InputError(f"candidates {part!r}: expected one of {FORMS}")
    if not found:
        raise InputError(f"no candidates were named; expected a list of {FORMS}")
    return deduplicated(found)


def _sized(name: str, count: int, source: CandidateSource, rng: np.random.Generator) -> list[Order]:
    makers: dict[str, Callable[[], list[Order]]] = {
        "random": lambda: random_orders(len(source.reference), count, rng),
        "sort": lambda: sort_orders(source.reference, count, rng),
        "sort-reverse": lambda: sort_orders(source.reference, count, rng, towards_reverse=True),
        "block": lambda: block_orders(source.reference, count, rng),
    }
    if name == "topo":
        if source.graph is None:
            raise InputError("candidates topo need a dependency graph, which only built-in tasks have")
        return topological_sorts(source.graph, count, rng)
    return makers[name]()


def _plain(name: str, source: CandidateSource) -> list[Order]:
    length = len(source.reference)
    if name == "forward":
        return [source.reference]
    if name == "reverse":
        return [relative_to(source.reference, Order.reverse(length))]
    if name == "given":
        return [Order.forward(length)]
    if name == "vars":
        if source.variables is None:
            raise InputError("candidates vars need a time series of several variables, such as a delay network")
        return within_time_orders(source.reference, source.variables)
    if not source.hand_designed:
        raise InputError("there are no hand-designed orders for this data; the delay networks have five each")
    return list(source.hand_designed.values())


def read_orders(path: Path, length: int) -> list[Order]:
    """Orders from a JSON file: a list of lists, or of objects with `order`, or an object with `orders`.

    Raises InputError that names the entry for one that is broken or of another length.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg})") from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise InputError(f"{path} is not a JSON text file") from None
    entries = content.get("orders") if isinstance(content, dict) else content
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: expected a list of orders, such as [[0, 1, 2], [2, 1, 0]]")
    return deduplicated(_entry(entry, f"{path}: entry {n}", length) for n, entry in enumerate(entries, start=1))


def _entry(entry: Any, where: str, length: int) -> Order:
    indices = entry.get("order") if isinstance(entry, dict) else entry
    if not isinstance(indices, list):
        raise InputError(f"{where} is not an order; expected a list of target indices")
    try:
        order = Order(tuple(indices))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if len(order) != length:
        raise InputError(f"{where} has {len(order)} indices; the data has {length} targets")
    return order
