"""Seeds and hashes: every use of randomness has its own seed, derived from the root seed and the names of that use."""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray


def derive_seed(root: int, *names: str | int) -> int:
    """A 63-bit seed that depends on `root` and on every name, and on nothing else."""
    text = "\x1f".join([str(root), *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def mix64(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a bijection of 64-bit words in which every output bit depends on all input bits."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def numpy_generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def torch_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return generator
