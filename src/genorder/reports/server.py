"""A server for one page, the report of a run, on the loopback address only.

It serves two paths and no files, so there are no paths to escape from. The Host header is checked: this refuses pages
of other sites that point a name of their own at 127.0.0.1 (DNS rebinding).
"""

import json
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from genorder.errors import InputError
from genorder.reports.page import run_page
from genorder.reports.run import read_run
from genorder.reports.wording import progress_text
from genorder.store import read_progress, read_status, run_version

LOOPBACK = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def report_server(run_dir: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server that is bound, and not serving yet. Raises InputError if `run_dir` is no run, or the port is taken."""
    read_status(run_dir)

    class Handler(_ReportHandler):
        run = run_dir

    try:
        return ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; choose another, or 0 for a free one") from error


def run_state(run_dir: Path) -> dict[str, str]:
    """What an open page asks for: a version that changes when it should reload, and the progress of the run."""
    return {"version": run_version(run_dir), "progress": progress_text(read_progress(run_dir) or {})}


class _ReportHandler(BaseHTTPRequestHandler):
    run: Path
    server_version, sys_version = "genorder", ""

    def handle(self) -> None:
        with suppress(ConnectionError):  # a browser may close the connection at any moment
            super().handle()

    def do_GET(self) -> None:
        if not self._own_host():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "the Host header names another host")
        elif self.path == "/":
            self._send_page()
        elif self.path == "/state":
            self._send(HTTPStatus.OK, "application/json", json.dumps(run_state(self.run)))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is only the report, at /")

    def _own_host(self) -> bool:
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        names = (LOOPBACK, "localhost")
        without_port = names if port == HTTP_PORT else ()  # browsers omit the default port
        return self.headers.get("Host") in (*(f"{name}:{port}" for name in names), *without_port)

    def _send_page(self) -> None:
        try:
            version = run_version(self.run)  # read first: later changes then give a new version
            page = run_page(read_run(self.run), version=version)
        except InputError as error:  # the run was removed, or a file of it is being replaced
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", str(error))
            return
        self._send(HTTPStatus.OK, "text/html", page)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the screen is for the user."""
