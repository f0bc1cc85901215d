"""The formats of data files: how each one is recognised, read and written."""

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, final

from genorder.data.dataset import SequenceDataset
from genorder.data.readers import arrow, jsonl, table, text
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.rows import FileProblems, RowBatch, collect_rows
from genorder.data.readers.text import STANDARD_INPUT, display_name
from genorder.errors import InputError
from genorder.store import replace_atomic

_COMPRESSED = ".gz"
_COLUMNS = frozenset({"input_column", "target_column", "split"})


@final
@dataclass(frozen=True)
class Format:
    summary: str
    extensions: tuple[str, ...]
    read_rows: Callable[[str, ReadOptions, FileProblems], Iterator[RowBatch]]
    expected: str  # the content of a file, for the message that a file has no samples
    lines: Callable[[SequenceDataset, ReadOptions], Iterable[str]] | None = None  # to write a text format
    uses: frozenset[str] = field(default=_COLUMNS)  # the options that apply to the format


FORMATS = {
    "jsonl": Format(
        "JSON Lines", (".jsonl", ".ndjson", ".json"), jsonl.read_jsonl_rows, jsonl.EXPECTED, jsonl.jsonl_lines
    ),
    "csv": Format("a table, by commas", (".csv",), table.read_csv_rows, table.EXPECTED, table.csv_lines),
    "tsv": Format("a table, by tabs", (".tsv",), table.read_tsv_rows, table.EXPECTED, table.tsv_lines),
    "text": Format(
        "input # target", (".txt",), text.read_text_rows, text.EXPECTED, text.text_lines,
        frozenset({"separator", "split"}),
    ),
    "int2int": Format(
        "input, tab, target", (".int2int",), text.read_int2int_rows, text.EXPECTED_INT2INT, text.int2int_lines,
        frozenset({"split"}),
    ),
    "parquet": Format("Parquet", (".parquet", ".pq"), arrow.read_parquet_rows, arrow.EXPECTED),
    "hf": Format("a dataset of the `datasets` library", (), arrow.read_hf_rows, arrow.EXPECTED),
}  # fmt: skip
_OPTION_NAMES = {"input_column": "--input-column", "target_column": "--target-column", "separator": "--separator"}


@final
@dataclass(frozen=True, eq=False)
class FileContents:
    """A dataset, with the format of its file and the number of blank lines."""

    dataset: SequenceDataset
    format: str
    blank_lines: int


def read_dataset(path: str | Path, options: ReadOptions = ReadOptions()) -> SequenceDataset:
    """Read a dataset as a stream; the format is that of the options, else that of the file's extension.

    Raises InputError that lists every unusable line, with file and line number.
    """
    return read_file(path, options).dataset


def read_file(path: str | Path, options: ReadOptions) -> FileContents:
    """Like `read_dataset`, with the format and the number of blank lines."""
    path = str(path)
    name = format_of(path, options)
    chosen = FORMATS[name]
    problems = FileProblems(display_name(path))
    dataset = collect_rows(chosen.read_rows(path, options, problems), problems, options.split, chosen.expected)
    return FileContents(dataset, name, problems.blank_lines)


def write_dataset(path: str | Path, dataset: SequenceDataset, options: ReadOptions = ReadOptions()) -> None:
    """Write a dataset atomically; `read_dataset` with the same options gives the same dataset.

    Raises InputError for a token that the format cannot represent.
    """
    name = format_of(str(path), options, exists=False)
    lines = FORMATS[name].lines
    if name == "hf" or str(path) == STANDARD_INPUT:
        raise InputError(f"{path} cannot be written; expected a file of one of {_known_extensions()}")
    with replace_atomic(Path(path)) as temporary:
        if lines is None:
            arrow.write_parquet(dataset, temporary, options)
            return
        with temporary.open("wb") as file, _compressing(file) if _is_compressed(str(path)) else file as stream:
            stream.writelines(line.encode() for line in lines(dataset, options))


def _compressing(file: IO[bytes]) -> gzip.GzipFile:
    """A gzip stream without name and time in its header, so that equal datasets give equal bytes."""
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


def read_jsonl(path: str | Path) -> SequenceDataset:
    """Read JSON Lines, whatever the file's extension."""
    return read_dataset(path, ReadOptions(format="jsonl"))


def write_jsonl(dataset: SequenceDataset, path: str | Path) -> None:
    """Write JSON Lines, whatever the file's extension."""
    write_dataset(path, dataset, ReadOptions(format="jsonl"))


def format_of(path: str, options: ReadOptions, *, exists: bool = True) -> str:
    """The name of the format. Raises InputError if it is unknown, or if an option does not apply to it."""
    name = options.format or _recognised(path, exists)
    if name not in FORMATS:
        raise InputError(f"--format {name!r}: expected one of {', '.join(FORMATS)}")
    for option in options.changed():
        if option in _OPTION_NAMES and option not in FORMATS[name].uses:
            raise InputError(f"{_OPTION_NAMES[option]} does not apply to the format {name}; remove the option")
    if FORMATS[name].lines is None and (path == STANDARD_INPUT or _is_compressed(path)):
        raise InputError(f"{display_name(path)}: {name} can only be read from an uncompressed file; make one first")
    return name


def is_special_source(path: str) -> bool:
    """Whether DATA is standard input or a dataset on the hub, not a file or a folder."""
    return path == STANDARD_INPUT or path.startswith(arrow.HUB)


def options_to_save(paths: Iterable[str], options: ReadOptions) -> dict[str, str]:
    """The options that are needed to read the files again: the changed ones, without a format that the names tell."""
    changed = options.changed()
    if "format" in changed and all(changed["format"] == _by_extension(path) for path in paths):
        del changed["format"]
    return changed


def inherited_options(earlier: ReadOptions, path: str, changed: Mapping[str, str]) -> ReadOptions:
    """The options to read `path`: the changed ones, else those of the earlier data that apply to this file's format."""
    own = changed.get("format") or _by_extension(path)
    name = own or earlier.format or "jsonl"
    uses = FORMATS[name].uses if name in FORMATS else ()
    kept = {option: value for option, value in earlier.changed().items() if option in uses or option == "split"}
    if own is None and earlier.format is not None:
        kept["format"] = earlier.format
    return ReadOptions(**{**kept, **changed})


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
        raise InputError(f"{path}: the file name does not tell the format; give --format, one of {', '.join(FORMATS)}")
    return known or "jsonl"


def _by_extension(path: str) -> str | None:
    plain = path[: -len(_COMPRESSED)] if _is_compressed(path) else path
    suffix = Path(plain).suffix.lower()
    return next((name for name, known in FORMATS.items() if suffix in known.extensions), None)


def _is_compressed(path: str) -> bool:
    return path.lower().endswith(_COMPRESSED)


def _known_extensions() -> str:
    return ", ".join(extension for known in FORMATS.values() for extension in known.extensions)
