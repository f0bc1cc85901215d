import enum
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from genorder.errors import InputError
from genorder.store import config_differences, fingerprint, fingerprint_arrays, sha256_file, to_plain

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
configs = st.dictionaries(st.text(), values, max_size=4)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Inner(BaseModel):
    path: Path
    level: Level


class Outer(BaseModel):
    inner: Inner
    pair: tuple[int, float]


def same(a: Any, b: Any) -> bool:
    """Equality that distinguishes 1, 1.0, True and the two zeros, written without canonical JSON."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) and repr(a) == repr(b)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(configs)
def test_key_order_does_not_matter(config: dict[str, Any]) -> None:
    assert fingerprint(reversed_keys(config)) == fingerprint(config)
    assert config_differences(config, reversed_keys(config)) == []


@given(configs, configs)
def test_equal_exactly_if_the_content_is(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert (fingerprint(a) == fingerprint(b)) == same(a, b)
    assert (config_differences(a, b) == []) == same(a, b)


@given(configs, st.text(), values, values)
def test_every_changed_value_matters(config: dict[str, Any], key: str, old: Any, new: Any) -> None:
    before, after = {"deep": [{**config, key: old}]}, {"deep": [{**config, key: new}]}
    assert (fingerprint(before) == fingerprint(after)) == same(old, new)
    assert (config_differences(before, after) == []) == same(old, new)


@given(configs)
def test_a_round_trip_through_json_does_not_matter(config: dict[str, Any]) -> None:
    assert fingerprint(json.loads(json.dumps(config))) == fingerprint(config)


def test_the_hash_is_the_documented_one() -> None:
    text = b'{"a":[1,2.5,true,null],"b":"\\u00e9"}'
    assert fingerprint({"b": "é", "a": (1, 2.5, True, None)}) == hashlib.sha256(text).hexdigest()


def test_models_enums_and_paths_count_as_what_they_are_saved_as() -> None:
    model = Outer(inner=Inner(path=Path("a/b"), level=Level.HIGH), pair=(1, 2.0))
    plain = {"inner": {"path": "a/b", "level": 3}, "pair": [1, 2.0]}
    assert to_plain(model) == plain
    assert fingerprint({"x": model, "c": Colour.RED}) == fingerprint({"c": "red", "x": plain})
    assert fingerprint({1: "x"}) == fingerprint({"1": "x"})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_numbers_are_refused_with_their_place(number: float) -> None:
    with pytest.raises(ValueError, match=r"value\.a\[1\] is"):
        fingerprint({"a": [0.0, number]})


@pytest.mark.parametrize("obj", [{1, 2}, object(), b"x", {"a": {None: 1}}, {(1,): 2}])
def test_other_types_are_refused(obj: object) -> None:
    with pytest.raises(TypeError):
        fingerprint(obj)


def test_keys_that_are_equal_in_json_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        fingerprint({1: "a", "1": "b"})


def test_arrays_by_dtype_shape_and_content_not_by_layout() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    others: list[npt.NDArray[Any]] = [
        array.astype(np.int64),
        array.reshape(3, 2),
        array + 1,
        array[:0],
        array.astype(">i4"),
    ]
    prints = {fingerprint_arrays(item) for item in [array, *others]}
    assert len(prints) == 6
    assert fingerprint_arrays(np.asfortranarray(array)) == fingerprint_arrays(array)
    assert fingerprint_arrays(array[:, ::-1][:, ::-1]) == fingerprint_arrays(array)
    assert fingerprint_arrays(array, others[0]) != fingerprint_arrays(others[0], array)
    assert fingerprint_arrays(np.array(1, dtype=np.float32)) != fingerprint_arrays(np.ones(1, dtype=np.float32))
    assert fingerprint_arrays() == hashlib.sha256().hexdigest()


def test_arrays_of_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        fingerprint_arrays(np.array([None]))


def test_file_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert sha256_file(tmp_path / "a") == hashlib.sha256(b"content").hexdigest()
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        sha256_file(tmp_path / "none")


def test_differences_are_named_by_dotted_path() -> None:
    old = {"seed": 1, "training": {"steps": 500, "old": {"a": 1}}, "sizes": [1, 2], "same": 0}
    new = {"same": 0, "sizes": [1, 3], "training": {"steps": 600, "new": {}}, "seed": True}
    assert config_differences(old, new) == [
        "seed: 1 in the run directory, true requested",
        "training.steps: 500 in the run directory, 600 requested",
        "training.old.a: 1 in the run directory, not requested",
        "training.new: not in the run directory, {} requested",
        "sizes[1]: 2 in the run directory, 3 requested",
    ]


def test_long_values_are_cut_where_they_differ() -> None:
    (line,) = config_differences({"a": "x" * 500 + "1" + "y" * 500}, {"a": "x" * 500 + "2" + "y" * 500})
    assert len(line) < 250
    assert "x1y" in line
    assert "x2y" in line
    (line,) = config_differences({"a": list(range(100))}, {"a": [5]})
    assert line.endswith("... in the run directory, [5] requested")
