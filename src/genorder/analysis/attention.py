"""How sparse attention is: the paper's S, low where a model reads few tokens."""

import torch
from torch import Tensor


def mean_row_entropy(weights_TT: Tensor) -> Tensor:
    """The paper's S: the mean entropy of the rows, over all leading axes too (samples, heads, layers)."""
    return row_entropies(weights_TT).mean()


def row_entropies(weights_TT: Tensor) -> Tensor:
    """Shannon entropies, in nats, of distributions along the last axis.

    0 where a row reads one position, log n where it reads n alike. Differentiable, also where a weight is 0.
    """
    # The gradient of a log a is infinite at 0, and turns into NaN in the softmax before it: hence the bound.
    smallest = torch.finfo(weights_TT.dtype).tiny
    return -(weights_TT * weights_TT.clamp_min(smallest).log()).sum(dim=-1)
