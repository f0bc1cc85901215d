"""The loss of a GPT on the targets of a batch, per target token: at one length, chance on V tokens is log V.

Axes: B batch, Q predictions (targets and EOS).
"""

import torch.nn.functional as F
from torch import Tensor

from genorder.data.encoding import EOS, IGNORED, Batch
from genorder.models.order_conditioned import AnyGPT, OrderConditionedGPT


def target_logits(model: AnyGPT, batch: Batch) -> Tensor:
    """Logits_BQV of the targets and EOS; the input's positions are read, never predicted."""
    if isinstance(model, OrderConditionedGPT):
        return model(batch.tokens_BT, batch.predicted_BQ)  # type: ignore[no-any-return]
    first = batch.tokens_BT.shape[1] - batch.labels_BQ.shape[1]
    logits: Tensor = model(batch.tokens_BT, first)
    return logits


def mean_loss(model: AnyGPT, batch: Batch) -> Tensor:
    """Cross-entropy of all targets and EOS tokens of the batch, per target token: what training minimises."""
    losses_BQ = token_losses(target_logits(model, batch), batch)
    targets = ((batch.labels_BQ != IGNORED) & (batch.labels_BQ != EOS)).sum()
    return losses_BQ.sum() / targets.clamp(min=1)


def token_losses(logits_BQV: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy_BQ of every prediction; 0 where it does not count."""
    losses = F.cross_entropy(
        logits_BQV.flatten(0, 1).float(), batch.labels_BQ.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return losses.view(batch.labels_BQ.shape)


def target_losses(logits_BQV: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy_BQ of every target; 0 for EOS and beyond."""
    return token_losses(logits_BQV, batch).masked_fill(batch.labels_BQ == EOS, 0.0)
