"""What is seen in a terminal while a run goes on: the stage, the loss, the time left, the best order so far."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest
from cli_helpers import ENVIRONMENT, TINY, Genorder
from test_discover import EXPLORING, FINAL, SQUARE_4, changes

LONGER = {
    **EXPLORING,
    **FINAL,
    "samples.train": 100,  # too few to count what determines the targets: a model trains
    "any_order.training.steps": 60,
    "final.training.steps": 60,
    "race.first_rung": 20,
}
LEFT = r"[\d.]+ (s|min \d+ s)"


def in_terminal(*arguments: object, width: int = 100) -> tuple[int, list[str]]:
    """The exit code, and each line as it was once seen, without colours."""
    child, screen = pty.fork()
    if child == 0:
        command = [sys.executable, "-m", "genorder", *map(str, arguments)]
        os.execve(sys.executable, command, {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": str(width)})
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    seen = b""
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(screen)
    _, status = os.waitpid(child, 0)
    lines = re.split(r"\x1b\[\d*A|\r\n|\r|\n", seen.decode())
    return os.waitstatus_to_exitcode(status), [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in lines]


def matching(pattern: str, lines: list[str]) -> list[str]:
    return [line for line in lines if re.search(pattern, line)]


def test_discover(tmp_path: Path) -> None:
    command = ("discover", *SQUARE_4, "--threads", 1, *changes(LONGER), "--target-names", "a,b,c,<d>")
    code, lines = in_terminal(*command, "--out", tmp_path / "r", width=80)
    assert code == 0, "\n".join(lines)
    for stage, detail in (
        ("any-order 1, round 1", r"step \d+/60, loss \d\.\d{4}"),
        ("race, rung 1", r"\d of \d done, step 20, loss \d\.\d{4}"),
        ("final training", r"1 of 2 done, step \d+, loss \d\.\d{4}"),
    ):
        assert matching(rf"^{stage} ━.*━ {detail} \d:\d\d:\d\d {LEFT} left$", lines), stage
    assert matching(rf"^about {LEFT} left in all$", lines)  # nothing is constructed yet
    best = matching(
        rf"^about {LEFT} left in all; best so far \(loss \d+\.\d{{4}}\): [\d -]+ \(true indices, cost", lines
    )
    assert best
    assert all(len(line) <= 80 for line in best)
    assert "\n".join(lines).count("Traceback") == 0


def test_rank_by_race(tmp_path: Path) -> None:
    judged = ("--judge", "race", "--candidates", "forward,reverse,random:2")
    longer = changes({**EXPLORING, "race.first_rung": 30, "final.training.steps": 60})
    code, lines = in_terminal("rank", *SQUARE_4, "--threads", 1, *longer, *judged, "--out", tmp_path / "r", width=120)
    assert code == 0, "\n".join(lines)
    assert matching(rf"^race, rung 1 ━.* 1 of 4 done, step 30, loss \d\.\d{{4}} .* {LEFT} left$", lines)
    assert matching(r"^best so far \(loss \d\.\d{4}\): [\d -]+ \(true indices\)$", lines)


def test_train(tmp_path: Path) -> None:
    code, lines = in_terminal("train", *SQUARE_4, *TINY, "--steps", 60, "--out", tmp_path / "r", width=120)
    assert code == 0, "\n".join(lines)
    assert matching(rf"^training ━.* \d+/60 steps loss \d\.\d{{4}} \d:\d\d:\d\d {LEFT} left$", lines)


def test_elsewhere_the_same_in_lines(genorder: Genorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genorder.cli.console._PLAIN_LINE_SECONDS", 0.0)
    monkeypatch.setattr("genorder.training.progress._REPORT_SECONDS", 0.0)
    settings = {**LONGER, "search.rounds": 1}
    shown = genorder("discover", *SQUARE_4, "--threads", 1, *changes(settings), "--out", "r")
    assert shown.code == 0
    lines = shown.err.splitlines()
    for part in ("screening targets", "constructing greedily", "permuting positions"):
        assert matching(rf"^{part}: \d+ of \d+ done, {LEFT} left, about {LEFT} left in all$", lines), part
    assert matching(rf"^any-order 1, round 1: step 20/60, loss \S+, {LEFT} left, about {LEFT} left in all$", lines)
    assert matching(rf"^race, rung 1: 1 of \d done, step 20, loss \S+, best [\d -]+ \(.*\), {LEFT} left, about", lines)
