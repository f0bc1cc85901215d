"""Several runs side by side: what they found, how well it does, how long it took."""

from typing import Any

from genorder.analysis import pairs_in_sequence
from genorder.reports import figures
from genorder.reports.answer import Answer
from genorder.reports.run import ReportedRun
from genorder.reports.sections import Part, Section
from genorder.reports.tables import Cell, Column, Matrix, Table, ranked_rows, time_table
from genorder.reports.wording import count_of, percent, visible

_NOTE = (
    "Loss: of the first order in the race or the ranking; of train, on the test samples. Comparable between runs of "
    "the same data, verb and settings only."
)


def run_labels(runs: list[ReportedRun]) -> list[str]:
    """The names of the directories; of two that are alike, with the folder they are in."""
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
        best = ranked_rows(run)
        rows.append(
            (
                label,
                run.verb,
                run.state,
                run.title,
                run.config.get("strategy") or run.config.get("judge"),
                run.config.get("seed"),
                run.result.get("success_rate"),
                run.result.get("success_rate_given_order"),
                best[0]["loss"] if best else run.result.get("loss"),
                run.result.get("cost_ratio", best[0].get("cost_ratio") if best else None),
                total_seconds(run),
                run.findings.verdict,
                run.order_text(run.order, 12) if run.order else None,
            )
        )
    return Table(columns, rows, _NOTE)


def total_seconds(run: ReportedRun) -> float:
    return sum(float(value or 0.0) for value in time_table(run).column("seconds"))


def order_agreement(runs: list[ReportedRun]) -> Matrix | None:
    """Share of the pairs of targets that two runs' orders put in the same sequence, for the runs of the same data.

    None where no two runs have an order of the same data; of several datasets, the one of most runs counts.
    """
    ordered = [run for run in runs if run.order is not None]
    groups = [[run for run in ordered if _data(run) == data] for data in dict.fromkeys(map(_data, ordered))]
    alike = max(groups, key=len, default=[])
    if len(alike) < 2:
        return None
    orders = [run.order for run in alike if run.order is not None]
    values = [[round(pairs_in_sequence(one, other), 4) for other in orders] for one in orders]
    return Matrix(run_labels(alike), values)


def _data(run: ReportedRun) -> object:
    return run.config.get("data", {}).get("fingerprint")


def rate_series(runs: list[ReportedRun]) -> dict[str, list[tuple[float, float, float] | None]]:
    """Success rates with their intervals, of the found and of the given order."""

    def rate(result: dict[str, Any] | None) -> tuple[float, float, float] | None:
        if not result or "success_rate" not in result:
            return None
        low, high = result["success_rate_interval"]
        return result["success_rate"], low, high

    return {
        "this order": [rate(run.result) for run in runs],
        "given order": [rate(run.result.get("given")) for run in runs],
    }


def compared_answer(runs: list[ReportedRun]) -> Answer:
    tested = [(label, run) for label, run in zip(run_labels(runs), runs, strict=True) if "success_rate" in run.result]
    finished = sum(run.state == "finished" for run in runs)
    evidence = [f"{count_of(finished, 'run')} finished, {len(runs) - finished} not"]
    if not tested:
        return Answer("None of these runs trained a model to the end.", evidence)
    label, best = max(tested, key=lambda pair: float(pair[1].result["success_rate"]))
    alike = len({_data(run) for run in runs}) == 1
    evidence.append("all on the same data" if alike else "on different data: rates are not comparable as such")
    return Answer(f"The highest success rate is that of {label}: {percent(best.result['success_rate'])}.", evidence)


def comparison_sections(runs: list[ReportedRun]) -> list[Section]:
    labels = run_labels(runs)
    sections = [Section("runs", "The runs", [], [Part(comparison_table(runs), "All runs", open=True)])]
    series = {name: rates for name, rates in rate_series(runs).items() if any(rate is not None for rate in rates)}
    if series:
        rates = _rates_table(labels, series)
        parts = [Part(rates, "Success rates", figures.rates_drawing(labels, series))]
        sections.append(Section("rates", "Success rates", ["Bars are 95 % intervals."], parts))
    matrix = order_agreement(runs)
    if matrix is not None:
        sections.append(_agreement_section(matrix))
    sections.append(Section("time", "Where the time went", [], [_time_part(runs, labels)]))
    return sections


def _rates_table(labels: list[str], series: dict[str, list[tuple[float, float, float] | None]]) -> Table:
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
    drawing = figures.matrix_drawing(
        "agreement", "Agreement of the orders", description, matrix, "share", axes=("", ""), blank="nothing"
    )
    prose = [
        "The share of the pairs of targets that two orders put in the same sequence: 100 % is the same order, 50 % "
        "what chance gives, 0 % the reverse."
    ]
    return Section("agreement", "Do the orders agree?", prose, [Part(table, "Agreement", drawing)])


def _time_part(runs: list[ReportedRun], labels: list[str]) -> Part:
    rows: list[tuple[Cell, ...]] = [(label, total_seconds(run)) for label, run in zip(labels, runs, strict=True)]
    table = Table((Column("run"), Column("seconds", "seconds")), rows)
    return Part(table, "Seconds", figures.time_drawing(table, "run", "Seconds by run"))
