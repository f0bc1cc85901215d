"""A trained model in the format of transformers' GPT-2: names and shapes of the weights, and the files of a folder."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

from genorder.data.encoding import EOS
from genorder.models.gpt import GPT
from genorder.store import sha256_bytes

if TYPE_CHECKING:
    from genorder.models.saved import SavedModel

EXPORT_DESCRIPTION = "genorder.json"  # order, widths and vocabulary, which transformers has no place for
EXPORT_FORMAT = "genorder-export/1"
EXPORT_WEIGHTS = "model.safetensors"

_SAME_IN_BLOCK = {
    "norm_attention.weight": "ln_1.weight",
    "norm_attention.bias": "ln_1.bias",
    "attention_out.bias": "attn.c_proj.bias",
    "norm_feedforward.weight": "ln_2.weight",
    "norm_feedforward.bias": "ln_2.bias",
    "expand.bias": "mlp.c_fc.bias",
    "contract.bias": "mlp.c_proj.bias",
}
_TRANSPOSED_IN_BLOCK = {
    "attention_out.weight": "attn.c_proj.weight",
    "expand.weight": "mlp.c_fc.weight",
    "contract.weight": "mlp.c_proj.weight",
}
_POSITIONS = "transformer.wpe.weight"
_OUTSIDE_BLOCKS = {
    "token_embedding": "transformer.wte.weight",
    "position_embedding": _POSITIONS,
    "norm_out.weight": "transformer.ln_f.weight",
    "norm_out.bias": "transformer.ln_f.bias",
}


def to_gpt2(model: GPT) -> dict[str, Tensor]:
    """The state dict for GPT2LMHeadModel, whose linear maps have the shape (in, out)."""
    ours: Mapping[str, Tensor] = model.state_dict()
    theirs = {name: ours[source] for source, name in _OUTSIDE_BLOCKS.items()}
    theirs["lm_head.weight"] = ours["token_embedding"]
    for layer in range(model.config.layers):
        source, goal = f"blocks.{layer}.", f"transformer.h.{layer}."
        for inner, name in _SAME_IN_BLOCK.items():
            theirs[goal + name] = ours[source + inner]
        for inner, name in _TRANSPOSED_IN_BLOCK.items():
            theirs[goal + name] = ours[source + inner].T
        for kind in ("weight", "bias"):
            joined = torch.cat([ours[f"{source}query.{kind}"], ours[f"{source}key_value.{kind}"]])
            theirs[f"{goal}attn.c_attn.{kind}"] = joined.T if kind == "weight" else joined
    return {name: tensor.contiguous() for name, tensor in theirs.items()}


def from_gpt2(theirs: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The state dict of our GPT from that of `to_gpt2`. Raises KeyError for a missing name."""
    ours = {source: theirs[name] for source, name in _OUTSIDE_BLOCKS.items()}
    for layer in range(layers):
        goal, source = f"blocks.{layer}.", f"transformer.h.{layer}."
        for inner, name in _SAME_IN_BLOCK.items():
            ours[goal + inner] = theirs[source + name]
        for inner, name in _TRANSPOSED_IN_BLOCK.items():
            ours[goal + inner] = theirs[source + name].T
        for kind in ("weight", "bias"):
            joined = theirs[f"{source}attn.c_attn.{kind}"]
            joined = joined.T if kind == "weight" else joined
            width = joined.shape[0] // 3
            ours[f"{goal}query.{kind}"], ours[f"{goal}key_value.{kind}"] = joined[:width], joined[width:]
    return {name: tensor.contiguous() for name, tensor in ours.items()}


def gpt2_files(saved: "SavedModel", about: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a folder that transformers loads, by name. `about` is added to the description, the last file."""
    gpt = saved.model.config
    state = {name: tensor.cpu() for name, tensor in to_gpt2(saved.model).items()}
    del state["lm_head.weight"]  # tied to the token embedding
    # One position more than in training, so that whole sequences with EOS can be fed in.
    state[_POSITIONS] = torch.nn.functional.pad(state[_POSITIONS], (0, 0, 0, 1))
    weights = save_safetensors(state, metadata={"format": "pt"})
    config = {
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
        "pad_token_id": None,  # the model reads PAD like any other token
    }
    generation = {
        "bos_token_id": None,
        "eos_token_id": EOS,
        # After EOS, generation fills up with EOS. With PAD, transformers would hide the PADs of a prompt.
        "pad_token_id": EOS,
        "do_sample": False,
        "max_new_tokens": len(saved.order) + 1,
    }
    return {
        "config.json": as_json(config),
        "generation_config.json": as_json(generation),
        EXPORT_WEIGHTS: weights,
        EXPORT_DESCRIPTION: as_json({"format": EXPORT_FORMAT, **saved.description(sha256_bytes(weights)), **about}),
    }


def state_from_export(weights: bytes, layers: int) -> dict[str, Tensor]:
    """The state dict of our GPT from the weights file that `gpt2_files` makes."""
    theirs = load_safetensors(weights)
    theirs[_POSITIONS] = theirs[_POSITIONS][:-1]
    return from_gpt2(theirs, layers)


def as_json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
