"""Every format of data files: how a file of it looks, written without the library's own writers."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet

from genorder.data import ReadOptions

Pairs = list[tuple[list[str], list[str]]]


@dataclass(frozen=True)
class Case:
    """`line_of_first` is the place of the first sample; None where places are rows and not lines."""

    name: str  # of the file
    write: Callable[[Pairs, Path], None]
    options: ReadOptions = field(default_factory=ReadOptions)
    line_of_first: int | None = 1
    has_columns: bool = True

    def where(self, path: object, sample: int) -> str:
        return f"{path}: row {sample + 1}" if self.line_of_first is None else f"{path}:{sample + self.line_of_first}"

    def make(self, folder: Path, pairs: Pairs) -> Path:
        path = folder / self.name
        self.write(pairs, path)
        return path


def _lines(form: Callable[[list[str], list[str]], str], header: str = "") -> Callable[[Pairs, Path], None]:
    def write(pairs: Pairs, path: Path) -> None:
        content = (header + "".join(f"{form(x, y)}\n" for x, y in pairs)).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return write


def _parquet(pairs: Pairs, path: Path) -> None:
    table = pyarrow.table({"input": [x for x, _ in pairs], "target": [y for _, y in pairs]})
    pyarrow.parquet.write_table(table, path)


def _parquet_strings(pairs: Pairs, path: Path) -> None:
    columns = {"problem": [" ".join(x) for x, _ in pairs], "answer": [" ".join(y) for _, y in pairs]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2)


def _saved(pairs: Pairs, path: Path) -> None:
    datasets.Dataset.from_dict({"input": [x for x, _ in pairs], "target": [y for _, y in pairs]}).save_to_disk(path)


def _saved_splits(pairs: Pairs, path: Path) -> None:
    train = datasets.Dataset.from_dict({"input": [x for x, _ in pairs], "target": [y for _, y in pairs]})
    datasets.DatasetDict({"test": train.select([0]), "train": train}).save_to_disk(path)


def _json(x: list[str], y: list[str]) -> str:
    return json.dumps({"input": x, "target": y})


def _spaced(between: str) -> Callable[[list[str], list[str]], str]:
    return lambda x, y: f"{' '.join(x)}{between}{' '.join(y)}"


LINES = {
    "jsonl": Case("data.jsonl", _lines(_json)),
    "jsonl-strings": Case(
        "data.ndjson", _lines(lambda x, y: json.dumps({"answer": " ".join(y), "id": 7, "problem": " ".join(x)}))
    ),
    "jsonl-columns": Case(
        "named.json",
        _lines(lambda x, y: json.dumps({"a b": x, "ü": y, "input": 1})),
        ReadOptions(input_column="a b", target_column="ü"),
    ),
    "csv": Case("data.csv", _lines(_spaced(","), "input,target\n"), line_of_first=2),
    "csv-columns": Case(
        "other.csv",
        _lines(lambda x, y: f'"{" ".join(y)}",-,"{" ".join(x)}"', "t,n,s\n"),
        ReadOptions(input_column="s", target_column="t"),
        line_of_first=2,
    ),
    "csv-commas": Case(
        "commas.csv",
        _lines(lambda x, y: f'"{", ".join(x)}","{",".join(y)}"', "problem,answer\n"),
        ReadOptions(split="comma"),
        line_of_first=2,
    ),
    "tsv": Case("data.tsv", _lines(_spaced("\t"), "input\ttarget\n"), line_of_first=2),
    "text": Case("data.txt", _lines(_spaced(" # ")), has_columns=False),
    "text-separator": Case("arrow.txt", _lines(_spaced(" => ")), ReadOptions(separator="=>"), has_columns=False),
    "int2int": Case("data", _lines(_spaced("\t")), ReadOptions(format="int2int"), has_columns=False),
}
ROWS = {
    "parquet": Case("data.parquet", _parquet, line_of_first=None),
    "parquet-strings": Case("strings.pq", _parquet_strings, line_of_first=None),
    "hf": Case("saved", _saved, line_of_first=None),
    "hf-splits": Case("splits", _saved_splits, line_of_first=None),
}
CASES = {**LINES, **ROWS}
