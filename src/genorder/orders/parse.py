"""Orders from what a user writes: one order as text, or a JSON file of one order or of many."""

import json
import re
from pathlib import Path
from typing import Any

from genorder.errors import InputError
from genorder.orders.candidates import deduplicated
from genorder.orders.order import Order
from genorder.seeding import derive_seed, numpy_generator

ACCEPTED_FORMS = "forward, reverse, random:SEED, a JSON file, or indices such as 0,3,1,2"

_INDEX_LIST = re.compile(r"\s*[+-]?\d+\s*(,\s*[+-]?\d+\s*)*")
_RANDOM = re.compile(r"random:([+-]?\d{1,100})")


def parse_order(text: str, length: int) -> Order:
    """`forward | reverse | random:SEED | FILE | 0,3,1,2` as an order of `length` targets.

    FILE holds a JSON list, or an object with the list under "order". Raises InputError otherwise.
    """
    text = text.strip()
    if text == "forward":
        return Order.forward(length)
    if text == "reverse":
        return Order.reverse(length)
    if text.startswith("random:"):
        match = _RANDOM.fullmatch(text)
        if match is None:
            raise InputError(f"{text!r} is not an order: random needs an integer seed, such as random:7")
        return Order.random(length, numpy_generator(derive_seed(int(match.group(1)), "order")))
    if _INDEX_LIST.fullmatch(text):
        return _of_length(_checked([_integer(word) for word in text.split(",")], text), length, text)
    path = Path(text)
    if text and (path.suffix or len(path.parts) > 1 or _exists(path)):
        return _of_length(_checked(_read_indices(path), str(path)), length, str(path))
    raise InputError(f"{text!r} is not an order: expected {ACCEPTED_FORMS}")


def read_orders(path: Path, length: int) -> list[Order]:
    """Orders from a JSON file: a list of lists, or of objects with `order`, or an object with `orders`.

    Raises InputError that names the entry if one is broken or has another length.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg})") from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise InputError(f"{path} is not a JSON text file") from None
    entries = content.get("orders") if isinstance(content, dict) else content
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: expected a list of orders, such as [[0, 1, 2], [2, 1, 0]]")
    return deduplicated(_entry(entry, f"{path}: entry {n}", length) for n, entry in enumerate(entries, start=1))


def _entry(entry: Any, where: str, length: int) -> Order:
    indices = entry.get("order") if isinstance(entry, dict) else entry
    if not isinstance(indices, list):
        raise InputError(f"{where} is not an order; expected a list of target indices")
    order = _checked(indices, where)
    if len(order) != length:
        raise InputError(f"{where} has {len(order)} indices; the data has {length} targets")
    return order


def _integer(word: str) -> int:
    try:
        return int(word)
    except ValueError as error:  # Python refuses to convert numbers of several thousand digits
        raise InputError(f"an order cannot hold a number of {len(word.strip())} digits") from error


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a file name, or with a null byte in it
        return False


def _read_indices(path: Path) -> list[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such order file; an order is {ACCEPTED_FORMS}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON text: {error}") from error
    if isinstance(content, dict):
        if "order" not in content:
            raise InputError(f'{path}: the JSON object has no key "order"')
        content = content["order"]
    if not isinstance(content, list):
        raise InputError(f"{path}: expected a JSON list of indices, found {type(content).__name__}")
    return content


def _checked(indices: list[Any], source: str) -> Order:
    try:
        return Order.from_json(indices)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _of_length(order: Order, length: int, source: str) -> Order:
    if len(order) != length:
        raise InputError(f"{source}: the order has length {len(order)}, expected {length}")
    return order
