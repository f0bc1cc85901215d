import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from genorder.models import GPT, GPTConfig
from genorder.models.gpt import attention_weights, trace_attention
from genorder.seeding import torch_generator

VOCABULARY, POSITIONS = 11, 9
SIZES = [(1, 1), (1, 4), (3, 2)]  # layers, heads


def make(layers: int, heads: int, dropout: float = 0.0) -> GPT:
    config = GPTConfig(layers=layers, heads=heads, width=8, feedforward=16, dropout=dropout)
    rng = torch_generator(1)
    model = GPT(config, vocabulary=VOCABULARY, positions=POSITIONS, rng=rng)
    with torch.no_grad():  # so large that attention is far from even
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=rng), alpha=0.5)
    return model.eval().double()


def tokens(columns: int = POSITIONS) -> Tensor:
    return torch.randint(VOCABULARY, (4, columns), generator=torch_generator(2))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [1, 5, POSITIONS])
@torch.no_grad()
def test_values_mixed_by_the_weights_give_the_models_own_logits(size: tuple[int, int], columns: int) -> None:
    model = make(*size)
    trace = trace_attention(model, F.embedding(tokens(columns), model.token_embedding))
    torch.testing.assert_close(model.logits(trace.hidden_BTD), model(tokens(columns)), rtol=1e-10, atol=1e-10)
    for own, same in zip(attention_weights(model, tokens(columns)), trace.weights, strict=True):
        assert torch.equal(own, same)


@pytest.mark.parametrize("size", SIZES)
@torch.no_grad()
def test_weights_are_causal_distributions(size: tuple[int, int]) -> None:
    layers, heads = size
    maps = attention_weights(make(*size), tokens())
    assert len(maps) == layers
    for weights in maps:
        assert weights.shape == (4, heads, POSITIONS, POSITIONS)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, heads, POSITIONS, dtype=torch.float64))
        assert (weights.triu(1) == 0).all()
        assert weights[:, :, -1].std() > 0.01


@torch.no_grad()
def test_dropout_never_acts() -> None:
    model = make(2, 2, dropout=0.5)
    expected = attention_weights(model, tokens())
    for before, after in zip(expected, attention_weights(model.train(), tokens()), strict=True):
        assert torch.equal(before, after)


@torch.no_grad()
def test_embedded_tokens_give_the_logits_of_the_tokens() -> None:
    model = make(2, 2)
    embedded = F.embedding(tokens(), model.token_embedding)
    assert torch.equal(model.forward_embedded(embedded), model(tokens()))
    assert torch.equal(model.forward_embedded(embedded, 4), model(tokens(), 4))


def test_too_many_embeddings_are_refused() -> None:
    model = make(1, 1)
    with pytest.raises(ValueError, match="10 tokens, but the model has 9 positions"):
        attention_weights(model, tokens(POSITIONS + 1))
