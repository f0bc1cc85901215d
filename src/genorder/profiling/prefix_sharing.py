"""The loss of many orders on the same samples, computing what they share once.

All orders share the input, so it is encoded once per sample. Orders that begin alike share the targets they begin
with: sorted, they are the leaves of a tree of prefixes, which is walked from leaf to leaf. Going to the next order,
the keys and values of the steps it has in common with the one before are still there; only the rest is computed.
Exact, to rounding; memory does not grow with the number of orders.

Axes: S samples, C orders, M steps that are new, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from genorder.data.encoding import SEP
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.models import AnyGPT, KeyValueCache, OrderConditionedGPT


def common_prefixes(orders_CL: Tensor) -> list[int]:
    """How many first steps each order has in common with the one before it; 0 for the first."""
    if len(orders_CL) < 2:
        return [0] * len(orders_CL)
    same = (orders_CL[1:] == orders_CL[:-1]).long()
    return [0, *same.cumprod(dim=1).sum(dim=1).tolist()]


@torch.inference_mode()
def shared_prefix_losses(
    model: AnyGPT, inputs_SW: Tensor, targets_SL: Tensor, orders_CL: Tensor, stop: StopRequest | None = None
) -> Tensor:
    """Losses_CS: the summed cross-entropy of all targets, without EOS. The orders must be sorted and distinct.

    Raises Interrupted once `stop` is requested.
    """
    samples, width = inputs_SW.shape
    count, length = orders_CL.shape
    device = inputs_SW.device
    gpt = model.gpt if isinstance(model, OrderConditionedGPT) else model
    separator_S1 = torch.full((samples, 1), SEP, dtype=torch.long, device=device)
    steps_SQ = torch.cat([separator_S1, targets_SL.long()], dim=1)
    prompt = torch.cat([inputs_SW.long(), separator_S1], dim=1)
    logits_SV, cache = gpt.extend(prompt, gpt.empty_cache(samples, width + 1 + length))
    # What follows the first d targets of the current order, for d = 0..L-1, and what those d have cost, for d = 0..L.
    follows_SQV = torch.empty(samples, length, logits_SV.shape[1], device=device)
    follows_SQV[:, 0] = logits_SV.float().log_softmax(dim=-1)
    cost_SQ = torch.zeros(samples, length + 1, device=device)
    losses_CS = torch.empty(count, samples, device=device)
    columns_CQ = F.pad(orders_CL + 1, (1, 0))  # of SEP, then of the targets, in `steps_SQ`
    if isinstance(model, OrderConditionedGPT):
        # It knows at the last common step already which target comes next: that step is computed again.
        again = 1
        emitted_CQ, predicted_CQ = (F.pad(orders_CL, side, value=model.none) for side in ((1, 0), (0, 1)))
    else:
        again = 0
    for number, shared in enumerate(common_prefixes(orders_CL.cpu())):
        if stop is not None and stop.requested:
            raise Interrupted("stopped while candidates were scored; the same command continues from there")
        first = shared + 1 - again
        new = slice(first, length)  # nothing is read after the last target
        if first < length:
            embedded_SMD = F.embedding(steps_SQ[:, columns_CQ[number, new]], gpt.token_embedding)
            if isinstance(model, OrderConditionedGPT):
                embedded_SMD = embedded_SMD + model.notes(emitted_CQ[number, new], predicted_CQ[number, new])
            kept = KeyValueCache(cache.keys_BHTE, cache.values_BHTE, width + first)
            logits_SMV, _ = gpt.extend_embedded(embedded_SMD, kept)
            torch.log_softmax(logits_SMV.float(), dim=-1, out=follows_SQV[:, new])
        labels_SM = steps_SQ[:, columns_CQ[number, shared + 1 :]]
        picked_SM = follows_SQV[:, shared:].gather(2, labels_SM[..., None])[..., 0]
        cost_SQ[:, shared + 1 :] = cost_SQ[:, shared : shared + 1] - picked_SM.cumsum(dim=1)
        losses_CS[number] = cost_SQ[:, length]
    return losses_CS
