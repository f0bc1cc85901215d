"""The losses of many orders on the same samples, with common prefixes computed once.

All orders share the input, so it is encoded once per sample. Sorted orders are the leaves of a prefix tree, which is
walked from leaf to leaf: the keys and values of the prefix that an order shares with the previous order are still in
the cache, and only the other steps are computed. Exact up to rounding. Memory does not grow with the number of orders.

Axes: S samples, C orders, L targets, Q steps (SEP and the targets), M new steps, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from genorder.data.encoding import SEP
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.models import AnyGPT, KeyValueCache


def common_prefixes(orders_CL: Tensor) -> list[int]:
    """The length of the prefix that each order shares with the previous order; 0 for the first."""
    if len(orders_CL) < 2:
        return [0] * len(orders_CL)
    same = (orders_CL[1:] == orders_CL[:-1]).long()
    return [0, *same.cumprod(dim=1).sum(dim=1).tolist()]


@torch.inference_mode()
def shared_prefix_losses(
    model: AnyGPT, inputs_SW: Tensor, targets_SL: Tensor, orders_CL: Tensor, stop: StopRequest | None = None
) -> Tensor:
    """Losses_CS: the sum of the cross-entropies of all targets, without EOS. The orders must be sorted and distinct.

    Raises Interrupted once `stop` is requested.
    """
    samples, width = inputs_SW.shape
    count, length = orders_CL.shape
    device = inputs_SW.device
    separator_S1 = torch.full((samples, 1), SEP, dtype=torch.long, device=device)
    steps_SQ = torch.cat([separator_S1, targets_SL.long()], dim=1)
    prompt = torch.cat([inputs_SW.long(), separator_S1], dim=1)
    logits_SV, cache = model.gpt.extend(prompt, model.gpt.empty_cache(samples, width + 1 + length))
    # After the first d targets of the current order: log-probabilities of the next token, and the loss so far.
    follows_SQV = torch.empty(samples, length, logits_SV.shape[1], device=device)
    follows_SQV[:, 0] = logits_SV.float().log_softmax(dim=-1)
    cost_SQ = torch.zeros(samples, length + 1, device=device)
    losses_CS = torch.empty(count, samples, device=device)
    columns_CQ = F.pad(orders_CL + 1, (1, 0))  # of SEP and of the targets, in `steps_SQ`
    for number, shared in enumerate(common_prefixes(orders_CL.cpu())):
        if stop is not None and stop.requested:
            raise Interrupted("stopped while candidates were scored; the same command continues from there")
        # The last shared step is computed again if its embedding depends on the target that comes next.
        first = shared if model.order_conditioned else shared + 1
        new = slice(first, length)  # nothing is predicted after the last target
        if first < length:
            embedded_SMD = model.step_embeddings(steps_SQ[:, columns_CQ[number, new]], orders_CL[number], first)
            kept = KeyValueCache(cache.keys_BHTE, cache.values_BHTE, width + first)
            logits_SMV, _ = model.gpt.extend_embedded(embedded_SMD, kept)
            torch.log_softmax(logits_SMV.float(), dim=-1, out=follows_SQV[:, new])
        labels_SM = steps_SQ[:, columns_CQ[number, shared + 1 :]]
        picked_SM = follows_SQV[:, shared:].gather(2, labels_SM[..., None])[..., 0]
        cost_SQ[:, shared + 1 :] = cost_SQ[:, shared : shared + 1] - picked_SM.cumsum(dim=1)
        losses_CS[number] = cost_SQ[:, length]
    return losses_CS
