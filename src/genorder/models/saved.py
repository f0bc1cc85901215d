"""A trained model on disk, with its vocabulary, its widths and the order in which it emits its targets."""

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
from genorder.models.gpt2 import EXPORT_DESCRIPTION, EXPORT_FORMAT, EXPORT_WEIGHTS, state_from_export
from genorder.orders import Order
from genorder.store import ensure_writable_directory, sha256_bytes, write_bytes_atomic, write_json_atomic

_DESCRIPTION, _FORMAT, _WEIGHTS = "model.json", "genorder-model/1", "weights.safetensors"


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
        """Write `weights.safetensors` and `model.json`. Returns the SHA-256 of the weights."""
        weights = save_safetensors({k: v.cpu().contiguous() for k, v in self.model.state_dict().items()})
        digest = sha256_bytes(weights)
        ensure_writable_directory(folder)
        write_bytes_atomic(folder / _WEIGHTS, weights)
        write_json_atomic(folder / _DESCRIPTION, {"format": _FORMAT, **self.description(digest)})
        return digest

    def description(self, weights_sha256: str) -> dict[str, Any]:
        """Everything except the weights, as JSON."""
        return {
            "gpt": self.model.config.model_dump(),
            "input_width": self.input_width,
            "shortest_input": self.shortest_input,
            "order": list(self.order),
            "weights_sha256": weights_sha256,
            "vocabulary": list(self.vocabulary.tokens),
        }


def is_saved(folder: Path) -> bool:
    """Whether the files of `SavedModel.save` exist; their content is not checked."""
    return all((folder / name).exists() for name in (_WEIGHTS, _DESCRIPTION))


def load_model(folder: Path, device: torch.device) -> SavedModel:
    """Load a model from its folder in a run directory, or from a Hugging Face folder that `genorder export` wrote.

    Raises InputError if a file is missing, damaged or of another format.
    """
    exported = (folder / EXPORT_DESCRIPTION).exists()
    description = read_export_description(folder) if exported else _read_json(folder / _DESCRIPTION, _FORMAT)
    path = folder / (EXPORT_WEIGHTS if exported else _WEIGHTS)
    try:
        weights = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if sha256_bytes(weights) != description.get("weights_sha256"):
        advice = f"{EXPORT_DESCRIPTION}; export again" if exported else f"{_DESCRIPTION}; train again"
        raise InputError(f"{path} is damaged: its SHA-256 is not the one in {advice}")
    try:
        vocabulary = Vocabulary(tuple(description["vocabulary"]))
        order = Order(tuple(description["order"]))
        shortest = description["shortest_input"]
        if type(shortest) is not int or not 0 <= shortest <= description["input_width"]:
            raise TypeError(f"shortest_input is {shortest!r}")
        config = GPTConfig(**description["gpt"])
        model = GPT(
            config,
            vocabulary=len(vocabulary) + SPECIAL_TOKENS,
            positions=description["input_width"] + 1 + len(order),
            rng=None,
        )
        model.load_state_dict(state_from_export(weights, config.layers) if exported else load_safetensors(weights))
    except (KeyError, TypeError, ValidationError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder} does not hold a complete model: {reason}") from None
    model.to(device).eval()
    return SavedModel(model, vocabulary, order, description["input_width"], shortest)


def read_export_description(folder: Path) -> dict[str, Any]:
    """The content of an exported folder's `genorder.json`. Raises InputError if it is missing or damaged."""
    return _read_json(folder / EXPORT_DESCRIPTION, EXPORT_FORMAT)


def _read_json(path: Path, expected_format: str) -> dict[str, Any]:
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; expected the folder of a trained model") from None
    except ValueError:
        raise InputError(f"{path} is not JSON; expected the description of a trained model") from None
    if not isinstance(description, dict) or description.get("format") != expected_format:
        raise InputError(f"{path} is not of the format {expected_format}; it was written by another version")
    return description
