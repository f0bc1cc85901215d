"""One root seed, and a seed of its own for every use of randomness, derived from the names of that use."""

import hashlib

import numpy as np
import torch


def derive_seed(root: int, *names: str | int) -> int:
    """A 63-bit seed that depends on `root` and on every name, and on nothing else."""
    text = "\x1f".join([str(root), *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def numpy_generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def torch_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return generator
