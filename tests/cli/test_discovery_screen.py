"""What a finished discovery prints: the verdict first, then what each target is computed from."""

import json
import re
from typing import Any

import pytest
from reports_helpers import (
    BY_MODEL,
    MINED,
    UNDETERMINED,
    dependency,
    explored,
    judged,
    known_run,
    of_an_earlier_version,
    of_many_targets,
    of_result,
    result_of,
    with_result,
)

from genorder.cli.console import emit_json
from genorder.cli.discovery_screen import show_discovery
from genorder.reports.run import ReportedRun

CLAIMS = r"race preferred|wins the race|order found|^found:"  # what must not be said where the given order is kept


def show(run: ReportedRun) -> None:
    assert run.discovery
    show_discovery(run.discovery)


def lines_of(run: ReportedRun, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show(run)
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("verdict", "headline"),
    [
        ("order found", "order found: 0-2 (true indices, cost 1.00)"),
        ("not settled", "not settled: best order so far: 0-2 (true indices, cost 1.00)"),
        ("no order preferred", "no order preferred: keep the given order"),
        ("nothing learnt", "nothing learnt: the given order is kept"),
        (None, "found: 0-2 (true indices, cost 1.00)"),
    ],
)
def test_the_first_line_follows_the_verdict(
    capsys: pytest.CaptureFixture[str], verdict: str | None, headline: str
) -> None:
    first, second, *_ = lines_of(judged(verdict), capsys)
    assert first == headline
    assert second == "Do this."


@pytest.mark.parametrize("verdict", ["no order preferred", "nothing learnt"])
def test_a_race_that_another_order_won_does_not_contradict_the_verdict(
    capsys: pytest.CaptureFixture[str], verdict: str
) -> None:
    run = judged(verdict, tied_orders=[[1, 2, 0]])
    assert run.outcome
    assert run.outcome.ranking[0].order != run.order
    for shown in (run, explored(run), of_an_earlier_version(run), of_an_earlier_version(known_run_judged(verdict))):
        lines = lines_of(shown, capsys)
        assert lines[0].startswith(f"{verdict}: ")
        assert not [line for line in lines if re.search(CLAIMS, line)]
        assert not [line for line in lines if "could not separate" in line]


def known_run_judged(verdict: str) -> ReportedRun:
    """As earlier versions had it: the winner of the race was the order of the result, whatever the verdict."""
    run = known_run()
    proposed = result_of(run)["proposed"]
    return with_result(run, proposed={**proposed, "details": {**proposed["details"], "verdict": verdict}})


def test_an_earlier_result_says_which_order_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(of_an_earlier_version(known_run_judged("no order preferred")), capsys)
    assert "the result holds another order, that of search and race: 0-2 (true indices, cost 1.00)" in lines


def test_the_race_is_named_where_it_decided(capsys: pytest.CaptureFixture[str]) -> None:
    run = judged("order found")
    proposed = result_of(run)["proposed"]
    proposed["proposals"][0] |= {"order": [0, 2, 1], "order_in_true_indices": [2, 1, 0]}
    other = with_result(run, proposed=proposed, tied_orders=[[0, 1, 2]])
    said = lines_of(other, capsys)
    assert "the race preferred it to the first proposal of the search" in said
    assert "the race could not separate it from these: 2 0 1" in said
    searched = with_result(run, race=result_of(run)["race"][::-1], proposed=proposed)
    assert "race" not in " ".join(lines_of(searched, capsys)).replace("time: propose 4.0 s, race 5.0 s", "")


def test_the_given_order_repaired(capsys: pytest.CaptureFixture[str]) -> None:
    run = judged("no order preferred", constraints={"before": [[1, 0]]})
    repaired = with_result(run, order=[1, 0, 2], order_in_true_indices=[0, 2, 1])
    first, *others = lines_of(repaired, capsys)
    assert first == (
        "no order preferred: the given order is kept, changed where the constraints require it: "
        "0 2 1 (true indices, cost 1.50)"
    )
    assert [line for line in others if line.startswith("among the orders that were allowed: ")]


def test_the_order_by_the_users_names(capsys: pytest.CaptureFixture[str]) -> None:
    run = judged("order found", target_names=["speed", "mass", "force"], input_names=["m/s", "kg"])
    result = {name: value for name, value in result_of(run).items() if name != "order_in_true_indices"}
    show(of_result(run, result))
    said = capsys.readouterr().err
    assert said.startswith("order found: 1 2 0, by name: mass force speed\n")
    assert "  mass <- m/s\n  force <- mass\n  speed <- kg, force\n" in said


@pytest.mark.parametrize(
    ("dependencies", "recipe", "evidence"),
    [
        (MINED, "y2 <- x1, y1", "mined: 3 of 3 targets determined, 99,639 or more pairs of samples each, "
         "no counterexample"),
        ([BY_MODEL, *MINED[1:]], "y2 <- x1, y1", "mined: 2 of 3 targets determined, 99,639 or more pairs of "
         "samples each, no counterexample; 1 target by a trained model"),
        ([UNDETERMINED, *MINED[1:]], "y2 <- not determined by other tokens", "mined: 2 of 3 targets determined, "
         "99,639 or more pairs of samples each, no counterexample; 1 target not determined"),
        ([{**row, "pairs": 1000, "violations": 98} for row in MINED], "y2 <- x1, y1", "mined: 3 of 3 targets "
         "determined, 1,000 or more pairs of samples each, 9.8 % of the pairs differ (noise)"),
        ([{**MINED[0], "violations": 2}, *MINED[1:]], "y2 <- x1, y1", "mined: 3 of 3 targets determined, "
         "99,639 or more pairs of samples each, 2 of 319,278 pairs differ (noise)"),
        ([dependency(0, [], []), *MINED[1:]], "y2 <- nothing: constant", "mined: 3 of 3 targets determined, "
         "99,639 or more pairs of samples each, no counterexample"),
        ([dependency(0, [0, 1, 2, 3], [2, 1], pointer=True), *MINED[1:]], "y2 <- one of x0-x3, chosen by y1, y0",
         "mined: 3 of 3 targets determined, 99,639 or more pairs of samples each, no counterexample"),
        ([{**BY_MODEL, "target": target} for target in range(3)], "y2 <- x1, y1", "3 targets by a trained model"),
    ],
    ids=["mined", "in part by a model", "in part", "noise", "little noise", "constant", "pointer", "model"],
)  # fmt: skip
@pytest.mark.parametrize("verdict", ["order found", "no order preferred", "not settled"])
def test_the_recipe_and_its_evidence(
    capsys: pytest.CaptureFixture[str], dependencies: list[dict[str, Any]], recipe: str, evidence: str, verdict: str
) -> None:
    """Targets of a built-in task go by their true indices: column 0 is y2."""
    run = judged(verdict, dependencies=dependencies)
    lines = lines_of(run, capsys)
    start = lines.index("computed from, in the order of emission:")
    assert run.order
    step = run.order.inverse()[0]
    assert lines[start + 1 + step] == f"  {recipe}"
    assert lines[start + 4] == evidence


def test_without_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    for run in (judged("nothing learnt"), judged("order found", dependencies=[]), judged(None, None, [])):
        assert not [line for line in lines_of(run, capsys) if "computed from" in line or "<-" in line]


def test_a_long_recipe_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    targets = list(range(43))
    rows = [dependency(target, [target], [target - 1] if target else []) for target in targets]
    lines = lines_of(of_many_targets(targets, rows), capsys)
    assert "  y39 <- x39, y38" in lines
    assert "  y40 <- x40, y39" not in lines
    assert "  ... 3 more in the report" in lines


def test_a_result_of_an_earlier_version(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(of_an_earlier_version(known_run()), capsys)
    assert lines[:2] == ["order found: 0-2 (true indices, cost 1.00)", "Good."]
    assert "  y1 <- y0" in lines
    assert "3 targets by a trained model" in lines


def test_success_of_the_given_order_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(judged("no order preferred"), capsys)
    assert sum("99.8 %" in line for line in lines) == 1
    assert "in the given order: 5.6 %" in lines_of(judged("order found"), capsys)


def test_the_json_holds_the_findings_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of(judged("no order preferred"))
    emit_json(result)
    told = json.loads(capsys.readouterr().out)
    for name in ("verdict", "advice", "order", "order_in_names", "dependencies"):
        assert told[name] == result[name]
