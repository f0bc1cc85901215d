"""The three splits of a built-in task as datasets, with the target columns hidden if asked for."""

from dataclasses import dataclass
from typing import final

from genorder.data import SequenceDataset, Splits
from genorder.orders import DependencyGraph, Order
from genorder.tasks.base import Task
from genorder.tasks.hidden import hidden_order, hide
from genorder.tasks.partition import Split


@final
@dataclass(frozen=True, eq=False)
class TaskData:
    task: Task
    splits: Splits
    true_of_column: Order  # stored column c holds the true target true_of_column[c]

    def graph_of_columns(self) -> DependencyGraph:
        """What each stored column is computed from."""
        return self.task.dependencies().relabelled(self.true_of_column)


def stored_columns(task: Task, hidden_order_seed: int | None) -> Order:
    """Which true target each stored column holds: the identity unless an order is to be hidden."""
    if hidden_order_seed is None:
        return Order.forward(task.longest)
    return hidden_order(task.lengths, hidden_order_seed)


def task_dataset(
    task: Task, split: Split, samples: int, *, hidden_order_seed: int | None = None, seed: int = 0
) -> SequenceDataset:
    drawn = task.generate(samples, split, seed=seed)
    if hidden_order_seed is not None:
        drawn = hide(drawn, stored_columns(task, hidden_order_seed))
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
