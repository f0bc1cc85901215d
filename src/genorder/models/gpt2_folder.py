"""A trained model as the files of transformers' GPT-2, and back: nothing of it is known to our own format alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

from genorder.data.encoding import EOS
from genorder.models.gpt import GPTConfig
from genorder.models.gpt2_weights import from_gpt2, to_gpt2
from genorder.models.saved import SavedModel, build_model, read_description, read_weights
from genorder.store import sha256_bytes

DESCRIPTION = "genorder.json"  # what transformers does not keep: the order, the widths, the vocabulary
_FORMAT = "genorder-export/1"
_WEIGHTS = "model.safetensors"
_POSITIONS = "transformer.wpe.weight"


def gpt2_files(saved: SavedModel, about: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of the folder by name. `about` is added to the description; the description comes last."""
    state = {name: tensor.cpu() for name, tensor in to_gpt2(saved.model).items()}
    del state["lm_head.weight"]  # tied to the token embedding
    # One position more than the model was trained on, for those who feed it whole sequences, EOS included.
    state[_POSITIONS] = torch.nn.functional.pad(state[_POSITIONS], (0, 0, 0, 1))
    weights = save_safetensors(state, metadata={"format": "pt"})
    description = {"format": _FORMAT, **saved.description(sha256_bytes(weights)), **about}
    return {
        "config.json": as_json(_config(saved)),
        "generation_config.json": as_json(_generation(saved)),
        _WEIGHTS: weights,
        DESCRIPTION: as_json(description),
    }


def load_gpt2_folder(folder: Path, device: torch.device) -> SavedModel:
    """Read what `gpt2_files` describes. Raises InputError where it is missing, damaged or of another format."""
    description = read_about(folder)
    weights = read_weights(folder / _WEIGHTS, description, f"{DESCRIPTION}; export again")

    def state() -> dict[str, Tensor]:
        theirs = load_safetensors(weights)
        theirs[_POSITIONS] = theirs[_POSITIONS][:-1]
        return from_gpt2(theirs, GPTConfig(**description["gpt"]).layers)

    return build_model(description, state, folder, device)


def read_about(folder: Path) -> dict[str, Any]:
    """The description, with what was added to it. Raises InputError where it is missing or damaged."""
    return read_description(folder / DESCRIPTION, _FORMAT)


def as_json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _config(saved: SavedModel) -> dict[str, Any]:
    gpt = saved.model.config
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": saved.model.token_embedding.shape[0],
        "n_positions": saved.model.positions + 1,
        "n_embd": gpt.width,
        "n_layer": gpt.layers,
        "n_head": gpt.heads,
        "n_inner": gpt.feedforward,
        "activation_function": gpt.activation,
        "layer_norm_epsilon": 1e-5,
        "attn_pdrop": gpt.dropout,
        "embd_pdrop": gpt.dropout,
        "resid_pdrop": gpt.dropout,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "bos_token_id": None,
        "eos_token_id": EOS,
        "pad_token_id": None,  # the model reads PAD as a token like any other
    }


def _generation(saved: SavedModel) -> dict[str, Any]:
    return {
        "bos_token_id": None,
        "eos_token_id": EOS,
        # What follows EOS is filled up with EOS. Were it PAD, transformers would hide the PADs of a prompt.
        "pad_token_id": EOS,
        "do_sample": False,
        "max_new_tokens": len(saved.order) + 1,
    }
