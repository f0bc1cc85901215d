"""The five orders that the paper compares on each delay network."""

import networkx
import pytest

from genorder.orders import Order
from genorder.tasks import Task, make_task, task_names

NETWORKS = [name for name in task_names() if name.startswith("delay-")]
NAMES = ["time_first", "variable_first_topological", "dependency_sorted", "causal_depth", "reverse"]
LENGTH = 36

every_network = pytest.mark.parametrize("network", NETWORKS)


def respects_dependencies(order: Order, task: Task) -> bool:
    graph = task.dependencies()
    step_of = order.inverse()
    return all(step_of[p] < step_of[t] for t in range(graph.targets) for p in graph.target_parents(t))


def letters(order: Order) -> str:
    return "".join("abcd"[target % 4] for target in order)


@every_network
@pytest.mark.parametrize("length", [4, 12, LENGTH])
def test_five_names_each_an_order_of_all_targets(network: str, length: int) -> None:
    orders = make_task(network, length).hand_designed_orders()
    assert list(orders) == NAMES
    assert all(len(order) == length for order in orders.values())


@every_network
@pytest.mark.parametrize("name", NAMES)
def test_all_except_the_reverse_are_topological_sorts(network: str, name: str) -> None:
    """No network reads a value of its own time step, not even through a latent: time-major orders are all valid."""
    task = make_task(network, LENGTH)
    assert respects_dependencies(task.hand_designed_orders()[name], task) == (name != "reverse")


@every_network
def test_time_major_orders_differ_only_within_a_time_step(network: str) -> None:
    orders = make_task(network, LENGTH).hand_designed_orders()
    assert orders["time_first"] == Order.forward(LENGTH)
    assert orders["reverse"] == Order.reverse(LENGTH)
    for name, within in {"dependency_sorted": "badc", "causal_depth": "adbc"}.items():
        assert letters(orders[name]) == within * 9
        assert [target // 4 for target in orders[name]] == [time for time in range(9) for _ in range(4)]


@every_network
@pytest.mark.parametrize("length", [4, 8, LENGTH])
def test_variable_first_takes_a_before_b_before_c_before_d(network: str, length: int) -> None:
    task = make_task(network, length)
    graph = task.dependencies()
    known = networkx.DiGraph()
    known.add_nodes_from(range(length))
    known.add_edges_from((parent, target) for target in range(length) for parent in graph.target_parents(target))
    expected = networkx.lexicographical_topological_sort(known, key=lambda target: (target % 4, target // 4))
    assert list(task.hand_designed_orders()["variable_first_topological"]) == list(expected)


def test_variable_first_by_hand() -> None:
    """ReLU network, two time steps: a(4) needs b(3); b(4) needs a(3), c(3); c(4) needs d(3); d(4) needs a(3)."""
    order = make_task("delay-relu", 8).hand_designed_orders()["variable_first_topological"]
    assert letters(order) == "abacbdcd"
    assert list(order) == [0, 1, 4, 2, 5, 3, 6, 7]


@every_network
def test_variable_first_interleaves_time_steps(network: str) -> None:
    order = make_task(network, LENGTH).hand_designed_orders()["variable_first_topological"]
    times = [target // 4 for target in order]
    assert times != sorted(times)


def test_other_tasks_have_none() -> None:
    task = make_task("relu", 8)
    assert task.hand_designed_orders() == {}
    assert task.variables_per_step is None
    assert make_task("delay-relu", 8).variables_per_step == 4
