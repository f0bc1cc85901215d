"""The sentence at the top of a report, and its caveats."""

import dataclasses
from typing import Any

import pytest
from reports_helpers import finished_job, known_run, with_result

from genorder.orders import Order
from genorder.reports.answer import answer, caveats
from genorder.reports.wording import abbreviated, count_of, duration, number, percent_range, told, visible


def test_a_discovery_gives_its_rates() -> None:
    found = answer(known_run())
    assert found.sentence == "Emit the targets in this order: y1 y2 y0 (true indices 0-2)."
    assert found.evidence == [
        "this order: 99.8 % of 1,000 test samples wholly right (99.3 to 99.9 %)",
        "given order: 5.6 % of 1,000 test samples wholly right (4.3 to 7.2 %)",
        "it costs 1.00 times the operations of the best order",
    ]


def test_an_exploration_gives_the_race() -> None:
    run = known_run()
    explored = {name: value for name, value in run.result.items() if not name.startswith("success")}
    found = answer(dataclasses.replace(run, result=explored))
    assert "no model was trained to the end" in found.sentence
    assert found.evidence == [
        "this order: validation loss 0.1 ± 0.01 after 4 steps",
        "given order: validation loss 2 ± 0.1 after 2 steps",
        "its reverse: diverged after 2 steps",
    ]


def test_a_ranking_counts_its_ties() -> None:
    row = {"order": [0, 1], "loss": 1.0, "standard_error": 0.1, "samples": 9, "curve": []}
    ranking = [{**row, "rank": rank, "tied_with_best": rank <= 3} for rank in range(1, 6)]
    run = known_run(config={"verb": "rank"}, result={"ranking": ranking})
    assert answer(run).sentence == "Of 5 orders, the first is y0 y1."
    assert answer(run).evidence == ["validation loss 1 ± 0.1", "2 other orders tied with it"]
    assert caveats(run) == ["3 orders lie within the noise of the best: their sequence means nothing."]


@pytest.mark.parametrize(
    ("state", "said"), [("running", "at work"), ("interrupted", "continues it"), ("failed", "failed: the disk is full")]
)
def test_an_unfinished_run_says_so(state: str, said: str) -> None:
    run = known_run(state=state, result={}, failure="the disk is full", jobs=[finished_job("train", {})],
                    progress={"stage": "train", "step": 3, "steps": 10, "loss": 1.5, "seconds": 61.0})  # fmt: skip
    found = answer(run)
    assert said in found.sentence
    assert found.evidence[0] == "1 job finished"
    if state != "failed":
        assert found.evidence[1] == "train: step 3 of 10, loss 1.5000, 1 min 1 s"


def test_a_failure_is_shown_as_text() -> None:
    failed = known_run(state="failed", result={}, failure="bad \x1b[31m \u202e " + 600 * "x")
    assert answer(failed).sentence.startswith("This run failed: bad \\u001b[31m \\u202e xxx")
    assert len(answer(failed).sentence) < 550


def test_a_ranking_without_a_finite_loss() -> None:
    row = {"order": [0, 1], "rank": 1, "loss": None, "standard_error": None, "tied_with_best": True}
    run = known_run(config={"verb": "rank"}, result={"ranking": [row]})
    assert answer(run).evidence == ["diverged", "0 other orders tied with it"]


def test_caveats_of_a_good_run_are_few() -> None:
    assert [caveat.split(":")[0] for caveat in caveats(known_run())] == [
        "1 order diverged in training",
        "Each order was trained once, from one seed",
        "The task's target columns are stored shuffled, in secret",
    ]


def test_caveats() -> None:
    run = known_run()
    details = {"verdict": "not settled", "advice": "More.", "agreement": 0.6}
    proposed = {**run.result["proposed"], "proposals": [{"order": [2, 0, 1]}], "details": details}
    weak = with_result(run, samples=50, success_rate=0.4, success_rate_interval=[0.05, 0.8], tied_orders=[[2, 0, 1]],
                       proposed=proposed)  # fmt: skip
    weak = dataclasses.replace(weak, config={**run.config, "data": {"samples": {"train": 90}}})
    said = " ".join(caveats(weak))
    for words in (
        "not settled", "60.0 % of the pairs", "could not separate this order from 1 other", "preferred another order",
        "Only 50 test samples", "not learnt to the end (40.0 %)", "not higher than that of the given order",
        "Only 90 training samples",
    ):  # fmt: skip
        assert words in said
    assert "--no-baseline" in " ".join(caveats(with_result(run, given=None)))
    one = dataclasses.replace(run, config={**run.config, "search": {"restarts": 1}})
    assert "One model was read" in caveats(one)[0]


def test_a_race_that_was_overruled_is_told() -> None:
    run = known_run()
    overruled = with_result(run, race_overruled=True)
    best = number(run.result["race"][0]["losses"][-1])
    assert f"its best loss, {best} in another order, is far above the 0.2 that" in " ".join(caveats(overruled))
    explored = {name: value for name, value in overruled.result.items() if name != "success_rate"}
    assert "The search decided, not the race" in answer(dataclasses.replace(run, result=explored)).sentence


def test_wording() -> None:
    assert [number(value) for value in (0, 0.00156733, 3.17213, 12345.6, 1.5e-7)] == [
        "0", "0.001567", "3.172", "12,346", "1.50e-07",
    ]  # fmt: skip
    assert percent_range([0.5, 0.75]) == "50.0 to 75.0 %"
    assert [duration(seconds) for seconds in (1.25, 42, 200, 18720, 273600)] == [
        "1.2 s", "42 s", "3 min 20 s", "5 h 12 min", "3 days 4 h",
    ]  # fmt: skip
    assert visible("\x1b[31m\u202ea\tb\ud800") == "\\u001b[31m\\u202ea\\tb\\ud800"
    assert visible("x" * 100, 10) == "x" * 9 + "…"
    assert [count_of(amount, "step") for amount in (0, 1, 2500)] == ["0 steps", "1 step", "2,500 steps"]
    assert abbreviated(Order((1, 2, 0))) == "1 2 0"
    assert len(abbreviated(Order.of([*range(0, 80, 2), *range(1, 80, 2)]))) == 80


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        ({"stage": "race", "round": 1, "jobs": 2, "of": 3}, "race, round 1: 2 of 3 done"),
        (
            {"stage": "a\x1bb", "step": 3, "steps": 9, "loss": 0.5, "seconds": 61},
            "a\\u001bb: step 3 of 9, loss 0.5000, 1 min 1 s",
        ),
        ({"stage": "train", "step": 3}, ""),
        ({"stage": "counting", "step": 3, "steps": 9, "loss": None, "seconds": 61}, "counting: 3 of 9 done, 1 min 1 s"),
        ({"jobs": 3}, ""),
        ({"stage": "train", "step": 3, "steps": 9, "loss": 0.5, "seconds": float("inf")}, ""),
        ({}, ""),
    ],
)
def test_how_far_a_run_is(progress: dict[str, Any], said: str) -> None:
    assert told(progress) == said
