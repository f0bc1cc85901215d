"""What `genorder discover` shows: its progress while it runs, and the outcome."""

import math
import time

from rich.table import Table

from genorder.cli.console import ProgressLine, abbreviated, count_of, duration, percent, say, screen
from genorder.orders import Order
from genorder.outcomes import DiscoveryOutcome, GroundTruth
from genorder.race import RaceProgress
from genorder.reports.answer import training_hint
from genorder.reports.dependencies import evidence_line, recipe
from genorder.reports.wording import NAME_WIDTH, by_name, visible
from genorder.runs import Source
from genorder.search import NOT_SETTLED, NOTHING_LEARNT, SearchResult, Stage
from genorder.training import Progress

_MOST_RECIPES = 40  # targets whose dependencies are printed


class _TimeLeft:
    """The seconds that are left of the whole run: the estimate, corrected by the progress of the current part."""

    def __init__(self, estimate: dict[str, float]) -> None:
        self._left = dict(estimate)  # of the current part and the parts after it
        self._part, self._started = "", 0.0

    def now(self, part: str, of_stage: float) -> float:
        """`of_stage` are the seconds left of the current stage."""
        if part != self._part:
            self._part, self._started = part, time.monotonic()
            names = list(self._left)
            self._left = {name: self._left[name] for name in names[names.index(part) :]}
        here = max(of_stage, self._left[part] - (time.monotonic() - self._started))
        return here + sum(seconds for name, seconds in self._left.items() if name != part)


class DiscoveryScreen:
    """A watcher that shows the progress of a discovery."""

    def __init__(self, line: ProgressLine, source: Source, estimate: dict[str, float]) -> None:
        self._line, self._source, self._left = line, source, _TimeLeft(estimate)

    def progress(self, stage: str, progress: Progress) -> None:
        self._line.training(stage, progress, self._left.now("propose", progress.seconds_left))

    def stage(self, stage: Stage) -> None:
        best = stage.best[0]
        loss = "" if best.loss is None else f", loss {best.loss:.4f}"
        self._line.best(self._order_text(best.order), best.loss)
        say(
            f"{stage.name}: {count_of(stage.candidates, 'candidate')}, {stage.kept} kept, "
            f"{duration(sum(stage.seconds.values()))}; best so far {self._order_text(best.order)}{loss}"
        )

    def proposed(self, proposed: SearchResult) -> None:
        """Before the race and the trainings, so that a user who does not want them can stop here."""
        found = proposed.details
        if found.verdict:
            say(f"the search says: {found.verdict}. {found.advice or ''}".rstrip())

    def race(self, progress: RaceProgress) -> None:
        left = progress.run_seconds_left
        if not math.isfinite(left):
            part = "train" if progress.rung is None else "race"
            left = self._left.now(part, progress.seconds_left if math.isfinite(progress.seconds_left) else 0.0)
        self._line.racing(progress, self._order_text(progress.best) if progress.best else "", left)

    def _order_text(self, order: Order) -> str:
        source, truth = self._source, None
        if source.true_of_column is not None and source.graph is not None:
            truth = GroundTruth.of(source.true_of_column, source.graph, [order])
        return f"{_named(order, truth)}{by_name(order, source.names.targets)}"


def show_discovery(outcome: DiscoveryOutcome) -> None:
    """The race as a table, then the answer: first the verdict, which nothing after it contradicts."""
    _show_race(outcome)
    say(_headline(outcome))
    if outcome.advice:
        say(outcome.advice)
    if outcome.constraints:
        say(f"among the orders that were allowed: {outcome.constraints}")
    if outcome.holds_other_order:
        say(f"the result holds another order, that of search and race: {_named(outcome.order, outcome.truth)}")
    if outcome.decided_by_race:
        _show_race_decision(outcome)
    if outcome.not_shown_because:
        say(f"not shown by training: {outcome.not_shown_because}")
    if outcome.cost_ratio is not None:
        say(f"it costs {outcome.cost_ratio:.2f} times the operations of the best order")
    _show_dependencies(outcome)
    _show_success(outcome)
    say("time: " + ", ".join(f"{name} {duration(part)}" for name, part in outcome.all_seconds.items()))


def _show_race(outcome: DiscoveryOutcome) -> None:
    if not outcome.ranking:
        return
    truth = outcome.truth
    order_columns = ["cost", "order (true indices)"] if truth else ["order"]
    table = Table("loss", "steps", "success", "", *order_columns, box=None)
    for place, one in enumerate(outcome.ranking):
        loss = "diverged" if one.loss is None else f"{one.loss:.4f}"
        success = percent(one.rungs[-1].success_rate or 0.0)
        tied = "tied" if place and one.tied_with_best else ""
        cost = [f"{truth.cost_ratios.get(one.order, math.nan):.2f}"] if truth else []
        table.add_row(loss, f"{one.steps:,}", success, tied, *cost, _indices(one.order, truth))
    type(screen)(soft_wrap=False).print(table)
    if outcome.unigram_loss is not None:
        say(f"losses are per target token; the unigram baseline is {outcome.unigram_loss:.4f}")


def _headline(outcome: DiscoveryOutcome) -> str:
    order = f"{_named(outcome.order, outcome.truth)}{by_name(outcome.order, outcome.names.targets)}"
    if outcome.repaired:
        return f"{outcome.verdict}: the given order is kept, changed where the constraints require it: {order}"
    if outcome.keeps_given:
        kept = "the given order is kept" if outcome.verdict == NOTHING_LEARNT else "keep the given order"
        return f"{outcome.verdict}: {kept}"
    lead = {None: "found", NOT_SETTLED: "not settled: best order so far"}.get(outcome.verdict, outcome.verdict)
    return f"{lead}: {order}"


def _show_race_decision(outcome: DiscoveryOutcome) -> None:
    tied = outcome.race.tied_orders if outcome.race else []
    if tied:
        others = "; ".join(_indices(one.order, outcome.truth) for one in outcome.ranking if one.order in tied)
        say(f"the race could not separate it from these: {others}")
    if outcome.search.proposals and outcome.order != outcome.search.proposals[0].order:
        say("the race preferred it to the first proposal of the search")


def _show_dependencies(outcome: DiscoveryOutcome) -> None:
    """What each target is computed from, a line each in the order of emission, and the evidence for it."""
    by_target = {one.target: one for one in outcome.shown_dependencies}
    if not by_target:
        return
    rows = [by_target[column] for column in outcome.order if column in by_target]

    def target(column: int) -> str:
        return visible(outcome.target_name(column), NAME_WIDTH)

    def source(position: int) -> str:
        return visible(outcome.input_name(position), NAME_WIDTH)

    say("computed from, in the order of emission:")
    for row in rows[:_MOST_RECIPES]:
        say(f"  {recipe(row, target, source)}")
    if len(rows) > _MOST_RECIPES:
        say(f"  ... {len(rows) - _MOST_RECIPES:,} more in the report")
    say(evidence_line(rows))


def _show_success(outcome: DiscoveryOutcome) -> None:
    model = outcome.model
    if model is None:
        return
    tested = model.evaluation
    low, high = tested.success_rate_interval
    say(
        f"success rate {percent(tested.success_rate)} ({percent(low)} to {percent(high)}) "
        f"on {tested.samples} test samples"
    )
    if outcome.given_failed is not None:
        say(f"in the given order the training failed: {outcome.given_failed}")
    same = outcome.keeps_given and outcome.order == outcome.given_order
    if outcome.given and not same:
        say(f"in the given order: {percent(outcome.given.evaluation.success_rate)}")
    say(f"model in {outcome.run_dir / 'model'}, trained for {count_of(model.steps, 'step')}")
    if hint := training_hint(outcome, "--set final.training.steps={}"):
        say(hint)


def _named(order: Order, truth: GroundTruth | None) -> str:
    """An order in short form; for a built-in task, in its true indices and with its cost."""
    cost = "" if truth is None else f" (true indices, cost {truth.cost_ratios.get(order, math.nan):.2f})"
    return f"{_indices(order, truth)}{cost}"


def _indices(order: Order, truth: GroundTruth | None) -> str:
    return abbreviated(truth.true_order(order) if truth else order)
