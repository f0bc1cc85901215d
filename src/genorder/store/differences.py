"""In what two configurations differ, in words for the one who asked for the second."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from genorder.store.fingerprint import canonical_json, to_plain

_WIDTH = 70  # holds a SHA-256 in quotes
_LEAD = 20  # how much of the common beginning a shortened text keeps


def config_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One line per differing entry, named by its dotted path; empty exactly if the fingerprints are equal.

    `old` is what the run directory holds, `new` what is asked for now.
    """
    return list(_compare("", to_plain(old), to_plain(new)))


def _compare(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            below = f"{path}.{key}" if path else key
            if key not in new:
                yield from (
                    f"{leaf}: {_text(value)} in the run directory, not asked for"
                    for leaf, value in _leaves(below, old[key])
                )
            elif key not in old:
                yield from (
                    f"{leaf}: not in the run directory, {_text(value)} asked for"
                    for leaf, value in _leaves(below, new[key])
                )
            else:
                yield from _compare(below, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _compare(f"{path}[{index}]", old_item, new_item)
    # By canonical text, because Python holds 1, 1.0 and True for equal and a fingerprint does not.
    elif canonical_json(old) != canonical_json(new):
        old_text, new_text = _shorten_alike(_whole_text(old), _whole_text(new))
        yield f"{path}: {old_text} in the run directory, {new_text} asked for"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    else:
        yield path, value


def _whole_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _text(value: Any) -> str:
    return _cut(_whole_text(value), 0)


def _shorten_alike(old: str, new: str) -> tuple[str, str]:
    """Cut both so that the place where they first differ stays visible."""
    if max(len(old), len(new)) <= _WIDTH:
        return old, new
    common = next(
        (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    start = common - _LEAD if common > _WIDTH - _LEAD else 0
    return _cut(old, start), _cut(new, start)


def _cut(text: str, start: int) -> str:
    end = start + _WIDTH
    return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")
