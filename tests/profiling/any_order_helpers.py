"""Small tasks on which a small routed model learns everything within two seconds."""

from functools import cache

import torch

from genorder.data import EncodedDataset, encode
from genorder.models.routed import RoutedConfig, RoutedModel
from genorder.profiling import AnyOrderConfig
from genorder.profiling.any_order import fit_any_order, routed_model
from genorder.profiling.oracle import AnyOrderOracle
from genorder.seeding import torch_generator
from genorder.tasks import TaskData, make_task, task_splits
from genorder.training import TrainingConfig

SMALL = AnyOrderConfig(
    model=RoutedConfig(width=32, hidden=64),
    training=TrainingConfig(
        steps=500, batch_size=64, learning_rate=5e-3, warmup_steps=20, beta2=0.98, weight_decay=0.0
    ),
    groups=8,
    validation_samples=400,
)


def shortened(steps: int) -> AnyOrderConfig:
    return SMALL.model_copy(update={"training": SMALL.training.model_copy(update={"steps": steps})})


@cache
def task_data(
    task: str, length: str, hidden: int | None = None, *, train: int = 8000, validation: int = 400
) -> tuple[TaskData, EncodedDataset, EncodedDataset]:
    data = task_splits(make_task(task, length), train=train, validation=validation, test=1, hidden_order_seed=hidden)
    splits = data.splits
    encoded = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return data, *encoded


def trained_oracle(
    task: str,
    length: str,
    seed: int = 0,
    hidden: int | None = None,
    config: AnyOrderConfig = SMALL,
    samples: int = 8000,
) -> AnyOrderOracle:
    """Trained once for all tests with these arguments."""
    return _trained_oracle(task, length, seed, hidden, config, samples)


@cache
def _trained_oracle(
    task: str, length: str, seed: int, hidden: int | None, config: AnyOrderConfig, samples: int
) -> AnyOrderOracle:
    _, train, validation = task_data(task, length, hidden, train=samples, validation=config.validation_samples)
    model = routed_model(train, config, seed)
    fit_any_order(model, train, config, seed=seed)
    return AnyOrderOracle(model, validation, config.validation_samples, seed=seed)


def random_oracle(encoded: EncodedDataset, *, samples: int = 400, seed: int = 0) -> AnyOrderOracle:
    """An untrained model, with routing so uneven that its losses differ from order to order."""
    rng = torch_generator(seed)
    model = RoutedModel(
        RoutedConfig(width=8, hidden=16),
        vocabulary=encoded.model_vocabulary,
        inputs=encoded.input_width,
        targets=encoded.target_width,
        rng=rng,
    )
    with torch.no_grad():
        model.routing_LHP.add_(torch.randn(model.routing_LHP.shape, generator=rng), alpha=2.0)
    return AnyOrderOracle(model, encoded, samples, seed=seed)
