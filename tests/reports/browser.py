"""A real browser for the tests: Debian's chromium, driven by playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
AXE = Path(__file__).parents[2] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


@dataclass
class Watched:
    """A page with all that must not happen on it."""

    page: Any
    errors: list[str] = field(default_factory=list)  # on the console, and uncaught
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def processor_seconds(self) -> float:
        """Of the page's whole process, from its start: reading, scripts, layout, painting."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Performance.enable")
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "ProcessTime"))


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # chromium refuses to sandbox for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*sandbox, "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, address: str, **context: Any) -> Iterator[Watched]:
    holder = browser.new_context(**context)
    watched = Watched(holder.new_page())
    page = watched.page
    page.on("console", lambda said: watched.errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    for plot in page.query_selector_all(".plot"):
        plot.wait_for_selector("svg")
    yield watched
    holder.close()
