"""Small encoded datasets for tests."""

import numpy as np
import torch
from numpy.typing import NDArray

from genorder.data import EncodedDataset

TOKENS = 7  # 0 to 6, whose model ids are 3 to 9


def encoded(
    inputs_NW: NDArray[np.int64], targets_NL: NDArray[np.int64], lengths_N: NDArray[np.int64] | None = None
) -> EncodedDataset:
    lengths_N = np.full(len(targets_NL), targets_NL.shape[1]) if lengths_N is None else lengths_N
    beyond_NL = np.arange(targets_NL.shape[1]) >= lengths_N[:, None]
    return EncodedDataset(
        torch.from_numpy(inputs_NW + 3).int(),
        torch.from_numpy(np.where(beyond_NL, 0, targets_NL + 3)).int(),
        torch.from_numpy(lengths_N),
        TOKENS + 3,
    )
