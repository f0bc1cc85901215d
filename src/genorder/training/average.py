"""The mean of a model's last weights: what a constant learning rate has learnt, without its noise."""

import copy
from typing import Generic, TypeVar, final

import torch
from torch import nn

M = TypeVar("M", bound=nn.Module)


@final
class WeightAverage(Generic[M]):
    """A copy of the model that holds the mean of its weights over about the last `share` of the steps.

    Polynomial-decay averaging (Shamir and Zhang, 2013).
    """

    def __init__(self, model: M, share: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        self._share = share

    @torch.no_grad()
    def update(self, model: M, done: int) -> None:
        """Count the weights after `done` steps."""
        weight = min(1.0, 1 / (self._share * done))
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), weight)
