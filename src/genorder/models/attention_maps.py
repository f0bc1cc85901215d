"""The attention weights of a GPT, which its own fast attention never shows.

Axes: B batch, T tokens, H heads, D width; in BHTT the first T is of the reading positions, the second of those read.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from genorder.models.gpt import GPT, Block


class AttentionTrace(NamedTuple):
    weights: list[Tensor]  # BHTT of each layer, first layer first; 0 for later tokens, rows sum to 1
    hidden_BTD: Tensor  # after the last layer: `model.logits` of it are the model's own


def attention_weights(model: GPT, tokens_BT: Tensor) -> list[Tensor]:
    """Weights_BHTT of each layer for these tokens. Without dropout, in training mode too."""
    return trace_attention(model, F.embedding(tokens_BT, model.token_embedding)).weights


def trace_attention(model: GPT, embedded_BTD: Tensor) -> AttentionTrace:
    """The model's computation with its weights written out, from token embeddings before positions are added.

    Differentiable in the embeddings. Without dropout, in training mode too.
    """
    hidden_BTD = model.add_positions(embedded_BTD)
    weights: list[Tensor] = []
    for block in model.blocks:
        assert isinstance(block, Block)
        normed_BTD = block.norm_attention(hidden_BTD)
        query_BHTE = block.split_heads(block.query(normed_BTD))
        key_BHTE, value_BHTE = (block.split_heads(part) for part in block.key_value(normed_BTD).chunk(2, dim=-1))
        weights_BHTT = _causal_softmax(query_BHTE @ key_BHTE.mT / math.sqrt(query_BHTE.shape[-1]))
        weights.append(weights_BHTT)
        hidden_BTD = block.after_attention(hidden_BTD, (weights_BHTT @ value_BHTE).transpose(1, 2).flatten(2))
    return AttentionTrace(weights, hidden_BTD)


def _causal_softmax(scores_BHTT: Tensor) -> Tensor:
    tokens = scores_BHTT.shape[-1]
    later_TT = torch.ones(tokens, tokens, dtype=torch.bool, device=scores_BHTT.device).triu(1)
    return scores_BHTT.masked_fill(later_TT, -math.inf).softmax(dim=-1)
