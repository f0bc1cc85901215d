"""A compact GPT-2: pre-norm, GELU, learned positions, output tied to the token embedding.

For equal weights it has the same logits as transformers' GPT2LMHeadModel (a test). The last layer computes queries, MLP
and logits only for the positions whose logits are needed: for a one-layer model this saves two fifths of the work.

Axes: B batch, T tokens, Q the last positions, whose logits are computed, D width, H heads, E = D / H, V vocabulary,
L targets. In BHTT the first T is the query's position, the second the key's.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from genorder.data import Batch, EncodedDataset
from genorder.seeding import derive_seed, torch_generator

_GPT2_DEVIATION = 0.02  # standard deviation of GPT-2's initial weights


class GPTConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    layers: int = Field(ge=1)
    heads: int = Field(ge=1)
    width: int = Field(ge=1)
    feedforward: int = Field(ge=1)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    # Named as in transformers. `gelu_new` is the tanh approximation of GPT-2. On a CPU it takes three times as long as
    # `gelu`, the exact function.
    activation: Literal["gelu_new", "gelu"] = "gelu_new"
    # Standard deviation of the initial weights. `gpt2` is 0.02 for all widths, which suits widths from 768: in a narrow
    # model the initial attention is then nearly uniform, and training stays on that plateau for long. `fan_in` is
    # 1 / sqrt(width). Measured in benchmarks/RESULTS.md.
    initialisation: Literal["gpt2", "fan_in"] = "gpt2"

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "GPTConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of the {self.heads} heads")
        return self

    @property
    def initial_deviation(self) -> float:
        return _GPT2_DEVIATION if self.initialisation == "gpt2" else 1 / math.sqrt(self.width)


@final
@dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of the first `length` tokens, one preallocated pair of buffers per layer."""

    keys_BHTE: list[Tensor]
    values_BHTE: list[Tensor]
    length: int

    @property
    def capacity(self) -> int:
        return self.keys_BHTE[0].shape[2]


def _drop(values: Tensor, dropout: float) -> Tensor:
    return F.dropout(values, dropout, training=True) if dropout else values


def _attend(query_BHQE: Tensor, key_BHTE: Tensor, value_BHTE: Tensor, dropout: float) -> Tensor:
    """Causal attention. The queries belong to the last Q of the T positions."""
    queries, tokens = query_BHQE.shape[2], key_BHTE.shape[2]
    mask_QT = torch.full((queries, tokens), -math.inf, dtype=query_BHQE.dtype, device=query_BHQE.device)
    mask_QT = mask_QT.triu(tokens - queries + 1)
    return F.scaled_dot_product_attention(query_BHQE, key_BHTE, value_BHTE, attn_mask=mask_QT, dropout_p=dropout)


@final
class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.approximate = "tanh" if config.activation == "gelu_new" else "none"
        self.norm_attention = nn.LayerNorm(config.width)
        self.query = nn.Linear(config.width, config.width)
        self.key_value = nn.Linear(config.width, 2 * config.width)
        self.attention_out = nn.Linear(config.width, config.width)
        self.norm_feedforward = nn.LayerNorm(config.width)
        self.expand = nn.Linear(config.width, config.feedforward)
        self.contract = nn.Linear(config.feedforward, config.width)

    def forward(self, hidden_BTD: Tensor, first: int) -> Tensor:
        """The block's output at the positions from `first` on. Keys and values come from all positions."""
        normed_BTD = self.norm_attention(hidden_BTD)
        query_BHQE = self.split_heads(self.query(normed_BTD[:, first:]))
        key_BTD, value_BTD = self.key_value(normed_BTD).chunk(2, dim=-1)
        dropout = self.dropout if self.training else 0.0
        attended = _attend(query_BHQE, self.split_heads(key_BTD), self.split_heads(value_BTD), dropout)
        return self.after_attention(hidden_BTD[:, first:], attended.transpose(1, 2).flatten(2), dropout)

    def extend(self, hidden_BQD: Tensor, cache: KeyValueCache, layer: int) -> Tensor:
        """The block's output for new tokens after the cached ones. Writes their keys and values to the cache."""
        start, stop = cache.length, cache.length + hidden_BQD.shape[1]
        normed_BQD = self.norm_attention(hidden_BQD)
        key_BQD, value_BQD = self.key_value(normed_BQD).chunk(2, dim=-1)
        cache.keys_BHTE[layer][:, :, start:stop] = self.split_heads(key_BQD)
        cache.values_BHTE[layer][:, :, start:stop] = self.split_heads(value_BQD)
        attended = _attend(
            self.split_heads(self.query(normed_BQD)),
            cache.keys_BHTE[layer][:, :, :stop],
            cache.values_BHTE[layer][:, :, :stop],
            0.0,
        )
        return self.after_attention(hidden_BQD, attended.transpose(1, 2).flatten(2))

    def split_heads(self, projected_BTD: Tensor) -> Tensor:
        batch, tokens, width = projected_BTD.shape
        return projected_BTD.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def after_attention(self, hidden_BQD: Tensor, attended_BQD: Tensor, dropout: float = 0.0) -> Tensor:
        """Apply output projection, MLP and residual connections, position by position. Any leading axes."""
        hidden_BQD = hidden_BQD + _drop(self.attention_out(attended_BQD), dropout)
        inner = F.gelu(self.expand(self.norm_feedforward(hidden_BQD)), approximate=self.approximate)
        return hidden_BQD + _drop(self.contract(inner), dropout)


@final
class GPT(nn.Module):
    order_conditioned: ClassVar[bool] = False  # see OrderConditionedGPT

    def __init__(self, config: GPTConfig, *, vocabulary: int, positions: int, rng: torch.Generator | None) -> None:
        """`vocabulary` includes the special tokens; `positions` is the length of the longest input sequence.

        Without `rng` the weights are undefined: they must be loaded.
        """
        super().__init__()
        self.config = config
        self.token_embedding = nn.Parameter(torch.empty(vocabulary, config.width))
        self.position_embedding = nn.Parameter(torch.empty(positions, config.width))
        with torch.random.fork_rng(devices=[]):  # torch's own initialisation draws from the global generator
            self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm_out = nn.LayerNorm(config.width)
        if rng is not None:
            self._initialise(rng)

    @property
    def gpt(self) -> "GPT":
        """This model; for code that also accepts an OrderConditionedGPT."""
        return self

    @property
    def positions(self) -> int:
        return self.position_embedding.shape[0]

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, tokens_BT: Tensor, first: int = 0) -> Tensor:
        """Logits_BQV of the next token at the positions from `first` on."""
        return self.forward_embedded(F.embedding(tokens_BT, self.token_embedding), first)

    def target_logits(self, batch: Batch) -> Tensor:
        """Logits_BQV of the targets and EOS."""
        return self.forward(batch.tokens_BT, batch.tokens_BT.shape[1] - batch.labels_BQ.shape[1])

    def step_embeddings(self, tokens_BQ: Tensor, order_L: Tensor, first: int) -> Tensor:
        """Embeddings_BQD of SEP and the targets in this order, from step `first` on; SEP is step 0."""
        return F.embedding(tokens_BQ, self.token_embedding)

    def forward_embedded(self, embedded_BTD: Tensor, first: int = 0) -> Tensor:
        """Logits_BQV from token embeddings without positions, for mixtures of tokens."""
        hidden_BTD = _drop(self.add_positions(embedded_BTD), self.config.dropout if self.training else 0.0)
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            hidden_BTD = block(hidden_BTD, first if layer == last else 0)
        return self.logits(hidden_BTD)

    def empty_cache(self, batch: int, capacity: int) -> KeyValueCache:
        shape = (batch, self.config.heads, capacity, self.config.width // self.config.heads)
        like = self.token_embedding

        def buffers() -> list[Tensor]:
            return [torch.empty(shape, dtype=like.dtype, device=like.device) for _ in self.blocks]

        return KeyValueCache(buffers(), buffers(), 0)

    def extend(self, tokens_BQ: Tensor, cache: KeyValueCache) -> tuple[Tensor, KeyValueCache]:
        """Logits_BV after the last of the new tokens, and the cache extended by these tokens.

        For inference: the new cache shares its buffers with the old one. Dropout is never applied.
        """
        hidden_BQD, longer = self._extend(F.embedding(tokens_BQ, self.token_embedding), cache)
        return self.logits(hidden_BQD[:, -1]), longer

    def extend_embedded(self, embedded_BQD: Tensor, cache: KeyValueCache) -> tuple[Tensor, KeyValueCache]:
        """Logits_BQV after each of the new tokens, given as embeddings without positions, and the extended cache."""
        hidden_BQD, longer = self._extend(embedded_BQD, cache)
        return self.logits(hidden_BQD), longer

    def _extend(self, embedded_BQD: Tensor, cache: KeyValueCache) -> tuple[Tensor, KeyValueCache]:
        stop = cache.length + embedded_BQD.shape[1]
        if stop > cache.capacity:
            raise ValueError(f"{stop} tokens do not fit a cache of {cache.capacity}")
        hidden_BQD = self.add_positions(embedded_BQD, cache.length)
        for layer, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            hidden_BQD = block.extend(hidden_BQD, cache, layer)
        return hidden_BQD, KeyValueCache(cache.keys_BHTE, cache.values_BHTE, stop)

    def add_positions(self, embedded_BTD: Tensor, start: int = 0) -> Tensor:
        stop = start + embedded_BTD.shape[1]
        if stop > self.positions:
            raise ValueError(f"{stop} tokens, but the model has {self.positions} positions")
        return embedded_BTD + self.position_embedding[start:stop]

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits of the next token for hidden states of the last block. Any leading axes."""
        return F.linear(self.norm_out(hidden), self.token_embedding)

    @torch.no_grad()
    def _initialise(self, rng: torch.Generator) -> None:
        deviation = self.config.initial_deviation
        residual = deviation / math.sqrt(2 * self.config.layers)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif "norm" in name:
                parameter.fill_(1.0)
            else:
                feeds_residual = name.endswith(("attention_out.weight", "contract.weight"))
                parameter.normal_(0.0, residual if feeds_residual else deviation, generator=rng)


def fresh_gpt(config: GPTConfig, data: EncodedDataset, seed: int) -> GPT:
    """A new GPT with the vocabulary, length and device of this data. Equal seeds give equal weights."""
    model = GPT(
        config,
        vocabulary=data.model_vocabulary,
        positions=data.input_width + 1 + data.target_width,
        rng=torch_generator(derive_seed(seed, "model")),
    )
    return model.to(data.inputs_NW.device)


class AttentionTrace(NamedTuple):
    weights: list[Tensor]  # BHTT of each layer, first layer first; 0 for later tokens, rows sum to 1
    hidden_BTD: Tensor  # after the last layer; `GPT.logits` maps it to the model's logits


def attention_weights(model: GPT, tokens_BT: Tensor) -> list[Tensor]:
    """Attention weights_BHTT of each layer. Without dropout, also in training mode."""
    return trace_attention(model, F.embedding(tokens_BT, model.token_embedding)).weights


def trace_attention(model: GPT, embedded_BTD: Tensor) -> AttentionTrace:
    """The model's forward pass with explicit attention weights, from token embeddings without positions.

    Differentiable with respect to the embeddings. Without dropout, also in training mode.
    """
    hidden_BTD = model.add_positions(embedded_BTD)
    tokens = hidden_BTD.shape[1]
    later_TT = torch.ones(tokens, tokens, dtype=torch.bool, device=hidden_BTD.device).triu(1)
    weights: list[Tensor] = []
    for block in model.blocks:
        assert isinstance(block, Block)
        normed_BTD = block.norm_attention(hidden_BTD)
        query_BHTE = block.split_heads(block.query(normed_BTD))
        key_BHTE, value_BHTE = (block.split_heads(part) for part in block.key_value(normed_BTD).chunk(2, dim=-1))
        scores_BHTT = query_BHTE @ key_BHTE.mT / math.sqrt(query_BHTE.shape[-1])
        weights_BHTT = scores_BHTT.masked_fill(later_TT, -math.inf).softmax(dim=-1)
        weights.append(weights_BHTT)
        hidden_BTD = block.after_attention(hidden_BTD, (weights_BHTT @ value_BHTE).transpose(1, 2).flatten(2))
    return AttentionTrace(weights, hidden_BTD)
