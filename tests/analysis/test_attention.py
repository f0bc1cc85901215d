import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genorder.analysis.attention import mean_row_entropy, row_entropies, summarise_attention
from genorder.models import GPT, GPTConfig
from genorder.models.gpt import attention_weights
from genorder.seeding import torch_generator


@given(st.integers(1, 50), st.integers(1, 4))
def test_rows_that_read_everything_alike(positions: int, rows: int) -> None:
    weights = torch.full((rows, positions), 1 / positions, dtype=torch.float64)
    assert float(mean_row_entropy(weights)) == pytest.approx(math.log(positions), abs=1e-12)


@given(st.integers(1, 10), st.integers(1, 50))
def test_rows_that_read_one_position(rows: int, positions: int) -> None:
    weights = torch.eye(positions)[torch.arange(rows) % positions]
    assert float(mean_row_entropy(weights)) == 0


def test_a_causal_map_that_reads_all_before_it() -> None:
    """Row i has i + 1 equal weights: the mean of log 1, log 2, log 3, log 4."""
    weights = torch.tril(torch.ones(4, 4)) / torch.arange(1, 5)[:, None]
    assert row_entropies(weights).tolist() == pytest.approx([math.log(n) for n in (1, 2, 3, 4)], abs=1e-6)
    assert float(mean_row_entropy(weights)) == pytest.approx(math.log(24) / 4)


def test_leading_axes_are_averaged() -> None:
    weights = torch.rand(2, 3, 5, 5, generator=torch_generator(0)).softmax(dim=-1)
    by_map = torch.stack([mean_row_entropy(one) for one in weights.flatten(0, 1)])
    assert row_entropies(weights).shape == (2, 3, 5)
    assert float(mean_row_entropy(weights)) == pytest.approx(float(by_map.mean()), rel=1e-6)


def test_gradient_is_finite_where_weights_are_zero() -> None:
    scores = torch.tensor([[0.3, -0.2, -math.inf], [0.1, -math.inf, -math.inf]], requires_grad=True)
    mean_row_entropy(scores.softmax(dim=-1)).backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0] < 0 < scores.grad[0, 1]  # towards the smaller weight entropy grows
    assert scores.grad[1].abs().max() == 0


def test_the_summary_is_the_mean_over_samples_layers_and_heads() -> None:
    config = GPTConfig(layers=2, heads=2, width=8, feedforward=16)
    model = GPT(config, vocabulary=9, positions=6, rng=torch_generator(0)).eval()
    tokens_NT = torch.randint(0, 9, (150, 6), generator=torch_generator(1))
    summary = summarise_attention(model, tokens_NT)
    maps = torch.stack(attention_weights(model, tokens_NT))
    torch.testing.assert_close(summary.map_TT, maps.double().mean(dim=(0, 1, 2)))
    assert summary.sparsity == pytest.approx(float(mean_row_entropy(maps.detach())), rel=1e-5)
    with pytest.raises(ValueError, match="no samples"):
        summarise_attention(model, tokens_NT[:0])
