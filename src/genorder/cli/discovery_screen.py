"""What a discovery shows: how far it is while it runs, and what it found."""

import math
import time
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from genorder.cli.console import ProgressLine, abbreviated, count_of, duration, percent, say, screen, training_hint
from genorder.orders import Constraints, Order
from genorder.race import RaceProgress
from genorder.reports.findings import NOT_SETTLED, NOTHING_LEARNT, Findings, evidence_line, findings_of, recipe
from genorder.reports.wording import NAME_WIDTH, by_name, listed, target_name, visible
from genorder.runs import Source
from genorder.search import SearchResult, Stage
from genorder.training import Progress

_SHOWN = 6  # targets of each variable over time
_RECIPE_LINES = 40  # targets whose dependencies are printed


class _TimeLeft:
    """Of the whole run: what was estimated, corrected by what the part at work says."""

    def __init__(self, estimate: dict[str, float]) -> None:
        self._left = dict(estimate)  # of this part and those after it
        self._part, self._started = "", 0.0

    def now(self, part: str, of_stage: float) -> float:
        """`of_stage` is left of the stage at work."""
        if part != self._part:
            self._part, self._started = part, time.monotonic()
            names = list(self._left)
            self._left = {name: self._left[name] for name in names[names.index(part) :]}
        here = max(of_stage, self._left[part] - (time.monotonic() - self._started))
        return here + sum(seconds for name, seconds in self._left.items() if name != part)


class DiscoveryScreen:
    """Shows how far a discovery is."""

    def __init__(self, line: ProgressLine, source: Source, estimate: dict[str, float]) -> None:
        self._line, self._source, self._left = line, source, _TimeLeft(estimate)

    def progress(self, stage: str, progress: Progress) -> None:
        self._line.training(stage, progress, self._left.now("propose", progress.seconds_left))

    def stage(self, stage: Stage) -> None:
        best = stage.best[0]
        loss = "" if best.loss is None else f", loss {best.loss:.4f}"
        self._line.best(self._told(best.order), best.loss)
        say(
            f"{stage.name}: {count_of(stage.candidates, 'candidate')}, {stage.kept} kept, "
            f"{duration(sum(stage.seconds.values()))}; best so far {self._told(best.order)}{loss}"
        )

    def proposed(self, proposed: SearchResult) -> None:
        """Before the race and the trainings, so that a user who does not want them can stop here."""
        if verdict := proposed.details.get("verdict"):
            say(f"the search says: {verdict}. {proposed.details.get('advice') or ''}".rstrip())

    def race(self, progress: RaceProgress) -> None:
        left = progress.run_seconds_left
        if not math.isfinite(left):
            part = "train" if progress.rung is None else "race"
            left = self._left.now(part, progress.seconds_left if math.isfinite(progress.seconds_left) else 0.0)
        self._line.racing(progress, self._told(progress.best) if progress.best else "", left)

    def _told(self, order: Order) -> str:
        return f"{_named(self._source.about_order(order))}{by_name(order, self._source.names.targets)}"


def show_discovery(result: dict[str, Any]) -> None:
    """The race as a table, then the answer. Its first line follows the verdict, and nothing after it says otherwise."""
    found = findings_of(result)
    _show_race(result)
    say(_headline(result, found))
    if found.advice:
        say(found.advice)
    if result.get("constraints"):
        say(f"among the orders that were allowed: {Constraints.from_dict(result['constraints'])}")
    if found.keeps_given and not found.repaired and result["order"] != result["given_order"]:
        say(f"the result holds another order, that of search and race: {_named(result)}")
    if found.race_decided:
        _show_race_decision(result)
    if result.get("not_shown_because") and not found.keeps_given and result["order"] != result["given_order"]:
        say(f"not shown by training: {result['not_shown_because']}")
    if "cost_ratio" in result:
        say(f"it costs {result['cost_ratio']:.2f} times the operations of the best order")
    _show_dependencies(result, found)
    if "success_rate" in result:
        _show_success(result, found)
    seconds = ", ".join(f"{name} {duration(part)}" for name, part in result["seconds"].items())
    say(f"time: {seconds}")


def _show_race(result: dict[str, Any]) -> None:
    rows = result.get("race") or []
    if not rows:
        return
    true = "cost_ratio" in result
    table = Table("loss", "steps", "success", "", *(["cost", "order (true indices)"] if true else ["order"]), box=None)
    for place, row in enumerate(rows):
        loss = "diverged" if row["losses"][-1] is None else f"{row['losses'][-1]:.4f}"
        tied = "tied" if place and row["tied_with_best"] else ""
        cost = [f"{row['cost_ratio']:.2f}"] if true else []
        table.add_row(loss, f"{row['steps'][-1]:,}", percent(row["success_rates"][-1]), tied, *cost, _indices(row))
    type(screen)(soft_wrap=False).print(table)
    if (unigram := result.get("unigram_loss")) is not None:
        say(f"losses are per target token; the unigram baseline is {unigram:.4f}")


def _headline(result: dict[str, Any], found: Findings) -> str:
    order = f"{_named(result)}{by_name(result['order'], result.get('target_names'))}"
    if found.repaired:
        return f"{found.verdict}: the given order is kept, changed where the constraints require it: {order}"
    if found.keeps_given:
        kept = "the given order is kept" if found.verdict == NOTHING_LEARNT else "keep the given order"
        return f"{found.verdict}: {kept}"
    lead = {None: "found", NOT_SETTLED: "not settled: best order so far"}.get(found.verdict, found.verdict)
    return f"{lead}: {order}"


def _show_race_decision(result: dict[str, Any]) -> None:
    if result["tied_orders"]:
        others = "; ".join(_indices(row) for row in result["race"] if row["order"] in result["tied_orders"])
        say(f"the race could not separate it from these: {others}")
    if result["order"] != result["proposed"]["proposals"][0]["order"]:
        say("the race preferred it to the order that the search put first")


def _show_dependencies(result: dict[str, Any], found: Findings) -> None:
    """What each target is computed from, a line each in the order of emission, and the evidence for it."""
    x, target = result.get("input_names"), partial(target_name, result)
    if variables := result["proposed"]["details"].get("variables"):
        lines = (f"{listed([*map(target, line[:_SHOWN])])}{' ...' if len(line) > _SHOWN else ''}" for line in variables)
        say(f"the targets are {len(variables)} variables over {len(variables[0])} times: {'; '.join(lines)}")
    if not found.dependencies:
        return
    by_target = {dependency.target: dependency for dependency in found.dependencies}
    rows = [by_target[column] for column in result["order"] if column in by_target]
    say("computed from, in the order of emission:")
    for row in rows[:_RECIPE_LINES]:
        say(f"  {recipe(row, target, lambda i: visible(x[i], NAME_WIDTH) if x else f'x{i}')}")
    if len(rows) > _RECIPE_LINES:
        say(f"  ... {len(rows) - _RECIPE_LINES:,} more in the report")
    say(evidence_line(rows))


def _show_success(result: dict[str, Any], found: Findings) -> None:
    low, high = result["success_rate_interval"]
    say(
        f"success rate {percent(result['success_rate'])} ({percent(low)} to {percent(high)}) "
        f"on {result['samples']} test samples"
    )
    if "given_failed" in result:
        say(f"in the given order the training failed: {result['given_failed']}")
    same = found.keeps_given and result["order"] == result["given_order"]
    if result["success_rate_given_order"] is not None and not same:
        say(f"in the given order: {percent(result['success_rate_given_order'])}")
    say(f"model in {Path(result['run_dir']) / 'model'}, trained for {count_of(result['steps'], 'step')}")
    if hint := training_hint(result, "--set final.training.steps={}"):
        say(hint)


def _named(about: dict[str, Any]) -> str:
    """An order in short form; of a built-in task, in its true indices."""
    true = f" (true indices, cost {about['cost_ratio']:.2f})" if "cost_ratio" in about else ""
    return f"{_indices(about)}{true}"


def _indices(about: dict[str, Any]) -> str:
    return abbreviated(Order(tuple(about.get("order_in_true_indices", about["order"]))))
