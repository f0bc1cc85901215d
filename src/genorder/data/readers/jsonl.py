"""JSON Lines: one object a line, `{"input": [...], "target": [...]}`."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson

from genorder.data.dataset import PackedRows, SequenceDataset
from genorder.data.readers.collect import RowBatch
from genorder.data.readers.lines import line_blocks, not_text
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.problems import Problems
from genorder.data.readers.tokens import shortened
from genorder.errors import InputError

EXPECTED = "one JSON object with input and target per line"


def read(path: str, options: ReadOptions, problems: Problems) -> Iterator[RowBatch]:
    for first, lines in line_blocks(path):
        careful = partial(_careful_batch, first, lines, options, problems)
        yield _quick_batch(first, lines, options, careful) or careful()


def _quick_batch(
    first: int, lines: list[bytes], options: ReadOptions, careful: Callable[[], RowBatch]
) -> RowBatch | None:
    """The batch of lines that orjson takes and that all have the first one's columns; else nothing.

    orjson rounds integers beyond 64 bits, to numbers that are no tokens: then the careful batch is asked for.
    """
    try:
        records = list(map(orjson.loads, lines))
        columns = options.columns_among(records[0], "", "keys")
        inputs, targets = columns.sides(lambda name: [record[name] for record in records])
    except (ValueError, KeyError, TypeError, InputError):
        return None
    places = range(first, first + len(lines))
    return RowBatch(inputs, targets, places, columns.fields, again=careful, names=columns.names)


def _careful_batch(first: int, lines: list[bytes], options: ReadOptions, problems: Problems) -> RowBatch:
    """Line by line, noting what cannot be used; takes all that Python's own reader takes."""
    batch = RowBatch([], [], [])
    for number, raw in enumerate(lines, first):
        where = f"{problems.name}:{number}"
        try:
            line = raw.decode()
            if not line or line.isspace():
                problems.blank_lines += 1
                continue
            record = parse_object(line, where)
            columns = options.columns_among(record, where, "keys")
        except UnicodeDecodeError as error:
            problems.add(not_text(where, error), hopeless=b"\0" in raw)
        except InputError as error:
            problems.add(str(error), hopeless=b"\0" in raw)
        else:
            inputs, targets = columns.sides(lambda name: [record[name]])  # noqa: B023
            batch.inputs.extend(inputs)
            batch.targets.extend(targets)
            batch = batch._replace(fields=columns.fields, names=columns.names)
            batch.places.append(number)  # type: ignore[attr-defined]
    return batch


def parse_json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        reason = error.msg
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:  # a number of several thousand digits
        reason = str(error).split(";")[0]
    raise InputError(f"{where}: not JSON ({reason}): {shortened(line.strip())}")


def parse_object(line: str, where: str) -> dict[str, Any]:
    record = parse_json(line, where)
    if not isinstance(record, dict):
        raise InputError(f"{where}: {shortened(record)}; expected an object with input and target")
    return record


def lines_of(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    """Tokens are written as integers where every token of the vocabulary is one."""
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
    # A lone surrogate, which JSON can name but UTF-8 cannot carry, is written as its escape.
    return readable if readable.encode(errors="ignore").decode() == readable else json.dumps(token)
