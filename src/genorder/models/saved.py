"""A trained model with all that is needed to use it: vocabulary, widths and the order it emits targets in."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

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
        write_json_atomic(folder / "model.json", {"format": _FORMAT, **self.description(digest)})
        return digest

    def description(self, weights_sha256: str) -> dict[str, Any]:
        """All but the weights, as plain data."""
        return {
            "gpt": self.model.config.model_dump(),
            "input_width": self.input_width,
            "shortest_input": self.shortest_input,
            "order": list(self.order),
            "weights_sha256": weights_sha256,
            "vocabulary": list(self.vocabulary.tokens),
        }


def is_saved(folder: Path) -> bool:
    """Whether `SavedModel.save` has written there all that it writes; not whether that is undamaged."""
    return all((folder / name).exists() for name in ("weights.safetensors", "model.json"))


def load_saved(folder: Path, device: torch.device) -> SavedModel:
    """Read what `SavedModel.save` wrote. Raises InputError where it is missing, damaged or of another format."""
    description = read_description(folder / "model.json", _FORMAT)
    weights = read_weights(folder / "weights.safetensors", description, "model.json; train again")
    return build_model(description, lambda: load_safetensors(weights), folder, device)


def build_model(
    description: dict[str, Any], read_state: Callable[[], dict[str, Tensor]], folder: Path, device: torch.device
) -> SavedModel:
    """The described model with the weights of `read_state`. Raises InputError, naming `folder`, if they do not fit."""
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
        model.load_state_dict(read_state())
    except (KeyError, TypeError, ValidationError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder} does not hold a complete model: {reason}") from None
    model.to(device).eval()
    return SavedModel(model, vocabulary, order, description["input_width"], shortest)


def read_weights(path: Path, description: dict[str, Any], advice: str) -> bytes:
    """Raises InputError where the file cannot be read, or is not the one whose digest the description holds."""
    try:
        weights = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if sha256_bytes(weights) != description.get("weights_sha256"):
        raise InputError(f"{path} is damaged: its SHA-256 is not the one in {advice}")
    return weights


def read_description(path: Path, expected_format: str) -> dict[str, Any]:
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; expected the folder of a trained model") from None
    except ValueError:
        raise InputError(f"{path} is not JSON; expected the description of a trained model") from None
    if not isinstance(description, dict) or description.get("format") != expected_format:
        raise InputError(f"{path} is not of the format {expected_format}; it was written by another version")
    return description
