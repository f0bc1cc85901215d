"""The server of a watched run: its two paths, and all that it refuses."""

import html
import http.client
import json
import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from genorder.errors import InputError
from genorder.reports import server
from genorder.reports.run import ReportedRun, read_run
from genorder.reports.server import report_server, run_state


@contextmanager
def served(run: Path, ended: threading.Event | None = None) -> Iterator[int]:
    """The port; `ended` is set when an answer has ended."""
    with report_server(run) as started:
        assert started.server_address[0] == "127.0.0.1"
        if ended is not None:
            shut = started.shutdown_request
            started.shutdown_request = lambda request: (shut(request), ended.set())  # type: ignore[method-assign]
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield started.server_port
        started.shutdown()


@pytest.fixture
def port(training: Path) -> Iterator[int]:
    with served(training) as number:
        yield number


def ask(port: int, path: str, host: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    return connection.getresponse()


def test_the_page(port: int) -> None:
    answer = ask(port, "/")
    text = answer.read().decode()
    assert answer.status == 200
    assert "data-live" in text
    assert "connect-src 'self'" in html.unescape(text)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ask(port, "/", f"localhost:{port}").status == 200
    assert ask(port, "/state").status == 200


@pytest.mark.parametrize(
    "path",
    ["/config.json", "/../config.json", "/%2e%2e/config.json", "/..%2f..%2fetc/passwd", "//etc/passwd", "/state/..",
     "/?x=../config.json", "/report.html", "/model/weights.safetensors", "http://127.0.0.1/etc/passwd"],
)  # fmt: skip
def test_there_are_no_files(port: int, path: str) -> None:
    answer = ask(port, path)
    assert answer.status == 404
    assert b"the report, at /" in answer.read()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""]
)
@pytest.mark.parametrize("path", ["/", "/state"])
def test_foreign_hosts_are_refused(port: int, host: str, path: str) -> None:
    answer = ask(port, path, host.format(port=port))
    assert answer.status == 403
    assert b"another host" in answer.read()


def test_other_methods_are_refused(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/", body=b"x")
    assert connection.getresponse().status == 501


def test_a_taken_port_and_a_missing_run(training: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="choose another"):
            report_server(training, taken.getsockname()[1])
    with pytest.raises(InputError, match="no run directory"):
        report_server(tmp_path / "nothing")


def test_a_page_knows_the_version_that_it_shows(port: int, training: Path) -> None:
    """Also before it has asked for the first time; asking for it, or for the page, is no change."""
    before = run_state(training)["version"]
    for _ in range(2):
        assert f'data-version="{before}"' in ask(port, "/").read().decode()
        assert json.loads(ask(port, "/state").read())["version"] == before


def test_a_change_while_the_page_is_made_is_seen(
    training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(training, tmp_path / "run"))

    def read_and_change(path: Path) -> ReportedRun:
        found = read_run(path)
        (path / "failure.json").write_text('{"reason": "x"}')
        return found

    monkeypatch.setattr(server, "read_run", read_and_change)
    with served(run) as port:
        page = ask(port, "/").read().decode()
        assert f'data-version="{run_state(run)["version"]}"' not in page


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", b"GET /"])
def test_a_browser_that_goes_away_is_no_error(
    training: Path, sent: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, ended = threading.Event(), threading.Event()
    real = server.run_page

    def late(*given: Any, **named: Any) -> str:
        assert gone.wait(20)
        return 10 * real(*given, **named)  # more than the system takes without a reader

    monkeypatch.setattr(server, "run_page", late)
    with served(training, ended) as port:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset, not end
            connection.sendall(sent.replace(b"%d", str(port).encode()))
        gone.set()
        assert ended.wait(20)
        assert ask(port, "/state").status == 200
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("end", ["result.json", "failure.json"])
def test_an_ended_run_is_not_under_way(tmp_path: Path, end: str) -> None:
    (tmp_path / "progress.json").write_text('{"stage": "race", "rung": 1, "step": 9, "jobs": 2, "of": 3}')
    assert run_state(tmp_path)["progress"]
    (tmp_path / end).write_text("{}")
    assert run_state(tmp_path)["progress"] == ""


@pytest.mark.parametrize("content", ["[1]", "7", '"x"', "null", "{", "", '{"stage": "race"}', '{"jobs": 1}'])
def test_progress_that_cannot_be_read_is_left_out(tmp_path: Path, content: str) -> None:
    (tmp_path / "progress.json").write_text(content)
    assert run_state(tmp_path)["progress"] == ""


def test_the_state_changes_with_the_run(tmp_path: Path) -> None:
    before = run_state(tmp_path)
    (tmp_path / "progress.json").write_text('{"stage": "race", "rung": 1, "step": 9, "jobs": 2, "of": 3}')
    state = run_state(tmp_path)
    assert state["version"] == before["version"]
    assert state["progress"] == "race, rung 1, step 9: 2 of 3 done"
    (tmp_path / "result.json").write_text("{}")
    assert run_state(tmp_path)["version"] != before["version"]
