"""Our GPT's weights under the names and shapes of transformers' GPT2LMHeadModel, and back."""

from collections.abc import Mapping

import torch
from torch import Tensor

from genorder.models.gpt import GPT

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
_OUTSIDE_BLOCKS = {
    "token_embedding": "transformer.wte.weight",
    "position_embedding": "transformer.wpe.weight",
    "norm_out.weight": "transformer.ln_f.weight",
    "norm_out.bias": "transformer.ln_f.bias",
}


def to_gpt2(model: GPT) -> dict[str, Tensor]:
    """A state dict for GPT2LMHeadModel, whose linear maps are stored as (in, out)."""
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
    """The state dict of our GPT, from what `to_gpt2` gives. Raises KeyError for a name that is missing."""
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
