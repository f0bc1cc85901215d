"""The mean of the last weights, and how a training keeps it."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.training import CheckpointFolder, TrainingConfig, WeightAverage, fit, tensors_of

STEPS = 40


def config(steps: int = STEPS) -> TrainingConfig:
    return TrainingConfig(steps=steps, stable_steps=steps, batch_size=1, learning_rate=0.05)


def small_model() -> nn.Linear:
    model = nn.Linear(3, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    return model


def noisy_loss(model: nn.Linear, step: int) -> Tensor:
    generator = torch.Generator().manual_seed(step)
    return (model(torch.randn(4, 3, generator=generator)) - torch.randn(4, 2, generator=generator)).square().mean()


def test_over_all_steps_it_is_their_mean() -> None:
    model = small_model()
    average = WeightAverage(model, share=1.0)
    for done, value in enumerate((1.0, 2.0, 6.0), start=1):
        nn.init.constant_(model.weight, value)
        average.update(model, done)
    assert torch.allclose(average.model.weight, torch.full((2, 3), 3.0))


def test_over_a_small_share_of_few_steps_it_is_the_last_weights() -> None:
    model = small_model()
    average = WeightAverage(model, share=0.1)
    for done in range(1, 11):
        nn.init.constant_(model.weight, float(done))
        average.update(model, done)
    assert torch.equal(average.model.weight, model.weight)


def test_it_changes_nothing_in_the_training() -> None:
    alone, beside = small_model(), small_model()
    losses = fit(alone, lambda step: noisy_loss(alone, step), config(), seed=1).losses
    averaged = WeightAverage(beside, 0.5)
    assert fit(beside, lambda step: noisy_loss(beside, step), config(), seed=1, average=averaged).losses == losses
    assert torch.equal(alone.weight, beside.weight)
    assert not torch.equal(averaged.model.weight, beside.weight)


def test_an_interrupted_training_continues_to_the_same_average(tmp_path: Path) -> None:
    whole = small_model()
    expected = WeightAverage(whole, 0.5)
    fit(whole, lambda step: noisy_loss(whole, step), config(), seed=1, average=expected)
    stop, checkpoints = StopRequest(), CheckpointFolder(tmp_path)

    def stop_halfway(done: int) -> None:
        if done == STEPS // 2:
            stop.requested = True

    model = small_model()
    with pytest.raises(Interrupted):
        fit(
            model,
            lambda step: noisy_loss(model, step),
            config(),
            seed=1,
            average=WeightAverage(model, 0.5),
            checkpoints=checkpoints,
            after_step=stop_halfway,
            stop=stop,
        )
    again = small_model()
    average = WeightAverage(again, 0.5)
    fit(
        again,
        lambda step: noisy_loss(again, step),
        config(),
        seed=1,
        average=average,
        checkpoints=checkpoints,
        keep_end=True,
    )
    assert torch.equal(average.model.weight, expected.model.weight)
    state = checkpoints.load_latest()
    assert state is not None
    assert torch.equal(tensors_of(state, "average")["weight"], expected.model.weight)
    assert torch.equal(tensors_of(state, "model")["weight"], whole.weight)


def test_a_checkpoint_without_an_average_is_refused(tmp_path: Path) -> None:
    model, checkpoints = small_model(), CheckpointFolder(tmp_path)
    fit(model, lambda step: noisy_loss(model, step), config(4), seed=1, checkpoints=checkpoints, keep_end=True)
    with pytest.raises(ValueError, match="another model"):
        fit(
            model,
            lambda step: noisy_loss(model, step),
            config(8),
            seed=1,
            checkpoints=checkpoints,
            average=WeightAverage(model, 0.5),
        )
