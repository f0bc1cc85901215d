"""Datasets as model tokens `x_1 .. x_W SEP y_1 .. y_L EOS`, all samples with the same width.

A short input is padded *before* SEP, so that target positions are the same in every sample; padding is an ordinary
token that the model reads. Tokens after EOS are never used.

Axes: B batch, N samples, W input width, L target width, T = W + 1 + L tokens, Q = L + 1 predictions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genorder.data.dataset import SequenceDataset
from genorder.data.splits import Splits
from genorder.seeding import derive_seed, numpy_generator

PAD, SEP, EOS = 0, 1, 2
SPECIAL_NAMES = ("<pad>", "<sep>", "<eos>")  # by their ids
SPECIAL_TOKENS = len(SPECIAL_NAMES)  # the vocabulary's token i has the model id i + SPECIAL_TOKENS
IGNORED = -100  # label of a prediction that does not count
_ROW_SEED = 0  # the same for every run, so that runs with different seeds use the same samples


class Batch(NamedTuple):
    tokens_BT: Tensor
    labels_BQ: Tensor  # the token that follows position W + q; IGNORED beyond EOS
    predicted_BQ: Tensor  # the target index of that token; L for EOS


@final
@dataclass(frozen=True, eq=False)
class EncodedDataset:
    inputs_NW: Tensor
    targets_NL: Tensor
    target_lengths_N: Tensor
    model_vocabulary: int

    def __len__(self) -> int:
        return len(self.inputs_NW)

    @property
    def input_width(self) -> int:
        return self.inputs_NW.shape[1]

    @property
    def target_width(self) -> int:
        return self.targets_NL.shape[1]

    @cached_property
    def is_fixed_length(self) -> bool:
        return bool((self.target_lengths_N == self.target_width).all())

    def to(self, device: torch.device) -> "EncodedDataset":
        return EncodedDataset(
            self.inputs_NW.to(device),
            self.targets_NL.to(device),
            self.target_lengths_N.to(device),
            self.model_vocabulary,
        )

    def head(self, samples: int) -> "EncodedDataset":
        return EncodedDataset(
            self.inputs_NW[:samples],
            self.targets_NL[:samples],
            self.target_lengths_N[:samples],
            self.model_vocabulary,
        )


def encode(dataset: SequenceDataset, *, input_width: int, target_width: int) -> EncodedDataset:
    """The samples, padded to the given widths. Raises ValueError for a longer sequence."""
    inputs_NW, targets_NL = (
        rows.padded(width, PAD - SPECIAL_TOKENS)
        for rows, width in ((dataset.inputs, input_width), (dataset.targets, target_width))
    )
    inputs_NW += SPECIAL_TOKENS
    targets_NL += SPECIAL_TOKENS
    lengths_N = torch.from_numpy(dataset.targets.lengths)
    vocabulary = len(dataset.vocabulary) + SPECIAL_TOKENS
    return EncodedDataset(torch.from_numpy(inputs_NW), torch.from_numpy(targets_NL), lengths_N, vocabulary)


def encode_for_exploring(splits: Splits, device: torch.device) -> tuple[EncodedDataset, EncodedDataset]:
    """The training and the validation split on a device; the search never uses the test split.

    The samples are shuffled, so that the first n represent all, also for a sorted file.
    """
    train, validation = (
        encode(
            split.take(numpy_generator(derive_seed(_ROW_SEED, "exploring")).permutation(len(split))),
            input_width=splits.input_width,
            target_width=splits.target_width,
        ).to(device)
        for split in (splits.train, splits.validation)
    )
    return train, validation


def restrict_orders(encoded: EncodedDataset, rows_B: Tensor, orders_BL: Tensor) -> Tensor:
    """Each row's order, stably partitioned: first the indices below the row's length, then the others."""
    orders_BL = orders_BL.expand(len(rows_B), encoded.target_width)
    if encoded.is_fixed_length:
        return orders_BL
    dropped_BL = orders_BL >= encoded.target_lengths_N[rows_B][:, None]
    return orders_BL.gather(1, dropped_BL.to(torch.int8).argsort(dim=1, stable=True))


def arrange(encoded: EncodedDataset, rows_B: Tensor, orders_BL: Tensor) -> Batch:
    """The batch of the given rows, with the targets of row b in the order `orders_BL[b]`.

    `orders_BL` may have a single row for all samples. A sample of n < L targets uses its order restricted to the
    indices below n, then EOS.
    """
    targets_BL, lengths_B = encoded.targets_NL[rows_B], encoded.target_lengths_N[rows_B]
    width = encoded.target_width
    orders_BL = restrict_orders(encoded, rows_B, orders_BL)
    emitted_BL = targets_BL.gather(1, orders_BL)
    labels_BQ = torch.nn.functional.pad(emitted_BL, (0, 1), value=EOS).long()
    predicted_BQ = torch.nn.functional.pad(orders_BL, (0, 1), value=width)
    if not encoded.is_fixed_length:
        step_Q = torch.arange(width + 1, device=labels_BQ.device)
        labels_BQ = labels_BQ.masked_fill(step_Q == lengths_B[:, None], EOS)
        labels_BQ = labels_BQ.masked_fill(step_Q > lengths_B[:, None], IGNORED)
        predicted_BQ = predicted_BQ.masked_fill(step_Q >= lengths_B[:, None], width)
    separator_B1 = torch.full((len(rows_B), 1), SEP, dtype=emitted_BL.dtype, device=emitted_BL.device)
    tokens_BT = torch.cat([encoded.inputs_NW[rows_B], separator_B1, emitted_BL], dim=1).long()
    return Batch(tokens_BT, labels_BQ, predicted_BQ)


def decode_tokens(model_tokens: NDArray[np.integer], tokens: tuple[str, ...]) -> list[str]:
    """The tokens of model ids; special ids become <pad>, <sep>, <eos>."""
    names = (*SPECIAL_NAMES, *tokens)
    return [names[token] for token in model_tokens.tolist()]
