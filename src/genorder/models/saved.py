"""A trained model with all that is needed to use it: vocabulary, widths and the order it emits targets in."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors

from genorder.data import Vocabulary
from genorder.data.encoding import SPECIAL_TOKENS
from genorder.errors import InputError
from genorder.models.gpt import GPT, GPTConfig
from genorder.orders import Order
from genorder.seeding import torch_generator
from genorder.store import ensure_writable_directory, sha256_bytes, write_bytes_atomic, write_json_atomic

_FORMAT = "genorder-model/1"


@final
@dataclass(frozen=True, eq=False)
class SavedModel:
    model: GPT
    vocabulary: Vocabulary
    order: Order
    input_width: int
    shortest_input: int

    @property
    def target_width(self) -> int:
        return len(self.order)

    def save(self, folder: Path) -> str:
        """Write `weights.safetensors` and `model.json`; returns the weights' SHA-256."""
        weights = save_safetensors({k: v.cpu().contiguous() for k, v in self.model.state_dict().items()})
        digest = sha256_bytes(weights)
        ensure_writable_directory(folder)
        write_bytes_atomic(folder / "weights.safetensors", weights)
        write_json_atomic(
            folder / "model.json",
            {
                "format": _FORMAT,
                "gpt": self.model.config.model_dump(),
                "input_width": self.input_width,
                "shortest_input": self.shortest_input,
                "order": list(self.order),
                "weights_sha256": digest,
                "vocabulary": list(self.vocabulary.tokens),
            },
        )
        return digest


def load_model(folder: Path, device: torch.device) -> SavedModel:
    """Read what `SavedModel.save` wrote. Raises InputError where it is missing, damaged or of another format."""
    description = _read_description(folder / "model.json")
    weights_path = folder / "weights.safetensors"
    try:
        weights = weights_path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {weights_path}: {error.strerror}") from None
    if sha256_bytes(weights) != description.get("weights_sha256"):
        raise InputError(f"{weights_path} is damaged: its SHA-256 is not the one in model.json; train again")
    try:
        vocabulary = Vocabulary(tuple(description["vocabulary"]))
        order = Order(tuple(description["order"]))
        shortest = description["shortest_input"]
        if type(shortest) is not int or not 0 <= shortest <= description["input_width"]:
            raise TypeError(f"shortest_input is {shortest!r}")
        model = GPT(
            GPTConfig(**description["gpt"]),
            vocabulary=len(vocabulary) + SPECIAL_TOKENS,
            positions=description["input_width"] + 1 + len(order),
            rng=torch_generator(0),
        )
        model.load_state_dict(load_safetensors(weights))
    except (KeyError, TypeError, ValidationError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder} does not hold a complete model: {reason}") from None
    model.to(device).eval()
    return SavedModel(model, vocabulary, order, description["input_width"], shortest)


def _read_description(path: Path) -> dict[str, Any]:
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; expected the folder of a trained model") from None
    except ValueError:
        raise InputError(f"{path} is not JSON; expected the description of a trained model") from None
    if not isinstance(description, dict) or description.get("format") != _FORMAT:
        raise InputError(f"{path} is not of the format {_FORMAT}; it was written by another version")
    return description
