"""What only the readers of the extra `hf` meet."""

import os
import subprocess
import sys
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from reader_cases import CASES

from genorder.data import ReadOptions, SequenceDataset, read_dataset, write_dataset
from genorder.errors import InputError

PAIRS = [(["1", "2"], ["3"]), (["4"], ["5"])]


def refusal(path: object) -> str:
    with pytest.raises(InputError) as caught:
        read_dataset(str(path))
    return str(caught.value)


@pytest.mark.parametrize("case", ["parquet", "hf"])
def test_a_missing_extra_is_named(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CASES[case].make(tmp_path, PAIRS)
    for module in ("pyarrow", "pyarrow.parquet", "datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    assert refusal(path).endswith("which is not installed: pip install 'genorder[hf]'")


def test_nothing_of_the_extra_is_loaded_for_other_formats(tmp_path: Path) -> None:
    path = CASES["csv"].make(tmp_path, PAIRS)
    code = "import sys; from genorder.data import read_dataset; read_dataset(sys.argv[1]); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "datasets", "pandas"} & set(loaded.stdout.split())


def test_damaged_parquet(tmp_path: Path) -> None:
    path = CASES["parquet"].make(tmp_path, PAIRS * 100)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", whole[:-5], whole[: len(whole) // 2], b"\xff" * 200):
        path.write_bytes(damaged)
        assert refusal(path).startswith(f"cannot read {path}: ")


def test_integers_of_parquet_are_the_same_tokens(tmp_path: Path) -> None:
    dataset = SequenceDataset.from_sequences([[1, -2], []], [[3], [10**17]])
    write_dataset(tmp_path / "data.parquet", dataset)
    assert pyarrow.types.is_integer(
        pyarrow.parquet.read_schema(tmp_path / "data.parquet").field("input").type.value_type
    )
    assert read_dataset(tmp_path / "data.parquet").fingerprint() == dataset.fingerprint()


@pytest.mark.parametrize("values", [[[1.5]], [[None]], [None], [{"a": 1}], [[[1]]], [7]])
def test_columns_of_other_types(values: list[object], tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"input": values, "target": ["1"]}), path)
    assert refusal(path).startswith(f"{path}: row 1: 'input' ")


def test_bytes_in_a_column_of_text(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    raw = pyarrow.array([b"\xff\xfe"], pyarrow.binary()).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"input": raw, "target": ["1"]}), path)
    assert refusal(path).startswith(f"cannot read {path}: ")


def test_parquet_is_no_stream(tmp_path: Path) -> None:
    for path in ("-", "data.parquet.gz"):
        with pytest.raises(InputError, match="parquet can only be read from an uncompressed file"):
            read_dataset(path, ReadOptions(format="parquet"))


def test_splits_by_name(tmp_path: Path) -> None:
    path = CASES["hf-splits"].make(tmp_path, PAIRS)
    assert len(read_dataset(f"hf:{path}")) == 2
    assert len(read_dataset(f"hf:{path}:test")) == 1
    assert refusal(f"hf:{path}:nonesuch") == (
        f"hf:{path}:nonesuch: no split 'nonesuch'; there are test, train: name one as hf:{path}:SPLIT"
    )


def test_several_splits_without_a_usual_one(tmp_path: Path) -> None:
    parts = {name: datasets.Dataset.from_dict({"input": [["1"]], "target": [["2"]]}) for name in ("a", "b")}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    assert "there are a, b" in refusal(tmp_path / "saved")
    assert len(read_dataset(f"hf:{tmp_path / 'saved'}:b")) == 1


def test_a_name_that_cannot_be_reached_is_one_clear_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "genorder", "inspect", "hf:nobody/nonesuch"],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot read hf:nobody/nonesuch: ")
    assert done.stderr.count("\n") == 1
