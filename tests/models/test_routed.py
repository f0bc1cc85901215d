"""The routed model against an obvious one, and what it must never read."""

import math
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from torch import Tensor

from genorder.models.routed import RoutedConfig, RoutedModel
from genorder.seeding import torch_generator

GROUPS, SAMPLES, INPUTS, TARGETS, VOCABULARY = 3, 4, 2, 5, 6
POSITIONS = INPUTS + TARGETS + 1


def model_of(*, slots: int = 3, inputs: int = INPUTS, targets: int = TARGETS, seed: int = 0) -> RoutedModel:
    """Of routing so uneven that it matters which positions are available, and with biases that are not zero."""
    rng = torch_generator(seed)
    config = RoutedConfig(slots=slots, width=7, hidden=9)
    model = RoutedModel(config, vocabulary=VOCABULARY, inputs=inputs, targets=targets, rng=rng)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=rng), alpha=0.5)
    return model.eval()


def batch_of(seed: int = 0, *, inputs: int = INPUTS, targets: int = TARGETS) -> tuple[Tensor, Tensor]:
    """Tokens, the last of them empty, and random availability: the empty position always."""
    rng = torch_generator(seed)
    positions = inputs + targets + 1
    tokens_GBP = torch.randint(VOCABULARY, (GROUPS, SAMPLES, positions), generator=rng)
    tokens_GBP[:, :, -1] = VOCABULARY
    available_GLP = torch.rand(GROUPS, targets, positions, generator=rng) < 0.5
    available_GLP[:, :, -1] = True
    return tokens_GBP, available_GLP


def obvious_logits(model: RoutedModel, tokens_P: list[int], available_P: list[bool], target: int) -> Tensor:
    """logits_V of one target of one sample, read slot by slot and position by position."""
    parts = []
    for slot in range(model.config.slots):
        powers = [
            math.exp(float(logit)) if free else 0.0
            for logit, free in zip(model.routing_LHP[target, slot], available_P, strict=True)
        ]
        read_D = torch.zeros(model.config.width)
        for power, token in zip(powers, tokens_P, strict=True):
            read_D = read_D + power / sum(powers) * model.values_HVD[slot, token]
        parts.append(read_D)
    read_R = torch.cat([*parts, model.index_LD[target]])
    first_F = torch.relu(read_R @ model.first_RF + model.first_F)
    second_F = torch.relu(first_F @ model.second_FF + model.second_F)
    return second_F @ model.out_FV + model.out_V


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize(("inputs", "targets"), [(INPUTS, TARGETS), (0, 3), (4, 1)])
@torch.inference_mode()
def test_the_obvious_model_says_the_same(slots: int, inputs: int, targets: int) -> None:
    model = model_of(slots=slots, inputs=inputs, targets=targets)
    tokens_GBP, available_GLP = batch_of(inputs=inputs, targets=targets)
    logits_GBLV = model(tokens_GBP, available_GLP)
    assert logits_GBLV.shape == (GROUPS, SAMPLES, targets, VOCABULARY)
    for group in range(GROUPS):
        for sample in range(SAMPLES):
            for target in range(targets):
                expected_V = obvious_logits(
                    model, tokens_GBP[group, sample].tolist(), available_GLP[group, target].tolist(), target
                )
                torch.testing.assert_close(logits_GBLV[group, sample, target], expected_V, rtol=1e-5, atol=1e-5)


@torch.inference_mode()
def test_only_available_positions_are_read() -> None:
    model = model_of()
    tokens_GBP, available_GLP = batch_of()
    logits_GBLV = model(tokens_GBP, available_GLP)
    for position in range(POSITIONS - 1):
        changed_GBP = tokens_GBP.clone()
        changed_GBP[:, :, position] = (changed_GBP[:, :, position] + 1) % VOCABULARY
        other_GBLV = model(changed_GBP, available_GLP)
        for group in range(GROUPS):
            for target in range(TARGETS):
                one, other = logits_GBLV[group, :, target], other_GBLV[group, :, target]
                if available_GLP[group, target, position]:
                    assert not torch.isclose(one, other).all(dim=1).any()
                else:
                    assert torch.equal(one, other)


@torch.inference_mode()
def test_with_nothing_available_but_the_empty_position_samples_are_alike() -> None:
    tokens_GBP, available_GLP = batch_of()
    available_GLP[:] = False
    available_GLP[:, :, -1] = True
    logits_GBLV = model_of()(tokens_GBP, available_GLP)
    assert torch.isfinite(logits_GBLV).all()
    torch.testing.assert_close(logits_GBLV, logits_GBLV[:1, :1].expand_as(logits_GBLV))


@torch.inference_mode()
def test_groups_and_samples_are_independent() -> None:
    model = model_of()
    tokens_GBP, available_GLP = batch_of()
    logits_GBLV = model(tokens_GBP, available_GLP)
    for group in range(GROUPS):
        alone = model(tokens_GBP[group : group + 1], available_GLP[group : group + 1])[0]
        torch.testing.assert_close(logits_GBLV[group], alone)
        for sample in range(SAMPLES):
            alone = model(tokens_GBP[group : group + 1, sample : sample + 1], available_GLP[group : group + 1])[0, 0]
            torch.testing.assert_close(logits_GBLV[group, sample], alone)
    other_GBP, other_GLP = tokens_GBP.clone(), available_GLP.clone()
    other_GBP[1] = (other_GBP[1] + 1) % VOCABULARY
    other_GLP[1] = ~other_GLP[1]
    other_GLP[1, :, -1] = True
    other_GBLV = model(other_GBP, other_GLP)
    assert torch.equal(other_GBLV[[0, 2]], logits_GBLV[[0, 2]])
    assert not torch.isclose(other_GBLV[1], logits_GBLV[1]).all()


@pytest.mark.parametrize("chosen", [[0], [4, 1], [3, 3, 0], [4, 3, 2, 1, 0]], ids=str)
@torch.inference_mode()
def test_named_targets_are_rows_of_the_whole(chosen: list[int]) -> None:
    model = model_of()
    tokens_GBP, available_GLP = batch_of()
    some_GBMV = model(tokens_GBP, available_GLP[:, chosen], torch.tensor(chosen))
    torch.testing.assert_close(some_GBMV, model(tokens_GBP, available_GLP)[:, :, chosen])


def test_slot_weights_are_the_softmax_over_what_is_available() -> None:
    model = model_of()
    _, available_GLP = batch_of()
    weights_HLP = model.slot_weights(available_GLP[:1])[0]
    assert weights_HLP.shape == (3, TARGETS, POSITIONS)
    assert not weights_HLP.requires_grad
    for target in range(TARGETS):
        free = available_GLP[0, target].nonzero()[:, 0]
        assert (weights_HLP[:, target, ~available_GLP[0, target]] == 0).all()
        expected = model.routing_LHP[target][:, free].softmax(dim=1)
        torch.testing.assert_close(weights_HLP[:, target, free], expected.detach())


def test_unavailable_positions_get_no_gradient() -> None:
    model = model_of()
    tokens_GBP, available_GLP = batch_of()
    model(tokens_GBP, available_GLP).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model.routing_LHP.grad is not None
    never_LP = ~available_GLP.any(dim=0)
    assert never_LP.any()
    assert (model.routing_LHP.grad.transpose(0, 1)[:, never_LP] == 0).all()


def test_the_seed_decides_the_first_weights() -> None:
    first, same, other = (model_of(seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    model_of()
    assert torch.equal(torch.random.get_rng_state(), before)


@torch.inference_mode()
def test_saved_and_loaded_says_the_same(tmp_path: Path) -> None:
    model, other = model_of(seed=0), model_of(seed=1)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(model(*batch_of()), other(*batch_of()))


@pytest.mark.parametrize("setting", ["slots", "width", "hidden"])
def test_sizes_are_positive(setting: str) -> None:
    with pytest.raises(ValidationError):
        RoutedConfig(**{setting: 0})
