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
    page.wait_for_function("[...document.querySelectorAll('.plot')].every(plot => plot.querySelector('svg'))")
    yield watched
    holder.close()
