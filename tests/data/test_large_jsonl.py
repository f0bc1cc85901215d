import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SAMPLES, TOKENS, LIMIT = 1_000_000, 20, 1_000_000_000

LOAD = """
import json, sys
from pathlib import Path
from genorder.data import read_jsonl

dataset = read_jsonl(sys.argv[1])
# Of this program alone: `ru_maxrss` begins with the memory of the process that started it.
peak = 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
print(json.dumps([len(dataset), int(dataset.inputs.offsets[-1]), int(dataset.targets.offsets[-1]),
                  len(dataset.vocabulary), dataset.input(-1 % len(dataset)), peak]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux shows a program's peak memory there")
def test_a_million_samples_load_in_less_than_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(SAMPLES // 10_000):
            for row in rng.integers(-50, 50, (10_000, 2 * TOKENS)).tolist():
                file.write(f'{{"input": {row[:TOKENS]}, "target": {row[TOKENS:]}}}\n')
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True, timeout=600
    )
    samples, inputs, targets, vocabulary, last, peak = json.loads(loaded.stdout)
    assert (samples, inputs, targets, vocabulary) == (SAMPLES, SAMPLES * TOKENS, SAMPLES * TOKENS, 100)
    assert last == list(map(str, row[:TOKENS]))
    assert peak < LIMIT
