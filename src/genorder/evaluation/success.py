"""The test of a model on a split: success rate by generation, losses and errors by target index.

Axes: B batch, Q predictions (targets and EOS), L targets.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
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
from genorder.models.losses import token_losses
from genorder.orders import Order

_WRONG_EXAMPLES, _RIGHT_EXAMPLES = 5, 3  # test samples that are kept: the first of each kind
_EXAMPLE_TOKENS = 256  # of each sequence of an example


@final
@dataclass(frozen=True)
class DecodedExample:
    """A test sample and what the model generated for it, as the user's tokens, in the order of emission."""

    row: int  # in the split
    right: bool
    input_length: int | None  # in tokens, before the cut; None: not known, in results of earlier versions
    length: int | None  # of the target, without EOS
    input: list[str]
    expected: list[str]
    generated: list[str]

    def to_dict(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "DecodedExample":
        return cls(**{"input_length": None, "length": None, **saved})


@final
@dataclass(frozen=True)
class Example:
    """A test sample and what the model generated for it, in the order of emission; model ids, EOS included."""

    row: int  # in the split
    inputs: list[int]
    expected: list[int]
    generated: list[int]

    def decoded(self, tokens: tuple[str, ...]) -> DecodedExample:
        """The example in the tokens of the vocabulary. Long sequences are cut."""
        sequences = (self.inputs, self.expected, self.generated)
        return DecodedExample(
            self.row,
            self.expected == self.generated,
            len(self.inputs),
            len(self.expected) - 1,
            *(decode_tokens(np.array(ids[:_EXAMPLE_TOKENS], dtype=np.int64), tokens) for ids in sequences),
        )


@final
@dataclass(frozen=True)
class Evaluation:
    samples: int
    success_rate: float  # exact match: the whole target generated greedily without an error, EOS included
    success_rate_interval: tuple[float, float]  # Wilson, 95 %
    teacher_forced_match_rate: float  # every argmax is right, given the true targets before it
    loss: float  # mean over target tokens, without EOS
    error_rate_by_target: list[float]  # by generation, at each original target index
    loss_by_target: list[float]
    eos_error_rate: float
    eos_loss: float
    examples: list[Example] = field(default_factory=list, repr=False)  # the first wrong ones, then the first right ones

    def to_dict(self) -> dict[str, object]:
        """The rates and losses; not the examples, which a vocabulary must decode."""
        rates = {name: value for name, value in vars(self).items() if name != "examples"}
        return {**rates, "success_rate_interval": list(self.success_rate_interval)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Evaluation":
        """Without examples. Other keys of `saved` are ignored; raises KeyError for a missing one."""
        low, high = saved["success_rate_interval"]
        rates = {one.name: saved[one.name] for one in fields(cls) if one.name != "examples"}
        return cls(**{**rates, "success_rate_interval": (low, high)})

    def decoded_examples(self, tokens: tuple[str, ...]) -> list[DecodedExample]:
        return [example.decoded(tokens) for example in self.examples]


def wilson_interval(successes: int, samples: int) -> tuple[float, float]:
    """The 95 % confidence interval of a rate by Wilson's method, which is sensible also at 0 and 1."""
    from scipy.stats import binomtest  # slow to import

    interval = binomtest(successes, samples).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


@torch.inference_mode()
def evaluate(
    model: GPT,
    encoded: EncodedDataset,
    order: Order,
    batch_size: int = BATCH_SIZE,
    *,
    stop: StopRequest | None = None,
) -> Evaluation:
    """Generate every sample's targets in `order` and compare; then compute the teacher-forced losses.

    Raises Interrupted between batches once `stop` is requested.
    """
    model.eval()
    targets = encoded.target_width
    device = encoded.inputs_NW.device
    order_1L = torch.tensor([list(order)], device=device)
    successes = matches = 0
    # One slot per target index, and a last one for EOS.
    total, wrong, lost = (np.zeros(targets + 1) for _ in range(3))
    wrong_examples: list[Example] = []
    right_examples: list[Example] = []
    for rows_B in torch.split(torch.arange(len(encoded), device=device), batch_size):
        if stop is not None and stop.requested:
            raise Interrupted("stopped while evaluating; the same command continues")
        batch = arrange(encoded, rows_B, order_1L)
        counts_BQ = batch.labels_BQ != IGNORED
        generated_BQ = generate_greedily(model, encoded.inputs_NW[rows_B], targets + 1, batch_size)
        wrong_BQ = (generated_BQ != batch.labels_BQ) & counts_BQ
        right_B = ~wrong_BQ.any(dim=1)
        successes += int(right_B.sum())
        chosen = ((wrong_examples, _WRONG_EXAMPLES, ~right_B), (right_examples, _RIGHT_EXAMPLES, right_B))
        for examples, most, chosen_B in chosen:
            for place in chosen_B.nonzero()[: most - len(examples), 0].tolist():
                examples.append(_example(encoded, int(rows_B[place]), batch.labels_BQ[place], generated_BQ[place]))
        logits_BQV = model.target_logits(batch)
        losses_BQ = token_losses(logits_BQV, batch)
        matches += int((~((logits_BQV.argmax(dim=-1) != batch.labels_BQ) & counts_BQ).any(dim=1)).sum())

        slot_BQ = torch.nn.functional.pad(restrict_orders(encoded, rows_B, order_1L), (0, 1), value=targets)
        at_eos_BQ = torch.arange(targets + 1, device=device) == encoded.target_lengths_N[rows_B][:, None]
        slots = slot_BQ.masked_fill(at_eos_BQ, targets)[counts_BQ].cpu().numpy()
        for sums, values_BQ in ((total, counts_BQ), (wrong, wrong_BQ), (lost, losses_BQ)):
            weights = values_BQ[counts_BQ].cpu().double().numpy()
            sums += np.bincount(slots, weights=weights, minlength=targets + 1)
    seen = np.maximum(total, 1)
    return Evaluation(
        samples=len(encoded),
        success_rate=successes / len(encoded),
        success_rate_interval=wilson_interval(successes, len(encoded)),
        teacher_forced_match_rate=matches / len(encoded),
        loss=float(lost[:targets].sum() / max(total[:targets].sum(), 1)),
        error_rate_by_target=(wrong / seen)[:targets].tolist(),
        loss_by_target=(lost / seen)[:targets].tolist(),
        eos_error_rate=float(wrong[targets] / seen[targets]),
        eos_loss=float(lost[targets] / seen[targets]),
        examples=[*wrong_examples, *right_examples],
    )


def _example(encoded: EncodedDataset, row: int, labels_Q: Tensor, generated_Q: Tensor) -> Example:
    counts_Q = labels_Q != IGNORED
    inputs = [token for token in encoded.inputs_NW[row].tolist() if token != PAD]
    return Example(row, inputs, labels_Q[counts_Q].tolist(), generated_Q[counts_Q].tolist())
