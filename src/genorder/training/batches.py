"""The samples and orders of each step's batch: a function of the seed and the step alone."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genorder.data import Batch, EncodedDataset, arrange
from genorder.seeding import derive_seed, numpy_generator


@final
@dataclass(frozen=True, eq=False)
class BatchPlan:
    """Passes over the data, each with a new shuffle. A batch may span the end of a pass.

    With several orders, the samples of a pass are assigned to them round-robin, over a list of orders that is shuffled
    for each pass: the numbers of samples per order differ by one at most.
    """

    encoded: EncodedDataset
    orders_KL: Tensor
    batch_size: int
    seed: int
    _passes: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict, repr=False)

    def rows_and_orders(self, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sample and the order (a row of `orders_KL`) of each row of the batch."""
        samples = len(self.encoded)
        positions = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        passes, within = np.divmod(positions, samples)
        rows = np.empty_like(positions)
        orders = np.empty_like(positions)
        for number in np.unique(passes).tolist():
            sample_shuffle, order_shuffle = self._pass(number)
            here = passes == number
            rows[here] = sample_shuffle[within[here]]
            orders[here] = order_shuffle[within[here] % len(order_shuffle)]
        return rows, orders

    def __call__(self, step: int) -> Batch:
        rows, orders = self.rows_and_orders(step)
        device = self.encoded.inputs_NW.device
        rows_B = torch.from_numpy(rows).to(device)
        if len(self.orders_KL) == 1:
            return arrange(self.encoded, rows_B, self.orders_KL)
        return arrange(self.encoded, rows_B, self.orders_KL[torch.from_numpy(orders).to(device)])

    def _pass(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if number not in self._passes:
            rng = numpy_generator(derive_seed(self.seed, "pass", number))
            shuffles = rng.permutation(len(self.encoded)), rng.permutation(len(self.orders_KL))
            for old in [known for known in self._passes if known < number - 1]:
                del self._passes[old]
            self._passes[number] = shuffles
        return self._passes[number]
