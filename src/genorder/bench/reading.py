"""Reading data files: lines a second of every format, against a plain loop over lines with Python's own JSON."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import ReadOptions, SequenceDataset, read_dataset, write_dataset
from genorder.seeding import numpy_generator

_SAMPLES = 100_000
_TOKENS = 20  # of an input, and of a target
_FILES = ("numbers.jsonl", "words.jsonl", "numbers.jsonl.gz", "numbers.csv", "numbers.txt", "numbers.int2int")
_BASELINE = "json.loads and lists"


@final
@dataclass(frozen=True)
class ReadingRow:
    name: str
    baseline: str
    ratio: float
    lines_per_second: float
    baseline_lines_per_second: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.lines_per_second:,.0f} lines/s, {self.ratio:.2f} x {self.baseline} "
            f"({self.baseline_lines_per_second:,.0f} lines/s)"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def bench_reading(device: torch.device, on_row: Callable[[ReadingRow], None] = lambda row: None) -> list[ReadingRow]:
    """CPU seconds of one thread, the best of two; `device` is not used, as no tensor is made."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.jsonl"
        write_dataset(plain, _dataset(""))
        for file in _FILES:
            path = Path(folder) / file
            write_dataset(path, _dataset("" if file.startswith("numbers") else "token"), ReadOptions())
            # Taking turns, so that a change of the machine's speed meets both.
            pairs = [(_seconds(read_dataset, path), _seconds(_plain_loop, plain)) for _ in range(2)]
            seconds, baseline = (min(times) for times in zip(*pairs, strict=True))
            row = ReadingRow(file, _BASELINE, baseline / seconds, _SAMPLES / seconds, _SAMPLES / baseline)
            rows.append(row)
            on_row(row)
    return rows


def _dataset(prefix: str) -> SequenceDataset:
    numbers = numpy_generator(0).integers(-50, 50, (_SAMPLES, 2 * _TOKENS)).tolist()
    rows = [[f"{prefix}{number}" for number in row] for row in numbers]
    return SequenceDataset.from_sequences([row[:_TOKENS] for row in rows], [row[_TOKENS:] for row in rows])


def _plain_loop(path: Path) -> SequenceDataset:
    with path.open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return SequenceDataset.from_sequences([r["input"] for r in records], [r["target"] for r in records])


def _seconds(read: Callable[[Path], SequenceDataset], path: Path) -> float:
    started = time.process_time()
    read(path)
    return time.process_time() - started
