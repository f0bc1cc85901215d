"""A GPT that is told which target it emitted last and which one comes next, so that it need not guess the order.

In the paper's mixture the model sees values in an unknown sequence and must infer which target each of them is. Told,
it learns from every order that happens to emit what a target is computed from, not only from the one that always does.

Axes: B batch, T tokens, Q predictions (targets and EOS), D width, I target indices and one for none (SEP, EOS).
"""

from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genorder.data import EncodedDataset
from genorder.models.fresh import fresh_gpt
from genorder.models.gpt import GPT, GPTConfig
from genorder.seeding import derive_seed, torch_generator


@final
class OrderConditionedGPT(nn.Module):
    def __init__(self, gpt: GPT, *, targets: int, rng: torch.Generator) -> None:
        super().__init__()
        self.gpt = gpt
        self.emitted_ID, self.next_ID = (
            nn.Parameter(gpt.config.initial_deviation * torch.randn(targets + 1, gpt.config.width, generator=rng))
            for _ in range(2)
        )

    @property
    def none(self) -> int:
        """The index that stands for no target: what is predicted is EOS, what was emitted is SEP."""
        return len(self.next_ID) - 1

    @property
    def config(self) -> GPTConfig:
        return self.gpt.config

    def forward(self, tokens_BT: Tensor, predicted_BQ: Tensor) -> Tensor:
        """Logits_BQV of the predictions, told of which target index each of them is."""
        inputs = tokens_BT.shape[1] - predicted_BQ.shape[1]
        inputs_BWD = F.embedding(tokens_BT[:, :inputs], self.gpt.token_embedding)
        emitted_BQ = F.pad(predicted_BQ[:, :-1], (1, 0), value=self.none)
        steps_BQD = F.embedding(tokens_BT[:, inputs:], self.gpt.token_embedding) + self.notes(emitted_BQ, predicted_BQ)
        return self.gpt.forward_embedded(torch.cat([inputs_BWD, steps_BQD], dim=1), inputs)

    def notes(self, emitted_Q: Tensor, predicted_Q: Tensor) -> Tensor:
        """What each step's token embedding is added, _QD: the index it was emitted for and the one that comes next."""
        return F.embedding(emitted_Q, self.emitted_ID) + F.embedding(predicted_Q, self.next_ID)


AnyGPT = GPT | OrderConditionedGPT


def fresh_order_conditioned_gpt(config: GPTConfig, data: EncodedDataset, seed: int) -> OrderConditionedGPT:
    """The same for equal seeds."""
    rng = torch_generator(derive_seed(seed, "told"))
    return OrderConditionedGPT(fresh_gpt(config, data, seed), targets=data.target_width, rng=rng).to(
        data.inputs_NW.device
    )
