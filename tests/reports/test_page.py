"""The page as a file: what it holds for each kind of run, and that nothing of a user's can break out of it."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import plotly.offline
import pytest
from reports_helpers import dependency, judged, known_run, of_an_earlier_version, of_many_targets, of_result, result_of

from genorder.reports import page
from genorder.reports.comparison import comparison_table, order_agreement, run_labels
from genorder.reports.figures import rates_figure
from genorder.reports.page import comparison_page, run_page, write_report
from genorder.reports.plotly_figures import plotly_figure, safe
from genorder.reports.run import read_run
from genorder.reports.sections import sections_of


class Elements(HTMLParser):
    """Counts tags, and gathers the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        self.text += "" if self._inside else data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


SECTIONS = {
    "discovery": [
        "order",
        "dependencies",
        "ranking",
        "curves",
        "positions",
        "samples",
        "path",
        "time",
        "configuration",
    ],
    "exploration": ["order", "ranking", "curves", "path", "time", "configuration"],
    "ranking": ["order", "ranking", "curves", "time", "configuration"],
    "raced_ranking": ["order", "ranking", "curves", "time", "configuration"],
    "training": ["order", "curves", "positions", "samples", "time", "configuration"],
    "attention": ["attention", "curves", "time", "configuration"],
    "interrupted": ["curves", "time", "configuration"],
}


@pytest.mark.parametrize("kind", SECTIONS)
def test_sections_of_each_kind_of_run(kind: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(kind)
    sections = sections_of(read_run(path))
    assert [section.name for section in sections] == SECTIONS[kind]
    text = run_page(read_run(path))
    elements = Elements(text)
    figures = [part.figure for section in sections for part in section.parts if part.figure]
    assert len({figure.name for figure in figures}) == len(figures)
    assert elements.count("figure") == len(figures)
    assert elements.count("script") == len(figures) + 2  # their data, one copy of plotly, the page's own
    assert len(text.encode()) < 3_000_000
    assert not re.search(r'(?:src|href)="(?!#|data:)', text.replace(page._asset("plotly-cartesian.min.js"), ""))


@pytest.mark.parametrize("kind", ["discovery", "exploration", "ranking", "raced_ranking", "training", "attention"])
def test_every_verb_leaves_a_report(kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    written = (path / "report.html").read_text(encoding="utf-8")
    assert written == run_page(read_run(path))
    assert "finished" in Elements(written).text


def test_an_unfinished_run_says_how_far_it_is(interrupted: Path) -> None:
    text = Elements(run_page(read_run(interrupted))).text
    assert "This run was interrupted before its end" in text
    assert "race, rung 2, step 9: 1 of 3 done" in text
    written = write_report(interrupted)
    assert written == interrupted / "report.html"
    written.unlink()


@pytest.mark.parametrize(
    ("verdict", "heading"),
    [
        ("order found", "The order found"),
        ("not settled", "The best order so far"),
        ("no order preferred", "The given order, which is kept"),
        ("nothing learnt", "The given order, which is kept"),
        (None, "The order found"),
    ],
)
def test_the_page_of_each_verdict(verdict: str | None, heading: str) -> None:
    run = judged(verdict)
    order, *others = sections_of(run)
    assert order.heading == heading
    recipes = [section for section in others if section.name == "dependencies"]
    assert bool(recipes) is (verdict != "nothing learnt")
    text = Elements(run_page(run)).text
    kept = verdict in ("no order preferred", "nothing learnt")
    assert ("race did not decide" in text) is kept
    assert ("found order" in text) is not kept
    assert ("Emit the targets" in text or "emit the targets" in text) is (verdict in ("order found", None))


def test_the_recipe_is_not_folded_away() -> None:
    text = run_page(judged("order found"))
    recipe = text.index("y0 &lt;- x1, y2")
    assert text.rfind("<details>", 0, recipe) <= text.rfind("</details>", 0, recipe)
    assert text.rfind("<table>", 0, recipe) > text.rfind("</table>", 0, recipe)


def test_a_run_of_an_earlier_version(tmp_path: Path) -> None:
    """From its directory, as `genorder report` reads it."""
    run = of_an_earlier_version(known_run())
    files = {"config.json": run.config, "result.json": result_of(run), "environment.json": run.starts}
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    written = write_report(tmp_path).read_text(encoding="utf-8")
    text = Elements(written).text
    assert "Order found: emit the targets in the order y1 y2 y0" in text
    assert "y0 <- x1, y2" in text
    assert "a trained model" in text
    assert "Mined" not in text


def test_many_targets_are_drawn_as_a_matrix() -> None:
    rows = [dependency(target, [], [target + 1] if target < 99 else []) for target in range(100)]
    order = list(range(100))[::-1]
    (section,) = [section for section in sections_of(of_many_targets(order, rows)) if section.name == "dependencies"]
    captions = [part.figure.caption for part in section.parts if part.figure]
    assert captions == [
        "In the found order: every dependency points to an earlier target",
        "In the given order: 99 of 99 dependencies point to later targets",
    ]


def test_an_order_without_anything_else() -> None:
    """What a run is before its first job: a configuration."""
    run = known_run(state="running", result={}, jobs=[], training_losses={}, starts=[])
    assert [section.name for section in sections_of(run)] == ["configuration"]
    assert "at work" in Elements(run_page(run)).text


def test_data_of_figures_cannot_end_its_element(discovery: Path) -> None:
    text = run_page(read_run(discovery))
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S):
        assert "<" not in data
        assert {"data", "layout"} <= set(json.loads(data))
    assert safe('<a href="x">&') == '&lt;a href="x"&gt;&amp;'


def test_names_of_attended_orders_are_shown_as_text(attention: Path) -> None:
    """They are what the user typed: a file's name may hold anything."""
    hostile, shown = "\x1b[31m\u202e.json", "\\u001b[31m\\u202e.json"
    run = read_run(attention)
    result = result_of(run)
    rows = [{**row, "name": hostile} for row in result["attention"][:1]]
    config = {**run.config, "orders": {hostile: [0]}}
    changed = {**result, "attention": rows, "seconds": {hostile: 1.0}}
    text = run_page(of_result(dataclasses.replace(run, config=config), changed))
    drawn = [
        json.loads(data) for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    ]
    readable = Elements(text).text + json.dumps(drawn, ensure_ascii=False)
    assert shown in readable
    assert "\x1b" not in readable
    assert "\u202e" not in readable


def test_the_policy_allows_nothing_to_be_sent(training: Path) -> None:
    policy = next(
        attributes["content"] or ""
        for tag, attributes in Elements(run_page(read_run(training))).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert {"form-action 'none'", "base-uri 'none'"} <= set(policy.split("; "))
    assert "connect-src" not in policy


def test_runs_named_like_numbers_are_drawn_by_name() -> None:
    figure = rates_figure(["7", "2024-01-01"], {"this order": [(0.5, 0.4, 0.6), (0.7, 0.6, 0.8)]})
    drawn = plotly_figure(figure)
    assert list(drawn.layout.yaxis.ticktext) == ["7", "2024-01-01"]
    assert list(drawn.layout.yaxis.tickvals) == list(drawn.data[0].y) == [0, 1]


def test_the_script_is_of_the_version_that_figures_are_made_for() -> None:
    header = page._asset("plotly-cartesian.min.js")[:200]
    found = re.search(r"v(\d+)\.", header)
    assert found
    assert found[1] == plotly.offline.get_plotlyjs_version().split(".")[0]


def test_comparison(discovery: Path, exploration: Path, training: Path, interrupted: Path) -> None:
    runs = [read_run(path) for path in (discovery, exploration, training, interrupted)]
    table = comparison_table(runs)
    assert table.column("run") == ["discovery", "exploration", "training", "interrupted"]
    assert table.column("state") == ["finished", "finished", "finished", "interrupted"]
    assert table.column("success rate")[0] == result_of(runs[0])["success_rate"]
    assert table.column("success rate")[1] is None
    assert table.column("time")[0] == pytest.approx(result_of(runs[0])["seconds"]["total"])
    text = Elements(comparison_page(runs)).text
    assert "3 runs finished, 1 not" in text


def test_agreement_of_orders() -> None:
    def of(order: list[int], fingerprint: str = "f") -> object:
        config = {"verb": "discover", "data": {"fingerprint": fingerprint}}
        run = judged(None, None, [], order=order, order_in_true_indices=order)
        return dataclasses.replace(run, config=config)

    matrix = order_agreement([of([0, 1, 2]), of([2, 1, 0]), of([0, 2, 1]), of([0, 1], "other")])  # type: ignore[list-item]
    assert matrix is not None
    assert matrix.values == [[1, 0, pytest.approx(2 / 3, abs=1e-4)], [0, 1, pytest.approx(1 / 3, abs=1e-4)],
                             [pytest.approx(2 / 3, abs=1e-4), pytest.approx(1 / 3, abs=1e-4), 1]]  # fmt: skip
    assert order_agreement([of([0, 1]), of([0, 1], "other")]) is None  # type: ignore[list-item]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [known_run(path=tmp_path / folder / "same") for folder in ("a", "b")] + [known_run(path=tmp_path / "c")]
    assert run_labels(runs) == ["a/same", "b/same", "c"]
