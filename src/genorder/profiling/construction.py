"""Constructing an order from what a trained routed model says: greedily, or by what one target saves of another.

A position matters to a target only as far as its slots read it. So while targets are emitted one after the other, a
target's loss is measured again only once its slots would read something else by more than a hundredth.

Axes: N samples, L targets, H slots.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genorder.orders import Constraints, Order, Units
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


def least_loss_first(
    oracle: AnyOrderOracle, units: Units, edges: Iterable[tuple[int, int]] | None = None, *, part: str
) -> Order:
    """Emit next, of the units that may come, the one of least loss given what is emitted; see `Units.sort`."""
    growing = GrowingLosses(oracle)

    def choose(emitted: Sequence[int], available: Sequence[int]) -> int:
        oracle.watch(part, len(emitted), oracle.targets)
        if len(available) == 1:
            return 0
        following = [units.free[unit] for unit in available]
        if all(len(unit) == 1 for unit in following):
            return int(growing.mean_given(emitted, [unit[0] for unit in following]).argmin())
        return int(oracle.mean_following(emitted, following).argmin())

    return units.sort(choose, edges)


def greedy_order(oracle: AnyOrderOracle, constraints: Constraints | None = None) -> Order:
    """Emit next the target of least loss given those emitted, among those that the constraints allow."""
    return least_loss_first(oracle, (constraints or Constraints()).units(oracle.targets), part="constructing greedily")


@final
@dataclass(frozen=True, eq=False)
class Gains:
    """How much knowing one target lowers the loss of another, beyond the inputs; nothing where it is not read."""

    alone_L: NDArray[np.float64]  # loss of each target given the inputs alone
    gain_LL: NDArray[np.float64]  # gain_LL[i, j]: of j from knowing i
    error_LL: NDArray[np.float64]  # its standard error


def pairwise_gains(oracle: AnyOrderOracle) -> Gains:
    alone_NL = oracle.given([])
    count, targets = alone_NL.shape
    gain_LL, error_LL = np.zeros((targets, targets)), np.zeros((targets, targets))
    mass_LH = oracle.mass_given([])
    for known in range(targets):
        oracle.watch("measuring gains", known, targets)
        reads_L = _reads_more(oracle, mass_LH, oracle.mass_given([known]))
        reads_L[known] = False
        if len(readers := reads_L.nonzero()[0]):
            gained_NM = alone_NL[:, readers] - oracle.given([known], readers.tolist())
            gain_LL[known, readers] = gained_NM.mean(axis=0)
            error_LL[known, readers] = gained_NM.std(axis=0, ddof=1) / np.sqrt(count)
    return Gains(alone_NL.mean(axis=0), gain_LL, error_LL)
