import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import SequenceDataset, read_jsonl, write_jsonl
from genorder.errors import InputError

GOOD = '{"input": [1, 2], "target": [3]}'


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "data.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sequences(dataset: SequenceDataset) -> list[tuple[list[str], list[str]]]:
    return [(dataset.input(row), dataset.target(row)) for row in range(len(dataset))]


odd = st.sampled_from(
    ["", " ", '"', "\\", "\n", "\r", "\u2028", "\x85", "\x00", "é", "𝔘", "\ufeff", "7", "-0", "\ud800"]
)
token = odd | st.text(st.characters(), max_size=4) | st.integers(-(10**20), 10**20)
samples = st.lists(
    st.tuples(st.lists(token, max_size=4), st.lists(token, min_size=1, max_size=4)), min_size=1, max_size=6
)


@settings(deadline=None)
@given(samples)
def test_round_trip(pairs: list[tuple[list[object], list[object]]]) -> None:
    dataset = SequenceDataset.from_sequences([x for x, _ in pairs], [y for _, y in pairs])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.jsonl"
        write_jsonl(dataset, path)
        again = read_jsonl(path)
    assert sequences(again) == [(list(map(str, x)), list(map(str, y))) for x, y in pairs]
    assert again.fingerprint() == dataset.fingerprint()


@settings(deadline=None)
@given(samples, st.booleans())
def test_reads_what_the_json_module_writes(pairs: list[tuple[list[object], list[object]]], ascii_only: bool) -> None:
    lines = [json.dumps({"target": y, "input": x, "note": None}, ensure_ascii=ascii_only) for x, y in pairs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.jsonl"
        try:
            path.write_bytes("\n".join(lines).encode())
        except UnicodeEncodeError:
            return  # UTF-8 has no lone surrogates; JSON's escapes do
        assert sequences(read_jsonl(path)) == [(list(map(str, x)), list(map(str, y))) for x, y in pairs]


def test_integers_are_written_as_integers_only_where_all_are(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_jsonl(SequenceDataset.from_sequences([[1, -2]], [["3"]]), path)
    assert path.read_text() == '{"input": [1, -2], "target": [3]}\n'
    write_jsonl(SequenceDataset.from_sequences([[1, "é"]], [["03"]]), path)
    assert path.read_text(encoding="utf-8") == '{"input": ["1", "é"], "target": ["03"]}\n'


def test_integer_and_its_text_are_one_token(tmp_path: Path) -> None:
    dataset = read_jsonl(write(tmp_path, '{"input": [7, "7"], "target": ["7"]}\n{"input": ["8", 8], "target": [8]}\n'))
    assert dataset.vocabulary.tokens == ("7", "8")
    assert sequences(dataset) == [(["7", "7"], ["7"]), (["8", "8"], ["8"])]
    assert dataset.inputs.tokens.tolist() == [0, 0, 1, 1]


def test_strings_are_split_on_white_space(tmp_path: Path) -> None:
    dataset = read_jsonl(write(tmp_path, '{"input": " 4 -7\\tb ", "target": "x"}\n{"input": "", "target": [1]}\n'))
    assert sequences(dataset) == [(["4", "-7", "b"], ["x"]), ([], ["1"])]


def test_all_inputs_may_be_empty(tmp_path: Path) -> None:
    dataset = read_jsonl(write(tmp_path, '{"input": [], "target": [1]}\n{"input": "", "target": [2]}\n'))
    assert sequences(dataset) == [([], ["1"]), ([], ["2"])]
    assert dataset.inputs.longest == 0


def test_ids_do_not_depend_on_the_sequence_of_lines(tmp_path: Path) -> None:
    lines = ['{"input": ["b", 5], "target": [1]}', '{"input": [-3], "target": ["a"]}']
    first, second = (read_jsonl(write(tmp_path, "\n".join(text))) for text in (lines, lines[::-1]))
    assert first.vocabulary == second.vocabulary
    assert first.vocabulary.tokens == ("-3", "1", "5", "a", "b")


@pytest.mark.parametrize(
    "content",
    [
        f"\ufeff{GOOD}\n{GOOD}\n",
        f"{GOOD}\r\n{GOOD}\r\n",
        f"\n{GOOD}\n\n   \n\t\r\n{GOOD}",
        f"\ufeff\r\n{GOOD}\r\n \r\n  {GOOD}  ",
    ],
)
def test_byte_order_mark_line_ends_and_blank_lines_do_not_matter(tmp_path: Path, content: str) -> None:
    assert sequences(read_jsonl(write(tmp_path, content))) == [(["1", "2"], ["3"])] * 2


def refused(path: Path, *expected: str) -> None:
    with pytest.raises(InputError) as caught:
        read_jsonl(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300 + len(str(path))
    for text in (str(path), *expected):
        assert text in message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"input": [true], "target": [1]}', ("'input'", "True", "strings or integers")),
        ('{"input": [1], "target": [1.5]}', ("'target'", "1.5", "strings or integers")),
        ('{"input": [1], "target": [1, 2.0]}', ("'target'", "2.0")),
        ('{"input": [null], "target": [1]}', ("'input'", "None")),
        ('{"input": [[1]], "target": [1]}', ("'input'", "[1]")),
        ('{"input": [{"a": 1}], "target": [1]}', ("'input'", "{'a': 1}")),
        ('{"input": [NaN], "target": [1]}', ("'input'", "nan")),
        ('{"input": 7, "target": [1]}', ("'input'", "7", "a list of tokens or a string")),
        ('{"input": null, "target": [1]}', ("'input'", "None")),
        ('{"input": {"a": 1}, "target": [1]}', ("'input'", "{'a': 1}")),
        ('{"input": [1], "target": []}', ("target is empty",)),
        ('{"input": [1], "target": "  "}', ("target is empty",)),
        ('{"input": [1]}', ("no 'target'", "['input']")),
        ('{"target": [1], "x": 2}', ("no 'input'", "['target', 'x']")),
        ("[1, 2]", ("[1, 2]", "expected an object")),
        ('"text"', ("'text'", "expected an object")),
        ("{'input': [1]}", ("not JSON",)),
        ('{"input": [1], "target": [1]', ("not JSON",)),
        ("hello " * 1000, ("not JSON", "hello")),
        ("[" * 100_000, ("not JSON", "nested too deeply")),
        ('{"input": [' + "9" * 5000 + '], "target": [1]}', ("not JSON", "digits")),
        ('{"input": ["' + "x" * 5000 + '", true], "target": [1]}', ("'input'", "True")),
        ('{"input": [' + "[" * 500 + "]" * 500 + '], "target": [1]}', ("'input'", "strings or integers")),
        ("{" + ", ".join(f'"key{i}": 1' for i in range(500)) + "}", ("no 'input'",)),
    ],
)
def test_unusable_line_is_named_by_file_and_number(tmp_path: Path, line: str, expected: tuple[str, ...]) -> None:
    path = write(tmp_path, f"{GOOD}\n\n{line}\n{GOOD}\n")
    refused(path, f"{path}:3: ", *expected)


def test_number_of_thousands_of_digits_in_quotes_is_a_token(tmp_path: Path) -> None:
    number = "9" * 5000
    path = write(tmp_path, f'{{"input": ["{number}", 4], "target": [1]}}\n')
    dataset = read_jsonl(path)
    assert sequences(dataset) == [([number, "4"], ["1"])]
    write_jsonl(dataset, path)
    assert sequences(read_jsonl(path)) == sequences(dataset)


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "  \r\n"])
def test_no_samples(tmp_path: Path, content: str) -> None:
    refused(write(tmp_path, content), "holds no samples")


def test_missing_file_and_directory(tmp_path: Path) -> None:
    refused(tmp_path / "absent.jsonl", "No such file")
    refused(tmp_path, "Is a directory")


def test_binary_file(tmp_path: Path) -> None:
    refused(write(tmp_path, b"\x80\x81PK\x03\x04" + bytes(range(256)) * 10), "not UTF-8")
    refused(write(tmp_path, GOOD.encode("utf-16")), "not UTF-8")


def test_place_of_a_wrong_byte_is_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    good = f"{GOOD}\n".encode() * 5000
    refused(write(tmp_path, good + b'{"input": ["\xff"], "target": [1]}\n'), "not UTF-8", ":5001")


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path, "old")
    dataset = SequenceDataset.from_sequences([[1]], [[2]])
    broken = SequenceDataset(dataset.inputs, dataset.targets, type(dataset.vocabulary)(("1",)))
    with pytest.raises(IndexError):
        write_jsonl(broken, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
