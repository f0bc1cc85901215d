"""Bad input: one clear line on stderr, exit code 2, nothing on stdout, nothing written."""

import json
import re
import shutil
from pathlib import Path

import pytest
from cli_helpers import RELU_3, TINY, Genorder, files_under

TRAIN = ("train", *RELU_3, *TINY, "--steps", "5")
GENERATE = ("generate", *RELU_3, "--samples", "5")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, _nothing_leaks: None) -> Path:
    contents = {
        "words.jsonl": b'{"input": [1], "target": [2]}\n\nnot json\n',
        "no-target.jsonl": b'{"input": [1]}\n',
        "list.jsonl": b"[1, 2]\n",
        "float.jsonl": b'{"input": [1.5], "target": [2]}\n',
        "empty-target.jsonl": b'{"input": [1], "target": []}\n',
        "digits.jsonl": b'{"input": [' + b"1" * 5000 + b'], "target": [2]}\n',
        "deep.jsonl": b"[" * 100_000 + b"\n",
        "one.jsonl": b'{"input": [1], "target": [2]}\n',
        "same.jsonl": b'{"input": [1], "target": [2]}\n' * 50,
        "empty.jsonl": b"",
        "blank.jsonl": b"\n  \n\n",
        "binary.jsonl": b'{"input": [1], "target": [2]}\n' * 1000 + bytes(range(256)),
        "wide.jsonl": '{"input": ["é"], "target": [2]}\n'.encode("utf-16"),
        "twice.json": b"[0, 0, 1]",
        "long.json": b'{"order": [0, 1, 2, 3]}',
        "cut.json": b"[0, 1",
        "no-order.json": b'{"a": 1}',
        "text.json": b'"012"',
        "bad.toml": b"[training\nsteps = 5\n",
        "unknown.toml": b"[training]\nstep = 5\n",
        "group.toml": b"training = 5\n",
        "broken.py": b"def f(:\n",
        "raising.py": b"1 / 0\n",
        "none.py": b"pass\n",
        "foreign/notes.txt": b"mine",
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        # tasks and lengths
        ("train --task rellu", "no task named 'rellu': did you mean relu or delay-relu? see `genorder tasks`"),
        ("train --task zzzzzz", "no task named 'zzzzzz': see `genorder tasks`"),
        ("train --task relu --length 0", "task relu: length must be 1 or more*received 0"),
        ("train --task relu --length 20-10", "*a range with the shorter length first, received 20-10"),
        ("train --task relu --length abc", "length 'abc' is neither a number such as 20 nor a range*"),
        ("train --task prod --length 5", "task prod: length must be even, received 5"),
        ("train --task delay-relu --length 6", "task delay-relu: length must be a multiple of 4, received 6"),
        ("train --task index:d=x", "task index: parameter d must be an integer, received 'x'"),
        ("train --task index:q=4", "task index has no parameter 'q=4' (accepted: *d=*"),
        ("train --task nofile.py:x", "nofile.py: no such task file"),
        ("train --task broken.py:x", "*broken.py:1: cannot be imported: invalid syntax"),
        ("train --task raising.py:x", "raising.py: cannot be imported: ZeroDivisionError: division by zero"),
        ("train --task none.py:x", "none.py: registers no task named 'x' (registered there: none)"),
        ("train", "give a DATA file or --task NAME, one of the two; received neither"),
        ("train one.jsonl --task relu", "give a DATA file or --task NAME, one of the two; received both"),
        ("train one.jsonl --length 3", "--length and --hidden-order-seed belong to --task*"),
        ("train one.jsonl --hidden-order-seed 3", "--length and --hidden-order-seed belong to --task*"),
        # datasets
        ("train words.jsonl", "words.jsonl:3: not JSON (Expecting value): 'not json'"),
        ("train no-target.jsonl", "no-target.jsonl:1: no 'target' among the keys ['input']*"),
        ("train list.jsonl", "list.jsonl:1: [1, 2]; expected an object with input and target"),
        ("train float.jsonl", "float.jsonl:1: 'input' holds 1.5; expected tokens that are strings or integers"),
        ("train empty-target.jsonl", "empty-target.jsonl:1: the target is empty*"),
        ("train digits.jsonl", "digits.jsonl:1: not JSON (Exceeds the limit*"),
        ("train deep.jsonl", "deep.jsonl:1: not JSON (nested too deeply)*"),
        ("train one.jsonl", "*1 samples cannot give 1 for validation, 1 for test*give more data*"),
        ("train same.jsonl", "the 50 samples hold only 1 different inputs*"),
        ("train empty.jsonl", "empty.jsonl holds no samples; expected one JSON object*"),
        ("train blank.jsonl", "blank.jsonl holds no samples; expected one JSON object*"),
        ("train nofile.jsonl", "cannot read nofile.jsonl: No such file or directory"),
        ("train folder", "cannot read folder: Is a directory"),
        ("train binary.jsonl", "binary.jsonl:1001: not JSON*"),
        ("train wide.jsonl", "wide.jsonl:1 is not UTF-8 text (invalid start byte at byte 0)"),
        # options as such
        ("nosuch", "No such command 'nosuch'; see `genorder --help`"),
        ("train --nosuch", "No such option: --nosuch*; see `genorder train --help`"),
        ("train a b c", "Got unexpected extra argument*(b c); see `genorder train --help`"),
        ("train --task relu --steps abc", "Invalid value for '--steps': *integer*; see `genorder train --help`"),
        ("train --task", "Option '--task' requires an argument; see `genorder*--help`"),
        ("generate", "Missing option '--task'; see `genorder generate --help`"),
        ("status", "Missing argument 'RUN_DIR'; see `genorder status --help`"),
        ("predict", "Missing option '--model'; see `genorder predict --help`"),
        ("bench nosuch", "no benchmark 'nosuch'; there are: training*"),
        ("doctor --threads 1000000", "--threads 1000000: expected a number from 1 to *"),
        # run directories
        ("status folder", "folder is no run directory: it has no config.json; give the --out of an earlier*"),
        ("status nofolder", "nofolder is no run directory: no such directory;*"),
        ("evaluate folder", "cannot read folder/model.json: No such file*expected the folder of a trained model"),
        ("evaluate nofolder", "cannot read nofolder/model.json: No such file*"),
        ("predict --model folder", "cannot read folder/model.json: No such file*"),
        ("evaluate folder --split nonsense", "--split 'nonsense': expected one of test, validation, train"),
    ],
)  # fmt: skip
def test_one_clear_line(genorder: Genorder, files: Path, arguments: str, line: str) -> None:
    before = files_under(files)
    received = genorder(*arguments.split()).error()
    assert matches(received, line)
    assert files_under(files) == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--order 0,0,1", "0,0,1: not an order: index 0 appears twice, 2 is missing"),
        ("--order 0,1", "0,1: the order has length 2, expected 3"),
        ("--order sideways", "'sideways' is not an order: expected forward, reverse, random:SEED, a JSON file*"),
        ("--order random:x", "'random:x' is not an order: random needs an integer seed, such as random:7"),
        ("--order nofile.json", "nofile.json: no such order file; an order is forward, reverse*"),
        ("--order folder", "folder: cannot be read: Is a directory"),
        ("--order twice.json", "twice.json: not an order: index 0 appears twice, 2 is missing"),
        ("--order long.json", "long.json: the order has length 4, expected 3"),
        ("--order cut.json", "cut.json:1: not JSON: Expecting ',' delimiter (column 6)"),
        ("--order no-order.json", 'no-order.json: the JSON object has no key "order"'),
        ("--order text.json", "text.json: expected a JSON list of indices, found str"),
        ("--out empty.jsonl", "cannot write */empty.jsonl: Not a directory; choose another --out"),
        ("--out empty.jsonl/run", "cannot write */empty.jsonl/run: Not a directory; choose another --out"),
        ("--out foreign", "*/foreign is not empty and is no run directory: it has notes.txt but no config.json*"),
        ("--device cuda", "--device cuda: this machine or torch build has no such device; there is: cpu"),
        ("--device nonsense", "--device 'nonsense': expected one of auto, cpu, cuda, mps"),
        ("--threads 0", "--threads 0: expected a number from 1 to *"),
        ("--threads -1", "--threads -1: expected a number from 1 to *"),
        ("--preset nonsense", "--preset 'nonsense': expected one of cpu, paper, paper-prod, paper-delay"),
        ("--set trainig.steps=5", "--set trainig.steps=5: there is no setting trainig; there are: samples, *"),
        ("--set training.step=5", "*there is no setting training.step; there are: training.steps, *"),
        ("--set training=5", "--set training=5: training is a group of settings, not a value"),
        ("--set training.batch_size=many", "*training.batch_size = 'many': *valid integer*"),
        ("--set training.batch_size", "--set 'training.batch_size': expected NAME=VALUE, such as *"),
        ("--set =5", "--set '=5': expected NAME=VALUE, such as *"),
        ("--set model.heads=3", "the configuration does not fit: width 16 is not a multiple of the 3 heads"),
        ("--set samples.train=0", "*samples.train = 0: *greater than or equal to 1"),
        ("--set samples.train=-5", "*samples.train = -5: *greater than or equal to 1"),
        ("--steps 0", "*training.steps = 0: *greater than or equal to 1"),
        ("--steps -5", "*training.steps = -5: *greater than or equal to 1"),
        ("--checkpoint-every -1", "Invalid value for '--checkpoint-every': *see `genorder train --help`"),
        ("--config bad.toml", "bad.toml is not TOML: *line 1*"),
        ("--config binary.jsonl", "binary.jsonl is not TOML: *"),
        ("--config nofile.toml", "cannot read nofile.toml: No such file or directory"),
        ("--config folder", "cannot read folder: Is a directory"),
        ("--config unknown.toml", "unknown.toml: there is no setting training.step; there are: *"),
        ("--config group.toml", "group.toml: training is a group of settings, not a value"),
    ],
)
def test_one_clear_line_of_train(
    genorder: Genorder, files: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, line: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    before = files_under(files)
    received = genorder(*TRAIN, *arguments.split()).error()
    assert matches(received, line)
    assert files_under(files) == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--samples 0", "the number of samples must be 1 or more, received 0"),
        ("--samples -3", "the number of samples must be 1 or more, received -3"),
        ("--split nonsense", "--split 'nonsense': expected one of train, validation, test"),
        ("--out folder", "--out folder is a directory; expected the name of a file"),
        ("--out empty.jsonl", "empty.jsonl exists and holds something else; remove it or choose another --out"),
        ("--out empty.jsonl/x", "cannot write empty.jsonl: Not a directory; choose another --out"),
    ],
)
def test_one_clear_line_of_generate(genorder: Genorder, files: Path, arguments: str, line: str) -> None:
    before = files_under(files)
    received = genorder(*GENERATE, *arguments.split()).error()
    assert matches(received, line)
    assert files_under(files) == before


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"1 2 3\n\n1 zebra 3\n", "in.txt:3: token 'zebra' is not in the vocabulary of * tokens (-9 -8 *)*"),
        (b"1 2 3\n[1, 2, 3, 4]\n", "in.txt:2: the input has 4 tokens; the model was trained on 3"),
        (b"[1, 2\n", "in.txt:1: not JSON (Expecting ',' delimiter): '[1, 2'"),
        (b"[" * 100_000, "in.txt:1: not JSON (nested too deeply): *"),
        (b"[[1], 2]\n", "in.txt:1: 'input' holds [1]; expected tokens that are strings or integers"),
        (b'{"inputs": [1]}\n', "in.txt:1: no 'input' among the keys ['inputs']"),
        (b'{"input": 5}\n', "in.txt:1: 'input' is 5; expected a list of tokens or a string"),
        (b"1 2 3\n\xff\xfe\n", "in.txt:2 is not UTF-8 text (invalid start byte at byte 0)"),
        (b"\n \n", "in.txt holds no inputs; expected one a line"),
    ],
)
def test_one_clear_line_of_predict(genorder: Genorder, tiny_run: Path, content: bytes, line: str) -> None:
    Path("in.txt").write_bytes(content)
    assert matches(genorder("predict", "--model", tiny_run, "in.txt").error(), line)
    by_pipe = genorder("predict", "--model", tiny_run, stdin=content).error()
    assert matches(by_pipe, line.replace("in.txt", "standard input"))


def test_predict_from_what_is_no_file(genorder: Genorder, tiny_run: Path) -> None:
    assert genorder("predict", "--model", tiny_run, "folder").error() == "cannot read folder: Is a directory"
    assert genorder("predict", "--model", tiny_run, "nofile").error().startswith("cannot read nofile: No such")


def test_evaluate_on_what_does_not_fit_the_model(genorder: Genorder, tiny_run: Path) -> None:
    Path("zebra.jsonl").write_text('{"input": [1, 2, "zebra"], "target": [1, 2, 3]}\n')
    Path("in.jsonl").write_text('{"input": [1, 2, 3, 4], "target": [1, 2, 3]}\n')
    Path("target.jsonl").write_text('{"input": [1, 2, 3], "target": [1, 2, 3, 4]}\n')
    assert genorder("evaluate", tiny_run, "zebra.jsonl").error().startswith("zebra.jsonl: token 'zebra' is not in")
    trained = "tokens; the model was trained on at most 3"
    assert genorder("evaluate", tiny_run, "in.jsonl").error() == f"in.jsonl has an input of 4 {trained}"
    assert genorder("evaluate", tiny_run, "target.jsonl").error() == f"target.jsonl has a target of 4 {trained}"
    assert genorder("evaluate", tiny_run, "words.jsonl").error().startswith("words.jsonl:3: not JSON")


def test_data_that_changed_since_the_run(genorder: Genorder) -> None:
    genorder("generate", *RELU_3, "--samples", 100, "--out", "data.jsonl")
    trained = genorder("train", "data.jsonl", *TINY, "--steps", 2, "--json").result()
    lines = Path("data.jsonl").read_text().splitlines()
    Path("data.jsonl").write_text("\n".join(reversed(lines)))
    said = genorder("evaluate", trained["run_dir"]).error()
    assert said.endswith("data.jsonl has changed since the run: its content is not what the model was trained on")


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "missing"])
def test_damaged_weights(genorder: Genorder, tiny_run: Path, damage: str) -> None:
    shutil.copytree(tiny_run, "run")
    weights = Path("run/model/weights.safetensors")
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        weights.unlink()
    else:
        weights.write_bytes({"flipped": content, "cut": content[:-9], "empty": b""}[damage])
    for verb in (("evaluate", "run"), ("predict", "--model", "run")):
        said = genorder(*verb, stdin=b"1 2 3\n").error()
        if damage == "missing":
            assert said.startswith("cannot read run/model/weights.safetensors: No such file")
        else:
            assert said == (
                "run/model/weights.safetensors is damaged: its SHA-256 is not the one in model.json; train again"
            )


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"format": "other"}'])
def test_damaged_description(genorder: Genorder, tiny_run: Path, content: bytes) -> None:
    shutil.copytree(tiny_run, "run")
    Path("run/model/model.json").write_bytes(content)
    assert "run/model/model.json is not" in genorder("evaluate", "run").error()


def test_directory_of_another_configuration_shows_the_differences(genorder: Genorder, tiny_run: Path) -> None:
    shutil.copytree(tiny_run, "run")
    before = (Path("run") / "config.json").read_bytes()
    refused = genorder(*TRAIN, "--seed", 4, "--set", "model.width=32", "--out", "run")
    assert refused.code == 2
    assert refused.out == ""
    head, *differences = refused.err.splitlines()
    assert head.startswith("error: ")
    assert "run holds a run of another configuration; choose another --out" in head
    assert differences == [
        "  config.model.width: 16 in the run directory, 32 requested",
        "  seed: 0 in the run directory, 4 requested",
    ]
    assert (Path("run") / "config.json").read_bytes() == before
    assert json.loads(before)["seed"] == 0


def test_read_only_disk(genorder: Genorder, tmp_path: Path) -> None:
    from store_helpers import make_read_only, small_disk

    with small_disk(tmp_path / "disk", 64) as disk:
        make_read_only(disk)
        train = genorder(*TRAIN, "--out", disk / "run").error()
        generate = genorder(*GENERATE, "--out", disk / "x.jsonl").error()
        assert list(disk.iterdir()) == []
    assert train == f"cannot write {disk / 'run'}: Read-only file system; choose another --out"
    assert generate == f"cannot write {disk}: Read-only file system; choose another --out"


@pytest.mark.parametrize("kilobytes", [4, 16, 40, 80, 120])
def test_full_disk(genorder: Genorder, tmp_path: Path, kilobytes: int) -> None:
    """From no room for the configuration to room for one checkpoint; later files need no more."""
    from store_helpers import small_disk

    with small_disk(tmp_path / "disk", kilobytes) as disk:
        stopped = genorder(*TRAIN, "--steps", 50, "--checkpoint-every", 0, "--out", disk / "run", "--json")
    assert stopped.code == 2
    assert stopped.out == ""
    assert stopped.err.count("error: ") == 1
    last = stopped.err.splitlines()[-1]
    assert re.match(rf"error: cannot (write|use) {disk}/run/\S+: (No space left on device|disk I/O error);", last)


def test_full_disk_under_generate(genorder: Genorder, tmp_path: Path) -> None:
    from store_helpers import small_disk

    with small_disk(tmp_path / "disk", 8) as disk:
        said = genorder("generate", *RELU_3, "--samples", 2000, "--out", disk / "x.jsonl").error()
        assert list(disk.iterdir()) == []
    assert said == (f"cannot write {disk / 'x.jsonl'}: No space left on device; free space or choose another --out")


def matches(text: str, pattern: str) -> bool:
    """`*` in the pattern stands for anything."""
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert re.fullmatch(expression, text), f"{text!r} does not match {pattern!r}"
    return True
