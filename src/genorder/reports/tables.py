"""A run as plain tables and curves, one for each part of its report; tests check these, figures are drawn from them."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Literal, final

import numpy as np

from genorder.evaluation import DecodedExample
from genorder.orders import Order
from genorder.outcomes import RankedOrder
from genorder.profiling import Profile
from genorder.reports.run import TRAINED, ReportedRun
from genorder.reports.wording import joined, visible
from genorder.search import Proposal, proposals_of
from genorder.settings import flat_settings

Cell = str | int | float | bool | None
Kind = Literal["text", "count", "number", "rate", "seconds", "mark"]

RANKING_ROWS = 200  # shown; the run directory has all of them
_CURVE_POINTS = 200  # of a loss curve; each is the mean of the steps since the point before
_SAMPLE_TOKENS, _TOKEN_WIDTH = 64, 32  # shown of each sequence of a test sample, and characters of a token
_MAP_POSITIONS = 100  # of an attention map; a larger map is pooled
_PROFILE, _ANY_ORDER, _MINING = "profile ", "any-order ", "mine dependencies"  # a search's jobs in the journal


@final
@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind = "text"


@final
@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    note: str = ""

    def column(self, name: str) -> list[Cell]:
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """A column of numbers; 0 for missing ones."""
        return [float(value or 0.0) for value in self.column(name)]


@final
@dataclass(frozen=True)
class Matrix:
    names: list[str]  # of rows and columns alike
    values: list[list[float]]


@final
@dataclass(frozen=True)
class Curve:
    name: str
    group: str
    steps: list[int]
    losses: list[float]


def order_table(run: ReportedRun) -> Table | None:
    """The target that is emitted at each step."""
    if run.order is None:
        return None
    truth = run.outcome.truth if run.outcome else None
    rows: list[tuple[Cell, ...]] = [
        (step, run.target(column), column, *((truth.true_of_column[column],) if truth else ()))
        for step, column in enumerate(run.order)
    ]
    columns = (Column("step", "count"), Column("target"), Column("place in the given order", "count"))
    return Table((*columns, *((Column("true index", "count"),) if truth else ())), rows)


def ranking_of(run: ReportedRun) -> list[RankedOrder]:
    """The orders from best to worst: the ranking of `rank`, the race of `discover`."""
    return run.outcome.ranking if run.outcome else []


def ranking_table(run: ReportedRun, most: int = RANKING_ROWS) -> Table | None:
    ranking = ranking_of(run)
    if not ranking:
        return None
    raced = ranking[0].steps is not None
    truth = run.outcome.truth if run.outcome else None
    columns = [Column("rank", "count"), Column("order"), Column("known as")]
    columns += [Column("loss", "number"), Column("± error", "number"), Column("tied with the best", "mark")]
    columns += [Column("steps", "count")] if raced else [Column("validation samples", "count")]
    columns += [Column("in true indices"), Column("cost ratio", "number")] if truth else []
    rows: list[tuple[Cell, ...]] = [
        (
            rank,
            run.order_text(one.order, 12),
            known_as(run, one.order),
            one.loss,
            one.standard_error,
            one.tied_with_best,
            one.steps if raced else one.samples,
            *((run.true_text(one.order), truth.cost_ratios.get(one.order)) if truth else ()),
        )
        for rank, one in enumerate(ranking[:most], start=1)
    ]
    note = "" if len(ranking) <= most else f"The first {most:,} of {len(ranking):,}; all of them are in ranking.csv."
    return Table(tuple(columns), rows, note)


def known_as(run: ReportedRun, order: Order) -> str:
    """`found`, `given`, `given, reversed`, or nothing."""
    names = ["found"] if run.discovery and order == run.order and not run.keeps_given else []
    names += ["given"] if order == Order.forward(len(order)) else []
    names += ["given, reversed"] if order == Order.reverse(len(order)) and "given" not in names else []
    return ", ".join(names)


def _curve_name(run: ReportedRun, rank: int, order: Order) -> str:
    """A short name, for a legend."""
    first = joined([run.target(column) for column in list(order)[:4]])
    return f"{rank}: {known_as(run, order) or f'{first} …'}"


def race_curves(run: ReportedRun) -> list[Curve]:
    """The training losses of the orders of a race, over all rungs."""
    return [
        Curve(_curve_name(run, rank, one.order), str(rank), *thinned(losses))
        for rank, one in enumerate(ranking_of(run), start=1)
        if (losses := one.training_losses)
    ]


def candidate_curves(run: ReportedRun) -> list[Curve]:
    """The validation losses of the candidates of a mixture run, at some steps and at the last; best candidate first."""
    steps = run.ranked.curve_steps if run.ranked else None
    if not steps:
        return []
    last = run.config["config"]["profiler"]["training"]["steps"]
    curves = []
    for rank, one in enumerate(ranking_of(run), start=1):
        losses = [loss for loss in [*one.curve, one.loss] if loss is not None]
        if len(losses) == len(steps) + 1:  # all finite
            curves.append(Curve(_curve_name(run, rank, one.order), str(rank), [*steps, last], losses))
    return curves


def training_curves(run: ReportedRun) -> list[Curve]:
    """The losses of the final trainings, or of the models of `train` and `analyze`."""
    names = [*(name for name in TRAINED if name in run.training_losses), *sorted(run.training_losses.keys() - TRAINED)]
    attention = run.attended.attention if run.attended else []
    titles = {f"model-{place}": visible(entry.name) for place, entry in enumerate(attention)}
    return [
        Curve(titles.get(name) or run.trained_title(name), name, *thinned(run.training_losses[name])) for name in names
    ]


def curve_table(curves: Sequence[Curve]) -> Table:
    """Each curve at four moments."""
    rows: list[tuple[Cell, ...]] = []
    for curve in curves:
        places = [round(share * (len(curve.losses) - 1)) for share in (0, 1 / 3, 2 / 3, 1)]
        rows.append((curve.name, curve.steps[-1], *(curve.losses[place] for place in places)))
    moments = ("first loss", "after a third", "after two thirds", "last loss")
    columns = (Column("order"), Column("steps", "count"))
    return Table((*columns, *(Column(moment, "number") for moment in moments)), rows)


def thinned(losses: Sequence[float], points: int = _CURVE_POINTS) -> tuple[list[int], list[float]]:
    """Steps and losses; each loss is the mean of the steps since the point before. Steps count from 1."""
    edges = np.unique(np.linspace(0, len(losses), min(points, len(losses)) + 1).round().astype(int))
    means = [float(np.mean(losses[start:end])) for start, end in pairwise(edges)]
    return edges[1:].tolist(), [float(f"{mean:.5g}") for mean in means]


def position_table(run: ReportedRun) -> Table | None:
    """The error rate and the loss of every target on the test split, in the order of emission."""
    models = run.outcome.models if run.outcome else {}
    if run.order is None or "model" not in models:
        return None
    tested = [models[name].evaluation for name in TRAINED if name in models]
    columns = [Column("step", "count"), Column("target"), Column("error rate", "rate"), Column("loss", "number")]
    if len(tested) > 1:
        columns += [Column("error rate, given order", "rate"), Column("loss, given order", "number")]
    rows: list[tuple[Cell, ...]] = []
    for step, column in enumerate(run.order):
        values = [value for one in tested for value in (one.error_rate_by_target[column], one.loss_by_target[column])]
        rows.append((step, run.target(column), *values))
    return Table(tuple(columns), rows)


def time_table(run: ReportedRun) -> Table:
    """Seconds by part of a finished run, or by name of the finished jobs of an unfinished one."""
    parts = dict(run.outcome.seconds_by_part) if run.outcome else {}
    if not parts:
        for job in run.jobs:
            parts[job.name] = parts.get(job.name, 0.0) + job.seconds
    whole = sum(parts.values()) or 1.0
    rows: list[tuple[Cell, ...]] = [(visible(name), seconds, seconds / whole) for name, seconds in parts.items()]
    return Table((Column("part"), Column("seconds", "seconds"), Column("share", "rate")), rows)


# Attention


def sparsity_table(run: ReportedRun) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (visible(entry.name), entry.sparsity, entry.success_rate, entry.loss)
        for entry in (run.attended.attention if run.attended else [])
    ]
    columns = (Column("order"), Column("S", "number"), Column("success rate", "rate"), Column("test loss", "number"))
    return Table(columns, rows, "S: mean entropy of the rows of the attention map, in nats.")


def attention_matrix(run: ReportedRun, order: Order, weights: Sequence[Sequence[float]]) -> Matrix:
    """The attention map of a model; of a large one, the largest weight of each square of neighbours."""
    values = np.array(weights)
    inputs = len(values) - 1 - len(order)
    names = [run.input(i) for i in range(inputs)] + ["SEP"] + [run.target(column) for column in order]
    side = -(-len(values) // _MAP_POSITIONS)
    if side > 1:
        starts = np.arange(0, len(values), side)
        values = np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=0), starts, axis=1)
        names = names[::side]
    return Matrix(names, values.round(3).tolist())


# Test samples


@final
@dataclass(frozen=True)
class Token:
    target: str  # the name of its column
    generated: str  # cut short, as is `expected`: two long tokens may look alike and differ
    expected: str
    right: bool


@final
@dataclass(frozen=True)
class Sample:
    row: int
    right: bool
    inputs: list[str]
    tokens: list[Token]  # in the order of emission
    cut: int  # number of tokens that are not shown


def samples_of(run: ReportedRun, name: str) -> list[Sample]:
    """Test samples of the model in the folder `name`, token by token; empty if the run kept none."""
    models = run.outcome.models if run.outcome else {}
    if name not in models or run.order is None:
        return []
    order = Order.forward(len(run.order)) if name == "given" else run.order
    return [_sample(run, example, order) for example in models[name].examples]


def _sample(run: ReportedRun, example: DecodedExample, order: Order) -> Sample:
    length = len(example.expected) - 1 if example.length is None else example.length
    input_length = len(example.input) if example.input_length is None else example.input_length
    names = [run.target(column) for column in order if column < length]
    pairs = zip(example.generated[:_SAMPLE_TOKENS], example.expected[:_SAMPLE_TOKENS], strict=True)
    tokens = [
        Token(names[step] if step < len(names) else "end", _shown(made), _shown(wanted), made == wanted)
        for step, (made, wanted) in enumerate(pairs)
    ]
    inputs = [_shown(token) for token in example.input[:_SAMPLE_TOKENS]]
    cut = length + 1 - len(tokens) + input_length - len(inputs)
    return Sample(example.row, example.right, inputs, tokens, cut)


def _shown(token: str) -> str:
    return visible(token, _TOKEN_WIDTH) or "''"


# The path of the search


def path_table(run: ReportedRun) -> Table | None:
    """The stages of a search: candidates, survivors and the best order; of an unfinished run, the stages so far."""
    stages = run.discovery.search.stages if run.discovery else []
    rows = [
        _stage_row(
            run, stage.name, stage.candidates, stage.kept, stage.best[0] if stage.best else None,
            sum(stage.seconds.values()),
        )
        for stage in stages
    ] or list(_stages_so_far(run))  # fmt: skip
    if not rows:
        return None
    columns = (
        Column("stage"), Column("candidates", "count"), Column("kept", "count"), Column("best loss", "number"),
        Column("best order"), Column("seconds", "seconds"),
    )  # fmt: skip
    note = "Losses of different stages come from different models and are not comparable." if len(rows) > 1 else ""
    return Table(columns, rows, note)


def _stage_row(
    run: ReportedRun, name: str, candidates: int, kept: int | None, best: Proposal | None, seconds: float
) -> tuple[Cell, ...]:
    order = run.order_text(best.order, 12) if best else None
    return name, candidates, kept, best.loss if best else None, order, seconds


def _stages_so_far(run: ReportedRun) -> Iterator[tuple[Cell, ...]]:
    """From the jobs in the journal. The learned oracle orders the targets that mining has left open."""
    mined: set[int] = set()
    for job in run.jobs:
        result: Mapping[str, Any] = job.result
        if job.name == _MINING:
            mined |= {row["target"] for row in result.get("known", [])}
        elif job.name.startswith(_PROFILE) and result.get("orders"):
            profile = Profile.from_dict(job.result)
            seconds = profile.train_seconds + profile.score_seconds
            name, best = job.name.removeprefix(_PROFILE), next(iter(proposals_of(profile, 1)), None)
            yield _stage_row(run, name, len(profile.orders), None, best, seconds)
        elif job.name.startswith(_ANY_ORDER) and (rows := result.get("proposals")):
            first = rows[0]
            left_open = [target for target in range(len(mined) + len(first["order"])) if target not in mined]
            order = run.order_text([left_open[place] for place in first["order"]], 12)
            yield job.name, len(rows), None, first["loss"], order, job.seconds


# How to repeat the run


def configuration_table(run: ReportedRun) -> Table:
    """Every setting, by the name that --set takes."""
    shown = {name: value for name, value in run.config.items() if name not in ("config", "order")}
    rows: list[tuple[Cell, ...]] = [
        (visible(name), visible(str(value), 200))
        for name, value in (*flat_settings(shown), *flat_settings(run.config.get("config", {})))
    ]
    return Table((Column("setting"), Column("value")), rows)


def versions_table(run: ReportedRun) -> Table | None:
    versions = run.starts[-1].get("versions") if run.starts else None
    if not versions:
        return None
    rows: list[tuple[Cell, ...]] = [
        (name, visible(str(value), 200)) for name, value in flat_settings(versions) if value is not None
    ]
    return Table((Column("what"), Column("version or size")), rows)


def command(run: ReportedRun) -> str | None:
    """The command that repeats the run, as one would type it."""
    if not run.starts:
        return None
    program, *arguments = run.starts[0].get("command") or [""]
    if not program:
        return None
    name = "genorder" if PurePath(program).name in ("genorder", "__main__.py") else PurePath(program).name
    return visible(shlex.join([name, *arguments]), 2000)
