import pytest

from genorder.orders import Order, cost_ratio
from genorder.tasks import Split, make_task


def walk(x: list[int], targets: int) -> list[int]:
    successors, node = x[: targets + 1], x[targets + 1]
    visited = []
    for _ in range(targets):
        node = successors[node]
        visited.append(node)
    return visited


@pytest.mark.parametrize("length", [4, 12, "3-9"])
def test_targets_are_the_nodes_visited(length: int | str) -> None:
    drawn = make_task("linked-list", length).generate(300, Split.TRAIN)
    for x, y, n in zip(drawn.inputs.tolist(), drawn.targets.tolist(), drawn.target_lengths.tolist(), strict=True):
        assert y[:n] == walk(x, n)
        assert sorted([*y[:n], x[n + 1]]) == list(range(n + 1))  # one cycle through all nodes, the start last
        assert not any(x[n + 2 :] + y[n:])


def test_cycles_and_starts_are_uniform() -> None:
    drawn = make_task("linked-list", 3).generate(6000, Split.TRAIN)
    rows = {tuple(x) for x in drawn.inputs.tolist()}
    others = {tuple(x) for split in (Split.VALIDATION, Split.TEST) for x in _inputs(split)}
    assert len(rows | others) == 6 * 4  # cycles of four nodes, times starts
    assert not rows & others


def _inputs(split: Split) -> list[list[int]]:
    return make_task("linked-list", 3).generate(500, split).inputs.tolist()  # type: ignore[no-any-return]


def test_dependencies() -> None:
    task = make_task("linked-list", 4)
    graph = task.dependencies()
    assert graph.parents == ((), (0,), (1,), (2,))
    assert graph.input_parents == ((0, 1, 2, 3, 4, 5), *((0, 1, 2, 3, 4),) * 3)
    assert task.friendly_order() == Order.forward(4)
    assert cost_ratio(Order.reverse(4), graph) == 2.5
