"""A GPT that receives the indices of the last and the next target, as a sigma-GPT does (Pannatier et al., 2024).

In the paper's mixture of orders a model sees the values of the targets in an unknown order, and must infer which target
each value belongs to. With the indices as a second input it learns from every order in which the parents of a target
come first, not only from one fixed order.

Axes: B batch, T tokens, Q predictions (targets and EOS), D width, L targets, I target indices and one for none.
"""

from typing import ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genorder.data import Batch, EncodedDataset
from genorder.models.gpt import GPT, GPTConfig, fresh_gpt
from genorder.seeding import derive_seed, torch_generator


@final
class OrderConditionedGPT(nn.Module):
    order_conditioned: ClassVar[bool] = True  # the embedding of a step depends on the target that comes next

    def __init__(self, gpt: GPT, *, targets: int, rng: torch.Generator) -> None:
        super().__init__()
        self.gpt = gpt
        self.emitted_ID, self.next_ID = (
            nn.Parameter(gpt.config.initial_deviation * torch.randn(targets + 1, gpt.config.width, generator=rng))
            for _ in range(2)
        )

    @property
    def none(self) -> int:
        """The index for "no target": the last token is SEP, or the next one is EOS."""
        return len(self.next_ID) - 1

    @property
    def config(self) -> GPTConfig:
        return self.gpt.config

    def forward(self, tokens_BT: Tensor, predicted_BQ: Tensor) -> Tensor:
        """Logits_BQV of the predictions; `predicted_BQ` are their target indices."""
        inputs = tokens_BT.shape[1] - predicted_BQ.shape[1]
        inputs_BWD = F.embedding(tokens_BT[:, :inputs], self.gpt.token_embedding)
        emitted_BQ = F.pad(predicted_BQ[:, :-1], (1, 0), value=self.none)
        tokens_BQD = F.embedding(tokens_BT[:, inputs:], self.gpt.token_embedding)
        steps_BQD = tokens_BQD + self.index_embeddings(emitted_BQ, predicted_BQ)
        return self.gpt.forward_embedded(torch.cat([inputs_BWD, steps_BQD], dim=1), inputs)

    def target_logits(self, batch: Batch) -> Tensor:
        """Logits_BQV of the targets and EOS."""
        return self.forward(batch.tokens_BT, batch.predicted_BQ)

    def step_embeddings(self, tokens_BQ: Tensor, order_L: Tensor, first: int) -> Tensor:
        """Embeddings_BQD of SEP and the targets in this order, from step `first` on; SEP is step 0."""
        emitted_Q = F.pad(order_L, (1, 0), value=self.none)[first:-1]
        tokens_BQD = F.embedding(tokens_BQ, self.gpt.token_embedding)
        return tokens_BQD + self.index_embeddings(emitted_Q, order_L[first:])

    def index_embeddings(self, emitted_Q: Tensor, next_Q: Tensor) -> Tensor:
        """The sum of the embeddings_QD of the target emitted last and of the next one, for each step."""
        return F.embedding(emitted_Q, self.emitted_ID) + F.embedding(next_Q, self.next_ID)


AnyGPT = GPT | OrderConditionedGPT


def fresh_order_conditioned_gpt(config: GPTConfig, data: EncodedDataset, seed: int) -> OrderConditionedGPT:
    """A new model for this data. Equal seeds give equal weights."""
    rng = torch_generator(derive_seed(seed, "told"))  # the name fixes the random numbers of earlier versions
    model = OrderConditionedGPT(fresh_gpt(config, data, seed), targets=data.target_width, rng=rng)
    return model.to(data.inputs_NW.device)
