"""What is said of a finding, beside the order."""

import pytest

from genorder.cli.discovery_screen import _show_findings


def said_of(capsys: pytest.CaptureFixture[str], **more: object) -> str:
    details = {"verdict": "order found", "advice": "Good.", "variables": [[0, 2], [1, 3]]}
    result = {"order": [3, 2, 1, 0], "proposed": {"details": details, "proposals": [{"order": [0, 1, 2, 3]}]}, **more}
    _show_findings(result)
    return " ".join(capsys.readouterr().err.split())


def test_variables_over_time_whatever_order_won(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the targets are 2 variables over 2 times: y0 y2; y1 y3" in said_of(capsys)


def test_they_have_the_users_names(capsys: pytest.CaptureFixture[str]) -> None:
    said = said_of(capsys, target_names=["speed 1", "mass 1", "speed 2", "mass 2"])
    assert "2 variables over 2 times: speed 1, speed 2; mass 1, mass 2" in said


def test_of_a_task_they_are_true_indices(capsys: pytest.CaptureFixture[str]) -> None:
    assert "over 2 times: y3 y1; y2 y0" in said_of(capsys, order_in_true_indices=[0, 1, 2, 3])
