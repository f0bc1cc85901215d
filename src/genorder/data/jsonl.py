"""Datasets as JSON Lines: one object a line, `{"input": [...], "target": [...]}`.

Tokens are strings or integers; a string in place of a list is split on white space.
"""

import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from genorder.data.dataset import PackedRows, SequenceDataset
from genorder.data.vocabulary import Vocabulary
from genorder.errors import InputError
from genorder.store import replace_atomic


class _TokenNumbers(dict[str | int, int]):
    """Numbers tokens as they are first seen; 7 and "7" are one token."""

    def __missing__(self, token: str | int) -> int:
        text = str(token)
        number = self[text] if text in self else len(self.tokens)
        if number == len(self.tokens):
            self.tokens.append(text)
            self[text] = number
        self[token] = number
        return number

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []


def parse_tokens(value: Any, where: str, field: str) -> list[Any]:
    """The tokens of one JSON field: a list of strings and integers, or a string to split on white space."""
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, list):
        raise InputError(f"{where}: {field!r} is {_short(value)}; expected a list of tokens or a string")
    kinds = set(map(type, value))
    if not kinds <= {int, str}:
        wrong = next(token for token in value if type(token) not in (int, str))
        raise InputError(f"{where}: {field!r} holds {_short(wrong)}; expected tokens that are strings or integers")
    return value


def read_jsonl(path: str | Path) -> SequenceDataset:
    """Read a dataset, streaming. Raises InputError with file and line for a line that cannot be used."""
    path = Path(path)
    numbers = _TokenNumbers()
    number_of = numbers.__getitem__
    tokens = {"input": array("i"), "target": array("i")}
    offsets = {"input": array("q", [0]), "target": array("q", [0])}
    for where, line in numbered_lines(raw_lines(path), str(path)):
        record = parse_object(line, where)
        for field in ("input", "target"):
            if field not in record:
                raise InputError(
                    f"{where}: no {field!r} among the keys {_short(sorted(record))}; expected input and target"
                )
            row = parse_tokens(record[field], where, field)
            if not row and field == "target":
                raise InputError(f"{where}: the target is empty; expected at least one token")
            tokens[field].extend(map(number_of, row))
            offsets[field].append(len(tokens[field]))
    if len(offsets["input"]) == 1:
        raise InputError(f"{path} holds no samples; expected one JSON object with input and target per line")
    seen = Vocabulary(tuple(numbers.tokens))
    vocabulary = Vocabulary.of(numbers.tokens)
    ids = vocabulary.ids_from(seen)

    def pack(field: str) -> PackedRows:
        return PackedRows(
            ids[np.frombuffer(tokens[field], dtype=np.int32)] if tokens[field] else np.empty(0, np.int32),
            np.frombuffer(offsets[field], dtype=np.int64),
        )

    return SequenceDataset(pack("input"), pack("target"), vocabulary)


def raw_lines(path: Path) -> Iterator[bytes]:
    """Raises InputError for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def numbered_lines(raw_lines: Iterable[bytes], name: str) -> Iterator[tuple[str, str]]:
    """`name:number` and text of each line that is not blank. Raises InputError where a line is not UTF-8."""
    for number, raw in enumerate(raw_lines, start=1):
        where = f"{name}:{number}"
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where} is not UTF-8 text ({error.reason} at byte {error.start})") from None
        if line and not line.isspace():
            yield where, line


def parse_json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        reason = error.msg
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:  # a number of several thousand digits
        reason = str(error).split(";")[0]
    raise InputError(f"{where}: not JSON ({reason}): {_short(line.strip())}")


def parse_object(line: str, where: str) -> dict[str, Any]:
    record = parse_json(line, where)
    if not isinstance(record, dict):
        raise InputError(f"{where}: {_short(record)}; expected an object with input and target")
    return record


def write_jsonl(dataset: SequenceDataset, path: str | Path) -> None:
    """Write atomically; tokens are written as integers where every token of the vocabulary is one."""
    as_integers = dataset.vocabulary.is_integers
    texts = [t if as_integers else _quoted(t) for t in dataset.vocabulary.tokens]

    def row_text(packed: PackedRows, row: int) -> str:
        return ", ".join(map(texts.__getitem__, packed[row].tolist()))

    def lines() -> Iterable[str]:
        for row in range(len(dataset)):
            yield f'{{"input": [{row_text(dataset.inputs, row)}], "target": [{row_text(dataset.targets, row)}]}}\n'

    with replace_atomic(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(lines())


def _quoted(token: str) -> str:
    readable = json.dumps(token, ensure_ascii=False)
    # A lone surrogate, which JSON can name but UTF-8 cannot carry, is written as its escape.
    return readable if readable.encode(errors="ignore").decode() == readable else json.dumps(token)


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."
