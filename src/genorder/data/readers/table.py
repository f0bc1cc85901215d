"""Tables of text, CSV and TSV: a header that names the columns, then a row for each sample."""

import csv
import io
from collections.abc import Iterator

from genorder.data.dataset import SequenceDataset
from genorder.data.readers.collect import RowBatch
from genorder.data.readers.columns import Columns
from genorder.data.readers.lines import text_blocks
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.problems import Problems
from genorder.data.readers.tokens import check_joinable, joined
from genorder.errors import InputError

EXPECTED = "a header with the columns input and target, then a row for each sample"
_COMMA, _TAB = ",", "\t"
_BATCH = 4096
_LONGEST_FIELD = 16 << 20


def read_csv(path: str, options: ReadOptions, problems: Problems) -> Iterator[RowBatch]:
    return _batches(path, options, problems, _COMMA)


def read_tsv(path: str, options: ReadOptions, problems: Problems) -> Iterator[RowBatch]:
    return _batches(path, options, problems, _TAB)


def _batches(path: str, options: ReadOptions, problems: Problems, delimiter: str) -> Iterator[RowBatch]:
    rows = _rows(path, problems, delimiter)
    first = next(rows, None)
    if first is None:
        return
    place, header = first
    where = f"{problems.name}:{place}"
    try:
        columns = options.columns_among(header, where, "columns")
    except InputError as error:
        hint = "; for tab-separated tokens without a header: --format int2int" if delimiter == _TAB else ""
        raise InputError(f"{error}{hint}") from None
    places: list[int] = []
    kept: list[list[str]] = []
    for place, row in rows:
        if len(row) != len(header):
            problems.add(f"{problems.name}:{place}: {len(row)} columns; expected {len(header)} as in the header")
            continue
        places.append(place)
        kept.append(row)
        if len(kept) == _BATCH:
            yield _batch(places, kept, header, columns)
            places, kept = [], []
    yield _batch(places, kept, header, columns)


def _batch(places: list[int], rows: list[list[str]], header: list[str], columns: Columns) -> RowBatch:
    def column(name: str) -> list[str]:
        place = header.index(name)
        return [row[place] for row in rows]

    return RowBatch(*columns.sides(column), places, columns.fields, names=columns.names)


def _rows(path: str, problems: Problems, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The number of each row's first line, and its fields; rows that cannot be parsed are noted."""
    lines = (f"{line}\n" for _, block in text_blocks(path, problems) for line in block)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        place = reader.line_num + 1
        usual_limit = csv.field_size_limit(_LONGEST_FIELD)  # of the whole process, so it is put back at once
        try:
            row = next(reader, None)
        except csv.Error as error:
            problems.add(f"{problems.name}:{place}: not a row of a table ({error})")
            continue
        finally:
            csv.field_size_limit(usual_limit)
        if row is None:
            return
        if not row or (len(row) == 1 and not row[0].strip()):
            problems.blank_lines += 1
        else:
            yield place, row


def csv_lines_of(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _lines(dataset, options, _COMMA)


def tsv_lines_of(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _lines(dataset, options, _TAB)


def _lines(dataset: SequenceDataset, options: ReadOptions, delimiter: str) -> Iterator[str]:
    check_joinable(dataset.vocabulary.tokens, options.split, "a table")
    text = io.StringIO()
    # Tokens between commas may hold line ends, which need quotes.
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
