"""Everything that the README and the pages of docs/ show is run as it stands, with smaller sizes.

The blocks of a page run in their sequence, in one empty folder: a block under "`name`:" is the file of that name; a
line "$ genorder ..." of a `console` block is run, with what `echo` or `cat` pipe into it; `python` blocks share their
names. Commands that train get the settings of SMALL. A `console` block may hold no other commands but those of OTHERS.

A page with a command that trains runs whole in the slow suite. The fast suite runs its quick commands (QUICK, and
`--dry-run`) and its Python unless that trains, and parses every command, so that each verb, option and value exists.
"""

import ast
import dataclasses
import io
import random
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from genorder.cli.app import run
from genorder.cli.verbs import app
from genorder.search import STRATEGIES
from genorder.settings import flat_settings, resolve, resolve_discovery, resolve_exploration
from genorder.tasks import registry
from genorder.training import marginal_seconds

ROOT = Path(__file__).parent.parent
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in PATHS}
README = PAGES["README.md"]
MEASURED = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "benchmarks").glob("*.md"))}
FOLDERS = {path.name: path.parent for path in PATHS} | dict.fromkeys(MEASURED, ROOT / "benchmarks")
OTHERS = ("make", "source", "pip", "git", "ruff", "mypy", "lint-imports", "pytest")
QUICK = ("inspect", "tasks", "generate", "doctor")  # verbs that train nothing and need no run

FEW = ["--threads", "1", "--set", "samples.train=300", "--set", "samples.validation=20", "--set", "samples.test=20"]
TINY = ["width=16", "feedforward=32", "heads=2"]
SMALL = {
    "train": ["--steps", "2", *FEW, *(part for size in TINY for part in ("--set", f"model.{size}"))],
    "discover": [
        *("--set", "race.first_rung=2", "--set", "final.training.steps=2", *FEW),
        *("--set", "profiler.training.steps=2", "--set", "any_order.training.steps=2"),
        *("--set", "any_order.training.batch_size=16"),
        *(part for size in TINY for part in ("--set", f"final.model.{size}")),
    ],
    "analyze": ["--steps", "2", *FEW, "--set", "model.width=16", "--set", "model.feedforward=32"],
    "rank": [
        *("--set", "profiler.training.steps=2", "--set", "race.first_rung=2", "--set", "final.training.steps=2", *FEW),
        *(part for size in TINY for part in ("--set", f"profiler.model.{size}")),
    ],
}
VERBS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
NARROW = ["--set", "profiler.model.width=16"]
SMALL_SEARCH = {  # options that a command has of its own are left as they are
    "global-local": ({"--depth": "2", "--max-runs": "3"}, NARROW),
    "evolutionary": ({"--max-runs": "2", "--max-candidates": "8"}, NARROW),
    "random": ({"--max-runs": "2", "--max-candidates": "8"}, NARROW),
    "soft-permutation": ({}, ["--set", "search.steps=2", *NARROW]),
}

_BLOCK = re.compile(r"(?:^`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>[^`\n]*)\n(?P<content>.*?)^```", re.S | re.M)
_NEEDS_TRAINING = re.compile(r"genorder\.(?:discover|rank|train)\(|\bruns/")  # Python that trains, or reads a run


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    for module in ("fixed_order", "search.any_order", "search.base"):  # estimates need not be good here
        name = f"genorder.{module}.marginal_seconds"
        monkeypatch.setattr(name, lambda seconds, budget: marginal_seconds(seconds, 0.05))
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # a page's own tasks are not for other tests
    yield
    torch.set_num_threads(threads)


def lines_of(console: str) -> list[str]:
    """The commands of a block, without prompt and comment, those of OTHERS left out."""
    lines = [line.removeprefix("$ ").split("#")[0].strip() for line in console.splitlines()]
    return [line for line in lines if line and line.split()[0] not in OTHERS]


def words_of(line: str) -> tuple[list[str], str]:
    """The words of a `genorder` command behind its name, and what is piped into it."""
    said, _, command = line.rpartition(" | ")
    words = shlex.split(command)
    assert words[0] == "genorder", f"{line}: how is this run?"
    return words[1:], said


def is_quick(line: str) -> bool:
    words, _ = words_of(line)
    return words[0] in QUICK or "--dry-run" in words


def run_line(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    words, said = words_of(line)
    if said:
        program, *piped = shlex.split(said)
        assert program in ("echo", "cat")
        given = Path(piped[0]).read_bytes() if program == "cat" else (" ".join(piped) + "\n").encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    return run(words + small_for(words))


def small_for(words: list[str]) -> list[str]:
    strategy = words[words.index("--strategy") + 1] if "--strategy" in words else ""
    options, settings = SMALL_SEARCH.get(strategy, ({}, []))
    missing = [part for option in options.items() if option[0] not in words for part in option]
    return [*SMALL.get(words[0], []), *missing, *settings]


def test_smaller_sizes_leave_a_command_s_own_options() -> None:
    words = shlex.split("discover --task relu --strategy global-local --depth 3")
    small = small_for(words)
    assert "--depth" not in small
    assert small[small.index("--max-runs") + 1] == "3"
    assert small[-2:] == NARROW
    assert small_for(["inspect", "x.jsonl"]) == []


def test_blocks_without_a_language_are_seen() -> None:
    text = "a\n\n```\n$ genorder nothing\n```\n\n```console\n$ genorder tasks\n```\n"
    assert [block["language"] for block in _BLOCK.finditer(text)] == ["", "console"]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    blocks = list(_BLOCK.finditer(PAGES[page]))
    assert len(re.findall(r"^[ ]*```", PAGES[page], re.M)) == 2 * len(blocks)
    assert {block["language"] for block in blocks if not block["file"]} <= {"console", "python", "text"}


def blocks_of(page: str, language: str) -> list[str]:
    blocks = (block for block in _BLOCK.finditer(PAGES[page]) if not block["file"])
    return [block["content"] for block in blocks if block["language"] == language]


def commands_of(page: str) -> list[str]:
    return [line for console in blocks_of(page, "console") for line in lines_of(console)]


RUN = [page for page in PAGES if commands_of(page) or blocks_of(page, "python")]
TRAINING = [
    page
    for page in RUN
    if not all(map(is_quick, commands_of(page))) or any(map(_NEEDS_TRAINING.search, blocks_of(page, "python")))
]


def run_page(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, quick: bool = False
) -> dict[str, Any]:
    """Run the blocks of a page, or what is quick of them; what its Python code has defined."""
    names: dict[str, Any] = {}
    no_python = quick and any(map(_NEEDS_TRAINING.search, blocks_of(page, "python")))
    for number, block in enumerate(_BLOCK.finditer(PAGES[page])):
        if block["file"]:
            Path(block["file"]).write_text(block["content"], encoding="utf-8")
        elif block["language"] == "console":
            for line in lines_of(block["content"]):
                if not quick or is_quick(line):
                    assert run_line(line, monkeypatch) == 0, f"{page}: {line}: {capsys.readouterr().err}"
        elif block["language"] == "python":
            code = compile(block["content"], f"{page}, block {number}", "exec")
            if not no_python:
                exec(code, names)
    return names


def write_the_reader_s_file() -> None:
    """`mydata.csv` of the README: its header, and rows like those that it shows."""
    header, *rows = next(block for block in blocks_of("README.md", "text") if block.count(",") > 20).splitlines()
    digits = [row.split(",")[: header.count("d")] for row in rows]
    assert rows == [division(row) for row in digits]
    rng = random.Random(0)
    written = [division([str(rng.randrange(10)) for _ in digits[0]]) for _ in range(50)]
    Path("mydata.csv").write_text("\n".join([header, *written]) + "\n", encoding="utf-8")


def division(digits: list[str]) -> str:
    """A row: the digits, and the remainders of their long division by 12, the last one first."""
    remainders = [0]
    for digit in digits:
        remainders.append((10 * remainders[-1] + int(digit)) % 12)
    return ",".join([*digits, *map(str, remainders[:0:-1])])


@pytest.mark.parametrize("page", RUN)
def test_what_is_quick_of_a_page(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_the_reader_s_file()
    run_page(page, monkeypatch, capsys, quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("page", TRAINING)
def test_page(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_the_reader_s_file()
    names = run_page(page, monkeypatch, capsys)
    if page == "export.md":
        for path in ("four-model", "four.jsonl", "train_raw.txt", "four.test"):
            assert Path(path).exists()
    if page == "python_api.md":
        assert names["trained"].order == names["genorder"].Order.reverse(5)
        assert Path("sums-model/model.safetensors").exists()


@pytest.mark.parametrize("page", RUN)
def test_every_command_parses(page: str) -> None:
    for line in commands_of(page):
        words, _ = words_of(line)
        assert words[0] in VERBS, line
        VERBS[words[0]].make_context(words[0], words[1:])


def test_verbs_in_the_table() -> None:
    lines = commands_in_the_table()
    assert {line.split()[1] for line in lines} == VERBS.keys()
    for line in lines:
        assert run([line.split()[1], "--help"]) == 0


@pytest.mark.slow
def test_commands_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for line in commands_in_the_table():
        if " --" in line and "RUN_DIR" not in line:
            assert run_line(line, monkeypatch) == 0


def commands_in_the_table() -> list[str]:
    rows = re.findall(r"^\| (`genorder [^|]*)\|", README, re.M)
    return [line for row in rows for line in re.findall(r"`([^`]*)`", row)]


def test_a_task_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.S)
    command = re.search(r"then\s+`(genorder train [^`]*)`", README)
    assert code
    assert command
    assert len([line for line in code[1].splitlines() if line.strip()]) <= 5
    Path("my_tasks.py").write_text(code[1])
    assert run_line(command[1], monkeypatch) == 0


@pytest.mark.parametrize("page", [*PAGES, *MEASURED])
def test_links_and_scripts_exist(page: str) -> None:
    text = {**PAGES, **MEASURED}[page]
    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (FOLDERS[page] / link).exists(), link
    for script in re.findall(r"\b(?:benchmarks|examples|tests)/[\w/]+\.py", text):
        assert (ROOT / script).exists(), script


def test_readme_lists_every_page() -> None:
    for path in (ROOT / "docs").glob("*.md"):
        assert re.search(rf"^- \[[^]]+\]\(docs/{re.escape(path.name)}\): \S", README, re.M), path.name


def test_import_layers_are_those_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    assert " > ".join(layers) in " ".join(PAGES["CONTRIBUTING.md"].split())


@pytest.mark.parametrize("page", ["architecture.md", "CONTRIBUTING.md"])
def test_functions_and_classes_exist(page: str) -> None:
    """Wherever a page says `folder/module.py`: `name`."""
    named = re.findall(r"`([\w/]+\.py)`: `(\w+)(?:\.(\w+))?`", PAGES[page])
    assert named
    for path, name, method in named:
        file = ROOT / "src" / "genorder" / path
        assert file.exists(), path
        body = ast.parse(file.read_text(encoding="utf-8")).body
        if method:
            body = next(node for node in body if getattr(node, "name", None) == name).body  # type: ignore[attr-defined]
        assert (method or name) in {getattr(node, "name", None) for node in body}, (path, name, method)


@pytest.mark.parametrize("page", PAGES)
def test_what_is_named_in_passing_exists(page: str) -> None:
    """Verbs and options in running text, and the settings of --set, wherever they stand."""
    text = PAGES[page]
    for words in (span.split() for span in re.findall(r"`(genorder [^`\n]*)`", text)):
        if words[1].startswith("-") or words[1].isupper():
            continue
        assert words[1] in VERBS, words
        known = {option for parameter in VERBS[words[1]].params for option in parameter.opts + parameter.secondary_opts}
        for word in words[2:]:
            assert not word.startswith("--") or word.split("=")[0] in {*known, "--help"}, words
    everywhere = {option for verb in VERBS.values() for p in verb.params for option in p.opts + p.secondary_opts}
    for option in re.findall(r"`(--[a-z][a-z-]*)[ `=]", text):
        assert option in {*everywhere, "--help", "--version"}, option
    for setting in re.findall(r"--set ([a-z_.0-9]+)=", text):
        assert setting in _settings(), setting


def _settings() -> set[str]:
    known = {f"search.{field.name}" for kind in STRATEGIES.values() for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for resolved in (resolve, resolve_exploration, resolve_discovery):
        known |= dict(flat_settings(resolved("cpu").model_dump())).keys()
    return known
