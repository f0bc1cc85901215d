"""Data files: one module for each family of formats, one way from all of them to a dataset."""

from genorder.data.readers.formats import (
    FORMATS,
    FileContents,
    format_of,
    is_no_file,
    options_like,
    own_options,
    read_dataset,
    read_file,
    read_jsonl,
    write_dataset,
    write_jsonl,
)
from genorder.data.readers.lines import STANDARD_INPUT, shown_name
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.tokens import SPLITTERS

__all__ = [
    "FORMATS",
    "SPLITTERS",
    "STANDARD_INPUT",
    "FileContents",
    "ReadOptions",
    "format_of",
    "is_no_file",
    "options_like",
    "own_options",
    "read_dataset",
    "read_file",
    "read_jsonl",
    "shown_name",
    "write_dataset",
    "write_jsonl",
]
