"""Figures for a paper, as files."""

from pathlib import Path

import pytest
from reports_helpers import known_run

from genorder.errors import InputError
from genorder.reports.run import read_run
from genorder.reports.static_figures import write_figures

STARTS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def test_files(discovery: Path, tmp_path: Path) -> None:
    written = write_figures(read_run(discovery), tmp_path / "figures")
    names = [
        "order",
        "dependencies_found",
        "dependencies_given",
        "dependency_graph",
        "ranking",
        "race_curves",
        "training_curves",
        "error_rates",
    ]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in STARTS]
    for path in written:
        assert path.read_bytes().startswith(STARTS[path.suffix[1:]])
        assert path.stat().st_size > 3000


def test_the_same_run_gives_the_same_bytes(attention: Path, tmp_path: Path) -> None:
    first, second = (write_figures(read_run(attention), tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in first[::3]] == [
        "attention_0.svg", "attention_1.svg", "attention_2.svg", "training_curves.svg",
    ]  # fmt: skip
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_names_are_not_read_as_formulas(tmp_path: Path) -> None:
    run = known_run()
    run.config["labels"] = {"target_names": ["$\\frac{1}$", "$x$", "<b>"]}
    assert write_figures(run, tmp_path)


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw yet: it is running"):
        write_figures(known_run(state="running", result={}, training_losses={}), tmp_path)
