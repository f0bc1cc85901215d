"""Checks on samples of which positions determine a target."""

from collections.abc import Sequence

import numpy as np

from genorder.tasks import DrawnSamples


def is_function_of(drawn: DrawnSamples, target: int, parents: Sequence[int], inputs: Sequence[int]) -> bool:
    """Whether samples that agree on these targets and inputs agree on the target."""
    code = np.zeros(len(drawn.inputs), dtype=np.int64)
    for column in [*(drawn.targets[:, j] for j in parents), *(drawn.inputs[:, i] for i in inputs)]:
        code = code * (column.max() + 1) + column
    tokens = drawn.targets[:, target].max() + 1
    return len(np.unique(code)) == len(np.unique(code * tokens + drawn.targets[:, target]))
