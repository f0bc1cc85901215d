"""Partially mapped crossover of two orders (Goldberg and Lingle, 1985)."""

from genorder.orders import Order


def partially_mapped(first: Order, second: Order, start: int, stop: int) -> Order:
    """Steps start..stop-1 as in `first`, the others as in `second` as far as that leaves a permutation.

    An index of `second` that the segment has already taken is replaced by the one that `second` emits at that step of
    the segment, and so on until a free one is reached. Indices are only compared for equality, so renaming the target
    columns renames the child.
    """
    segment = first.indices[start:stop]
    replacement = dict(zip(segment, second.indices[start:stop], strict=True))

    def free(index: int) -> int:
        while index in replacement:
            index = replacement[index]
        return index

    before = (free(index) for index in second.indices[:start])
    after = (free(index) for index in second.indices[stop:])
    return Order((*before, *segment, *after))
