"""The answer of a run in a sentence, the evidence for it, and what speaks against trusting it."""

from dataclasses import dataclass, field
from typing import Any, final

from genorder.orders import Constraints
from genorder.reports.findings import (
    NO_ORDER,
    NOT_SETTLED,
    NOTHING_LEARNT,
    ORDER_FOUND,
    counted_evidence,
    other_evidence,
)
from genorder.reports.run import ReportedRun
from genorder.reports.tables import ranked_rows
from genorder.reports.wording import count_of, number, percent, percent_range, told, visible

_FEW_TEST, _FEW_TRAINING = 200, 1_000  # samples below which a reader is warned
_AGREED = 0.95  # share of pairs of targets in the same sequence, below which models of different seeds disagree
_LEARNT = 0.9  # success rate below which the task counts as not learnt


@final
@dataclass(frozen=True)
class Answer:
    sentence: str
    evidence: list[str] = field(default_factory=list)


def answer(run: ReportedRun) -> Answer:
    if run.state != "finished":
        return _unfinished(run)
    if run.verb == "discover":
        return _of_discovery(run)
    if run.verb == "rank":
        return _of_ranking(run)
    if "success_rate" in run.result:
        return Answer(f"Trained in the order {_named(run, run.order)}: {_success(run.result)}.")
    if run.verb == "analyze attention":
        return _of_attention(run)
    return Answer("This run has finished.")


def _unfinished(run: ReportedRun) -> Answer:
    lead = {
        "running": "This run is at work; what follows is what it has so far.",
        "interrupted": "This run was interrupted before its end; the command that started it continues it.",
        "failed": f"This run failed: {visible(run.failure or 'no reason is kept', 500)}",
    }[run.state]
    evidence = [f"{count_of(len(run.jobs), 'job')} finished"]
    if run.state != "failed" and (far := told(run.progress or {})):
        evidence.append(far)
    return Answer(lead, evidence)


def _of_discovery(run: ReportedRun) -> Answer:
    """The verdict first; then what was counted; then what a training showed."""
    result, found = run.result, run.findings
    sentences = [_lead(run)]
    if found.advice and found.verdict != ORDER_FOUND:
        sentences.append(found.advice)
    evidence = counted_evidence(found.dependencies, run.order or [])
    others = other_evidence(found.dependencies)
    if "success_rate" not in result:
        won = "It wins the race; no" if found.race_decided else "No"
        return Answer(
            " ".join([*sentences, f"{won} model was trained to the end."]), [*evidence, *_raced(run), *others]
        )
    given = result.get("given")
    if found.keeps_given and run.in_given_order:
        evidence.append(f"given order: {_success(result)}")
    else:
        name = f"the order of search and race, {_named(run, run.order)}" if _other_order(run) else "this order"
        evidence.append(f"{name}: {_success(result)}")
        if run.in_given_order:
            evidence.append("it is the given order")
        elif given:
            evidence.append(f"given order: {_success(given)}")
        elif "given_failed" in result:
            evidence.append(f"given order: the training failed ({visible(result['given_failed'])})")
    if "cost_ratio" in result:
        evidence.append(f"it costs {result['cost_ratio']:.2f} times the operations of the best order")
    return Answer(" ".join(sentences), [*evidence, *others])


def _lead(run: ReportedRun) -> str:
    found, order = run.findings, _named(run, run.order)
    if found.keeps_given:
        verdicts = {NO_ORDER: "No order is preferred", NOTHING_LEARNT: "Nothing was learnt"}
        verdict = verdicts.get(found.verdict or "", "The targets are constant")
        if found.repaired:
            return f"{verdict}: the given order is kept, changed where the constraints require it: {order}."
        if _other_order(run):
            return f"{verdict}: keep the given order."
        kept = "the given order is kept" if found.verdict == NOTHING_LEARNT else "keep the given order"
        return f"{verdict}: {kept}, {order}."
    if found.verdict == NOT_SETTLED:
        return f"Not settled: the best order so far is {order}."
    if found.verdict == ORDER_FOUND:
        return f"Order found: emit the targets in the order {order}."
    return f"Emit the targets in this order: {order}."


def _other_order(run: ReportedRun) -> bool:
    """Is the given order the answer, but the result of an earlier version holds the winner of the race?"""
    return run.findings.keeps_given and not run.findings.repaired and not run.in_given_order


def _raced(run: ReportedRun) -> list[str]:
    rows = ranked_rows(run)
    if not rows:
        return []
    given = list(range(len(rows[0]["order"])))
    this = "the order of search and race" if _other_order(run) else "this order"
    wanted = {
        "given order" if run.in_given_order else this: run.order,
        "given order": given,
        "its reverse": given[::-1],
    }
    lines = []
    for name, order in wanted.items():
        row = next((row for row in rows if row["order"] == order), None)
        if row is not None and (name in (this, "given order") or order != run.order):
            lines.append(f"{name}: {_loss(row)} after {row['steps'][-1]:,} steps of the race")
    return lines


def _of_ranking(run: ReportedRun) -> Answer:
    rows = ranked_rows(run)
    best = rows[0]
    tied = sum(row["tied_with_best"] for row in rows) - 1
    evidence = [_loss(best), f"{count_of(tied, 'other order')} tied with it"]
    return Answer(f"Of {count_of(len(rows), 'order')}, the first is {_named(run, best['order'])}.", evidence)


def _loss(row: dict[str, Any]) -> str:
    if row["loss"] is None:
        return "diverged"
    error = "" if row["standard_error"] is None else f" ± {number(row['standard_error'])}"
    return f"validation loss {number(row['loss'])}{error}"


def _of_attention(run: ReportedRun) -> Answer:
    rows = sorted(run.attention, key=lambda row: row["sparsity"])
    lines = [f"{row['name']}: S = {row['sparsity']:.3f}, success rate {percent(row['success_rate'])}" for row in rows]
    lead = f"Attention is sparsest in the order {rows[0]['name']}" if len(rows) > 1 else "Attention of one order"
    return Answer(f"{lead} (smaller S: fewer tokens are read).", lines)


def _named(run: ReportedRun, order: list[int] | None) -> str:
    if order is None:
        return "unknown"
    true = run.true_text(order) if run.shuffled else ""
    return f"{run.order_text(order)}{f' (true indices {true})' if true else ''}"


def _success(result: dict[str, Any]) -> str:
    interval = percent_range(result["success_rate_interval"])
    samples = count_of(result["samples"], "test sample")
    return f"{percent(result['success_rate'])} exact match on {samples} (95 % interval {interval})"


def caveats(run: ReportedRun) -> list[str]:
    """In plain words, what a reader should know before believing the answer."""
    if run.state != "finished":
        return ["The run has no result yet: every figure below is partial."] if run.jobs else []
    return [*_search_caveats(run), *_race_caveats(run), *_test_caveats(run), *_data_caveats(run)]


def _search_caveats(run: ReportedRun) -> list[str]:
    """Where the answer rests on counting, seeds of models do not matter."""
    details = run.result.get("proposed", {}).get("details", {})
    found = []
    if run.result.get("constraints"):
        asked = Constraints.from_dict(run.result["constraints"])
        found.append(f"Only orders that meet {asked} were searched: another may be better.")
    restarts = run.config.get("search", {}).get("restarts")
    if restarts == 1 and run.findings.found_by_model:
        found.append(
            "One model was read, from one seed: whether another would construct the same order was not measured "
            "(--set search.restarts=3 measures it)."
        )
    elif run.findings.found_by_model and details.get("agreement", 1.0) < _AGREED:
        found.append(
            f"Models of different seeds agree on the sequence of only {percent(details['agreement'])} of the pairs of "
            "targets: parts of the order may be arbitrary."
        )
    if any(dependency.violations for dependency in run.findings.dependencies):
        found.append(
            "The data is noisy: equal tokens do not always give the same target. A dependency may lack a token whose "
            "influence is smaller than the noise."
        )
    return found


def _race_caveats(run: ReportedRun) -> list[str]:
    rows = ranked_rows(run)
    found = []
    tied = run.result.get("tied_orders") or []
    if tied and run.findings.race_decided:
        found.append(f"The race could not separate this order from {count_of(len(tied), 'other')}.")
    elif run.verb == "rank" and (ties := sum(row["tied_with_best"] for row in rows)) > 1:
        found.append(f"{ties:,} orders lie within the noise of the best: their sequence means nothing.")
    diverged = sum(row["loss"] is None for row in rows)
    if diverged:
        found.append(f"{count_of(diverged, 'order')} diverged in training: the last place says nothing of its worth.")
    proposals = run.result.get("proposed", {}).get("proposals") or []
    if run.result.get("not_shown_because") and not run.findings.keeps_given and not run.in_given_order:
        found.append(f"Not shown by training: {run.result['not_shown_because']}.")
    if run.findings.race_decided and proposals and proposals[0]["order"] != run.order:
        found.append("The race preferred this order to the one that the search put first.")
    if run.verb == "discover" and "success_rate" not in run.result and not run.findings.keeps_given:
        found.append("The race shows which order learns faster, not whether the task is learnt in the end.")
    return found


def _test_caveats(run: ReportedRun) -> list[str]:
    result = run.result
    if "success_rate" not in result:
        return []
    found = []
    if result["samples"] < _FEW_TEST:
        samples = count_of(result["samples"], "test sample")
        found.append(
            f"Only {samples}: the true rate may lie anywhere in {percent_range(result['success_rate_interval'])}."
        )
    if result["success_rate"] < _LEARNT:
        found.append(
            f"The task was not learnt to the end ({percent(result['success_rate'])}): more steps, a larger model, more "
            "data or another order may help."
        )
    given = result.get("given")
    if given and result.get("order") != result.get("given_order"):
        if result["success_rate_interval"][0] <= given["success_rate_interval"][1]:
            found.append("The success rate is not higher than that of the given order beyond the noise.")
    elif run.verb == "discover" and not given and "given_failed" not in result:
        found.append("The given order was not trained (--no-baseline): what this one gains is not measured.")
    if run.config.get("config", {}).get("race", {}).get("seeds", 1) == 1:
        found.append("Each order was trained once, from one seed: another seed gives other weights and other errors.")
    return found


def _data_caveats(run: ReportedRun) -> list[str]:
    data = run.config.get("data", {})
    samples = data.get("samples", {})
    found = []
    if samples.get("train", _FEW_TRAINING) < _FEW_TRAINING:
        found.append(f"Only {count_of(samples['train'], 'training sample')}: a model may learn them by heart.")
    if run.shuffled:
        found.append(
            "The task's target columns are stored shuffled, in secret: the given order is that shuffle, and not the "
            "task's own."
        )
    return found
