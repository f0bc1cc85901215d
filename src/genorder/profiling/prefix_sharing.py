"""The loss of many orders on the same samples, computing what they share once.

All orders share the input, so it is encoded once per sample. Orders that begin alike share the targets they begin
with: sorted, they form a tree of prefixes, each of which is computed once. The tree is walked level by level; a
level is a run of steps within which no two orders part. Exact, to rounding.

Axes: S samples, C orders, N nodes (distinct prefixes) of a level, M steps of a level, P steps before it, D width,
H heads, E = D / H, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from genorder.data.encoding import EOS, SEP
from genorder.models.gpt import GPT, Block


@final
@dataclass(frozen=True, eq=False)
class _Level:
    """Steps `start` to `stop` of every distinct prefix of that length."""

    start: int
    stop: int
    representative_N: Tensor  # an order (row) that begins with the prefix
    parent_N: Tensor  # the node of the level before


def tree_levels(orders_CL: Tensor) -> list[_Level]:
    """The levels of the prefix tree of orders that are sorted lexicographically."""
    count, length = orders_CL.shape
    parts_at_C = torch.zeros(count, dtype=torch.long)  # first step at which a row differs from the row above
    if count > 1:
        differs = (orders_CL[1:] != orders_CL[:-1]).to(torch.int8)
        parts_at_C[1:] = torch.where(differs.any(dim=1), differs.argmax(dim=1), length)
    # Rows that begin a new prefix of length k + 1, for k = 0..L-1; the first row always does.
    begins_LC = parts_at_C[None, :] <= torch.arange(length)[:, None]
    begins_LC[:, 0] = True
    nodes_L = begins_LC.sum(dim=1).tolist()
    starts = [step for step in range(length) if step == 0 or nodes_L[step] != nodes_L[step - 1]]
    levels = []
    node_above_C = torch.zeros(count, dtype=torch.long)
    for start, stop in zip(starts, [*starts[1:], length], strict=True):
        begins_C = begins_LC[start]
        representative_N = begins_C.nonzero()[:, 0]
        levels.append(_Level(start, stop, representative_N, node_above_C[representative_N]))
        node_above_C = begins_C.long().cumsum(dim=0) - 1
    return levels


@torch.inference_mode()
def shared_prefix_losses(model: GPT, inputs_SW: Tensor, targets_SL: Tensor, orders_CL: Tensor) -> Tensor:
    """Losses_CS: the summed cross-entropy of all targets and EOS. The orders must be sorted and distinct."""
    device = inputs_SW.device
    samples, width = inputs_SW.shape
    length = orders_CL.shape[1]
    separator_S1 = torch.full((samples, 1), SEP, dtype=torch.long, device=device)
    logits_SV, prompt = model.extend(
        torch.cat([inputs_SW.long(), separator_S1], dim=1), model.empty_cache(samples, width + 1)
    )
    log_probs_SNV = logits_SV.float().log_softmax(dim=-1)[:, None]  # what follows each node's prefix
    losses_SN = torch.zeros(samples, 1, device=device)
    path: list[Tensor] = []  # per layer: keys and values of each node's own prefix, (S, N, 2, H, P, E)
    sample_S11 = torch.arange(samples, device=device)[:, None, None]
    for level in tree_levels(orders_CL.cpu()):
        parent_N = level.parent_N.to(device)
        steps_NM = orders_CL[level.representative_N.to(device), level.start : level.stop]
        tokens_SNM = targets_SL.long()[sample_S11, steps_NM[None]]
        losses_SN = losses_SN[:, parent_N] - _pick(log_probs_SNV[:, parent_N], tokens_SNM[..., 0])
        path = [kept[:, parent_N] for kept in path]
        logits_SNMV, path = _advance(model, tokens_SNM, prompt.keys_BHTE, prompt.values_BHTE, path, level)
        log_probs_SNMV = logits_SNMV.float().log_softmax(dim=-1)
        losses_SN = losses_SN - _pick(log_probs_SNMV[:, :, :-1], tokens_SNM[..., 1:]).sum(dim=-1)
        log_probs_SNV = log_probs_SNMV[:, :, -1]
    assert length == level.stop
    return (losses_SN - log_probs_SNV[..., EOS]).T.contiguous()


def _pick(log_probs: Tensor, tokens: Tensor) -> Tensor:
    return log_probs.gather(-1, tokens[..., None])[..., 0]


def _advance(
    model: GPT,
    tokens_SNM: Tensor,
    prompt_keys: list[Tensor],
    prompt_values: list[Tensor],
    path: list[Tensor],
    level: _Level,
) -> tuple[Tensor, list[Tensor]]:
    """Logits_SNMV of the level's steps, and the path lengthened by them."""
    first = prompt_keys[0].shape[2] + level.start
    positions_MD = model.position_embedding[first : first + tokens_SNM.shape[2]]
    hidden_SNMD = torch.nn.functional.embedding(tokens_SNM, model.token_embedding) + positions_MD
    lengthened = []
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        kept = path[layer] if path else None
        hidden_SNMD, kept = _block(block, hidden_SNMD, prompt_keys[layer], prompt_values[layer], kept)
        lengthened.append(kept)
    return model.logits(hidden_SNMD), lengthened


def _block(
    block: Block, hidden_SNMD: Tensor, prompt_keys_SHWE: Tensor, prompt_values_SHWE: Tensor, kept: Tensor | None
) -> tuple[Tensor, Tensor]:
    samples, nodes, steps, width = hidden_SNMD.shape
    heads, size = block.heads, width // block.heads
    normed = block.norm_attention(hidden_SNMD)
    query_SNHME = block.query(normed).view(samples, nodes, steps, heads, size).transpose(2, 3)
    new_SN2HME = block.key_value(normed).view(samples, nodes, steps, 2, heads, size).permute(0, 1, 3, 4, 2, 5)
    path_SN2HPE = new_SN2HME.contiguous() if kept is None else torch.cat([kept, new_SN2HME], dim=4)
    scale = 1.0 / math.sqrt(size)

    # Against the input, all nodes of a sample are rows of one product; against its path, each node has its own.
    flat_query = query_SNHME.permute(0, 2, 1, 3, 4).reshape(samples * heads, nodes * steps, size)
    on_prompt = torch.bmm(flat_query, prompt_keys_SHWE.flatten(0, 1).transpose(1, 2))
    on_prompt = on_prompt.view(samples, heads, nodes, steps, -1).transpose(1, 2)
    on_path = query_SNHME @ path_SN2HPE[:, :, 0].transpose(-1, -2)
    seen = path_SN2HPE.shape[4]
    future = torch.ones(steps, seen, dtype=torch.bool, device=on_path.device).triu(seen - steps + 1)
    scores = torch.cat([on_prompt, on_path.masked_fill(future, -math.inf)], dim=-1).mul_(scale)
    weights = scores.softmax(dim=-1)
    prompt_weights, path_weights = torch.split(weights, [weights.shape[-1] - seen, seen], dim=-1)
    flat_weights = prompt_weights.transpose(1, 2).reshape(samples * heads, nodes * steps, -1)
    mixed = torch.bmm(flat_weights, prompt_values_SHWE.flatten(0, 1))
    mixed = mixed.view(samples, heads, nodes, steps, size).transpose(1, 2)
    mixed = mixed + path_weights @ path_SN2HPE[:, :, 1]
    attended_SNMD = mixed.transpose(2, 3).reshape(samples, nodes, steps, width)
    return block.after_attention(hidden_SNMD, attended_SNMD), path_SN2HPE
