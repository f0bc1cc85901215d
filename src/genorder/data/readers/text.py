"""Plain text: `1 2 # 3 4`, input and target with a separator between them; also with a tab, as Int2Int has it."""

from collections.abc import Iterator
from dataclasses import replace

from genorder.data.dataset import SequenceDataset
from genorder.data.readers.collect import RowBatch
from genorder.data.readers.lines import text_blocks
from genorder.data.readers.options import ReadOptions
from genorder.data.readers.problems import Problems
from genorder.data.readers.tokens import check_joinable, joined, shortened
from genorder.errors import InputError

EXPECTED = "a line for each sample: the input, a separator, the target"
EXPECTED_INT2INT = "a line for each sample: the input's tokens, a tab, the target's tokens"
_TAB = "\t"


def read(path: str, options: ReadOptions, problems: Problems) -> Iterator[RowBatch]:
    separator = options.separator
    for first, lines in text_blocks(path, problems):
        batch = RowBatch([], [], [])
        for number, line in enumerate(lines, first):
            parts = line.split(separator)
            if len(parts) == 2:
                batch.inputs.append(parts[0])
                batch.targets.append(parts[1])
                batch.places.append(number)  # type: ignore[attr-defined]
            elif not line or line.isspace():
                problems.blank_lines += 1
            else:
                problems.add(
                    f"{problems.name}:{number}: {shortened(separator)} stands {len(parts) - 1} times in "
                    f"{shortened(line)}; expected it once, between input and target"
                )
        yield batch


def read_int2int(path: str, options: ReadOptions, problems: Problems) -> Iterator[RowBatch]:
    return read(path, replace(options, separator=_TAB), problems)


def lines_of(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _lines(dataset, options, options.separator, f" {options.separator} ")


def int2int_lines_of(dataset: SequenceDataset, options: ReadOptions) -> Iterator[str]:
    return _lines(dataset, options, _TAB, _TAB)


def _lines(dataset: SequenceDataset, options: ReadOptions, separator: str, between: str) -> Iterator[str]:
    check_joinable(dataset.vocabulary.tokens, options.split, "text", forbidden="\0\n")
    for row in range(len(dataset)):
        line = between.join(joined(tokens, options.split) for tokens in (dataset.input(row), dataset.target(row)))
        if line.count(separator) != 1:
            raise InputError(
                f"sample {row} holds the separator {shortened(separator)} among its tokens; "
                "choose another --separator, or write .jsonl"
            )
        # A reader takes a mark at the very start of a file for the byte order mark, and leaves it out.
        mark = "\ufeff" if row == 0 and line.startswith("\ufeff") else ""
        yield f"{mark}{line}\n"
