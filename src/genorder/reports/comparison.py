"""Several runs side by side: what they found, how well it does, how long it took."""

from genorder.analysis import pairs_in_sequence
from genorder.outcomes import TrainedModel
from genorder.reports import figures
from genorder.reports.answer import Answer
from genorder.reports.run import ReportedRun
from genorder.reports.sections import Part, Section
from genorder.reports.tables import Cell, Column, Matrix, Table, ranking_of, time_table
from genorder.reports.wording import count_of, percent, visible

_NOTE = (
    "Loss: of the first order in the race or the ranking; of train, on the test samples. Comparable between runs of "
    "the same data, verb and settings only."
)

Rate = tuple[float, float, float]  # success rate, and the ends of its interval


def run_labels(runs: list[ReportedRun]) -> list[str]:
    """The names of the directories, with the parent folder where two names are alike."""
    names = [run.path.resolve().name for run in runs]
    return [
        visible(name if names.count(name) == 1 else f"{run.path.resolve().parent.name}/{name}")
        for run, name in zip(runs, names, strict=True)
    ]


def comparison_table(runs: list[ReportedRun]) -> Table:
    columns = (
        Column("run"), Column("verb"), Column("state"), Column("data"), Column("strategy or judge"),
        Column("seed", "count"), Column("success rate", "rate"), Column("given order", "rate"),
        Column("loss", "number"), Column("cost ratio", "number"), Column("time", "seconds"), Column("verdict"),
        Column("order"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for label, run in zip(run_labels(runs), runs, strict=True):
        rate, given = _rate(_model(run)), _rate(_given(run))
        rows.append(
            (
                label,
                run.verb,
                run.state,
                run.title,
                run.config.get("strategy") or run.config.get("judge"),
                run.config.get("seed"),
                rate[0] if rate else None,
                given[0] if given else None,
                _loss(run),
                run.outcome.cost_ratio if run.outcome else None,
                total_seconds(run),
                run.discovery.verdict if run.discovery else None,
                run.order_text(run.order, 12) if run.order else None,
            )
        )
    return Table(columns, rows, _NOTE)


def _loss(run: ReportedRun) -> float | None:
    if ranking := ranking_of(run):
        return ranking[0].loss
    model = _model(run)
    return model.evaluation.loss if model else None


def _model(run: ReportedRun) -> TrainedModel | None:
    return run.outcome.models.get("model") if run.outcome else None


def _given(run: ReportedRun) -> TrainedModel | None:
    return run.discovery.given if run.discovery else None


def _rate(model: TrainedModel | None) -> Rate | None:
    return (model.evaluation.success_rate, *model.evaluation.success_rate_interval) if model else None


def total_seconds(run: ReportedRun) -> float:
    return sum(time_table(run).numbers("seconds"))


def order_agreement(runs: list[ReportedRun]) -> Matrix | None:
    """The share of the pairs of targets that two runs' orders put in the same sequence.

    Of several datasets, the one with most runs is compared. None if no two runs have an order of the same data.
    """
    ordered = [(run, run.order) for run in runs if run.order is not None]
    datasets = dict.fromkeys(_data(run) for run, _ in ordered)
    groups = [[pair for pair in ordered if _data(pair[0]) == data] for data in datasets]
    alike = max(groups, key=len, default=[])
    if len(alike) < 2:
        return None
    values = [[round(pairs_in_sequence(one, other), 4) for _, other in alike] for _, one in alike]
    return Matrix(run_labels([run for run, _ in alike]), values)


def _data(run: ReportedRun) -> object:
    return run.config.get("data", {}).get("fingerprint")


def rate_series(runs: list[ReportedRun]) -> dict[str, list[Rate | None]]:
    """Success rates with their intervals, of each run's order and of the given order."""
    return {
        "this order": [_rate(_model(run)) for run in runs],
        "given order": [_rate(_given(run)) for run in runs],
    }


def compared_answer(runs: list[ReportedRun]) -> Answer:
    labelled = zip(run_labels(runs), runs, strict=True)
    rates = [(rate[0], label) for label, run in labelled if (rate := _rate(_model(run)))]
    finished = sum(run.state == "finished" for run in runs)
    evidence = [f"{count_of(finished, 'run')} finished, {len(runs) - finished} not"]
    if not rates:
        return Answer("None of these runs trained a model to the end.", evidence)
    best, label = max(rates, key=lambda pair: pair[0])
    alike = len({_data(run) for run in runs}) == 1
    evidence.append("all on the same data" if alike else "on different data: the rates are not comparable")
    return Answer(f"The highest success rate is that of {label}: {percent(best)}.", evidence)


def comparison_sections(runs: list[ReportedRun]) -> list[Section]:
    labels = run_labels(runs)
    sections = [Section("runs", "The runs", [], [Part(comparison_table(runs), "All runs", open=True)])]
    series = {name: rates for name, rates in rate_series(runs).items() if any(rate is not None for rate in rates)}
    if series:
        parts = [Part(_rates_table(labels, series), "Success rates", figures.rates_figure(labels, series))]
        sections.append(Section("rates", "Success rates", ["Bars are 95 % intervals."], parts))
    matrix = order_agreement(runs)
    if matrix is not None:
        sections.append(_agreement_section(matrix))
    times = Table(
        (Column("run"), Column("seconds", "seconds")),
        [(label, total_seconds(run)) for label, run in zip(labels, runs, strict=True)],
    )
    part = Part(times, "Seconds", figures.time_figure(times, "run", "Seconds by run"))
    return [*sections, Section("time", "Where the time went", [], [part])]


def _rates_table(labels: list[str], series: dict[str, list[Rate | None]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (label, name, *rate) for place, label in enumerate(labels) for name, rates in series.items()
        if (rate := rates[place]) is not None
    ]  # fmt: skip
    columns = (Column("run"), Column("order"), Column("success rate", "rate"), Column("low", "rate"),
               Column("high", "rate"))  # fmt: skip
    return Table(columns, rows)


def _agreement_section(matrix: Matrix) -> Section:
    columns = (Column("run"), *(Column(name, "rate") for name in matrix.names))
    table = Table(columns, [(name, *row) for name, row in zip(matrix.names, matrix.values, strict=True)])
    description = f"Share of the pairs of targets in the same sequence, for {len(matrix.names)} runs by one another."
    figure = figures.matrix_figure(
        "agreement", "Agreement of the orders", description, matrix, "share", axes=("", ""), blank="nothing"
    )
    prose = [
        "The share of the pairs of targets that two orders put in the same sequence: 100 % for the same order, 50 % by "
        "chance, 0 % for the reverse."
    ]
    return Section("agreement", "Do the orders agree?", prose, [Part(table, "Agreement", figure)])
