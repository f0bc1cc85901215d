"""The formats of data files: how each is recognised, read and written."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, final

from genorder.data.dataset import SequenceDataset
from genorder.data.readers import arrow, jsonl, table, text
from genorder.data.readers.collect import RowBatch, collect
from genorder.data.readers.lines import STANDARD_INPUT, shown_name
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.problems import Problems
from genorder.errors import InputError
from genorder.store import replace_atomic

_COMPRESSED = ".gz"
_COLUMNS = frozenset({"input_column", "target_column", "split"})


@final
@dataclass(frozen=True)
class Format:
    summary: str
    extensions: tuple[str, ...]
    read: Callable[[str, ReadOptions, Problems], Iterator[RowBatch]]
    expected: str  # what a file holds, for the error that it holds nothing
    lines_of: Callable[[SequenceDataset, ReadOptions], Iterable[str]] | None = None  # for a format of lines
    uses: frozenset[str] = field(default=_COLUMNS)  # the options that mean something to it


FORMATS = {
    "jsonl": Format("JSON Lines", (".jsonl", ".ndjson", ".json"), jsonl.read, jsonl.EXPECTED, jsonl.lines_of),
    "csv": Format("a table, by commas", (".csv",), table.read_csv, table.EXPECTED, table.csv_lines_of),
    "tsv": Format("a table, by tabs", (".tsv",), table.read_tsv, table.EXPECTED, table.tsv_lines_of),
    "text": Format(
        "input # target", (".txt",), text.read, text.EXPECTED, text.lines_of, frozenset({"separator", "split"})
    ),
    "int2int": Format(
        "input, tab, target", (".int2int",), text.read_int2int, text.EXPECTED_INT2INT, text.int2int_lines_of,
        frozenset({"split"}),
    ),
    "parquet": Format("Parquet", (".parquet", ".pq"), arrow.read_parquet, arrow.EXPECTED),
    "hf": Format("a dataset of the `datasets` library", (), arrow.read_datasets, arrow.EXPECTED),
}  # fmt: skip
_OPTION_NAMES = {"input_column": "--input-column", "target_column": "--target-column", "separator": "--separator"}


@final
@dataclass(frozen=True, eq=False)
class FileContents:
    """A dataset, and what its file was like."""

    dataset: SequenceDataset
    format: str
    blank_lines: int


def read_dataset(path: str | Path, options: ReadOptions = ReadOptions()) -> SequenceDataset:
    """Read a dataset, streaming, in the format that its options or its extension name.

    Raises InputError that lists, with file and line, what cannot be used.
    """
    return read_file(path, options).dataset


def read_file(path: str | Path, options: ReadOptions) -> FileContents:
    """Like `read_dataset`, with what is known of the file besides its samples."""
    path = str(path)
    name = format_of(path, options)
    chosen = FORMATS[name]
    problems = Problems(shown_name(path))
    dataset = collect(chosen.read(path, options, problems), problems, options.split, chosen.expected)
    return FileContents(dataset, name, problems.blank_lines)


def write_dataset(path: str | Path, dataset: SequenceDataset, options: ReadOptions = ReadOptions()) -> None:
    """Write a dataset, atomically, such that `read_dataset` with the same options gives it back.

    Raises InputError for a token that the format cannot carry.
    """
    name = format_of(str(path), options, exists=False)
    lines_of = FORMATS[name].lines_of
    if name == "hf" or str(path) == STANDARD_INPUT:
        raise InputError(f"{path} cannot be written; expected a file of one of {_known_extensions()}")
    with replace_atomic(Path(path)) as temporary:
        if lines_of is None:
            arrow.write_parquet(dataset, temporary, options)
            return
        with temporary.open("wb") as file, _compressing(file) if _is_compressed(str(path)) else file as stream:
            stream.writelines(line.encode() for line in lines_of(dataset, options))


def _compressing(file: IO[bytes]) -> gzip.GzipFile:
    """Without name and time in its header, so that the same dataset gives the same bytes."""
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


def read_jsonl(path: str | Path) -> SequenceDataset:
    """Read JSON Lines, whatever the file is called."""
    return read_dataset(path, ReadOptions(format="jsonl"))


def write_jsonl(dataset: SequenceDataset, path: str | Path) -> None:
    """Write JSON Lines, whatever the file is called."""
    write_dataset(path, dataset, ReadOptions(format="jsonl"))


def format_of(path: str, options: ReadOptions, *, exists: bool = True) -> str:
    """The name of the format. Raises InputError where it is unknown, or an option means nothing to it."""
    name = options.format or _recognised(path, exists)
    if name not in FORMATS:
        raise InputError(f"--format {name!r}: expected one of {', '.join(FORMATS)}")
    for option in options.changed():
        if option in _OPTION_NAMES and option not in FORMATS[name].uses:
            raise InputError(f"{_OPTION_NAMES[option]} means nothing to the format {name}; leave it out")
    if FORMATS[name].lines_of is None and (path == STANDARD_INPUT or _is_compressed(path)):
        raise InputError(f"{shown_name(path)}: {name} is read from a plain file alone; uncompress or save it first")
    return name


def is_no_file(path: str) -> bool:
    """Whether DATA names something else than a file or a folder."""
    return path == STANDARD_INPUT or path.startswith(arrow.HUB)


def own_options(paths: Iterable[str], options: ReadOptions) -> dict[str, Any]:
    """The options that say more than the files' names do: what a later reading needs to be told again."""
    told = options.changed()
    if "format" in told and all(told["format"] == _by_extension(path) for path in paths):
        del told["format"]
    return told


def options_like(earlier: ReadOptions, path: str, told: dict[str, Any]) -> ReadOptions:
    """What is told; else what other data was read by, as far as it means something to the format of this file."""
    own = told.get("format") or _by_extension(path)
    name = own or earlier.format or "jsonl"
    uses = FORMATS[name].uses if name in FORMATS else ()
    kept = {option: value for option, value in earlier.changed().items() if option in uses or option == "split"}
    return ReadOptions(**{**kept, "format": None if own else earlier.format, **told})


def _recognised(path: str, exists: bool) -> str:
    if path == STANDARD_INPUT:
        return "jsonl"
    if path.startswith(arrow.HUB):
        return "hf"
    if exists and Path(path).is_dir():
        if not arrow.is_saved_dataset(path):
            raise InputError(f"cannot read {path}: Is a directory")
        return "hf"
    known = _by_extension(path)
    if known is None and (Path(path).is_file() if exists else Path(path).suffix):
        raise InputError(f"{path}: the format is not known by its name; give --format, one of {', '.join(FORMATS)}")
    return known or "jsonl"


def _by_extension(path: str) -> str | None:
    plain = path[: -len(_COMPRESSED)] if _is_compressed(path) else path
    suffix = Path(plain).suffix.lower()
    return next((name for name, known in FORMATS.items() if suffix in known.extensions), None)


def _is_compressed(path: str) -> bool:
    return path.lower().endswith(_COMPRESSED)


def _known_extensions() -> str:
    return ", ".join(extension for known in FORMATS.values() for extension in known.extensions)
