"""Fingerprints of JSON values and arrays, equal on every machine for equal content, and differences between configs."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from genorder.errors import InputError

JsonObject: TypeAlias = dict[str, object]  # a configuration, result or progress record, opaque to the store

_SHOWN_WIDTH = 70  # fits a SHA-256 in quotes
_SHOWN_LEAD = 20  # characters of the common beginning that a shortened text keeps


def to_plain(obj: object) -> Any:
    """`obj` as it is read back from JSON: dict with str keys, list, str, int, float, bool, None.

    Models become dicts, enums their values, paths their text, tuples lists. A config therefore has the same fingerprint
    before it is saved and after it is read again.

    Raises ValueError for NaN and infinities, TypeError for anything else; both say where it was found.
    """
    return _plain(obj, "value")


def canonical_json(obj: object) -> str:
    """One text per content: keys sorted, no spaces, floats by repr (so 1, 1.0 and True stay different)."""
    return json.dumps(to_plain(obj), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(obj: object) -> str:
    """Hex SHA-256 of the canonical JSON of `obj`. Raises as `to_plain` does."""
    return hashlib.sha256(canonical_json(obj).encode()).hexdigest()


def fingerprint_arrays(*arrays: npt.NDArray[Any]) -> str:
    """Hex SHA-256 of every array's dtype, shape and elements in C order, whatever its memory layout."""
    digest = hashlib.sha256()
    for array in arrays:
        if array.dtype.kind in "OV":
            # Object arrays contain addresses; the text of a structured dtype omits its field names.
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


def _plain(obj: object, where: str) -> Any:
    if isinstance(obj, Enum):  # before str and int: StrEnum and IntEnum members are also str and int
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


def _plain_dict(obj: Mapping[Any, object], where: str) -> JsonObject:
    plain: JsonObject = {}
    for key, item in obj.items():
        bare = key.value if isinstance(key, Enum) else key
        if not isinstance(bare, str | int) or isinstance(bare, bool):
            raise TypeError(f"{where} has the key {key!r}: expected a str or an int")
        name = str(bare)
        if name in plain:  # 1 and "1" are different keys here, but not after a round trip through JSON
            raise ValueError(f"{where} has the key {name!r} twice")
        plain[name] = _plain(item, f"{where}.{name}")
    return plain


def config_differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """One line per differing entry, named by its dotted path; empty exactly if the fingerprints are equal.

    `old` is the configuration in the run directory, `new` the one of this command.
    """
    return list(_compare("", to_plain(old), to_plain(new)))


def _compare(path: str, old: object, new: object) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            below = f"{path}.{key}" if path else key
            if key not in new:
                for leaf, value in _leaves(below, old[key]):
                    yield f"{leaf}: {_cut(_shown(value), 0)} in the run directory, not requested"
            elif key not in old:
                for leaf, value in _leaves(below, new[key]):
                    yield f"{leaf}: not in the run directory, {_cut(_shown(value), 0)} requested"
            else:
                yield from _compare(below, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _compare(f"{path}[{index}]", old_item, new_item)
    # By canonical text, because 1, 1.0 and True are equal in Python and have different fingerprints.
    elif canonical_json(old) != canonical_json(new):
        old_text, new_text = _cut_at_difference(_shown(old), _shown(new))
        yield f"{path}: {old_text} in the run directory, {new_text} requested"


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    else:
        yield path, value


def _shown(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _cut_at_difference(old: str, new: str) -> tuple[str, str]:
    """Both texts, cut so that the place where they first differ stays visible."""
    if max(len(old), len(new)) <= _SHOWN_WIDTH:
        return old, new
    common = next(
        (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    start = common - _SHOWN_LEAD if common > _SHOWN_WIDTH - _SHOWN_LEAD else 0
    return _cut(old, start), _cut(new, start)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN_WIDTH
    return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")
