"""A small server for one page: the report of a run, on this machine's own address only.

It serves two paths and no files, so that there is nothing to climb out of. A page of another site that tricks a
browser into asking (by a name that it points at 127.0.0.1) is refused by the Host header.
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
from genorder.reports.wording import told
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
    """Bound, and not serving yet. Raises InputError if `run_dir` is no run, or the port is taken."""
    read_status(run_dir)

    class Handler(_ReportHandler):
        run = run_dir

    try:
        return ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; choose another, or 0 for a free one") from error


def run_state(run_dir: Path) -> dict[str, str]:
    """What a page that is open asks for: a text that changes when it should load again, and how far the run is."""
    return {"version": run_version(run_dir), "told": told(read_progress(run_dir) or {})}


class _ReportHandler(BaseHTTPRequestHandler):
    run: Path
    server_version, sys_version = "genorder", ""

    def handle(self) -> None:
        with suppress(ConnectionError):  # a browser may go away at any moment; the user need not hear of it
            super().handle()

    def do_GET(self) -> None:
        if not self._own_host():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "asked under a foreign name")
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
        usual = names if port == HTTP_PORT else ()  # which browsers leave out
        return self.headers.get("Host") in (*(f"{name}:{port}" for name in names), *usual)

    def _send_page(self) -> None:
        try:
            version = run_version(self.run)  # first, so that what changes from here on is seen as a change
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
        """Nothing: the screen is for the user, who asked for a page and sees it."""
