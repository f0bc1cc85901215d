"""Constructing an order from what a trained routed model says: greedily, the target of least loss first.

A position matters to a target only as far as its slots read it. So while targets are emitted one after the other, a
target's loss is measured again only once its slots would read something else by more than a hundredth.

Axes: N samples, L targets, H slots.
"""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genorder.orders import Constraints, Order
from genorder.profiling.any_order import READ, AnyOrderOracle


@final
class GrowingLosses:
    """Losses of what is left, while more and more is emitted, never less: `AnyOrderOracle.mean_given` for less work."""

    def __init__(self, oracle: AnyOrderOracle) -> None:
        self._oracle = oracle
        self._losses_L = np.full(oracle.targets, np.nan)
        self._mass_LH = oracle.mass_given([])  # when each loss was measured

    def mean_given(self, emitted: Sequence[int], targets: Sequence[int]) -> NDArray[np.float64]:
        mass_LH = self._oracle.mass_given(emitted)
        changed_L = _reads_more(self._oracle, self._mass_LH, mass_LH) | np.isnan(self._losses_L)
        if measured := [target for target in targets if changed_L[target]]:
            self._losses_L[measured] = self._oracle.mean_given(emitted, measured)
            self._mass_LH[measured] = mass_LH[measured]
        losses_M: NDArray[np.float64] = self._losses_L[list(targets)]
        return losses_M


def _reads_more(oracle: AnyOrderOracle, before_LH: Tensor, after_LH: Tensor) -> NDArray[np.bool_]:
    """Which targets read what has been added, by the masses before and after?"""
    shares_LH = -torch.expm1(before_LH - after_LH)
    reads_L: NDArray[np.bool_] = (shares_LH > READ).any(dim=1).cpu().numpy()
    return reads_L


def greedy_order(oracle: AnyOrderOracle, constraints: Constraints | None = None) -> Order:
    """Emit next the target of least loss given those emitted, among those that the constraints allow."""
    units = (constraints or Constraints()).units(oracle.targets)
    growing = GrowingLosses(oracle)

    def choose(emitted: Sequence[int], available: Sequence[int]) -> int:
        oracle.watch("constructing greedily", len(emitted), oracle.targets)
        if len(available) == 1:
            return 0
        following = [units.free[unit] for unit in available]
        if all(len(unit) == 1 for unit in following):
            return int(growing.mean_given(emitted, [unit[0] for unit in following]).argmin())
        return int(oracle.mean_following(emitted, following).argmin())

    return units.sort(choose)
