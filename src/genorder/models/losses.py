"""The cross-entropy of a GPT on the targets of a batch, per target token.

A uniform guess among V tokens has loss log V if all targets have one length, so that EOS costs nothing.

Axes: B batch, Q predictions (targets and EOS).
"""

import torch.nn.functional as F
from torch import Tensor

from genorder.data.encoding import EOS, IGNORED, Batch
from genorder.models.order_conditioned import AnyGPT


def mean_loss(model: AnyGPT, batch: Batch) -> Tensor:
    """The training loss: cross-entropy of all targets and EOS tokens of the batch, divided by the number of targets."""
    losses_BQ = token_losses(model.target_logits(batch), batch)
    targets = ((batch.labels_BQ != IGNORED) & (batch.labels_BQ != EOS)).sum()
    return losses_BQ.sum() / targets.clamp(min=1)


def token_losses(logits_BQV: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy_BQ of every prediction, EOS included; 0 beyond EOS."""
    losses = F.cross_entropy(
        logits_BQV.flatten(0, 1).float(), batch.labels_BQ.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return losses.view(batch.labels_BQ.shape)


def target_losses(logits_BQV: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy_BQ of every target; 0 for EOS and beyond."""
    return token_losses(logits_BQV, batch).masked_fill(batch.labels_BQ == EOS, 0.0)
