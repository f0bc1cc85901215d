"""The samples of a task as three splits, optionally with the target columns stored in a hidden order.

With a hidden order, no search can profit from the answer being 0, 1, 2, ...
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from genorder.data import SequenceDataset, Splits
from genorder.errors import InputError
from genorder.orders import DependencyGraph, Order
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks.base import DrawnSamples, Lengths, Split, Task


@final
@dataclass(frozen=True, eq=False)
class TaskData:
    task: Task
    splits: Splits
    true_of_column: Order  # stored column c holds the true target true_of_column[c]

    def graph_of_columns(self) -> DependencyGraph:
        """The dependencies between the stored columns."""
        return self.task.dependencies().relabelled(self.true_of_column)


def stored_columns(task: Task, hidden_order_seed: int | None) -> Order:
    """Which true target each stored column contains: the identity unless an order is hidden."""
    if hidden_order_seed is None:
        return Order.forward(task.longest)
    return hidden_order(task.lengths, hidden_order_seed)


def task_dataset(
    task: Task, split: Split, samples: int, *, hidden_order_seed: int | None = None, seed: int = 0
) -> SequenceDataset:
    drawn = task.generate(samples, split, seed=seed)
    if hidden_order_seed is not None:
        drawn = hide_order(drawn, stored_columns(task, hidden_order_seed))
    return SequenceDataset.from_integers(*drawn)


def task_splits(
    task: Task, *, train: int, validation: int, test: int, hidden_order_seed: int | None = None
) -> TaskData:
    sizes = {Split.TRAIN: train, Split.VALIDATION: validation, Split.TEST: test}
    datasets = [
        task_dataset(task, split, samples, hidden_order_seed=hidden_order_seed) for split, samples in sizes.items()
    ]
    splits = Splits.of(datasets[0], datasets[1], datasets[2])
    return TaskData(task, splits, stored_columns(task, hidden_order_seed))


def hidden_order(lengths: Lengths, seed: int) -> Order:
    """The hidden order `true_of_column`: stored column c contains the true target `true_of_column[c]`.

    A sample of n targets has the true targets 0..n-1 and is stored in the first n columns. A column must have the same
    meaning in samples of every length, so for each possible length n the first n columns must contain exactly the
    targets 0..n-1. Therefore the first `shortest` columns are shuffled among themselves, and so is each group of
    columns between one possible length and the next; with steps of 1, only the first group moves. For three or more
    targets the result is never the identity, unless no column can move (lengths from 1 in steps of 1).
    """
    ends = list(lengths.possible)
    groups = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    can_move = any(len(group) > 1 for group in groups)
    identity = Order.forward(lengths.longest)
    rng = numpy_generator(derive_seed(seed, "hidden-order", str(lengths), lengths.step))
    while True:
        order = Order.of(index for group in groups for index in rng.permutation(np.array(group)))
        if order != identity or not can_move or lengths.longest < 3:
            return order


def hide_order(drawn: DrawnSamples, true_of_column: Order) -> DrawnSamples:
    """The same samples with their target columns stored in the hidden order."""
    for length in np.unique(drawn.target_lengths).tolist():
        if max(true_of_column.indices[:length]) >= length:
            raise InputError(
                f"this hidden order would mix targets and padding of samples of length {length}: "
                "draw it for the lengths that occur"
            )
    return drawn._replace(targets=true_of_column.apply(drawn.targets))


def unhide_order(order: Order, true_of_column: Order) -> Order:
    """An order of stored columns as an order of true targets: result[k] = true_of_column[order[k]]."""
    return true_of_column.compose(order)
