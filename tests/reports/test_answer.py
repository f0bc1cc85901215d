"""The sentence at the top of a report, and its caveats."""

import dataclasses
import re
from typing import Any

import pytest
from reports_helpers import (
    BY_MODEL,
    MINED,
    UNDETERMINED,
    dependency,
    explored,
    finished_job,
    judged,
    known_run,
    of_an_earlier_version,
    ranked_run,
    result_of,
    with_result,
)

from genorder.orders import Order
from genorder.reports.answer import answer, caveats
from genorder.reports.run import ReportedRun
from genorder.reports.wording import abbreviated, count_of, duration, number, percent_range, progress_text, visible


def test_a_discovery_gives_its_rates() -> None:
    found = answer(known_run())
    assert found.sentence == "Order found: emit the targets in the order y1 y2 y0 (true indices 0-2)."
    assert found.evidence == [
        "this order: 99.8 % exact match on 1,000 test samples (95 % interval 99.3 to 99.9 %)",
        "given order: 5.6 % exact match on 1,000 test samples (95 % interval 4.3 to 7.2 %)",
        "it costs 1.00 times the operations of the best order",
        "What 3 of 3 targets are computed from was read off a trained model.",
    ]


def test_an_exploration_gives_the_race() -> None:
    found = answer(explored(known_run()))
    assert found.sentence.endswith("It wins the race; no model was trained to the end.")
    assert found.evidence[:3] == [
        "this order: validation loss 0.1 ± 0.01 after 4 steps of the race",
        "given order: validation loss 2 ± 0.1 after 2 steps of the race",
        "its reverse: diverged after 2 steps of the race",
    ]


@pytest.mark.parametrize(
    ("verdict", "lead"),
    [
        ("order found", "Order found: emit the targets in the order y1 y2 y0 (true indices 0-2)."),
        ("not settled", "Not settled: the best order so far is y1 y2 y0 (true indices 0-2). Do this."),
        ("no order preferred", "No order is preferred: keep the given order, y0 y1 y2 (true indices 2 0 1). Do this."),
        ("nothing learnt", "Nothing was learnt: the given order is kept, y0 y1 y2 (true indices 2 0 1). Do this."),
        (None, "Emit the targets in this order: y1 y2 y0 (true indices 0-2). Do this."),
    ],
)
def test_the_sentence_follows_the_verdict(verdict: str | None, lead: str) -> None:
    run = judged(verdict)
    assert answer(run).sentence == lead
    assert answer(explored(run)).sentence.startswith(lead)


@pytest.mark.parametrize("verdict", ["no order preferred", "nothing learnt"])
def test_a_race_that_another_order_won_does_not_contradict_the_verdict(verdict: str) -> None:
    run = judged(verdict, tied_orders=[[1, 2, 0]])
    earlier = known_run()  # earlier versions: the winner of the race was the order, whatever the verdict
    proposed = result_of(earlier)["proposed"]
    earlier = with_result(earlier, proposed={**proposed, "details": {**proposed["details"], "verdict": verdict}})
    for shown in (run, explored(run), of_an_earlier_version(earlier), explored(of_an_earlier_version(earlier))):
        said = " ".join([answer(shown).sentence, *answer(shown).evidence, *caveats(shown)])
        assert "keep the given order" in said or "the given order is kept" in said
        assert not re.search("mit the targets|wins the race|race preferred|could not separate", said)
    assert answer(run).evidence[-2] == (
        "given order: 99.8 % exact match on 1,000 test samples (95 % interval 99.3 to 99.9 %)"
    )
    assert (
        answer(of_an_earlier_version(earlier))
        .evidence[0]
        .startswith("the order of search and race, y1 y2 y0 (true indices 0-2): 99.8 % exact match")
    )


def test_the_given_order_repaired() -> None:
    run = with_result(judged("no order preferred", constraints={"before": [[1, 0]]}), order=[1, 0, 2])
    assert answer(run).sentence.startswith(
        "No order is preferred: the given order is kept, changed where the constraints require it: y1 y0 y2"
    )
    assert "this order: 99.8 %" in answer(run).evidence[1]


@pytest.mark.parametrize(
    ("dependencies", "said"),
    [
        (MINED, ["Mined: every target is determined by at most 2 earlier tokens, in 99,639 or more pairs of "
                   "samples each, without a counterexample."]),
        ([BY_MODEL, *MINED[1:]], [
            "Mined: 2 of 3 targets are determined by at most 1 earlier token, in 99,639 or more pairs of samples "
            "each, without a counterexample.",
            "What 1 of 3 targets is computed from was read off a trained model."]),
        ([UNDETERMINED, *MINED[1:]], ["1 of 3 targets is not determined by other tokens, as far as could be found."]),
        ([{**row, "pairs": 1000, "violations": 98} for row in MINED], [
            "Mined: every target is determined by at most 2 earlier tokens, in 1,000 or more pairs of samples each, "
            "9.8 % of the pairs differ (noise)."]),
        ([dependency(0, [0, 1, 2, 3], [2], pointer=True), *MINED[1:]], [
            "Mined: every target is determined by at most 1 earlier token, in 99,639 or more pairs of samples each, "
            "without a counterexample.",
            "1 target copies one of the inputs, chosen by other tokens (pointer)."]),
    ],
    ids=["mined", "in part by a model", "in part", "noise", "pointer"],
)  # fmt: skip
def test_mined_dependencies_are_the_first_evidence(dependencies: list[dict[str, Any]], said: list[str]) -> None:
    evidence = answer(judged("order found", dependencies=dependencies)).evidence
    assert set(said) <= set(evidence)
    assert evidence[0].startswith("Mined: ")


def test_in_the_given_order_tokens_need_not_be_earlier() -> None:
    (mined, *_) = answer(judged("no order preferred")).evidence
    assert mined.startswith("Mined: every target is determined by at most 2 other tokens, ")


def test_seeds_of_models_matter_only_where_a_model_was_read() -> None:
    def said(run: ReportedRun) -> str:
        return " ".join(caveats(dataclasses.replace(run, config={**run.config, "search": {"restarts": 1}})))

    assert "were read off one model" not in said(judged("order found"))
    assert "were read off one model" in said(judged("order found", dependencies=[BY_MODEL, *MINED[1:]]))
    assert "were read off one model" in said(of_an_earlier_version(known_run()))


def test_noise_is_a_caveat() -> None:
    noisy = [{**row, "violations": 98} for row in MINED]
    assert "The data is noisy" in " ".join(caveats(judged("order found", dependencies=noisy)))
    assert "The data is noisy" not in " ".join(caveats(judged("order found")))


def test_a_ranking_counts_its_ties() -> None:
    row = {"order": [0, 1], "loss": 1.0, "standard_error": 0.1, "samples": 9, "curve": []}
    ranking = [{**row, "rank": rank, "tied_with_best": rank <= 3} for rank in range(1, 6)]
    run = ranked_run(ranking)
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
    run = ranked_run([row])
    assert answer(run).evidence == ["diverged", "0 other orders tied with it"]


def test_caveats_of_a_good_run_are_few() -> None:
    assert [caveat.split(":")[0] for caveat in caveats(known_run())] == [
        "1 order diverged in training",
        "Each order was trained once, from one seed",
        "The target columns of this task are stored in a secret shuffled sequence",
    ]


def test_caveats() -> None:
    run = known_run()
    proposed = result_of(run)["proposed"]
    first = {**proposed["proposals"][0], "order": [2, 0, 1]}
    proposed |= {"proposals": [first], "details": {**proposed["details"], "agreement": 0.6}}
    weak = with_result(run, samples=50, success_rate=0.4, success_rate_interval=[0.05, 0.8], tied_orders=[[2, 0, 1]],
                       proposed=proposed)  # fmt: skip
    weak = dataclasses.replace(weak, config={**run.config, "data": {"samples": {"train": 90}}})
    said = " ".join(caveats(weak))
    for words in (
        "60.0 % of the pairs", "could not separate this order from 1 other", "The race preferred this order",
        "Only 50 test samples", "not learnt to the end (40.0 %)",
        "not significantly higher than that of the given order", "Only 90 training samples",
    ):  # fmt: skip
        assert words in said
    assert "--no-baseline" in " ".join(caveats(with_result(run, given=None)))
    one = dataclasses.replace(run, config={**run.config, "search": {"restarts": 1}})
    assert "were read off one model" in caveats(one)[0]


def test_what_training_does_not_show_is_a_caveat() -> None:
    unshown = with_result(known_run(), not_shown_because="the models overfit")
    assert "Not shown by training: the models overfit." in caveats(unshown)
    assert not any("Not shown" in caveat for caveat in caveats(known_run()))


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
        ({"stage": "race", "rung": 1, "step": 9, "jobs": 2, "of": 3}, "race, rung 1, step 9: 2 of 3 done"),
        ({"stage": "race", "rung": None, "step": 9, "jobs": 0, "of": 2}, "final training, step 9: 0 of 2 done"),
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
    assert progress_text(progress) == said
