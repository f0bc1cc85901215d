"""Data files: one module per family of formats; `rows` turns the rows of all of them into a dataset."""

from genorder.data.readers.formats import (
    FORMATS,
    FileContents,
    format_of,
    inherited_options,
    is_special_source,
    options_to_save,
    read_dataset,
    read_file,
    read_jsonl,
    write_dataset,
    write_jsonl,
)
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.text import STANDARD_INPUT, display_name
from genorder.data.readers.tokens import SPLITTERS

__all__ = [
    "FORMATS",
    "SPLITTERS",
    "STANDARD_INPUT",
    "FileContents",
    "ReadOptions",
    "display_name",
    "format_of",
    "inherited_options",
    "is_special_source",
    "options_to_save",
    "read_dataset",
    "read_file",
    "read_jsonl",
    "write_dataset",
    "write_jsonl",
]
