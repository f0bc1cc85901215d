"""Lines of a text file, plain or compressed, or of standard input, in blocks: memory is bounded whatever comes."""

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from genorder.data.readers.problems import Problems
from genorder.errors import InputError

STANDARD_INPUT = "-"
_BLOCK = 1 << 20
_LONGEST_LINE = 16 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def shown_name(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def refusing_read_errors(name: str) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into the InputError that names it."""
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


def line_blocks(path: str) -> Iterator[tuple[int, list[bytes]]]:
    """The number of a block's first line, from 1, and its lines without their line feeds.

    A byte order mark is left out. Raises InputError for a file that cannot be read, and for a line of many megabytes.
    """
    name, number, rest = shown_name(path), 1, b""
    with refusing_read_errors(name), _opened(path) as file:
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


def text_blocks(path: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """Like `line_blocks`, as text. A line that is not text is noted, and given as an empty one."""
    for first, lines in line_blocks(path):
        joined = b"\n".join(lines)
        try:
            texts = joined.decode().split("\n")
        except UnicodeDecodeError:
            texts = [_decoded(line, f"{problems.name}:{n}", problems) for n, line in enumerate(lines, first)]
        if b"\0" in joined:
            place = next(n for n, line in enumerate(lines, first) if b"\0" in line)
            problems.add(f"{problems.name}:{place} holds a NUL byte; expected a text file in UTF-8", hopeless=True)
        yield first, texts


def not_text(where: str, error: UnicodeDecodeError) -> str:
    return f"{where} is not UTF-8 text ({error.reason} at byte {error.start})"


def _decoded(line: bytes, where: str, problems: Problems) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        problems.add(not_text(where, error), hopeless=b"\0" in line)
        return ""


def numbered_lines(path: str) -> Iterator[tuple[str, str]]:
    """`name:number` and text of each line that is not blank. Raises InputError at the first that is not UTF-8."""
    name = shown_name(path)
    for first, lines in line_blocks(path):
        yield from _numbered(name, first, lines)


def _numbered(name: str, first: int, lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    for number, raw in enumerate(lines, first):
        where = f"{name}:{number}"
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise InputError(not_text(where, error)) from None
        if line and not line.isspace():
            yield where, line
