"""A new model for some data."""

from genorder.data import EncodedDataset
from genorder.models.gpt import GPT, GPTConfig
from genorder.seeding import derive_seed, torch_generator


def fresh_gpt(config: GPTConfig, data: EncodedDataset, seed: int) -> GPT:
    """A GPT that reads the data's inputs and emits its targets, on its device; equal weights for an equal seed."""
    model = GPT(
        config,
        vocabulary=data.model_vocabulary,
        positions=data.input_width + 1 + data.target_width,
        rng=torch_generator(derive_seed(seed, "model")),
    )
    return model.to(data.inputs_NW.device)
