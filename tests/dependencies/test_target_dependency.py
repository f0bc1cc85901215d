"""What a target is computed from, as results keep it."""

import json

import pytest

from genorder.dependencies.graph import Determinant, TargetDependency, is_topological
from genorder.orders import Order

MINED = TargetDependency(target=1, inputs=(0, 3), targets=(2,), found_by="counting", pairs=1000, violations=20)
POINTER = TargetDependency(
    target=0, inputs=(0, 1, 2), targets=(1,), found_by="counting", pairs=9, violations=0, pointer=True, choosers=(2,)
)
LEARNED = TargetDependency(target=2, inputs=(1,), loss=0.25, loss_without={"x1": 1.5})
UNKNOWN = TargetDependency(target=3, found_by="none")


@pytest.mark.parametrize("one", [MINED, POINTER, LEARNED, UNKNOWN], ids=lambda one: one.found_by)
def test_there_and_back_by_json(one: TargetDependency) -> None:
    assert TargetDependency.from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False))) == one


def test_rows_of_earlier_versions() -> None:
    row = {"target": 2, "inputs": [1], "targets": [], "loss": 0.25, "loss_without": {"x1": 1.5}}
    assert TargetDependency.from_dict(row) == LEARNED
    assert (
        TargetDependency.from_dict({"target": 3, "inputs": [], "targets": [], "loss_without": None}).found_by == "model"
    )


def test_of_a_determinant() -> None:
    """Positions are those of the inputs, then of the targets."""
    assert TargetDependency.of(Determinant(1, (0, 3, 6), 50, 1000, 20), 4) == MINED
    assert TargetDependency.of(Determinant(0, (2, 4), 5, 9, 0, pointer=True), 3) == POINTER


def test_the_rate_of_violations() -> None:
    assert MINED.violation_rate == 0.02
    assert POINTER.violation_rate == 0
    assert LEARNED.violation_rate is None
    assert TargetDependency(target=0, found_by="counting", pairs=0, violations=0).violation_rate is None


@pytest.mark.parametrize(
    ("order", "expected"), [((2, 1, 0, 3), True), ((3, 2, 1, 0), True), ((1, 2, 0, 3), False), ((2, 0, 1, 3), False)]
)
def test_topological_orders(order: tuple[int, ...], expected: bool) -> None:
    """0 reads 1, and 1 reads 2."""
    assert is_topological(Order(order), [POINTER, MINED, LEARNED, UNKNOWN]) == expected
    assert is_topological(Order(order), [])
