"""CSV and TSV tables: a header with the names of the columns, then one row per sample."""

import csv
import io
from collections.abc import Iterator

from genorder.data.dataset import SequenceDataset
from genorder.data.readers.options import Columns, ReadOptions
from genorder.data.readers.rows import FileProblems, RowBatch
from genorder.data.readers.text import text_blocks
from genorder.data.readers.tokens import check_joinable, joined
from genorder.errors import InputError

EXPECTED = "a header with the columns input and target, then a row for each sample"
_COMMA, _TAB = ",", "\t"
_BATCH = 4096
_LONGEST_FIELD = 16 << 20


def read_csv_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    return _batches(path, options, problems, _COMMA)


def read_tsv_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    return _batches(path, options, problems, _TAB)


def _batches(path: str, options: ReadOptions, problems: FileProblems, delimiter: str) -> Iterator[RowBatch]:
    rows = _rows(path, problems, delimiter)
    first = next(rows, None)
    if first is None:
        return
    number, header = first
    where = f"{problems.name}:{number}"
    try:
        columns = options.find_columns(header, where, "columns")
    except InputError as error:
        hint = "; for tab-separated tokens without a header: --format int2int" if delimiter == _TAB else ""
        raise InputError(f"{error}{hint}") from None
    numbers: list[int] = []
    kept: list[list[str]] = []
    for number, row in rows:
        if len(row) != len(header):
            problems.add(f"{problems.name}:{number}: {len(row)} columns; expected {len(header)} as in the header")
            continue
        numbers.append(number)
        kept.append(row)
        if len(kept) == _BATCH:
            yield _batch(numbers, kept, header, columns)
            numbers, kept = [], []
    yield _batch(numbers, kept, header, columns)


def _batch(numbers: list[int], rows: list[list[str]], header: list[str], columns: Columns) -> RowBatch:
    def column(name: str) -> list[str]:
        index = header.index(name)
        return [row[index] for row in rows]

    return RowBatch(*columns.sides(column), numbers, columns.fields, names=columns.names)


def _rows(path: str, problems: FileProblems, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The number of each row's first line, and its fields; rows that cannot be parsed are added to `problems`."""
    lines = (f"{line}\n" for _, block in text_blocks(path, problems) for line in block)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        process_limit = csv.field_size_limit(_LONGEST_FIELD)  # a setting of the process, so it is restored at once
        try:
            row = next(reader, None)
        except csv.Error as error:
            problems.add(f"{problems.name}:{number}: not a row of a table ({error})")
            continue
        finally:
            csv.field_size_limit(process_limit)
        if row is None:
            return
        if not row or (len(row) == 1 and not row[0].strip()):
            problems.blank_lines += 1
        else:
            yield number, row


def csv_lines(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _table_lines(dataset, options, _COMMA)


def tsv_lines(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _table_lines(dataset, options, _TAB)


def _table_lines(dataset: SequenceDataset, options: ReadOptions, delimiter: str) -> Iterator[str]:
    check_joinable(dataset.vocabulary.tokens, options.split, "a table")
    text = io.StringIO()
    # Tokens split by commas may contain line ends, which need quotes.
    writer = csv.writer(
        text,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if options.split == "comma" else csv.QUOTE_MINIMAL,
    )
    writer.writerow([options.input_column or "input", options.target_column or "target"])
    for row in range(len(dataset)):
        writer.writerow([joined(dataset.input(row), options.split), joined(dataset.target(row), options.split)])
        yield text.getvalue()
        text.seek(0)
        text.truncate()
