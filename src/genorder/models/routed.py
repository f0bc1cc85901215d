"""The routed model: predicts any target from any set of available tokens, each target from few of them.

It has no autoregressive stack. Each target has a few slots, and each slot has learned routing logits over the positions
of inputs and targets, by position only, not by content. A slot attends to the *available* positions: the softmax of its
logits over them weights its own embeddings of their tokens. A network shared by all targets maps the slots of a target
and an embedding of its index to the target's logits. With few slots a target can depend on few tokens, so an order is
easy if each target can be computed from few available tokens. If the best position of a slot is not available, the
softmax moves to the next best.

Axes: G groups with one set of available positions each, B samples of a group, L targets, M selected targets, H slots,
D width, V vocabulary, P positions: the inputs, the targets, and an empty one that is always available.
"""

import math
from typing import final

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional


class RoutedConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    slots: int = Field(default=3, ge=1)
    width: int = Field(default=64, ge=1)
    hidden: int = Field(default=256, ge=1)


_ROUTING_SCALE = 0.1  # standard deviation of the initial routing logits: attention is nearly uniform at first
_TINY = 1e-9  # keeps the gradient of the entropy finite where a weight is zero


@final
class RoutedModel(nn.Module):
    def __init__(
        self, config: RoutedConfig, *, vocabulary: int, inputs: int, targets: int, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.config, self.inputs, self.targets, self.vocabulary = config, inputs, targets, vocabulary
        slots, width, hidden = config.slots, config.width, config.hidden
        positions = inputs + targets + 1

        def normal(*shape: int, scale: float) -> nn.Parameter:
            return nn.Parameter(scale * torch.randn(*shape, generator=rng))

        self.routing_LHP = normal(targets, slots, positions, scale=_ROUTING_SCALE)
        self.values_HVD = normal(slots, vocabulary + 1, width, scale=1.0)  # the last token: the empty position
        self.index_LD = normal(targets, width, scale=1.0)
        read = (slots + 1) * width
        self.first_RF = normal(read, hidden, scale=math.sqrt(2 / read))
        self.first_F = nn.Parameter(torch.zeros(hidden))
        self.second_FF = normal(hidden, hidden, scale=math.sqrt(2 / hidden))
        self.second_F = nn.Parameter(torch.zeros(hidden))
        self.out_FV = normal(hidden, vocabulary, scale=math.sqrt(1 / hidden))
        self.out_V = nn.Parameter(torch.zeros(vocabulary))

    @torch.no_grad()
    def slot_weights(self, available_GLP: Tensor) -> Tensor:
        """Attention weights_GHLP of the slots of all targets."""
        return self._slot_weights(available_GLP, None)

    @torch.no_grad()
    def log_mass(self, available_P: Tensor) -> Tensor:
        """log_mass_LH of the available positions: the logarithm of the softmax's denominator, for each slot."""
        return self.routing_LHP[..., available_P].logsumexp(dim=-1)

    def read_penalty(self, available_GLP: Tensor) -> Tensor:
        """Mean over targets of the number of positions attended to plus the entropy of the weights: low if sparse."""
        weights_GHLP = self._slot_weights(available_GLP, None)
        read_GL = (1 - (1 - weights_GHLP[..., :-1]).prod(dim=1)).sum(dim=-1)  # the empty position costs nothing
        entropy_GL = -(weights_GHLP * (weights_GHLP + _TINY).log()).sum(dim=(1, 3))
        return (read_GL + entropy_GL).mean()

    def _slot_weights(self, available_GLP: Tensor, targets_M: Tensor | None) -> Tensor:
        routing_LHP = self.routing_LHP if targets_M is None else self.routing_LHP[targets_M]
        logits_GHLP = routing_LHP.transpose(0, 1).expand(len(available_GLP), -1, -1, -1)
        return logits_GHLP.masked_fill(~available_GLP[:, None], -math.inf).softmax(dim=-1)

    def forward(self, tokens_GBP: Tensor, available_GLP: Tensor, targets_M: Tensor | None = None) -> Tensor:
        """logits_GBLV of every target, or logits_GBMV of `targets_M`, whose available positions are available_GMP."""
        groups, samples, _ = tokens_GBP.shape
        slots, width = self.config.slots, self.config.width
        index_LD = self.index_LD if targets_M is None else self.index_LD[targets_M]
        targets = len(index_LD)
        weights_GHLP = self._slot_weights(available_GLP, targets_M)
        anywhere_P = available_GLP.flatten(0, 1).any(dim=0)
        readable = slice(None) if anywhere_P.all() else anywhere_P  # skip positions that no target may attend to
        weights_GHLP, tokens_GBP = weights_GHLP[..., readable], tokens_GBP[..., readable]
        # The slots' embedding tables side by side, so that one lookup serves all slots.
        table_VHD = self.values_HVD.transpose(0, 1).reshape(self.vocabulary + 1, slots * width)
        values_GBPHD = functional.embedding(tokens_GBP, table_VHD).view(groups, samples, -1, slots, width)
        values_GHPX = values_GBPHD.permute(0, 3, 2, 1, 4).reshape(groups, slots, -1, samples * width)
        read_GHLX = weights_GHLP @ values_GHPX
        read_GBLX = (
            read_GHLX.view(groups, slots, targets, samples, width)
            .permute(0, 3, 2, 1, 4)
            .reshape(groups * samples * targets, slots * width)
        )
        # The first layer is applied to the index embedding once per target, not once per sample.
        by_index_LF = index_LD @ self.first_RF[slots * width :] + self.first_F
        hidden_F = (read_GBLX @ self.first_RF[: slots * width]).view(groups * samples, targets, -1) + by_index_LF
        hidden_F = functional.relu(hidden_F).view(groups * samples * targets, -1)
        next_F = torch.addmm(self.second_F, hidden_F, self.second_FF)
        hidden_F = functional.relu(next_F)
        logits = torch.addmm(self.out_V, hidden_F, self.out_FV)
        return logits.view(groups, samples, targets, self.vocabulary)
