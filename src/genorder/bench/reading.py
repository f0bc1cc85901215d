"""Reading data files: lines per second of each format, against a plain loop over lines with Python's own JSON."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from genorder.data import ReadOptions, SequenceDataset, read_dataset, write_dataset
from genorder.seeding import numpy_generator

_TOKENS = 20  # of an input, and of a target
FILES = ("numbers.jsonl", "words.jsonl", "numbers.jsonl.gz", "numbers.csv", "numbers.txt", "numbers.int2int")
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


def bench_reading(device: torch.device, *, samples: int = 100_000) -> Iterator[ReadingRow]:
    """CPU seconds of one thread, the better of two measurements; `device` is not used, because no tensor is made."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.jsonl"
        write_dataset(plain, _dataset("", samples))
        for file in FILES:
            path = Path(folder) / file
            write_dataset(path, _dataset("" if file.startswith("numbers") else "token", samples), ReadOptions())
            # Alternating, so that a change of the machine's speed affects both.
            pairs = [(_seconds(read_dataset, path), _seconds(_plain_loop, plain)) for _ in range(2)]
            seconds, baseline = (min(times) for times in zip(*pairs, strict=True))
            yield ReadingRow(file, _BASELINE, baseline / seconds, samples / seconds, samples / baseline)


def _dataset(prefix: str, samples: int) -> SequenceDataset:
    numbers = numpy_generator(0).integers(-50, 50, (samples, 2 * _TOKENS)).tolist()
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
