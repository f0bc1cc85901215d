import math
import warnings
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from genorder.data import Batch
from genorder.data.encoding import EOS, IGNORED
from genorder.models import GPT, GPTConfig
from genorder.models.gpt2 import to_gpt2
from genorder.models.losses import mean_loss, target_losses, token_losses
from genorder.seeding import torch_generator

VOCABULARY, POSITIONS = 13, 12
SIZES = [(1, 1, 8, 16), (1, 2, 8, 32), (2, 4, 16, 24), (3, 2, 12, 48), (3, 1, 4, 8)]  # layers, heads, width, inner


def make(
    layers: int,
    heads: int,
    width: int,
    feedforward: int,
    dropout: float = 0.0,
    *,
    noisy: bool = True,
    activation: Literal["gelu_new", "gelu"] = "gelu_new",
) -> GPT:
    config = GPTConfig(
        layers=layers, heads=heads, width=width, feedforward=feedforward, dropout=dropout, activation=activation
    )
    rng = torch_generator(1)
    model = GPT(config, vocabulary=VOCABULARY, positions=POSITIONS, rng=rng)
    if noisy:  # so large, biases and norms too, that an error anywhere shows in the logits
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=rng), alpha=0.3)
    return model.eval()


def random_tokens(rows: int, columns: int, seed: int = 2) -> Tensor:
    return torch.randint(VOCABULARY, (rows, columns), generator=torch_generator(seed))


def random_batch(inputs: int, targets: int, rows: int = 5) -> Batch:
    """Predictions of `targets` tokens and EOS; some of the last ones do not count."""
    labels = random_tokens(rows, targets + 1, seed=3)
    labels[1, -1] = IGNORED
    labels[2, -2:] = IGNORED
    predicted = torch.arange(targets + 1).expand(rows, -1)
    return Batch(random_tokens(rows, inputs + 1 + targets), labels, predicted)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("length", [1, 7, POSITIONS])
@pytest.mark.parametrize("activation", ["gelu_new", "gelu"])
def test_logits_are_those_of_transformers(
    size: tuple[int, int, int, int], length: int, activation: Literal["gelu_new", "gelu"]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers' own making, while it is imported and set up
        transformers = pytest.importorskip("transformers")
        layers, heads, width, feedforward = size
        config = transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=width, n_layer=layers, n_head=heads,
            n_inner=feedforward, activation_function=activation, bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
        theirs = transformers.GPT2LMHeadModel(config).eval()
    ours = make(*size, activation=activation)
    missing, unexpected = theirs.load_state_dict(to_gpt2(ours), strict=False)
    assert not unexpected
    assert all(name.endswith(("attn.bias", "attn.masked_bias")) for name in missing)
    tokens = random_tokens(3, length)
    with torch.no_grad():
        expected = theirs.double()(tokens).logits
        logits = ours.double()(tokens)
    assert logits.std() > 0.1
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("first", [0, 1, 5, 8])
def test_last_positions_alone_equal_those_of_all(size: tuple[int, int, int, int], first: int) -> None:
    model, tokens = make(*size).double(), random_tokens(4, 9)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens, first), model(tokens)[:, first:], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_losses_and_gradients_equal_those_of_the_full_computation(size: tuple[int, int, int, int]) -> None:
    model, batch = make(*size).double(), random_batch(inputs=4, targets=5)
    full = model(batch.tokens_BT)[:, 4:].flatten(0, 1)
    counted = int((batch.labels_BQ != IGNORED).sum())
    targets = counted - int((batch.labels_BQ == EOS).sum())
    expected_loss = F.cross_entropy(full, batch.labels_BQ.flatten(), ignore_index=IGNORED)
    expected = torch.autograd.grad(expected_loss, list(model.parameters()))

    logits = model.target_logits(batch).flatten(0, 1)
    loss = F.cross_entropy(logits, batch.labels_BQ.flatten(), ignore_index=IGNORED)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-10, atol=0)
    for (name, _), gradient, wanted in zip(
        model.named_parameters(), torch.autograd.grad(loss, list(model.parameters())), expected, strict=True
    ):
        torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-12, msg=lambda text, n=name: f"{n}: {text}")

    # mean_loss may take its cross-entropy in single precision. It counts EOS, and is per target token.
    loss = mean_loss(model, batch) * targets / counted
    torch.testing.assert_close(loss.double(), expected_loss, rtol=1e-5, atol=0)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    for (name, _), gradient, wanted in zip(model.named_parameters(), gradients, expected, strict=True):
        assert wanted.abs().max() > 0 or name.endswith("key_value.bias")
        torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}")


def test_token_losses_are_those_of_each_prediction() -> None:
    model, batch = make(2, 2, 8, 16), random_batch(inputs=3, targets=4)
    with torch.no_grad():
        logits = model.target_logits(batch)
        losses = token_losses(logits, batch)
        logarithms = logits.log_softmax(dim=-1)
        assert losses.shape == batch.labels_BQ.shape
        for row, labels in enumerate(batch.labels_BQ.tolist()):
            for step, label in enumerate(labels):
                expected = 0.0 if label == IGNORED else -float(logarithms[row, step, label])
                assert float(losses[row, step]) == pytest.approx(expected, rel=1e-5)
        is_target = (batch.labels_BQ != IGNORED) & (batch.labels_BQ != EOS)
        assert float(mean_loss(model, batch)) == pytest.approx(float(losses.sum() / is_target.sum()), rel=1e-5)
        assert torch.equal(target_losses(logits, batch), losses.where(is_target, 0.0))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 1, 3], [9], [2, 7], [8, 1]])
def test_cache_equals_recomputation(size: tuple[int, int, int, int], chunks: list[int]) -> None:
    model, tokens = make(*size).double(), random_tokens(3, 9)
    with torch.no_grad():
        full = model(tokens)
        cache = model.empty_cache(3, 9)
        for chunk in chunks:
            start = cache.length
            logits, cache = model.extend(tokens[:, start : start + chunk], cache)
            assert cache.length == start + chunk
            torch.testing.assert_close(logits, full[:, cache.length - 1], rtol=1e-9, atol=1e-9)


def test_later_tokens_never_change_earlier_logits() -> None:
    model, tokens = make(3, 2, 12, 24).double(), random_tokens(2, 10)
    with torch.no_grad():
        before = model(tokens)
        for place in range(10):
            changed = tokens.clone()
            changed[:, place] = (tokens[:, place] + 1) % VOCABULARY
            after = model(changed)
            torch.testing.assert_close(after[:, :place], before[:, :place], rtol=1e-12, atol=1e-12)
            assert all((after[:, later] - before[:, later]).abs().max() > 1e-6 for later in range(place, 10))


@pytest.mark.parametrize("layers", [1, 2, 8])
@pytest.mark.parametrize(("initialisation", "expected"), [("gpt2", 0.02), ("fan_in", 0.125)])
def test_initial_weights_have_their_statistics(
    layers: int, initialisation: Literal["gpt2", "fan_in"], expected: float
) -> None:
    config = GPTConfig(layers=layers, heads=4, width=64, feedforward=256, initialisation=initialisation)
    model = GPT(config, vocabulary=100, positions=70, rng=torch_generator(0))
    seen = set()
    for name, parameter in model.state_dict().items():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            residual = name.endswith(("attention_out.weight", "contract.weight"))
            seen.add(residual)
            deviation = expected / math.sqrt(2 * layers) if residual else expected
            assert float(parameter.std()) == pytest.approx(deviation, rel=0.06), name
            assert abs(float(parameter.mean())) < 5 * deviation / math.sqrt(parameter.numel()), name
    assert seen == {True, False}


def test_weights_are_a_function_of_the_seed() -> None:
    def weights(seed: int) -> Tensor:
        config = GPTConfig(layers=2, heads=1, width=4, feedforward=4)
        model = GPT(config, vocabulary=5, positions=5, rng=torch_generator(seed))
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    torch.manual_seed(1)
    first = weights(7)
    torch.manual_seed(2)
    assert torch.equal(first, weights(7))
    other = weights(8)
    drawn = first.abs() % 1 > 0  # neither 0 nor 1: biases and norms start equal
    assert (first != other)[drawn].all()


def test_dropout_acts_in_training_only() -> None:
    model, tokens = make(2, 2, 8, 16, dropout=0.3), random_tokens(3, 8)
    without = make(2, 2, 8, 16)
    with torch.no_grad():
        assert torch.equal(model(tokens), model(tokens))
        torch.testing.assert_close(model(tokens), without(tokens))
        model.train()
        torch.manual_seed(0)
        first, second = model(tokens), model(tokens)
        assert not torch.allclose(first, second)
        torch.manual_seed(0)
        assert torch.equal(model(tokens), first)
        assert not torch.allclose(first, without(tokens))
        assert torch.equal(without.train()(tokens), without(tokens))


def test_cached_inference_never_drops() -> None:
    model, tokens = make(2, 2, 8, 16, dropout=0.3), random_tokens(3, 8)
    with torch.no_grad():
        expected = model(tokens)[:, -1]
        logits, _ = model.train().extend(tokens, model.empty_cache(3, 8))
    torch.testing.assert_close(logits, expected)


def test_too_many_tokens_are_refused() -> None:
    model = make(1, 1, 4, 4)
    with pytest.raises(ValueError, match="13 tokens, but the model has 12 positions"):
        model(random_tokens(1, 13))
    with pytest.raises(ValueError, match="4 tokens do not fit a cache of 3"):
        model.extend(random_tokens(1, 4), model.empty_cache(1, 3))
    _, cache = model.extend(random_tokens(1, 12), model.empty_cache(1, 13))
    with pytest.raises(ValueError, match="13 tokens, but the model has 12 positions"):
        model.extend(random_tokens(1, 1), cache)


def test_parameter_count_is_that_of_gpt2() -> None:
    layers, width, inner = 3, 12, 48
    block = 4 * width * width + 4 * width + 2 * width * inner + width + inner + 4 * width
    expected = (VOCABULARY + POSITIONS) * width + layers * block + 2 * width
    assert make(layers, 2, width, inner).parameter_count() == expected


@pytest.mark.parametrize(
    "wrong", [{"heads": 3}, {"layers": 0}, {"dropout": 1.0}, {"dropout": -0.1}, {"width": 0}, {"unknown": 1}]
)
def test_config_refuses_what_makes_no_model(wrong: dict[str, float]) -> None:
    right = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8}
    assert GPTConfig(**right).dropout == 0.0
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GPTConfig(**{**right, **wrong})
