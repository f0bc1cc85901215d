"""The sparsity of attention: the paper's S, which is low if a model reads few tokens.

Axes: N samples, B batch, H heads, T tokens.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from genorder.models import GPT
from genorder.models.gpt import attention_weights

_BATCH = 64


@final
@dataclass(frozen=True, eq=False)
class AttentionSummary:
    map_TT: Tensor  # mean weights over samples, layers and heads
    sparsity: float  # the paper's S


@torch.inference_mode()
def summarise_attention(model: GPT, tokens_NT: Tensor) -> AttentionSummary:
    """The mean map, and the mean S over all maps, which is smaller than the S of the mean map."""
    if not len(tokens_NT):
        raise ValueError("no samples were given")
    width = tokens_NT.shape[1]
    total_TT = torch.zeros(width, width, dtype=torch.float64, device=tokens_NT.device)
    entropy, maps = 0.0, 0
    for tokens_BT in torch.split(tokens_NT, _BATCH):
        for weights_BHTT in attention_weights(model, tokens_BT):
            total_TT += weights_BHTT.double().sum(dim=(0, 1))
            count = weights_BHTT.shape[0] * weights_BHTT.shape[1]
            entropy += float(mean_row_entropy(weights_BHTT)) * count
            maps += count
    return AttentionSummary(total_TT / maps, entropy / maps)


def mean_row_entropy(weights_TT: Tensor) -> Tensor:
    """The paper's S: the mean entropy of the rows, also over leading axes (samples, heads, layers)."""
    return row_entropies(weights_TT).mean()


def row_entropies(weights_TT: Tensor) -> Tensor:
    """Shannon entropies, in nats, of distributions along the last axis.

    0 for a row that reads one position, log n for one that reads n equally. Differentiable, also at weights of 0.
    """
    # The bound avoids the infinite gradient of a log a at 0, which would become NaN in the softmax before it.
    smallest = torch.finfo(weights_TT.dtype).tiny
    return -(weights_TT * weights_TT.clamp_min(smallest).log()).sum(dim=-1)
