"""What each target is computed from, by breaking one position after another.

A position matters to a target if the target's loss rises when the tokens at that position are shuffled among the
samples. Axes: N samples, L targets, P positions.
"""

from collections.abc import Sequence

import numpy as np
import torch

from genorder.dependencies.graph import TargetDependency
from genorder.orders import Order
from genorder.profiling.any_order import READ, AnyOrderOracle, available_before

_PARENT_SHARE = 0.1  # of the largest rise of a target's loss, that a parent must cause
_PARENT_ERRORS = 4.0  # standard errors that it must exceed


def learned_dependencies(oracle: AnyOrderOracle, order: Order) -> list[TargetDependency]:
    """The parents of every target, when they are emitted in this order."""
    model = oracle.model
    inputs, targets = model.inputs, model.targets
    oracle = oracle.on_fewer_samples()
    device = oracle.validation.inputs_NW.device
    available_LP = available_before(torch.tensor([list(order)], device=device), inputs)[0]
    read_LP = model.slot_weights(available_LP[None])[0].amax(dim=0) >= READ
    whole_NL = oracle.losses(available_LP)
    count = len(whole_NL)
    rise_PL, error_PL = np.zeros((inputs + targets, targets)), np.zeros((inputs + targets, targets))
    for position in range(inputs + targets):
        oracle.watch("breaking positions", position, inputs + targets)
        readers_M = read_LP[:, position].nonzero()[:, 0]
        if len(readers_M):
            broken = oracle.with_broken(position)
            risen_NM = broken.losses(available_LP[readers_M], readers_M) - whole_NL[:, readers_M.cpu().numpy()]
            rise_PL[position, readers_M.cpu().numpy()] = risen_NM.mean(axis=0)
            error_PL[position, readers_M.cpu().numpy()] = risen_NM.std(axis=0, ddof=1) / np.sqrt(count)
    enough_PL = (rise_PL >= _PARENT_SHARE * rise_PL.max(axis=0)) & (rise_PL > _PARENT_ERRORS * error_PL)
    return [
        _dependency(target, enough_PL[:, target].nonzero()[0].tolist(), rise_PL[:, target], whole_NL[:, target], inputs)
        for target in range(targets)
    ]


def _dependency(
    target: int, parents: Sequence[int], rise_P: np.ndarray, loss_N: np.ndarray, inputs: int
) -> TargetDependency:
    parents = sorted(parents, key=lambda p: -rise_P[p])
    names = {p: f"x{p}" if p < inputs else f"y{p - inputs}" for p in parents}
    return TargetDependency(
        target=target,
        inputs=tuple(p for p in parents if p < inputs),
        targets=tuple(p - inputs for p in parents if p >= inputs),
        loss=float(loss_N.mean()),
        loss_without={names[p]: float(rise_P[p]) for p in parents},
    )
