"""Small models on small data, and their outputs computed the plain way."""

import numpy as np
import torch
from torch import Tensor

from genorder.data import EncodedDataset, SequenceDataset, encode
from genorder.data.encoding import EOS, PAD, SEP
from genorder.models import GPT, GPTConfig
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.seeding import torch_generator
from genorder.training import BatchPlan, TrainingConfig, fit


def random_model(vocabulary: int, positions: int, *, seed: int = 0, scale: float = 0.5) -> GPT:
    """Of weights so large that its outputs differ from input to input."""
    config = GPTConfig(layers=2, heads=2, width=8, feedforward=16)
    rng = torch_generator(seed)
    model = GPT(config, vocabulary=vocabulary, positions=positions, rng=rng)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=rng), alpha=scale)
    return model.eval()


def random_dataset(samples: int, *, fixed: bool, inputs: int = 3, targets: int = 4, tokens: int = 3) -> SequenceDataset:
    rng = np.random.default_rng(1)
    lengths = [targets if fixed else int(rng.integers(1, targets + 1)) for _ in range(samples)]
    lengths[0] = targets
    return SequenceDataset.from_sequences(
        [rng.integers(0, tokens, inputs if fixed else rng.integers(0, inputs + 1)).tolist() for _ in range(samples)],
        [rng.integers(0, tokens, length).tolist() for length in lengths],
    )


def encode_whole(dataset: SequenceDataset) -> EncodedDataset:
    return encode(dataset, input_width=dataset.inputs.longest, target_width=dataset.targets.longest)


def generate_plainly(model: GPT, x: list[int], longest: int) -> list[int]:
    """One sample, every step computed anew from all the tokens."""
    generated: list[int] = []
    with torch.no_grad():
        while len(generated) < longest and EOS not in generated:
            logits: Tensor = model(torch.tensor([[*x, SEP, *generated]]))
            generated.append(int(logits[0, -1].argmax()))
    return generated + [PAD] * (longest - len(generated))


def overfitted(dataset: SequenceDataset, order: Order, *, steps: int = 300) -> GPT:
    encoded = encode_whole(dataset)
    config = GPTConfig(layers=1, heads=2, width=32, feedforward=64)
    positions = encoded.input_width + 1 + encoded.target_width
    model = GPT(config, vocabulary=encoded.model_vocabulary, positions=positions, rng=torch_generator(0))
    batches = BatchPlan(encoded, torch.tensor([list(order)]), len(encoded), seed=0)
    training = TrainingConfig(steps=steps, batch_size=len(encoded), learning_rate=1e-2, warmup_steps=10)
    result = fit(model, lambda step: mean_loss(model, batches(step)), training, seed=0)
    assert result.losses[-1] < 0.05
    return model
