"""How clear each step of an order is: by how much would another target have been harder to predict there?

Axes: N samples, M targets that are left.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.orders import Order
from genorder.profiling.any_order import AnyOrderOracle


@final
@dataclass(frozen=True)
class Emission:
    target: int
    loss: float | None  # of the target, given those before it; unknown if no sample has it
    rival: int | None  # that would have been the easiest of the others; none at the last step
    margin: float | None  # by how much it would have been harder; negative if it was easier
    margin_error: float | None  # standard error


def emissions(oracle: AnyOrderOracle, order: Order) -> list[Emission]:
    """The steps of the order, from the first."""
    oracle = oracle.on_fewer_samples()
    found = []
    for step in range(len(order)):
        oracle.watch("measuring margins", step, len(order))
        found.append(_emission(oracle, order, step))
    return found


def _emission(oracle: AnyOrderOracle, order: Order, step: int) -> Emission:
    left = order.indices[step:]
    losses_NM = oracle.given(order.indices[:step], left)
    has_NM = oracle.validation.target_lengths_N.cpu().numpy()[:, None] > np.array(left)
    means_M = oracle.mean_of_those_with(left, losses_NM)
    loss = float(means_M[0]) if np.isfinite(means_M[0]) else None
    rival = 1 + int(means_M[1:].argmin()) if len(left) > 1 else 0
    both_N = has_NM[:, 0] & has_NM[:, rival]
    if rival == 0 or both_N.sum() < 2:
        return Emission(left[0], loss, None, None, None)
    worse_N = losses_NM[both_N, rival] - losses_NM[both_N, 0]
    error = worse_N.std(ddof=1) / np.sqrt(len(worse_N))
    return Emission(left[0], loss, left[rival], float(worse_N.mean()), float(error))
