"""Everything that the README and the pages of docs/ show is run as it stands, with smaller sizes.

Of a page, the blocks run in their sequence, in one empty folder: a block under "`name`:" is the file of that name; a
line "$ genorder ..." of a `console` block is run, with what `echo` or `cat` pipe into it; `python` blocks share their
names. What takes long is run with the settings of SMALL. No other command may stand in a `console` block,
but for those of OTHERS.
"""

import dataclasses
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from genorder.cli.app import run
from genorder.cli.verbs import app
from genorder.search.strategies import STRATEGIES
from genorder.settings import flat_settings, resolve, resolve_discovery, resolve_exploration
from genorder.tasks import registry
from genorder.training import marginal_seconds

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
OTHERS = ("make", "source")

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
NARROW = ["--set", "profiler.model.width=16"]
SMALL_SEARCH = {  # options that a command has of its own are left as they are
    "global-local": ({"--depth": "2", "--max-runs": "3"}, NARROW),
    "evolutionary": ({"--max-runs": "2", "--max-candidates": "8"}, NARROW),
    "random": ({"--max-runs": "2", "--max-candidates": "8"}, NARROW),
    "soft-permutation": ({}, ["--set", "search.steps=2", *NARROW]),
}

_BLOCK = re.compile(r"(?:^`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>[^`\n]*)\n(?P<content>.*?)^```", re.S | re.M)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    for module in ("genorder.fixed_order", "genorder.search.any_order"):  # estimates need not be good here
        monkeypatch.setattr(f"{module}.marginal_seconds", lambda seconds, budget: marginal_seconds(seconds, 0.05))
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # a page's own tasks are not for other tests
    yield
    torch.set_num_threads(threads)


def lines_of(console: str) -> list[str]:
    """The commands of a block, without prompt and comment, those of OTHERS left out."""
    lines = [line.removeprefix("$ ").split("#")[0].strip() for line in console.splitlines()]
    return [line for line in lines if line and line.split()[0] not in OTHERS]


def run_line(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    said, _, command = line.rpartition(" | ")
    if said:
        program, *words = shlex.split(said)
        assert program in ("echo", "cat")
        given = Path(words[0]).read_bytes() if program == "cat" else (" ".join(words) + "\n").encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    words = shlex.split(command)
    assert words[0] == "genorder", f"{line}: how is this run?"
    return run(words[1:] + small_for(words[1:]))


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


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_every_block_says_what_it_is(page: str) -> None:
    text = README if page == "README.md" else PAGES[page]
    fences = re.findall(r"^[ ]*```", text, re.M)
    assert len(fences) == 2 * len(list(_BLOCK.finditer(text)))
    assert {block["language"] for block in _BLOCK.finditer(text) if not block["file"]} <= {"console", "python", "text"}


def run_page(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Run all blocks of a page; what its Python code has defined."""
    names: dict[str, Any] = {}
    ran = 0
    for number, block in enumerate(_BLOCK.finditer(text)):
        if block["file"]:
            Path(block["file"]).write_text(block["content"], encoding="utf-8")
        elif block["language"] == "console":
            for line in lines_of(block["content"]):
                assert run_line(line, monkeypatch) == 0, f"{name}: {line}: {capsys.readouterr().err}"
                ran += 1
        elif block["language"] == "python":
            exec(compile(block["content"], f"{name}, block {number}", "exec"), names)
            ran += 1
        else:
            assert block["language"] == "text", f"{name}: a block of {block['language']} is not run"
    assert ran
    return names


def test_readme(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sample = re.search(r"`(\{\"input\".*?\})`", README)
    assert sample
    rows = [re.sub(r"\d+", str(number), sample[1], count=1) for number in range(50)]
    Path("mydata.jsonl").write_text("\n".join(rows) + "\n")
    consoles = [block["content"] for block in _BLOCK.finditer(README) if block["language"] == "console"]
    listed = [line for console in consoles for line in lines_of(console)]
    assert len(listed) >= 3
    run_page("README.md", README, monkeypatch, capsys)


def test_verbs_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = re.findall(r"^\| `(genorder [^`]*)`", README, re.M)
    for line in verbs:
        assert run([line.split()[1], "--help"]) == 0
        if "RUN_DIR" not in line and len(line.split()) > 2 and "bench" not in line:
            assert run_line(line, monkeypatch) == 0


def test_a_task_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.S)
    command = re.search(r"then `(genorder train [^`]*)`", README)
    assert code
    assert command
    assert len([line for line in code[1].splitlines() if line.strip()]) <= 5
    Path("my_tasks.py").write_text(code[1])
    assert run_line(command[1], monkeypatch) == 0


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_page(page, PAGES[page], monkeypatch, capsys)
    if page == "export.md":
        for path in ("four-model", "four.jsonl", "train_raw.txt", "four.test"):
            assert Path(path).exists()
    if page == "python_api.md":
        assert names["trained"].order == names["genorder"].Order.reverse(5)
        assert Path("sums-model/model.safetensors").exists()


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_links(page: str) -> None:
    text, folder = (README, ROOT) if page == "README.md" else (PAGES[page], DOCS)
    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (folder / link).exists(), link


def test_readme_lists_every_page() -> None:
    for page in PAGES:
        assert re.search(rf"^- \[[^]]+\]\(docs/{re.escape(page)}\): \S", README, re.M), page


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_what_is_named_in_passing_exists(page: str) -> None:
    """Verbs and options in running text, and the settings of --set, wherever they stand."""
    text = README if page == "README.md" else PAGES[page]
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for words in (span.split() for span in re.findall(r"`(genorder [^`\n]*)`", text)):
        if words[1].startswith("-") or words[1].isupper():
            continue
        assert words[1] in verbs, words
        known = {option for parameter in verbs[words[1]].params for option in parameter.opts + parameter.secondary_opts}
        for word in words[2:]:
            assert not word.startswith("--") or word.split("=")[0] in {*known, "--help"}, words
    everywhere = {option for verb in verbs.values() for p in verb.params for option in p.opts + p.secondary_opts}
    for option in re.findall(r"`(--[a-z][a-z-]*)[ `=]", text):
        assert option in {*everywhere, "--help"}, option
    for setting in re.findall(r"--set ([a-z_.0-9]+)=", text):
        assert setting in _settings(), setting


def _settings() -> set[str]:
    known = {f"search.{field.name}" for kind in STRATEGIES.values() for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for resolved in (resolve, resolve_exploration, resolve_discovery):
        known |= dict(flat_settings(resolved("cpu").model_dump())).keys()
    return known
