"""The answer of a run in a sentence, the evidence for it, and the caveats."""

from dataclasses import dataclass, field
from typing import final

from genorder.orders import Order
from genorder.outcomes import (
    AttentionOutcome,
    DiscoveryOutcome,
    RankedOrder,
    RankOutcome,
    RunOutcome,
    TrainedModel,
)
from genorder.reports.dependencies import mined_evidence, other_evidence
from genorder.reports.run import ReportedRun
from genorder.reports.tables import ranking_of
from genorder.reports.wording import (
    NAME_WIDTH,
    count_of,
    joined,
    number,
    percent,
    percent_range,
    progress_text,
    visible,
)
from genorder.search import NO_ORDER, NOT_SETTLED, NOTHING_LEARNT, ORDER_FOUND

_FEW_TEST, _FEW_TRAINING = 200, 1_000  # samples below which there is a caveat
_AGREED = 0.95  # share of pairs of targets in the same sequence, below which models of different seeds disagree
_LEARNT = 0.9  # success rate below which the task counts as not learnt
_LEARNT_LOSS, _NOT_LEARNT_LOSS = 0.1, 0.5  # nats: a target below is learnt, a target above is not
_FEW_TARGETS = 0.15  # of all targets
_MOST_NAMES = 8


@final
@dataclass(frozen=True)
class Answer:
    sentence: str
    evidence: list[str] = field(default_factory=list)


def answer(run: ReportedRun) -> Answer:
    if run.state != "finished":
        return _of_unfinished(run)
    if run.discovery:
        return _of_discovery(run, run.discovery)
    if run.ranked:
        return _of_ranking(run, run.ranked)
    if run.attended:
        return _of_attention(run.attended)
    if run.outcome and run.outcome.models:
        return Answer(f"Trained in the order {_named(run, run.order)}: {_success(run.outcome.models['model'])}.")
    return Answer("This run has finished.")


def _of_unfinished(run: ReportedRun) -> Answer:
    lead = {
        "running": "This run is at work; the results so far follow.",
        "interrupted": "This run was interrupted before its end; the command that started it continues it.",
        "failed": f"This run failed: {visible(run.failure or 'the reason is not known', 500)}",
    }[run.state]
    evidence = [f"{count_of(len(run.jobs), 'job')} finished"]
    if run.state != "failed" and (text := progress_text(run.progress or {})):
        evidence.append(text)
    return Answer(lead, evidence)


def _of_discovery(run: ReportedRun, found: DiscoveryOutcome) -> Answer:
    """The verdict, then the mined dependencies, then the trainings."""
    sentences = [_lead(run, found)]
    if found.advice and found.verdict != ORDER_FOUND:
        sentences.append(found.advice)
    mined = mined_evidence(found.shown_dependencies, found.order)
    others = other_evidence(found.shown_dependencies)
    if found.model is None:
        won = "It wins the race; no" if found.decided_by_race else "No"
        sentences.append(f"{won} model was trained to the end.")
        return Answer(" ".join(sentences), [*mined, *_race_evidence(run, found), *others])
    evidence = []
    if found.keeps_given and run.in_given_order:
        evidence.append(f"given order: {_success(found.model)}")
    else:
        other = f"the order of search and race, {_named(run, found.order)}"
        evidence.append(f"{other if found.holds_other_order else 'this order'}: {_success(found.model)}")
        if run.in_given_order:
            evidence.append("it is the given order")
        elif found.given:
            evidence.append(f"given order: {_success(found.given)}")
        elif found.given_failed is not None:
            evidence.append(f"given order: the training failed ({visible(found.given_failed)})")
    if found.cost_ratio is not None:
        evidence.append(f"it costs {found.cost_ratio:.2f} times the operations of the best order")
    return Answer(" ".join(sentences), [*mined, *evidence, *others])


def _lead(run: ReportedRun, found: DiscoveryOutcome) -> str:
    order = _named(run, found.order)
    if found.keeps_given:
        verdicts = {NO_ORDER: "No order is preferred", NOTHING_LEARNT: "Nothing was learnt"}
        verdict = verdicts.get(found.verdict or "", "The targets are constant")
        if found.repaired:
            return f"{verdict}: the given order is kept, changed where the constraints require it: {order}."
        if found.holds_other_order:
            return f"{verdict}: keep the given order."
        kept = "the given order is kept" if found.verdict == NOTHING_LEARNT else "keep the given order"
        return f"{verdict}: {kept}, {order}."
    if found.verdict == NOT_SETTLED:
        return f"Not settled: the best order so far is {order}."
    if found.verdict == ORDER_FOUND:
        return f"Order found: emit the targets in the order {order}."
    return f"Emit the targets in this order: {order}."


def _race_evidence(run: ReportedRun, found: DiscoveryOutcome) -> list[str]:
    """The validation losses of the order, of the given order and of its reverse."""
    given, reverse = found.given_order, Order.reverse(len(found.order))
    this = "the order of search and race" if found.holds_other_order else "this order"
    wanted = {"given order" if run.in_given_order else this: found.order, "given order": given}
    wanted |= {"its reverse": reverse} if reverse != found.order else {}
    entries = {one.order: one for one in found.ranking}
    return [
        f"{name}: {_loss(entries[order])} after {entries[order].steps:,} steps of the race"
        for name, order in wanted.items()
        if order in entries
    ]


def _of_ranking(run: ReportedRun, ranked: RankOutcome) -> Answer:
    best = ranked.ranking[0]
    tied = sum(one.tied_with_best for one in ranked.ranking) - 1
    evidence = [_loss(best), f"{count_of(tied, 'other order')} tied with it"]
    orders = count_of(len(ranked.ranking), "order")
    return Answer(f"Of {orders}, the first is {_named(run, best.order)}.", evidence)


def _loss(one: RankedOrder) -> str:
    if one.loss is None:
        return "diverged"
    error = "" if one.standard_error is None else f" ± {number(one.standard_error)}"
    return f"validation loss {number(one.loss)}{error}"


def _of_attention(outcome: AttentionOutcome) -> Answer:
    entries = sorted(outcome.attention, key=lambda entry: entry.sparsity)
    evidence = [
        f"{visible(entry.name)}: S = {entry.sparsity:.3f}, success rate {percent(entry.success_rate)}"
        for entry in entries
    ]
    sparsest = f"Attention is sparsest in the order {visible(entries[0].name)}"
    lead = sparsest if len(entries) > 1 else "Attention of one order"
    return Answer(f"{lead} (smaller S: fewer tokens are read).", evidence)


def _named(run: ReportedRun, order: Order | None) -> str:
    if order is None:
        return "unknown"
    true = run.true_text(order) if run.shuffled else ""
    return f"{run.order_text(order)}{f' (true indices {true})' if true else ''}"


def _success(model: TrainedModel) -> str:
    tested = model.evaluation
    interval = percent_range(tested.success_rate_interval)
    samples = count_of(tested.samples, "test sample")
    return f"{percent(tested.success_rate)} exact match on {samples} (95 % interval {interval})"


def caveats(run: ReportedRun) -> list[str]:
    """What a reader should know before relying on the answer."""
    if run.state != "finished":
        return ["The run has no result yet: every figure below is partial."] if run.jobs else []
    found = [*_search_caveats(run, run.discovery), *_race_caveats(run.discovery)] if run.discovery else []
    return [*found, *_ranking_caveats(run), *_test_caveats(run), *_data_caveats(run)]


def _search_caveats(run: ReportedRun, found: DiscoveryOutcome) -> list[str]:
    caveats = []
    if found.constraints:
        caveats.append(f"Only orders that meet {found.constraints} were searched: another may be better.")
    # Seeds of models do not matter where mining gave the answer.
    if found.read_off_model and run.config.get("search", {}).get("restarts") == 1:
        caveats.append(
            "The dependencies were read off one model, from one seed: whether another model gives the same order was "
            "not measured (--set search.restarts=3 measures it)."
        )
    elif found.read_off_model and found.search.agreement < _AGREED:
        caveats.append(
            f"Models of different seeds agree on the sequence of only {percent(found.search.agreement)} of the pairs "
            "of targets: parts of the order may be arbitrary."
        )
    if any(one.violations for one in found.shown_dependencies):
        caveats.append(
            "The data is noisy: equal tokens do not always give the same target. A dependency may lack a token whose "
            "influence is smaller than the noise."
        )
    return caveats


def _race_caveats(found: DiscoveryOutcome) -> list[str]:
    caveats = []
    tied = found.race.tied_orders if found.race else []
    if tied and found.decided_by_race:
        caveats.append(f"The race could not separate this order from {count_of(len(tied), 'other')}.")
    if found.not_shown_because:
        caveats.append(f"Not shown by training: {found.not_shown_because}.")
    proposals = found.search.proposals
    if found.decided_by_race and proposals and proposals[0].order != found.order:
        caveats.append("The race preferred this order to the first proposal of the search.")
    if found.model is None and not found.keeps_given:
        caveats.append("The race shows which order learns faster, not whether the task is learnt in the end.")
    return caveats


def _ranking_caveats(run: ReportedRun) -> list[str]:
    caveats, ranking = [], ranking_of(run)
    ties = sum(one.tied_with_best for one in ranking)
    if run.ranked and ties > 1:
        caveats.append(f"{ties:,} orders lie within the noise of the best: their sequence means nothing.")
    if diverged := sum(one.loss is None for one in ranking):
        caveats.append(
            f"{count_of(diverged, 'order')} diverged in training: the last rank says nothing about its worth."
        )
    return caveats


def _test_caveats(run: ReportedRun) -> list[str]:
    models = run.outcome.models if run.outcome else {}
    if "model" not in models:
        return []
    tested, found, caveats = models["model"].evaluation, run.discovery, []
    if tested.samples < _FEW_TEST:
        samples = count_of(tested.samples, "test sample")
        caveats.append(
            f"Only {samples}: the true rate may lie anywhere in {percent_range(tested.success_rate_interval)}."
        )
    if tested.success_rate < _LEARNT:
        caveats.append(
            f"The task was not learnt to the end ({percent(tested.success_rate)}): more steps, a larger model, more "
            "data or another order may help."
        )
    if "given" in models:
        if tested.success_rate_interval[0] <= models["given"].evaluation.success_rate_interval[1]:
            caveats.append("The success rate is not significantly higher than that of the given order.")
    elif found and found.given is None and found.given_failed is None:
        caveats.append("The given order was not trained (--no-baseline): the gain of this order is not measured.")
    if run.config.get("config", {}).get("race", {}).get("seeds", 1) == 1:
        caveats.append("Each order was trained once, from one seed: another seed gives other weights and other errors.")
    return caveats


def _data_caveats(run: ReportedRun) -> list[str]:
    caveats = []
    training = run.config.get("data", {}).get("samples", {}).get("train", _FEW_TRAINING)
    if training < _FEW_TRAINING:
        caveats.append(f"Only {count_of(training, 'training sample')}: a model may learn them by heart.")
    if run.shuffled:
        caveats.append(
            "The target columns of this task are stored in a secret shuffled sequence: the given order is that "
            "sequence, not the task's own."
        )
    return caveats


def training_hint(outcome: RunOutcome, option: str) -> str | None:
    """What may help a model that was not trained to the end, if something may; `option` sets the number of steps."""
    model = outcome.models.get("model")
    if model is None or model.evaluation.success_rate >= _LEARNT:
        return None
    race = outcome.race
    if race and race.overfits:
        return (
            "the models overfit: the validation loss rose while they trained. More samples would help, not more steps"
        )
    steps = option.format(2 * model.steps)
    if few := _few_not_learnt(model.evaluation.loss_by_target):
        names = [visible(outcome.target_name(column), NAME_WIDTH) for column in few[:_MOST_NAMES]]
        names += ["..."] * (len(few) > _MOST_NAMES)
        spent = race is None or race.ended in (None, "steps spent")  # otherwise the training ended by itself
        return (
            f"all targets but {joined(names)} were learnt; which ones a training misses is in part chance: if they can "
            f"be predicted at all, another --seed may help{f', or more steps, such as {steps},' if spent else ''} with "
            "another --out"
        )
    if race.loss_still_falling if race else model.loss_still_falling:
        return (
            f"the loss was still falling after {model.steps} steps: more may help, such as {steps}, with another --out"
        )
    return None


def _few_not_learnt(losses: list[float]) -> list[int]:
    """The targets that are not learnt, if nearly all others are; otherwise none."""
    left = [column for column, loss in enumerate(losses) if loss > _LEARNT_LOSS]
    few = len(left) <= _FEW_TARGETS * len(losses)
    return left if few and all(losses[column] > _NOT_LEARNT_LOSS for column in left) else []
