import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from genorder.seeding import derive_seed, numpy_generator, torch_generator

KNOWN = 6110582525853426845
names = st.lists(st.text(max_size=4) | st.integers(-5, 5), max_size=3)


@given(st.integers(-5, 2**70), names, st.integers(-5, 2**70), names)
def test_seeds_are_equal_exactly_for_equal_uses(
    root: int, used: list[str | int], other_root: int, other: list[str | int]
) -> None:
    same = (root, used) == (other_root, other)
    assert (derive_seed(root, *used) == derive_seed(other_root, *other)) == same


@given(st.integers(), names)
def test_a_seed_fits_numpy_and_torch(root: int, used: list[str | int]) -> None:
    seed = derive_seed(root, *used)
    assert 0 <= seed < 2**63
    torch_generator(seed)
    numpy_generator(seed)


def test_different_names_give_different_seeds() -> None:
    uses: list[tuple[str | int, ...]] = [
        (), ("",), ("1",), (1,), ("a", "b"), ("ab",), ("b", "a"),
        ("a", "b", ""), ("a", 1), ("a1",), (1, 2), (12,), (2, 1),
    ]  # fmt: skip
    assert len({derive_seed(0, *use) for use in uses}) == len(uses)
    assert derive_seed(1) != derive_seed(0, 1)


def test_a_seed_never_changes() -> None:
    """In every process, on every machine: changing it would change every run."""
    assert derive_seed(0, "step", 7) == KNOWN


def test_generators_follow_their_seed() -> None:
    np.testing.assert_array_equal(numpy_generator(3).random(5), numpy_generator(3).random(5))
    assert not np.array_equal(numpy_generator(3).random(5), numpy_generator(4).random(5))
    first, again, other = (torch.rand(5, generator=torch_generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_generators_do_not_use_the_global_one() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    torch.rand(3, generator=torch_generator(0))
    assert torch.equal(torch.rand(3), expected)
