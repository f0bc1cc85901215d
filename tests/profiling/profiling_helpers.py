"""Small models and small data for ranking orders."""

from functools import cache
from itertools import permutations

import numpy as np
import torch

from genorder.data import EncodedDataset, SequenceDataset, encode
from genorder.models import GPT, GPTConfig
from genorder.orders import Order
from genorder.seeding import torch_generator
from genorder.tasks import make_task, task_splits

FORWARD, REVERSE = Order.forward(4), Order.reverse(4)


def random_model(encoded: EncodedDataset, *, layers: int = 1, heads: int = 2, seed: int = 0, scale: float = 0.3) -> GPT:
    """Of weights so large that its losses differ from order to order."""
    rng = torch_generator(seed)
    model = GPT(
        GPTConfig(layers=layers, heads=heads, width=8, feedforward=16),
        vocabulary=encoded.model_vocabulary,
        positions=encoded.input_width + 1 + encoded.target_width,
        rng=rng,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=rng), alpha=scale)
    return model.eval()


def random_data(
    samples: int, *, fixed: bool = True, inputs: int = 3, targets: int = 4, tokens: int = 5, seed: int = 0
) -> EncodedDataset:
    """Each target column has its own few tokens, so that orders are not all alike to a model."""
    rng = np.random.default_rng(seed)
    lengths = [targets if fixed else int(rng.integers(1, targets + 1)) for _ in range(samples)]
    lengths[0] = targets
    dataset = SequenceDataset.from_sequences(
        [rng.integers(0, tokens, inputs if fixed else rng.integers(0, inputs + 1)).tolist() for _ in range(samples)],
        [((np.arange(length) + rng.integers(0, 2, length)) % tokens).tolist() for length in lengths],
    )
    return encode(dataset, input_width=inputs, target_width=targets)


def all_orders(length: int) -> list[Order]:
    return [Order(indices) for indices in permutations(range(length))]


@cache
def relu_splits(length: str = "4", samples: int = 4000) -> tuple[EncodedDataset, EncodedDataset]:
    """Training and validation samples of the ReLU recurrence, as they are: nothing hidden."""
    splits = task_splits(make_task("relu", length), train=samples, validation=200, test=1).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return train, validation
