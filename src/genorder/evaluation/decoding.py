"""Batched greedy generation with a key-value cache.

Axes: N samples, B batch, W input width, Q longest generation, V vocabulary.
"""

import torch
from torch import Tensor

from genorder.data.encoding import EOS, PAD, SEP
from genorder.models import GPT

BATCH_SIZE = 512


@torch.inference_mode()
def generate_greedily(model: GPT, inputs_NW: Tensor, longest: int, batch_size: int = BATCH_SIZE) -> Tensor:
    """Tokens_NQ: the most likely token at each step until EOS, at most `longest` tokens, and PAD after EOS."""
    model.eval()
    parts = [_generate(model, part, longest) for part in torch.split(inputs_NW, batch_size)]
    return torch.cat(parts) if parts else inputs_NW.new_empty((0, longest)).long()


def _generate(model: GPT, inputs_BW: Tensor, longest: int) -> Tensor:
    batch, width = inputs_BW.shape
    separator_B1 = torch.full((batch, 1), SEP, dtype=torch.long, device=inputs_BW.device)
    generated_BQ = torch.full((batch, longest), PAD, dtype=torch.long, device=inputs_BW.device)
    finished_B = torch.zeros(batch, dtype=torch.bool, device=inputs_BW.device)
    logits_BV, cache = model.extend(
        torch.cat([inputs_BW.long(), separator_B1], dim=1), model.empty_cache(batch, width + longest)
    )
    for step in range(longest):
        token_B = logits_BV.argmax(dim=-1).masked_fill(finished_B, PAD)
        generated_BQ[:, step] = token_B
        finished_B = finished_B | (token_B == EOS)
        if step + 1 == longest or bool(finished_B.all()):
            break
        logits_BV, cache = model.extend(token_B[:, None], cache)
    return generated_BQ
