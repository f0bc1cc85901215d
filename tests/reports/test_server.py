"""The server of a watched run: its two paths, and all that it refuses."""

import html
import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from genorder.errors import InputError
from genorder.reports.server import report_server, run_state


@pytest.fixture
def port(training: Path) -> Iterator[int]:
    with report_server(training) as server:
        assert server.server_address[0] == "127.0.0.1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


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
    assert b"foreign" in answer.read()


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


def test_the_state_changes_with_the_run(tmp_path: Path) -> None:
    before = run_state(tmp_path)
    (tmp_path / "progress.json").write_text('{"stage": "race", "round": 1, "jobs": 2, "of": 3}')
    told = run_state(tmp_path)
    assert told["version"] == before["version"]
    assert told["told"] == "race, round 1: 2 of 3 done"
    (tmp_path / "result.json").write_text("{}")
    assert run_state(tmp_path)["version"] != before["version"]
