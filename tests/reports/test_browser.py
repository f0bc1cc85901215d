"""The page in a real browser: it draws, it stays by itself, it can be used, and hostile tokens are text."""

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import AXE, CHROMIUM, chromium, opened
from reports_helpers import EXPLORING, HOSTILE, HOSTILE_NAME, genorder, known_run, result_of

from genorder.reports.page import comparison_page, run_page
from genorder.reports.run import read_run
from genorder.reports.server import report_server
from genorder.store import RunDirectory

pytest.importorskip("playwright", reason="playwright is not installed: pip install 'genorder[dev]'")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium (make setup does)")

MARKS = ".point, .hm image, .heatmaplayer image, .bars path, .js-line, .errorbar"
KINDS = ("discovery", "exploration", "ranking", "raced_ranking", "training", "attention", "interrupted")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    runs = {kind: read_run(request.getfixturevalue(kind)) for kind in KINDS}
    texts = {kind: run_page(run) for kind, run in runs.items()}
    texts["known"] = run_page(known_run())
    texts["comparison"] = comparison_page([runs["discovery"], runs["exploration"], runs["training"]])
    for kind, text in texts.items():
        found[kind] = folder / f"{kind}.html"
        found[kind].write_text(text, encoding="utf-8")
    return found


def looks(kinds: Sequence[str], usual: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Every kind of page in all looks; of other pages than a discovery's, the last ones are for the slow tests."""
    return [
        pytest.param(kind, *look, marks=[pytest.mark.slow] if look in others and kind != "discovery" else [])
        for kind in kinds
        for look in (*usual, *others)
    ]


@pytest.mark.parametrize(
    ("kind", "width", "scheme"),
    looks((*KINDS, "known", "comparison"), [(1200, "light"), (390, "dark")], [(1200, "dark"), (390, "light")]),
)
def test_it_draws_and_fits(browser: Any, pages: dict[str, Path], kind: str, width: int, scheme: str) -> None:
    size = {"width": width, "height": 800}
    with opened(browser, pages[kind].as_uri(), viewport=size, color_scheme=scheme) as watched:
        plots = watched.page.query_selector_all(".plot")
        empty = [plot.get_attribute("id") for plot in plots if not plot.query_selector(MARKS)]
        assert plots
        assert empty == []
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
        back = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(255, 255, 255)") is (scheme == "light")
        assert watched.errors == []
        assert [url for url in watched.requests if url != pages[kind].as_uri() and not url.startswith("data:")] == []


def test_hostile_tokens_are_text(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["discovery"].as_uri()) as watched:
        page = watched.page
        samples = page.inner_text("#samples")
        for token in (
            "<script>alert(1)</script>",
            "</script>",
            "\\u001b[31mred",
            "\\u202eright to left",
            "{{ 7 * 7 }}",
        ):
            assert token in samples
        assert HOSTILE_NAME in page.inner_text("h1")
        assert page.query_selector("#samples script, #samples b, h1 img") is None
        assert HOSTILE_NAME in page.text_content("#configuration")
        assert watched.dialogs == []
        assert watched.errors == []


def test_hostile_names_of_columns_are_text_in_figures(browser: Any, tmp_path: Path) -> None:
    run = known_run()
    labels = {"target_names": ['<a href="javascript:alert(1)">go</a>', "<b>bold</b>", HOSTILE[0]]}
    file = tmp_path / "named.html"
    file.write_text(run_page(dataclasses.replace(run, config={**run.config, "labels": labels})), encoding="utf-8")
    with opened(browser, file.as_uri()) as watched:
        ticks = watched.page.evaluate(
            "[...document.querySelectorAll('#plot-order .xtick text')].map(t => t.textContent)"
        )
        assert ticks == labels["target_names"]
        assert watched.page.query_selector(".plot a, .plot tspan[style*=bold]") is None
        assert watched.dialogs == []
        assert watched.errors == []


def test_the_policy_stops_what_is_not_the_page_s_own(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["training"].as_uri()) as watched:
        watched.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,x\" onerror=\"window.ran = 1\">')"
            " || document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
            " || document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x'}))"
        )
        watched.page.wait_for_timeout(300)
        assert watched.page.evaluate("window.ran") is None
        assert any("Content Security Policy" in error for error in watched.errors)


def test_the_toggle_turns_colours_and_is_kept(browser: Any, pages: dict[str, Path]) -> None:
    grid = "getComputedStyle(document.querySelector('#plot-losses .gridlayer path')).stroke"
    with opened(browser, pages["training"].as_uri(), color_scheme="light") as watched:
        page = watched.page
        button = page.get_by_role("button", name="Use dark colours")
        light = page.evaluate(grid)
        button.focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Use light colours").wait_for()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        assert page.evaluate(grid) != light
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.get_by_role("button", name="Use light colours").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_tables_open_by_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["discovery"].as_uri()) as watched:
        page = watched.page
        assert not page.is_visible("#order table")
        page.focus("#order summary")
        page.keyboard.press("Enter")
        assert page.is_visible("#order table")
        assert page.inner_text("#order tbody tr:first-child").split()[0] == "0"


def test_printing_is_light(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    with opened(browser, pages["training"].as_uri(), color_scheme="dark") as watched:
        watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert watched.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        watched.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert watched.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        watched.page.pdf(path=tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").stat().st_size > 20_000


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core in .venv/axe: make setup installs it where npm is")
@pytest.mark.parametrize(
    ("kind", "scheme"),
    looks(("discovery", "known", "ranking", "attention", "interrupted", "comparison"), [("light",)], [("dark",)]),
)
def test_it_is_accessible(browser: Any, pages: dict[str, Path], kind: str, scheme: str) -> None:
    with opened(browser, pages[kind].as_uri(), bypass_csp=True, color_scheme=scheme) as watched:
        watched.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        watched.page.add_script_tag(path=AXE)
        found = watched.page.evaluate("axe.run()")
        bad = {
            violation["id"]: [node["html"][:120] for node in violation["nodes"][:3]]
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
        }
        assert bad == {}
        assert len(found["passes"]) > 10


def test_ten_thousand_candidates_open_quickly(browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "many"
    few = (*EXPLORING, "samples.validation=2", "profiler.curve_points=1", "profiler.training.steps=2")
    arguments = ("--task", "square", "--length", 8, "--threads", 1, "--candidates", "random:10080", "--out", out)
    genorder("rank", *arguments, settings=few)
    report = out / "report.html"
    assert report.stat().st_size < 6_000_000
    with opened(browser, report.as_uri()) as watched:
        # Processor time, which is what it takes on a machine that has nothing else to do.
        assert 0.1 < watched.processor_seconds() < 3.0
        assert "Of 10,080 orders" in watched.page.inner_text("#answer")
        assert watched.errors == []
        assert len(watched.page.query_selector_all("tbody tr")) < 1000


def test_a_watched_page_follows_its_run(browser: Any, tmp_path: Path) -> None:
    config = {"verb": "train", "data": {"task": "relu", "length": "3"}, "order": [0, 1, 2], "config": {}}
    with (
        RunDirectory.open(tmp_path / "run", config, command=["genorder", "train"], environment={}) as directory,
        report_server(tmp_path / "run") as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with opened(browser, f"http://127.0.0.1:{server.server_port}/") as watched:
            page = watched.page
            assert "at work" in page.inner_text("#answer")
            directory.write_progress({"stage": "train", "step": 5, "steps": 9, "loss": 0.5, "seconds": 1.0})
            page.get_by_text("train: step 5 of 9").wait_for(timeout=9000)
            directory.journal.record("0" * 64, "train model", {}, 3.0)
            page.wait_for_selector("#time", timeout=9000)
            assert "train model" in page.text_content("#time")
            directory.write_result({**result_of(known_run()), "order": [0, 1, 2], "seconds": 3.0})
            page.get_by_text("finished", exact=True).wait_for(timeout=9000)
            assert "Trained in the order y0 y1 y2" in page.inner_text("#answer")
            assert page.inner_text("#progress") == ""
            own = f"http://127.0.0.1:{server.server_port}/"
            assert {url for url in watched.requests if not url.startswith("data:")} == {own, f"{own}state"}
            assert watched.errors == []
        server.shutdown()
