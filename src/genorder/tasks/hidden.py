"""Storing the target columns in a secret order: no search may profit from the answer being 0, 1, 2, ..."""

import numpy as np

from genorder.errors import InputError
from genorder.orders import Order
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks.base import Drawn, Lengths


def hidden_order(lengths: Lengths, seed: int) -> Order:
    """The secret order `true_of_column`: stored column c holds the true target `true_of_column[c]`.

    A sample of n targets has the true targets 0..n-1, and is stored as the first n columns. Column c must
    mean the same true target in samples of every length, so for each length n that occurs, the first n
    columns must hold just the targets 0..n-1. Hence the first `shortest` columns are shuffled among
    themselves, and so is each group of columns between one possible length and the next; with steps of
    one, everything after the first group stays in place. The identity is never returned for three targets
    or more, unless no column can move at all (lengths from 1 in steps of 1).
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


def hide(drawn: Drawn, true_of_column: Order) -> Drawn:
    """The same samples with their target columns stored in the secret order."""
    for length in np.unique(drawn.target_lengths).tolist():
        if max(true_of_column.indices[:length]) >= length:
            raise InputError(
                f"this hidden order would mix targets and padding of samples of length {length}: "
                f"draw it for the lengths that occur"
            )
    return drawn._replace(targets=true_of_column.apply(drawn.targets))


def unhide_order(order: Order, true_of_column: Order) -> Order:
    """An order over stored columns, in true indices: result[k] = true_of_column[order[k]]."""
    return true_of_column.compose(order)
