"""The orders that a search starts from: without the right one, which it has to find."""

from pathlib import Path

import numpy as np

from genorder.errors import InputError
from genorder.orders import (
    BLOCK,
    CandidateSource,
    Order,
    block_orders,
    random_orders,
    read_orders,
    sort_orders,
    topological_sorts,
    within_time_orders,
)

NAMED_POOLS = ("random", "sort", "block", "topo", "vars")


def initial_pool(spec: str, count: int, source: CandidateSource, rng: np.random.Generator) -> list[Order]:
    """At most `count` orders: of a named kind, or those of a JSON file.

    `sort` and `block` are priors around the reference order (`P_s-` and `P_b-` of the paper): snapshots of a sort
    towards its reverse, and its blocks of five shuffled, the reference itself left out. Raises InputError for a pool
    that this data cannot have.
    """
    check_initial_pool(spec, source)
    length = len(source.reference)
    if spec == "random":
        return random_orders(length, count, rng)
    if spec == "sort":
        pool = sort_orders(source.reference, count, rng, towards_reverse=True)
        # A start that is sorted the wrong way round is the reference: likely where there are few orders.
        return [order for order in pool if order != source.reference] or pool
    if spec == "block":
        return block_orders(source.reference, count, rng, with_reference=False)
    if spec == "topo" and source.graph is not None:
        return topological_sorts(source.graph, count, rng)
    if spec == "vars" and source.variables is not None:
        return within_time_orders(source.reference, source.variables)[:count]
    return read_orders(Path(spec), length)[:count]


def check_initial_pool(spec: str, source: CandidateSource) -> None:
    if spec in NAMED_POOLS:
        if spec == "topo" and source.graph is None:
            raise InputError("initial pool topo needs a dependency graph, which only built-in tasks have")
        if spec == "block" and len(source.reference) <= BLOCK:
            raise InputError(f"initial pool block shuffles blocks of {BLOCK} targets; this data has only one block")
        if spec == "vars" and source.variables is None:
            raise InputError("initial pool vars needs a time series of several variables, such as a delay network")
    elif not Path(spec).exists():
        raise InputError(f"initial pool {spec!r}: expected one of {', '.join(NAMED_POOLS)}, or a JSON file of orders")
    else:
        read_orders(Path(spec), len(source.reference))
