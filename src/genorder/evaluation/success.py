"""How well a model does on a split: success rate by generation, losses and errors by target index.

Axes: B batch, Q predictions (targets and EOS), L targets.
"""

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from genorder.data import EncodedDataset, arrange
from genorder.data.encoding import IGNORED, PAD, decode_tokens, restrict_orders
from genorder.errors import Interrupted
from genorder.evaluation.decoding import BATCH_SIZE, generate_greedily
from genorder.execution import StopRequest
from genorder.models import GPT
from genorder.models.losses import target_logits, token_losses
from genorder.orders import Order

_WRONG_SHOWN, _RIGHT_SHOWN = 5, 3  # samples kept to be looked at: the first of each kind
_TOKENS_SHOWN = 256  # of each sequence of such a sample


@final
@dataclass(frozen=True)
class Example:
    """One test sample and what was generated for it, in the order of emission; model ids, EOS included."""

    row: int  # in the split
    inputs: list[int]
    expected: list[int]
    generated: list[int]

    def to_dict(self, tokens: tuple[str, ...]) -> dict[str, Any]:
        """In the user's own tokens, the first of each sequence; `tokens` are those of the vocabulary."""
        named = {
            name: decode_tokens(np.array(ids[:_TOKENS_SHOWN], dtype=np.int64), tokens)
            for name, ids in (("input", self.inputs), ("expected", self.expected), ("generated", self.generated))
        }
        lengths = {"input_length": len(self.inputs), "length": len(self.expected) - 1}  # without EOS, before the cut
        return {"row": self.row, "right": self.expected == self.generated, **lengths, **named}


@final
@dataclass(frozen=True)
class Evaluation:
    samples: int
    success_rate: float  # whole target generated greedily without an error, EOS included
    success_rate_interval: tuple[float, float]  # Wilson, 95 %
    teacher_forced_match_rate: float  # every argmax right when the true targets are fed in
    loss: float  # mean over target tokens, without EOS
    error_rate_by_target: list[float]  # by generation, at each original target index
    loss_by_target: list[float]
    eos_error_rate: float
    eos_loss: float
    examples: list[Example] = field(default_factory=list, repr=False)  # the first wrong ones, then the first right

    def to_dict(self) -> dict[str, Any]:
        """The rates; the examples are not in it, which need a vocabulary to be read."""
        rates = {name: value for name, value in vars(self).items() if name != "examples"}
        return {**rates, "success_rate_interval": list(self.success_rate_interval)}

    def examples_in(self, tokens: tuple[str, ...]) -> list[dict[str, Any]]:
        return [example.to_dict(tokens) for example in self.examples]


def wilson_interval(successes: int, samples: int) -> tuple[float, float]:
    """95 % confidence interval of a rate; sensible also at 0 and 1."""
    z2 = NormalDist().inv_cdf(0.975) ** 2
    rate = successes / samples
    centre = (rate + z2 / (2 * samples)) / (1 + z2 / samples)
    half = math.sqrt(z2 * (rate * (1 - rate) / samples + z2 / (4 * samples**2))) / (1 + z2 / samples)
    # At the ends the formula gives exactly 0 and 1 but for rounding.
    return (0.0 if successes == 0 else centre - half, 1.0 if successes == samples else centre + half)


@torch.inference_mode()
def evaluate(
    model: GPT,
    encoded: EncodedDataset,
    order: Order,
    batch_size: int = BATCH_SIZE,
    *,
    stop: StopRequest | None = None,
) -> Evaluation:
    """Generate every sample's targets in `order` and compare; then the teacher-forced losses.

    Raises Interrupted between batches once `stop` is requested.
    """
    model.eval()
    targets = encoded.target_width
    device = encoded.inputs_NW.device
    order_1L = torch.tensor([list(order)], device=device)
    successes = matches = 0
    # One slot per target index, and a last one for EOS.
    counted, wrong, lost = (np.zeros(targets + 1) for _ in range(3))
    shown = _Shown()
    for rows_B in torch.split(torch.arange(len(encoded), device=device), batch_size):
        if stop is not None and stop.requested:
            raise Interrupted("stopped while evaluating; the same command continues")
        batch = arrange(encoded, rows_B, order_1L)
        counts_BQ = batch.labels_BQ != IGNORED
        generated_BQ = generate_greedily(model, encoded.inputs_NW[rows_B], targets + 1, batch_size)
        wrong_BQ = (generated_BQ != batch.labels_BQ) & counts_BQ
        right_B = ~wrong_BQ.any(dim=1)
        successes += int(right_B.sum())
        shown.add(encoded, rows_B, batch.labels_BQ, generated_BQ, right_B)
        logits_BQV = target_logits(model, batch)
        losses_BQ = token_losses(logits_BQV, batch)
        matches += int((~((logits_BQV.argmax(dim=-1) != batch.labels_BQ) & counts_BQ).any(dim=1)).sum())

        slot_BQ = torch.nn.functional.pad(restrict_orders(encoded, rows_B, order_1L), (0, 1), value=targets)
        at_eos_BQ = torch.arange(targets + 1, device=device) == encoded.target_lengths_N[rows_B][:, None]
        slots = slot_BQ.masked_fill(at_eos_BQ, targets)[counts_BQ].cpu().numpy()
        for total, values_BQ in ((counted, counts_BQ), (wrong, wrong_BQ), (lost, losses_BQ)):
            weights = values_BQ[counts_BQ].cpu().double().numpy()
            total += np.bincount(slots, weights=weights, minlength=targets + 1)
    seen = np.maximum(counted, 1)
    return Evaluation(
        samples=len(encoded),
        success_rate=successes / len(encoded),
        success_rate_interval=wilson_interval(successes, len(encoded)),
        teacher_forced_match_rate=matches / len(encoded),
        loss=float(lost[:targets].sum() / max(counted[:targets].sum(), 1)),
        error_rate_by_target=(wrong / seen)[:targets].tolist(),
        loss_by_target=(lost / seen)[:targets].tolist(),
        eos_error_rate=float(wrong[targets] / seen[targets]),
        eos_loss=float(lost[targets] / seen[targets]),
        examples=[*shown.wrong, *shown.right],
    )


class _Shown:
    """Gathers the first few samples of each kind."""

    def __init__(self) -> None:
        self.wrong: list[Example] = []
        self.right: list[Example] = []

    def add(
        self, encoded: EncodedDataset, rows_B: Tensor, labels_BQ: Tensor, generated_BQ: Tensor, right_B: Tensor
    ) -> None:
        for kept, most, chosen_B in ((self.wrong, _WRONG_SHOWN, ~right_B), (self.right, _RIGHT_SHOWN, right_B)):
            for place in chosen_B.nonzero()[: most - len(kept), 0].tolist():
                counts_Q = labels_BQ[place] != IGNORED
                kept.append(
                    Example(
                        row=int(rows_B[place]),
                        inputs=[token for token in encoded.inputs_NW[rows_B[place]].tolist() if token != PAD],
                        expected=labels_BQ[place][counts_Q].tolist(),
                        generated=generated_BQ[place][counts_Q].tolist(),
                    )
                )
