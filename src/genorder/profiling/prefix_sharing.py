"""The loss of many orders on the same samples, computing what they share once.

All orders share the input, so it is encoded once per sample. Orders that begin alike share the targets they begin
with: sorted, they are the leaves of a tree of prefixes, which is walked from leaf to leaf. Going to the next order,
the keys and values of the steps it has in common with the one before are still there; only the rest is computed.
Exact, to rounding; memory does not grow with the number of orders.

Axes: S samples, C orders, M steps that are new, V vocabulary.
"""

import torch
from torch import Tensor

from genorder.data.encoding import EOS, SEP
from genorder.models import GPT, KeyValueCache


def common_prefixes(orders_CL: Tensor) -> list[int]:
    """How many first steps each order has in common with the one before it; 0 for the first."""
    if len(orders_CL) < 2:
        return [0] * len(orders_CL)
    same = (orders_CL[1:] == orders_CL[:-1]).long()
    return [0, *same.cumprod(dim=1).sum(dim=1).tolist()]


@torch.inference_mode()
def shared_prefix_losses(model: GPT, inputs_SW: Tensor, targets_SL: Tensor, orders_CL: Tensor) -> Tensor:
    """Losses_CS: the summed cross-entropy of all targets and EOS. The orders must be sorted and distinct."""
    samples, width = inputs_SW.shape
    count, length = orders_CL.shape
    separator_S1 = torch.full((samples, 1), SEP, dtype=torch.long, device=inputs_SW.device)
    prompt = torch.cat([inputs_SW.long(), separator_S1], dim=1)
    logits_SV, cache = model.extend(prompt, model.empty_cache(samples, width + 1 + length))
    # What follows the first d targets of the current order, and what those d have cost, for d = 0..L.
    follows_SLV = torch.empty(samples, length + 1, logits_SV.shape[1], device=inputs_SW.device)
    follows_SLV[:, 0] = logits_SV.float().log_softmax(dim=-1)
    cost_SL = torch.zeros(samples, length + 1, device=inputs_SW.device)
    losses_CS = torch.empty(count, samples, device=inputs_SW.device)
    targets_SL = targets_SL.long()
    for number, shared in enumerate(common_prefixes(orders_CL.cpu())):
        tokens_SM = targets_SL[:, orders_CL[number, shared:]]
        kept = KeyValueCache(cache.keys_BHTE, cache.values_BHTE, width + 1 + shared)
        logits_SMV, _ = model.extend_by_each(tokens_SM, kept)
        torch.log_softmax(logits_SMV.float(), dim=-1, out=follows_SLV[:, shared + 1 :])
        picked_SM = follows_SLV[:, shared:length].gather(2, tokens_SM[..., None])[..., 0]
        cost_SL[:, shared + 1 :] = cost_SL[:, shared : shared + 1] - picked_SM.cumsum(dim=1)
        losses_CS[number] = cost_SL[:, length] - follows_SLV[:, length, EOS]
    return losses_CS
