"""Parquet files and datasets of the `datasets` library; both need the extra `hf`, which is imported when first used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from genorder.data.dataset import SequenceDataset
from genorder.data.readers.options import Columns, ReadOptions
from genorder.data.readers.rows import FileProblems, RowBatch
from genorder.errors import InputError

EXPECTED = "a row for each sample, with the columns input and target"
HUB = "hf:"
_BATCH = 4096
_DEFAULT_SPLIT = "train"


def is_saved_dataset(path: str) -> bool:
    """Whether `save_to_disk` of the `datasets` library wrote the folder."""
    return any((Path(path) / name).is_file() for name in ("dataset_dict.json", "state.json"))


def read_parquet_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    parquet = _extra("pyarrow.parquet", path)
    with _explaining_errors(path), parquet.ParquetFile(path) as file:
        columns = options.find_columns(file.schema_arrow.names, path, "columns")
        first = 1
        for part in file.iter_batches(batch_size=_BATCH, columns=columns.all):
            yield _batch(columns, lambda name: part.column(name).to_pylist(), first)  # noqa: B023
            first += part.num_rows


def read_hf_rows(path: str, options: ReadOptions, problems: FileProblems) -> Iterator[RowBatch]:
    dataset = _loaded(path)
    columns = options.find_columns(dataset.column_names, path, "columns")
    first = 1
    with _explaining_errors(path):
        for part in dataset.with_format(None).select_columns(columns.all).iter(batch_size=_BATCH):
            yield _batch(columns, lambda name: list(part[name]), first)  # noqa: B023
            first += len(part[columns.all[0]])


def _batch(columns: Columns, column: Callable[[str], list[Any]], first: int) -> RowBatch:
    inputs, targets = columns.sides(column)
    numbers = range(first, first + len(inputs))
    return RowBatch(inputs, targets, numbers, columns.fields, number_prefix=": row ", names=columns.names)


def _loaded(path: str) -> Any:
    """One split of a saved folder or of a dataset on the hub; `hf:NAME:SPLIT` names the split."""
    datasets = _extra("datasets", path)
    name, _, split = path.removeprefix(HUB).partition(":")
    with _explaining_errors(path):
        loaded = datasets.load_from_disk(name) if is_saved_dataset(name) else datasets.load_dataset(name)
    if not isinstance(loaded, dict):
        return loaded
    wanted = split or (_DEFAULT_SPLIT if _DEFAULT_SPLIT in loaded else next(iter(loaded)) if len(loaded) == 1 else "")
    if wanted not in loaded:
        raise InputError(f"{path}: no split {wanted!r}; there are {', '.join(loaded)}: name one as {HUB}{name}:SPLIT")
    return loaded[wanted]


def write_parquet(dataset: SequenceDataset, file: Path, options: ReadOptions) -> None:
    """Tokens are written as integers if all tokens of the vocabulary are integers of 64 bits."""
    arrow, parquet = _extra("pyarrow", str(file)), _extra("pyarrow.parquet", str(file))
    tokens: list[Any] = list(dataset.vocabulary.tokens)
    if dataset.vocabulary.is_integers and all(len(token) < 19 for token in tokens):
        tokens = list(map(int, tokens))
    kind = arrow.int64() if tokens and isinstance(tokens[0], int) else arrow.string()
    try:
        values = arrow.array(tokens, kind)
    except UnicodeEncodeError:
        raise InputError("a token contains a lone surrogate, half a character; write .jsonl instead") from None
    columns = [
        arrow.LargeListArray.from_arrays(packed.offsets, values.take(arrow.array(packed.tokens)))
        for packed in (dataset.inputs, dataset.targets)
    ]
    names = [options.input_column or "input", options.target_column or "target"]
    parquet.write_table(arrow.table(columns, names=names), file)


def _extra(module: str, path: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(f"{path} needs {package}, which is not installed: pip install 'genorder[hf]'") from None


@contextmanager
def _explaining_errors(path: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        reason = error.strerror or next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"cannot read {path}: {reason}") from None
    except Exception as error:  # these libraries raise whatever error the layer below them raises
        reason = next(iter(str(error).splitlines()), "")
        raise InputError(f"cannot read {path}: {type(error).__name__}: {reason[:200]}") from None
