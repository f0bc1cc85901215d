"""JSON Lines: one object per line, `{"input": [...], "target": [...]}`."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson

from genorder.data.dataset import PackedRows, SequenceDataset
from genorder.data.names import Names
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.rows import FileProblems, RowBatch
from genorder.data.readers.text import encoding_problem, line_blocks
from genorder.data.readers.tokens import short_repr
from genorder.errors import InputError

EXPECTED = "one JSON object with input and target per line"


def read_jsonl_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    for first, lines in line_blocks(path):
        reread = partial(_checked_batch, first, lines, options, problems)
        yield _fast_batch(first, lines, options, reread) or reread()


def _fast_batch(
    first: int, lines: list[bytes], options: ReadOptions, reread: Callable[[], RowBatch]
) -> RowBatch | None:
    """The batch, if orjson parses all lines and all have the columns of the first; else None.

    orjson turns integers beyond 64 bits into floats, which are no tokens: `collect_rows` then calls `reread`.
    """
    try:
        records = list(map(orjson.loads, lines))
        columns = options.find_columns(records[0], "", "keys")
        inputs, targets = columns.sides(lambda name: [record[name] for record in records])
    except (ValueError, KeyError, TypeError, InputError):
        return None
    numbers = range(first, first + len(lines))
    return RowBatch(inputs, targets, numbers, columns.fields, reread=reread, names=columns.names)


def _checked_batch(first: int, lines: list[bytes], options: ReadOptions, problems: FileProblems) -> RowBatch:
    """The batch, parsed line by line by Python's own reader; unusable lines are added to `problems`."""
    inputs: list[Any] = []
    targets: list[Any] = []
    numbers: list[int] = []
    fields, names = ("input", "target"), Names()
    for number, raw in enumerate(lines, first):
        where = f"{problems.name}:{number}"
        try:
            line = raw.decode()
            if not line or line.isspace():
                problems.blank_lines += 1
                continue
            record = parse_object(line, where)
            columns = options.find_columns(record, where, "keys")
        except UnicodeDecodeError as error:
            problems.add(encoding_problem(where, error), fatal=b"\0" in raw)
        except InputError as error:
            problems.add(str(error), fatal=b"\0" in raw)
        else:
            input_, target = columns.sides(lambda name: [record[name]])  # noqa: B023
            inputs += input_
            targets += target
            numbers.append(number)
            fields, names = columns.fields, columns.names
    return RowBatch(inputs, targets, numbers, fields, names=names)


def parse_json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        reason = error.msg
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:  # a number of several thousand digits
        reason = str(error).split(";")[0]
    raise InputError(f"{where}: not JSON ({reason}): {short_repr(line.strip())}")


def parse_object(line: str, where: str) -> dict[str, object]:
    record = parse_json(line, where)
    if not isinstance(record, dict):
        raise InputError(f"{where}: {short_repr(record)}; expected an object with input and target")
    return record


def jsonl_lines(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    """Tokens are written as integers if all tokens of the vocabulary are integers."""
    as_integers = dataset.vocabulary.is_integers
    texts = [token if as_integers else _quoted(token) for token in dataset.vocabulary.tokens]
    names = [_quoted(options.input_column or "input"), _quoted(options.target_column or "target")]

    def row_text(packed: PackedRows, row: int) -> str:
        return ", ".join(map(texts.__getitem__, packed[row].tolist()))

    for row in range(len(dataset)):
        inputs, targets = row_text(dataset.inputs, row), row_text(dataset.targets, row)
        yield f"{{{names[0]}: [{inputs}], {names[1]}: [{targets}]}}\n"


def _quoted(token: str) -> str:
    readable = json.dumps(token, ensure_ascii=False)
    # A lone surrogate, which JSON can escape but UTF-8 cannot encode, is written as its escape.
    return readable if readable.encode(errors="ignore").decode() == readable else json.dumps(token)
