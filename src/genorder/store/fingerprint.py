"""Fingerprints: equal content gives an equal hash on every machine, in every process."""

import hashlib
import json
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from genorder.errors import InputError


def to_plain(obj: Any) -> Any:
    """`obj` as it comes back from JSON: dict with str keys, list, str, int, float, bool, None.

    Models become dicts, enums their values, paths their text, tuples lists. Thus a config has the same
    fingerprint before it is saved and after it is read again.

    Raises ValueError for NaN and infinities, TypeError for anything else; both say where it was found.
    """
    return _plain(obj, "value")


def canonical_json(obj: Any) -> str:
    """One text per content: keys sorted, no spaces, floats by repr (so 1, 1.0 and True stay different)."""
    return json.dumps(to_plain(obj), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(obj: Any) -> str:
    """Hex SHA-256 of the canonical JSON of `obj`. Raises as `to_plain` does."""
    return hashlib.sha256(canonical_json(obj).encode()).hexdigest()


def fingerprint_arrays(*arrays: npt.NDArray[Any]) -> str:
    """Hex SHA-256 of every array's dtype, shape and elements in C order, whatever its memory layout."""
    digest = hashlib.sha256()
    for array in arrays:
        if array.dtype.kind in "OV":
            # Object arrays hold addresses; the text of a structured dtype leaves out its field names.
            raise TypeError(f"cannot fingerprint an array of dtype {array.dtype}: expected plain elements")
        digest.update(f"{array.dtype.str}{array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def sha256_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path | str) -> str:
    """Hex SHA-256 of a file's bytes, read in pieces. Raises InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _plain(obj: Any, where: str) -> Any:
    if isinstance(obj, Enum):  # before str and int: StrEnum and IntEnum members are those too
        return _plain(obj.value, where)
    if obj is None or isinstance(obj, bool):
        return obj
    if isinstance(obj, str):
        return str(obj)
    if isinstance(obj, int):
        return int(obj)
    if isinstance(obj, float):
        if not math.isfinite(obj):
            raise ValueError(f"{where} is {float(obj)}: expected a finite number")
        return float(obj)
    if isinstance(obj, PurePath):
        return str(obj)
    if isinstance(obj, BaseModel):
        return _plain(obj.model_dump(), where)
    if isinstance(obj, Mapping):
        return _plain_dict(obj, where)
    if isinstance(obj, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(obj)]
    raise TypeError(f"{where} is of type {type(obj).__name__}: expected what JSON can hold, a model or a path")


def _plain_dict(obj: Mapping[Any, Any], where: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in obj.items():
        bare = key.value if isinstance(key, Enum) else key
        if not isinstance(bare, str | int) or isinstance(bare, bool):
            raise TypeError(f"{where} has the key {key!r}: expected a str or an int")
        name = str(bare)
        if name in plain:  # 1 and "1" would be told apart here, but no longer after a round trip
            raise ValueError(f"{where} has the key {name!r} twice")
        plain[name] = _plain(item, f"{where}.{name}")
    return plain
