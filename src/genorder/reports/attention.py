"""The attention of models of several orders: a table of its sparsity, and a map of each."""

import numpy as np

from genorder.reports.figures import Drawing, matrix_drawing
from genorder.reports.run import ReportedRun
from genorder.reports.tables import Cell, Column, Matrix, Table

_MOST_POSITIONS = 100  # of a map that is drawn; larger ones are shown by the largest weight of each square


def sparsity_table(run: ReportedRun) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (row["name"], row["sparsity"], row["success_rate"], row["loss"]) for row in run.attention
    ]
    columns = (Column("order"), Column("S", "number"), Column("success rate", "rate"), Column("test loss", "number"))
    return Table(columns, rows, "S: mean entropy of the rows of the attention map, in nats.")


def attention_matrix(run: ReportedRun, place: int) -> Matrix:
    """The map of one order, its positions named; a long one pooled to squares of neighbours."""
    row = run.attention[place]
    weights = np.array(row["map"])
    inputs = len(weights) - 1 - len(row["order"])
    names = [run.input(i) for i in range(inputs)] + ["SEP"] + [run.target(column) for column in row["order"]]
    side = -(-len(weights) // _MOST_POSITIONS)
    if side > 1:
        starts = np.arange(0, len(weights), side)
        weights = np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=0), starts, axis=1)
        names = names[::side]
    return Matrix(names, weights.round(3).tolist())


def attention_section_parts(run: ReportedRun) -> tuple[Table, list[Drawing]]:
    drawings = [
        matrix_drawing(
            f"attention-{place}",
            f"{row['name']}: S = {row['sparsity']:.3f}",
            f"Attention map of the model trained in the order {row['name']}; S is {row['sparsity']:.3f} nats.",
            attention_matrix(run, place),
            "weight",
            axes=("is read", "reads"),
            blank="upper",
        )
        for place, row in enumerate(run.attention)
    ]
    return sparsity_table(run), drawings
