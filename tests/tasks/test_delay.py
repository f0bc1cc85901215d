import math
from collections.abc import Callable

import numpy as np
import pytest

from genorder.errors import InputError
from genorder.orders import Order, cost_ratio
from genorder.tasks import DelayTask, Split, make_task

State = dict[str, int]
BOUNDED = ("mixed", "asymmetric", "square", "sine", "modular")


def relu(z: int) -> int:
    return max(z, 0)


def sq19(z: int) -> int:
    return z**2 % 19 - 9


def mod19(z: int) -> int:
    return z % 19


def sine32(z: int) -> int:
    return (math.floor(15 * math.sin(2 * math.pi * z / 10)) + 16) % 32


def coupled(f: Callable[[int], int]) -> Callable[[State, State], State]:
    def rule(t: State, t1: State) -> State:
        return {
            "a": f(t1["b"] + t["d"]),
            "b": f(t1["a"] - t1["c"]),
            "c": f(t["b"] + t1["d"]),
            "d": f(t1["a"] + t["c"]),
        }

    return rule


def relu_rule(t: State, t1: State) -> State:
    return {
        "a": relu(t1["b"] + t["d"]),
        "b": t1["a"] - t1["c"],
        "c": t["b"] + t1["d"],
        "d": relu(t1["a"] + t["c"]),
    }


def hidden_cause_rule(t: State, t1: State) -> State:
    h = relu(t1["a"] - t["d"])
    return {
        "h": h,
        "a": relu(t1["b"] + t1["h"]),
        "b": t1["a"] - t1["c"],
        "c": t["b"] + t1["d"],
        "d": relu(h + t["c"]),
    }


def coupled_ring_rule(t: State, t1: State) -> State:
    return {
        "a": relu(t1["b"] - t["d"]),
        "b": relu(t1["c"] - t["a"]),
        "c": relu(t1["d"] - t["b"]),
        "d": relu(t1["a"] - t["c"]),
    }


def modular_rule(t: State, t1: State) -> State:
    return {
        "a": (t1["b"] + t["d"]) % 19,
        "b": (t1["a"] - t1["c"]) % 19,
        "c": (t["b"] * t1["d"]) % 19,
        "d": (t1["a"] + t["c"]) % 19,
    }


def mixed_rule(t: State, t1: State) -> State:
    return {
        "a": relu(t1["b"] - t["d"] + sq19(t["c"])),
        "b": mod19(t1["a"] ** 2 + t1["c"] - t["d"]),
        "c": sq19(t["b"] + t1["d"]) - relu(t["a"]),
        "d": relu(t1["a"] + t["c"] - mod19(t1["b"])),
    }


def asymmetric_rule(t: State, t1: State) -> State:
    return {
        "a": sq19(t1["b"] + t["d"]),
        "b": mod19(t1["a"] ** 2 - 2 * t1["c"] + t["c"]),
        "c": relu(t["b"] - t1["d"]),
        "d": relu(t1["a"] + t["c"]) - mod19(t1["b"]),
    }


RULES = {
    "delay-relu": relu_rule,
    "delay-hidden-cause": hidden_cause_rule,
    "delay-coupled-ring": coupled_ring_rule,
    "delay-modular": modular_rule,
    "delay-sine": coupled(sine32),
    "delay-mixed": mixed_rule,
    "delay-square": coupled(sq19),
    "delay-asymmetric": asymmetric_rule,
}


def by_loop(name: str, x: list[int], length: int) -> list[int]:
    states: list[State] = [dict(zip("abcd", x[:4], strict=True)), dict(zip("abcd", x[4:], strict=True))]
    for state in states:
        state["h"] = 0
    y: list[int] = []
    while len(y) < length:
        states.append(RULES[name](states[-2], states[-1]))
        y += [states[-1][variable] for variable in "abcd"]
    return y


def delay(name: str, length: int | str | None = None) -> DelayTask:
    task = make_task(name, length)
    assert isinstance(task, DelayTask)
    return task


@pytest.mark.parametrize("name", RULES)
def test_targets_follow_the_rules(name: str) -> None:
    drawn = delay(name).generate(100, Split.TRAIN)
    assert drawn.targets.shape == (100, 36)
    for x, y in zip(drawn.inputs.tolist(), drawn.targets.tolist(), strict=True):
        assert y == by_loop(name, x, 36)


def test_inputs_are_two_states_within_25() -> None:
    drawn = delay("delay-relu").generate(5000, Split.TRAIN)
    assert drawn.inputs.shape == (5000, 8)
    assert set(np.unique(drawn.inputs).tolist()) == set(range(-25, 26))
    assert set(drawn.input_lengths.tolist()) == {8}


@pytest.mark.parametrize("name", RULES)
def test_variable_length_steps_by_four(name: str) -> None:
    drawn = delay(name, "8-20").generate(200, Split.TRAIN)
    assert set(drawn.target_lengths.tolist()) == {8, 12, 16, 20}
    for x, y, length in zip(drawn.inputs.tolist(), drawn.targets.tolist(), drawn.target_lengths.tolist(), strict=True):
        assert y == by_loop(name, x, length) + [0] * (20 - length)


@pytest.mark.parametrize("name", RULES)
def test_a_step_depends_exactly_on_the_declared_reads(name: str) -> None:
    network = delay(name).network
    reads = {update.variable: set(update.reads) for update in network.updates}
    for update in network.updates:  # a read of the same time step is replaced by the reads of that variable
        for variable, lag in update.reads:
            if lag == 0:
                reads[update.variable] |= reads[variable]
    rng = np.random.default_rng(0)
    history = {variable: [rng.integers(-25, 26, size=500) for _ in range(2)] for variable in network.variables}

    def outcome(changed: str | None = None, lag: int = 1) -> dict[str, np.ndarray]:
        copy = {variable: list(values) for variable, values in history.items()}
        if changed is not None:
            copy[changed][2 - lag] = copy[changed][2 - lag] + 1
        network.advance(copy)
        return {variable: values[2] for variable, values in copy.items()}

    before = outcome()
    for variable in network.variables:
        for lag in (1, 2):
            after = outcome(variable, lag)
            differing = {v for v in network.variables if (after[v] != before[v]).any()}
            assert differing == {v for v in network.variables if (variable, lag) in reads[v]}


@pytest.mark.parametrize("name", RULES)
def test_graph_has_a_path_to_each_target_that_an_input_changes(name: str) -> None:
    """A target changes with an input position exactly if the graph has a path between them."""
    task = delay(name, 16)
    graph = task.dependencies()
    drawn = task.generate(3000, Split.TRAIN)

    def ancestors(node: int) -> set[int]:
        return set(graph.input_parents[node]).union(*(ancestors(parent) for parent in graph.parents[node]))

    for position in range(8):
        differs = np.zeros(16, dtype=bool)
        for shift in (-7, 1, 5):
            changed = drawn.inputs.copy()
            changed[:, position] += shift
            differs |= (task.solve(changed, drawn.target_lengths) != drawn.targets).any(axis=0)
        reached = [position in ancestors(target) for target in range(16)]
        if (name, position) == ("delay-modular", 6):
            # a(6) = a(4) - c(4) + a(3) + c(2), and a(4) = a(2) - c(2) + d(2): both paths from c(2) cancel.
            reached[12] = False
        assert differs.tolist() == reached


def test_graph_of_relu_by_hand() -> None:
    graph = delay("delay-relu", 12).dependencies()
    a5, b5, c5, d5 = 8, 9, 10, 11
    assert graph.target_parents(a5) == {5, 3}  # b(4), d(3)
    assert graph.target_parents(b5) == {4, 6}  # a(4), c(4)
    assert graph.target_parents(c5) == {1, 7}  # b(3), d(4)
    assert graph.target_parents(d5) == {4, 2}  # a(4), c(3)
    assert graph.input_parents[0] == (5, 3)  # a(3) reads b(2), d(1)
    assert graph.input_copies == frozenset()


def test_hidden_cause_goes_through_latents() -> None:
    graph = delay("delay-hidden-cause", 12).dependencies()
    assert len(graph.parents) == 12 + 3
    assert graph.target_parents(11) == {4, 3, 2}  # d(5): h(5) reads a(4), d(3); and c(3)
    assert graph.target_parents(8) == {5, 0}  # a(5): b(4), h(4) reads a(3) and the input d(2)
    assert graph.parents[0] == ()  # a(3): b(2), and h(2) = 0


@pytest.mark.parametrize("name", RULES)
def test_time_order_is_friendly_and_optimal(name: str) -> None:
    task = delay(name)
    graph = task.dependencies()
    assert task.friendly_order() == Order.forward(36)
    assert cost_ratio(Order.forward(36), graph) == 1.0
    assert cost_ratio(Order.reverse(36), graph) > 3


@pytest.mark.parametrize("name", [f"delay-{kind}" for kind in BOUNDED])
def test_values_stay_bounded(name: str) -> None:
    targets = delay(name, 60).generate(5000, Split.TRAIN).targets  # T = 17
    assert np.abs(targets).max() <= 100
    late = targets[:, 40:]
    assert all(len(np.unique(late[:, variable::4])) >= 5 for variable in range(4))  # and do not die out


def test_asymmetric_keeps_its_bounds_for_any_length() -> None:
    targets = delay("delay-asymmetric", 400).generate(2000, Split.TRAIN).targets[:, 16:]  # from s(7) on
    bounds = {"a": (-9, 9), "b": (0, 18), "c": (0, 36), "d": (-18, 45)}
    for variable, (low, high) in enumerate(bounds.values()):
        assert low <= targets[:, variable::4].min()
        assert targets[:, variable::4].max() <= high


def test_growing_network_says_where_it_leaves_the_range() -> None:
    with pytest.raises(InputError, match="values exceed 2147483647 at target"):
        delay("delay-relu", 2000).generate(10, Split.TRAIN)


def test_split_seeds_are_the_papers() -> None:
    assert DelayTask.split_seeds == {"train": 42, "validation": 84, "test": 1337}
    assert make_task("relu").split_seeds == {"train": 42, "validation": 84, "test": 123}


@pytest.mark.parametrize("length", [2, 34, "8-18"])
def test_length_must_be_a_multiple_of_four(length: int | str) -> None:
    with pytest.raises(InputError, match="multiple of 4"):
        make_task("delay-relu", length)
