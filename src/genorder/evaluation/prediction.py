"""The targets that a model predicts for new inputs, in the original order of target indices."""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from genorder.data.encoding import EOS, PAD, SPECIAL_TOKENS, decode_tokens
from genorder.errors import InputError
from genorder.evaluation.decoding import generate_greedily
from genorder.models import SavedModel

_log = logging.getLogger(__name__)


def encode_input(saved: SavedModel, tokens: Sequence[str], where: str) -> list[int]:
    """Model ids of one input, padded. Raises InputError, naming `where`, if the model cannot read it."""
    shortest, longest = saved.shortest_input, saved.input_width
    if not shortest <= len(tokens) <= longest:
        expected = str(longest) if shortest == longest else f"{shortest} to {longest}"
        raise InputError(f"{where}: the input has {len(tokens)} tokens; the model was trained on {expected}")
    try:
        ids = [number + SPECIAL_TOKENS for number in saved.vocabulary.ids(tokens)]
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return ids + [PAD] * (saved.input_width - len(ids))


def predict(
    saved: SavedModel, inputs: Sequence[Sequence[str]], *, where: Sequence[str] | None = None
) -> list[list[str]]:
    """The targets of each input, in the original order of target indices.

    `where` names each input in error messages, such as `file:line`.
    """
    names = where or [f"input {number}" for number in range(1, len(inputs) + 1)]
    encoded = [encode_input(saved, tokens, name) for tokens, name in zip(inputs, names, strict=True)]
    device = next(saved.model.parameters()).device
    inputs_NW = torch.tensor(encoded, dtype=torch.long, device=device).view(len(encoded), saved.input_width)
    generated_NQ = generate_greedily(saved.model, inputs_NW, saved.target_width + 1).cpu().numpy()
    for name, row in zip(names, generated_NQ, strict=True):
        if EOS not in row:
            _log.warning("%s: the model did not end its answer; cut after %d tokens", name, saved.target_width)
    return [_undo_order(row, saved) for row in generated_NQ]


def _undo_order(generated_Q: NDArray[np.int64], saved: SavedModel) -> list[str]:
    ends = np.flatnonzero(generated_Q == EOS)
    length = min(int(ends[0]) if len(ends) else len(generated_Q), saved.target_width)
    if length == 0:
        return []
    restored = np.empty(length, dtype=generated_Q.dtype)
    restored[list(saved.order.restrict(length))] = generated_Q[:length]
    return decode_tokens(restored, saved.vocabulary.tokens)
