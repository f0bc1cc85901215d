"""Ten thousand damaged files: every one is read or refused in clear words, none ends in a failure."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import Genorder

from genorder.data import SequenceDataset, write_dataset

FILES = 10_000
NAMES = (
    *("data.jsonl", "data.csv", "data.tsv", "data.txt", "data.int2int"),
    *("data.jsonl.gz", "data.csv.gz", "data.parquet"),
)
PIECES = [
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"#", b"\t", b",", b"[", b"{", b"}", b"\x1b[31m"),
    *(b"<script>", b"NaN", b"1e999", b"9" * 5000, b"\\ud800", b"[" * 2000, b"null", b"-", b" "),
    *(b"\xed\xa0\x80", b"\x1f\x8b"),
]


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(rng.integers(1, 5)):
        place, end = sorted(rng.integers(0, len(content) + 1, 2).tolist())
        piece = PIECES[rng.integers(len(PIECES))]
        content = [
            content[:place] + piece + content[place:],
            content[:place] + piece + content[place + len(piece) :],
            content[:place] + content[min(end, place + 9) :],
            content[:place] + content[place:end] * 2 + content[end:],
            content[:end],
            content[:place] + rng.bytes(3) + content[place + 3 :],
        ][rng.integers(6)]
    return content


@pytest.mark.slow
def test_mutated_files(genorder: Genorder) -> None:
    rows = [[str(n % 7), "é", f"w{n}"] for n in range(6)]
    originals = []
    for name in NAMES:
        write_dataset(name, SequenceDataset.from_sequences(rows, rows[::-1]))
        originals.append((name, Path(name).read_bytes()))
    rng = np.random.default_rng(0)
    codes: Counter[int] = Counter()
    for number in range(FILES):
        name, content = originals[number % len(originals)]
        damaged = mutated(content, rng)
        Path(name).write_bytes(damaged)
        said = genorder("inspect", name, *(["--json"] if number % 2 else []))
        assert said.code in (0, 2), (name, damaged, said.err)
        assert "Traceback" not in said.err
        assert all(line.isprintable() for line in said.err.splitlines())
        codes[said.code] += 1
    assert min(codes[0], codes[2]) > FILES / 50
