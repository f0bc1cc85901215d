"""The orders that a search starts from. Priors around the reference order leave out the reference itself."""

from pathlib import Path

import numpy as np

from genorder.errors import InputError
from genorder.orders import (
    BLOCK,
    CandidateSource,
    Constraints,
    Order,
    block_orders,
    deduplicated,
    read_orders,
    sort_orders,
    topological_sorts,
    within_time_orders,
)

NAMED_POOLS = ("random", "sort", "block", "topo", "vars")


def initial_pool(
    spec: str,
    count: int,
    source: CandidateSource,
    rng: np.random.Generator,
    constraints: Constraints | None = None,
) -> list[Order]:
    """At most `count` orders: a named pool, or the orders of a JSON file.

    `sort` and `block` are priors around the reference order (`P_s-` and `P_b-` of the paper): snapshots of a sort
    towards its reverse, and its blocks of five shuffled, without the reference itself. Under constraints, the orders
    of a named pool are repaired, and the forbidden orders of a file are left out. Raises InputError for a pool that
    this data cannot have.
    """
    constraints = constraints or Constraints()
    check_initial_pool(spec, source, constraints)
    if spec == "random":
        return constraints.random_orders(len(source.reference), count, rng)
    if spec not in NAMED_POOLS:
        return _of_file(spec, source, constraints)[:count]
    pool = _named(spec, count, source, rng)
    if not constraints:
        return pool
    repaired = deduplicated(map(constraints.repaired, pool))
    if spec in ("sort", "block"):
        return [order for order in repaired if order != source.reference] or repaired
    return repaired


def _of_file(spec: str, source: CandidateSource, constraints: Constraints) -> list[Order]:
    return [order for order in read_orders(Path(spec), len(source.reference)) if constraints.allows(order)]


def _named(spec: str, count: int, source: CandidateSource, rng: np.random.Generator) -> list[Order]:
    if spec == "sort":
        pool = sort_orders(source.reference, count, rng, towards_reverse=True)
        # A sort may start at the reference itself, which is likely if there are few orders.
        return [order for order in pool if order != source.reference] or pool
    if spec == "block":
        return block_orders(source.reference, count, rng, with_reference=False)
    if spec == "topo" and source.graph is not None:
        return topological_sorts(source.graph, count, rng)
    assert source.variables is not None  # checked before
    return within_time_orders(source.reference, source.variables)[:count]


def check_initial_pool(spec: str, source: CandidateSource, constraints: Constraints | None = None) -> None:
    """Raises InputError for a pool that this data cannot have."""
    if spec in NAMED_POOLS:
        if spec == "topo" and source.graph is None:
            raise InputError("initial pool topo needs a dependency graph, which only built-in tasks have")
        if spec == "block" and len(source.reference) <= BLOCK:
            raise InputError(f"initial pool block shuffles blocks of {BLOCK} targets; this data has only one block")
        if spec == "vars" and source.variables is None:
            raise InputError("initial pool vars needs a time series of several variables, such as a delay network")
    elif not Path(spec).exists():
        raise InputError(f"initial pool {spec!r}: expected one of {', '.join(NAMED_POOLS)}, or a JSON file of orders")
    elif not _of_file(spec, source, constraints or Constraints()):
        raise InputError(
            f"initial pool {spec}: none of its orders meets {constraints}; add one that does, or ask for less"
        )
