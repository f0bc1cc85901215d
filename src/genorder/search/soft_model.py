"""A GPT on softly permuted targets: `Y P` for a doubly stochastic P, learned by gradient.

Axes: B batch, W input width, L targets (rows j of P) and steps (columns k of P), T = W + 1 + L tokens, Q = L + 1
predictions, D width, V vocabulary.
"""

from typing import Literal, final

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from genorder.analysis.attention import mean_row_entropy, row_entropies
from genorder.data import EncodedDataset
from genorder.data.encoding import EOS, SEP
from genorder.models import GPT
from genorder.models.attention_maps import trace_attention
from genorder.orders import Order

LabelLoss = Literal["divergence", "cross-entropy"]


@final
class SoftOrderModel(nn.Module):
    """A GPT and the logits of P; `fit` trains and keeps both."""

    def __init__(self, gpt: GPT, logits_LL: Tensor, *, temperature: float, iterations: int) -> None:
        super().__init__()
        self.gpt = gpt
        self.logits_LL = nn.Parameter(logits_LL)
        self._temperature, self._iterations = temperature, iterations

    def matrix(self) -> Tensor:
        """P_LL: entry (j, k) is the share of target j in step k."""
        return sinkhorn(self.logits_LL / self._temperature, self._iterations)


def sinkhorn(logits_LL: Tensor, iterations: int) -> Tensor:
    """exp(logits) with rows and columns normalised in turn: doubly stochastic in the limit.

    Columns come last and are exact, so that what is emitted at a step is a distribution over the targets.
    """
    for _ in range(iterations):
        logits_LL = logits_LL - logits_LL.logsumexp(dim=1, keepdim=True)
        logits_LL = logits_LL - logits_LL.logsumexp(dim=0, keepdim=True)
    return logits_LL.exp()


def embed_mixtures(gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """Embeddings_BTD of `x SEP (Y P)`: a soft token is the mixture of its tokens' embeddings."""
    inputs_BW = encoded.inputs_NW[rows_B].long()
    read = F.embedding(F.pad(inputs_BW, (0, 1), value=SEP), gpt.token_embedding)
    targets_BLD = F.embedding(encoded.targets_NL[rows_B].long(), gpt.token_embedding)
    return torch.cat([read, torch.einsum("jk,bjd->bkd", matrix_LL, targets_BLD)], dim=1)


def mixed_labels(encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """Labels_BQV: at step k the distribution of a target drawn from column k of P, then EOS for certain."""
    labels_BQ = F.pad(encoded.targets_NL[rows_B].long(), (0, 1), value=EOS)
    one_hot_BQV = F.one_hot(labels_BQ, encoded.model_vocabulary).to(matrix_LL.dtype)
    # In half precision, as in training on a GPU, labels would be too coarse for the difference from their own entropy.
    with torch.autocast(matrix_LL.device.type, enabled=False):
        mixed_BLV = torch.einsum("jk,bjv->bkv", matrix_LL, one_hot_BQV[:, :-1])
    return torch.cat([mixed_BLV, one_hot_BQV[:, -1:]], dim=1)


def soft_losses_by_step(
    gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor, label_loss: LabelLoss = "divergence"
) -> Tensor:
    """Losses_Q against the mixture that each step emits, the mean over samples; EOS is the last."""
    embedded_BTD = embed_mixtures(gpt, encoded, rows_B, matrix_LL)
    log_predicted_BQV = gpt.forward_embedded(embedded_BTD, encoded.input_width).float().log_softmax(dim=-1)
    labels_BQV = mixed_labels(encoded, rows_B, matrix_LL)
    losses_BQ = -(labels_BQV * log_predicted_BQV).sum(dim=-1)
    if label_loss == "divergence":
        losses_BQ = losses_BQ - row_entropies(labels_BQV)
    return losses_BQ.mean(dim=0)


def soft_loss(
    gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor, label_loss: LabelLoss = "divergence"
) -> Tensor:
    """The loss of all predictions, EOS too, per target token. For a hard permutation, the plain loss of its order."""
    return soft_losses_by_step(gpt, encoded, rows_B, matrix_LL, label_loss).sum() / encoded.target_width


def unigram_losses_by_step(encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """Divergences_Q of the mixtures from their own mean over samples: the least that a model can reach that
    reads nothing. How much of a low loss is due to labels that hardly vary, and not to reading."""
    labels_BQV = mixed_labels(encoded, rows_B, matrix_LL)
    return row_entropies(labels_BQV.mean(dim=0)) - row_entropies(labels_BQV).mean(dim=0)


def attention_entropy(gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """The paper's S of the softly permuted sequences: the mean over layers, heads, samples and positions."""
    weights = trace_attention(gpt, embed_mixtures(gpt, encoded, rows_B, matrix_LL)).weights
    return torch.stack([mean_row_entropy(weights_BHTT) for weights_BHTT in weights]).mean()


def order_matrix(order: Order) -> Tensor:
    """The hard P of an order: target order[k] at step k."""
    return F.one_hot(torch.tensor(list(order)), len(order)).T.float()


def nearest_order(matrix_LL: NDArray[np.floating]) -> Order:
    """The permutation that holds the most of P's mass."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    targets, steps = linear_sum_assignment(matrix_LL, maximize=True)
    return Order.of(targets[np.argsort(steps)])


def mass_around(matrix_LL: NDArray[np.floating], order: Order) -> dict[str, float]:
    """Shares of P's mass by distance from the order: on its targets, one step beside them, on any other target."""
    arranged_LL = matrix_LL[list(order)]
    length = len(order)
    diagonal = float(np.trace(arranged_LL)) / length
    beside = float(np.trace(arranged_LL, offset=1) + np.trace(arranged_LL, offset=-1)) / length
    return {"diagonal": diagonal, "next_diagonals": beside, "off_diagonal": 1.0 - diagonal}
