"""Rearrangements of an order by blocks of its steps, as orders over steps: compose a parent with them."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from genorder.orders import Order, deduplicated, distinct_orders


def even_blocks(length: int, count: int) -> list[list[int]]:
    """The steps in `count` blocks; where it does not divide, the first ones are one longer."""
    return [part.tolist() for part in np.array_split(np.arange(length), count)]


def sized_blocks(length: int, size: int) -> list[list[int]]:
    """The steps in blocks of `size`; the rest is a shorter last block."""
    return [list(range(start, min(start + size, length))) for start in range(0, length, size)]


def block_arrangements(blocks: Sequence[Sequence[int]], fixed: int = 0) -> Iterator[Order]:
    """Every sequence of the blocks, the unchanged one first; the last `fixed` blocks stay at the end."""
    moving, staying = blocks[: len(blocks) - fixed], blocks[len(blocks) - fixed :]
    for arranged in itertools.permutations(moving):
        yield Order.of(itertools.chain(*arranged, *staying))


def block_family(parents: Sequence[Order], count: int) -> list[Order]:
    """What one global stage profiles: every arrangement of each parent's `count` blocks, and its reversal."""
    length = len(parents[0])
    arrangements = list(block_arrangements(even_blocks(length, count)))
    reversal = Order.reverse(length)
    return deduplicated(
        order
        for parent in parents
        for arranged in (parent.compose(arrangement) for arrangement in arrangements)
        for order in (arranged, arranged.compose(reversal))
    )


def some_block_arrangements(
    blocks: Sequence[Sequence[int]], fixed: int, count: int, rng: np.random.Generator
) -> list[Order]:
    """All of them if they are at most `count`, else the unchanged one and a random sample."""
    moving, staying = blocks[: len(blocks) - fixed], blocks[len(blocks) - fixed :]
    if math.factorial(len(moving)) <= count:
        return list(block_arrangements(blocks, fixed))

    def draw() -> list[Order]:
        shuffled = [moving[index] for index in rng.permutation(len(moving)).tolist()]
        return [Order.of(itertools.chain(*shuffled, *staying))]

    return distinct_orders(draw, count, first=[Order.of(itertools.chain(*blocks))])


def some_inner_arrangements(blocks: Sequence[Sequence[int]], count: int, rng: np.random.Generator) -> list[Order]:
    """Every order of the steps within one block at a time, the unchanged first; a random sample above `count`."""
    unchanged = Order.of(itertools.chain(*blocks))
    if sum(math.factorial(len(block)) for block in blocks) <= count:
        found = [
            Order.of(itertools.chain(*blocks[:number], inner, *blocks[number + 1 :]))
            for number, block in enumerate(blocks)
            for inner in itertools.permutations(block)
        ]
        return deduplicated([unchanged, *found])

    def draw() -> list[Order]:
        number = int(rng.integers(len(blocks)))
        inner = rng.permutation(blocks[number]).tolist()
        return [Order.of(itertools.chain(*blocks[:number], inner, *blocks[number + 1 :]))]

    return distinct_orders(draw, count, first=[unchanged])
