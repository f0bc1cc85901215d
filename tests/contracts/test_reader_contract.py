"""What every reader of data files must do."""

import gzip
import io
import json
import sys
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_cases import CASES, LINES, Case

from genorder.data import ReadOptions, SequenceDataset, read_dataset, write_dataset
from genorder.data.readers import FORMATS
from genorder.errors import InputError

PAIRS = [(["1", "-2", "x"], ["3"]), (["10"], ["é", "4"]), (["<script>alert(1)</script>", "7"], ["\x1b[31m", "07"])]
EXPECTED = SequenceDataset.from_sequences([x for x, _ in PAIRS], [y for _, y in PAIRS])

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_text = pytest.mark.parametrize("case", LINES.values(), ids=LINES)


def refusal(path: object, options: ReadOptions) -> str:
    with pytest.raises(InputError) as caught:
        read_dataset(str(path), options)
    return str(caught.value)


def give_on_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def format_name(case: Case) -> str:
    return case.options.format or next(
        name for name, known in FORMATS.items() if Path(case.name).suffix in known.extensions
    )


@every_case
def test_the_same_dataset_from_every_format(case: Case, tmp_path: Path) -> None:
    dataset = read_dataset(case.make(tmp_path, PAIRS), case.options)
    assert [(dataset.input(row), dataset.target(row)) for row in range(len(dataset))] == PAIRS
    assert dataset.vocabulary == EXPECTED.vocabulary
    assert dataset.fingerprint() == EXPECTED.fingerprint()


@every_case
def test_inputs_may_be_empty(case: Case, tmp_path: Path) -> None:
    dataset = read_dataset(case.make(tmp_path, [([], ["1"]), ([], ["2"])]), case.options)
    assert dataset.inputs.longest == 0
    assert dataset.targets.tokens.tolist() == [0, 1]


@every_case
def test_folder_and_file_of_any_name(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "a folder, ünïcode 数据 # [red]"
    folder.mkdir()
    assert read_dataset(case.make(folder, PAIRS), case.options).fingerprint() == EXPECTED.fingerprint()


@every_case
def test_a_wrong_sample_is_named_by_its_place(case: Case, tmp_path: Path) -> None:
    path = case.make(tmp_path, [*PAIRS, (["1"], []), *PAIRS])
    assert refusal(path, case.options) == f"{case.where(path, 3)}: the target is empty; expected at least one token"


@every_case
def test_all_wrong_samples_are_told_together(case: Case, tmp_path: Path) -> None:
    path = case.make(tmp_path, [*PAIRS, *[([str(n)], []) for n in range(30)], *PAIRS])
    first, *listed, last = refusal(path, case.options).splitlines()
    assert first == f"{path}: 30 lines cannot be used; correct or remove them"
    assert [line.split(": the target")[0].strip() for line in listed] == [case.where(path, 3 + n) for n in range(20)]
    assert last.strip() == "and 10 more"


@every_case
def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    path = case.make(tmp_path, PAIRS)
    options = replace(case.options, target_column="nonesuch")
    message = refusal(path, options)
    if case.has_columns:
        assert "no 'nonesuch' among the" in message
        assert "--target-column" in message
        assert str(path) in message
    else:
        assert message.startswith("--target-column does not apply to the format")


@every_text
def test_compressed(case: Case, tmp_path: Path) -> None:
    path = replace(case, name=f"{case.name}.gz").make(tmp_path, PAIRS)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read_dataset(path, case.options).fingerprint() == EXPECTED.fingerprint()


@every_text
def test_damaged_compression_is_refused(case: Case, tmp_path: Path) -> None:
    path = replace(case, name=f"{case.name}.gz").make(tmp_path, PAIRS * 50)
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:30] + b"\xff" * 10 + whole[40:], b"plain text", whole[:12]):
        path.write_bytes(damaged)
        assert refusal(path, case.options).startswith(f"cannot read {path}: ")


@every_text
def test_standard_input(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = replace(case.options, format=format_name(case))
    give_on_standard_input(case.make(tmp_path, PAIRS).read_bytes(), monkeypatch)
    assert read_dataset("-", options).fingerprint() == EXPECTED.fingerprint()
    give_on_standard_input(case.make(tmp_path, [*PAIRS, (["1"], [])]).read_bytes(), monkeypatch)
    assert refusal("-", options).startswith(case.where("standard input", 3))


@every_text
def test_byte_order_mark_line_ends_and_blank_lines_do_not_matter(case: Case, tmp_path: Path) -> None:
    path = case.make(tmp_path, PAIRS)
    plain = path.read_bytes()
    for content in (
        b"\xef\xbb\xbf" + plain,
        plain.replace(b"\n", b"\r\n"),
        plain.removesuffix(b"\n"),
        b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n\r\n  \r\n"),
    ):
        path.write_bytes(content)
        assert read_dataset(path, case.options).fingerprint() == EXPECTED.fingerprint()


@every_text
def test_bytes_that_are_no_text_are_refused_with_their_line(case: Case, tmp_path: Path) -> None:
    path = case.make(tmp_path, PAIRS * 2)
    lines = path.read_bytes().splitlines(keepends=True)
    place = len(lines) - 2
    for spoiled in (b"\xff", b"\xc3\x28", "é".encode("latin-1"), b"\0", b"\xed\xa0\x80"):
        path.write_bytes(b"".join([*lines[:place], lines[place].replace(b"1", spoiled + b"1", 1), *lines[place + 1 :]]))
        assert refusal(path, case.options).startswith(f"{path}:{place + 1}")
    path.write_bytes(b"".join(lines).decode().encode("utf-16"))
    assert refusal(path, case.options).startswith(f"{path}:1 ")


@every_text
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n"])
def test_no_samples(case: Case, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / case.name
    path.write_bytes(content)
    assert refusal(path, case.options).startswith(f"{path} holds no samples; expected ")


@every_text
def test_a_line_of_ten_megabytes_is_read_or_refused_in_bounded_memory(case: Case, tmp_path: Path) -> None:
    path = case.make(tmp_path, [*PAIRS, (["7"] * 2_000_000, ["1"]), *PAIRS])
    tracemalloc.start()
    try:
        message = refusal(path, case.options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message.startswith(f"{case.where(path, 3)}: ")
    assert message.endswith("holds 2000000 tokens; expected at most 100000")
    assert peak < 600_000_000
    path = case.make(tmp_path, [*PAIRS, (["y" * 10_000_000], ["1"])])
    assert read_dataset(path, case.options).input(3) == ["y" * 10_000_000]


@every_text
def test_an_endless_line_is_refused_in_bounded_memory(case: Case, tmp_path: Path) -> None:
    path = tmp_path / f"{case.name}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(b"1 " * 500_000)
    tracemalloc.start()
    try:
        message = refusal(path, case.options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message == f"{path}:1: the line is longer than 16 MB; expected one sample a line"
    assert peak < 100_000_000


@every_case
def test_nothing_there(case: Case, tmp_path: Path) -> None:
    path = tmp_path / case.name
    assert "No such file" in refusal(path, case.options)
    path.mkdir()
    assert refusal(path, case.options) == f"cannot read {path}: Is a directory"


WRITTEN = {
    "jsonl": ("data.jsonl", ReadOptions()),
    "jsonl-columns": ("data.jsonl.gz", ReadOptions(input_column="<i>", target_column='"')),
    "csv": ("data.csv", ReadOptions()),
    "csv-comma": ("data.csv.gz", ReadOptions(split="comma", input_column="a,b")),
    "csv-character": ("data.csv", ReadOptions(split="character")),
    "tsv": ("data.tsv", ReadOptions()),
    "tsv-comma": ("data.tsv", ReadOptions(split="comma")),
    "text": ("data.txt", ReadOptions()),
    "text-comma": ("data.txt.gz", ReadOptions(split="comma", separator="=>")),
    "text-character": ("data.txt", ReadOptions(split="character", separator="==")),
    "int2int": ("data.int2int", ReadOptions()),
    "parquet": ("data.parquet", ReadOptions(target_column="ü")),
}
token = (
    st.sampled_from(["", " ", '"', ",", "#", "=", "=>", "\t", "\n", "\r", "\u2028", "\x00", "\ufeff", "7", "\ud800"])
    | st.text(max_size=3)
    | st.integers(-(10**20), 10**20).map(str)
)
plain_token = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=1)
samples = st.lists(
    st.one_of(*(st.tuples(st.lists(t, max_size=4), st.lists(t, min_size=1, max_size=4)) for t in (plain_token, token))),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("written", WRITTEN)
@settings(deadline=None)
@given(samples)
def test_what_is_written_comes_back_or_is_refused(written: str, pairs: list[tuple[list[str], list[str]]]) -> None:
    name, options = WRITTEN[written]
    dataset = SequenceDataset.from_sequences([x for x, _ in pairs], [y for _, y in pairs])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        try:
            write_dataset(path, dataset, options)
        except InputError:
            assert not name.startswith("data.jsonl")
            assert not all(token.isalnum() and len(token) == 1 for token in dataset.vocabulary.tokens)
            assert list(Path(folder).iterdir()) == []
            return
        assert read_dataset(path, options).fingerprint() == dataset.fingerprint()


@pytest.mark.parametrize("written", WRITTEN)
def test_the_same_dataset_gives_the_same_bytes(written: str, tmp_path: Path) -> None:
    name, options = WRITTEN[written]
    dataset = SequenceDataset.from_sequences([[1, 2]], [["3"]])
    contents = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_dataset(tmp_path / folder / name, dataset, options)
        contents.append((tmp_path / folder / name).read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("split", "text", "tokens"),
    [
        ("whitespace", " 12  -3\tx ", ["12", "-3", "x"]),
        ("comma", " 12, -3 ,a b", ["12", "-3", "a b"]),
        ("character", "12 + 3", ["1", "2", "+", "3"]),
    ],
)
def test_how_strings_are_split(split: str, text: str, tokens: list[str], tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps({"input": text, "target": ["1 2"]}))
    dataset = read_dataset(tmp_path / "data.jsonl", ReadOptions(split=split))
    assert (dataset.input(0), dataset.target(0)) == (tokens, ["1 2"])


@pytest.mark.parametrize("text", ["1,,2", "1,2,", ",", ",1"])
def test_nothing_between_commas(text: str, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text(f"1 # 2\n{text} # 3\n")
    message = refusal(tmp_path / "data.txt", ReadOptions(split="comma"))
    assert message.startswith(f"{tmp_path / 'data.txt'}:2: 'input' is ")


def test_ragged_rows_and_broken_quotes_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('input,target\n1,2\n1\n1,2,3\n"1"x,2\n"1\n2",3\n5,\n"open,9\n')
    assert refusal(path, ReadOptions()).splitlines()[1:] == [
        f"  {path}:3: 1 columns; expected 2 as in the header",
        f"  {path}:4: 3 columns; expected 2 as in the header",
        f"  {path}:5: not a row of a table (',' expected after '\"')",
        f"  {path}:9: not a row of a table (unexpected end of data)",
        f"  {path}:8: the target is empty; expected at least one token",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "--format 'xml': expected one of jsonl, csv"),
        ({"split": "words"}, "--split 'words': expected one of whitespace, comma, character"),
        ({"separator": ""}, "--separator '': expected"),
        ({"separator": "\n"}, "--separator '\\n': expected"),
        ({"separator": "|"}, "--separator does not apply to the format jsonl"),
    ],
)
def test_wrong_options(options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_dataset(tmp_path / "data.jsonl", ReadOptions(**options))
    assert str(caught.value).startswith(message)


def test_unknown_extension(tmp_path: Path) -> None:
    (tmp_path / "data.xyz").write_text('{"input": [1], "target": [2]}')
    assert "give --format" in refusal(tmp_path / "data.xyz", ReadOptions())
    assert len(read_dataset(tmp_path / "data.xyz", ReadOptions(format="jsonl"))) == 1
