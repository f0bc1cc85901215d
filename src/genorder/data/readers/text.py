"""Text files in blocks of lines, so that memory is bounded, and the formats with one sample per line.

Format text is `1 2 # 3 4`: input, separator, target. Int2Int files have a tab as separator.
"""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from genorder.data.dataset import SequenceDataset
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.rows import FileProblems, RowBatch
from genorder.data.readers.tokens import check_joinable, joined, short_repr
from genorder.errors import InputError

EXPECTED = "a line for each sample: the input, a separator, the target"
EXPECTED_INT2INT = "a line for each sample: the input's tokens, a tab, the target's tokens"
STANDARD_INPUT = "-"
_TAB = "\t"
_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_text_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    separator = options.separator
    for first, lines in text_blocks(path, problems):
        inputs: list[str] = []
        targets: list[str] = []
        numbers: list[int] = []
        for number, line in enumerate(lines, first):
            parts = line.split(separator)
            if len(parts) == 2:
                inputs.append(parts[0])
                targets.append(parts[1])
                numbers.append(number)
            elif not line or line.isspace():
                problems.blank_lines += 1
            else:
                problems.add(
                    f"{problems.name}:{number}: {short_repr(separator)} occurs {len(parts) - 1} times in "
                    f"{short_repr(line)}; expected it once, between input and target"
                )
        yield RowBatch(inputs, targets, numbers)


def read_int2int_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    return read_text_rows(path, replace(options, separator=_TAB), problems)


def text_lines(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _sample_lines(dataset, options, options.separator, f" {options.separator} ")


def int2int_lines(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _sample_lines(dataset, options, _TAB, _TAB)


def _sample_lines(dataset: SequenceDataset, options: ReadOptions, separator: str, between: str) -> Iterator[str]:
    check_joinable(dataset.vocabulary.tokens, options.split, "text", forbidden="\0\n")
    for row in range(len(dataset)):
        line = between.join(joined(tokens, options.split) for tokens in (dataset.input(row), dataset.target(row)))
        if line.count(separator) != 1:
            raise InputError(
                f"sample {row} holds the separator {short_repr(separator)} among its tokens; "
                "choose another --separator, or write .jsonl"
            )
        # A reader removes a byte order mark at the start of a file, so a token with that character needs a second one.
        mark = "\ufeff" if row == 0 and line.startswith("\ufeff") else ""
        yield f"{mark}{line}\n"


def display_name(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else path


def line_blocks(path: str) -> Iterator[tuple[int, list[bytes]]]:
    """The number of a block's first line, from 1, and its lines without line feeds and without a byte order mark.

    Raises InputError for a file that cannot be read, and for a line of many megabytes.
    """
    name, number, rest = display_name(path), 1, b""
    with explaining_read_errors(name), _opened(path) as file:
        while block := file.read(_BLOCK):
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if number == 1 and lines:
                lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
            if len(rest) > _LONGEST_LINE:
                limit = _LONGEST_LINE >> 20
                raise InputError(
                    f"{name}:{number + len(lines)}: the line is longer than {limit} MB; expected one sample a line"
                )
            if lines:
                yield number, lines
            number += len(lines)
    if rest:
        yield number, [rest.removeprefix(_BYTE_ORDER_MARK) if number == 1 else rest]


def text_blocks(path: str, problems: FileProblems) -> Iterator[tuple[int, list[str]]]:
    """Like `line_blocks`, decoded. A line that is not UTF-8 is added to `problems` and becomes an empty line."""
    for first, lines in line_blocks(path):
        joined_lines = b"\n".join(lines)
        try:
            texts = joined_lines.decode().split("\n")
        except UnicodeDecodeError:
            texts = [_decoded(line, f"{problems.name}:{n}", problems) for n, line in enumerate(lines, first)]
        if b"\0" in joined_lines:
            number = next(n for n, line in enumerate(lines, first) if b"\0" in line)
            problems.add(f"{problems.name}:{number} holds a NUL byte; expected a text file in UTF-8", fatal=True)
        yield first, texts


def numbered_lines(path: str) -> Iterator[tuple[str, str]]:
    """`name:number` and text of each line that is not blank. Raises InputError at the first that is not UTF-8."""
    name = display_name(path)
    for first, lines in line_blocks(path):
        for number, raw in enumerate(lines, first):
            where = f"{name}:{number}"
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                raise InputError(encoding_problem(where, error)) from None
            if line and not line.isspace():
                yield where, line


def encoding_problem(where: str, error: UnicodeDecodeError) -> str:
    return f"{where} is not UTF-8 text ({error.reason} at byte {error.start})"


@contextmanager
def explaining_read_errors(name: str) -> Iterator[None]:
    """Turn the errors of a damaged or unreadable file into an InputError that names the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {name}: {reason}") from None


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    elif path.lower().endswith(".gz"):
        with gzip.open(path, "rb") as compressed:
            yield compressed  # type: ignore[misc]
    else:
        with Path(path).open("rb") as file:
            yield file


def _decoded(line: bytes, where: str, problems: FileProblems) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        problems.add(encoding_problem(where, error), fatal=b"\0" in line)
        return ""
