"""What determines a target is counted rightly, and an order follows from it; where the data say nothing, nothing is
said.
"""

from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from any_order_helpers import task_data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from genorder.data import EncodedDataset
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order, cost_ratio
from genorder.profiling import agreement as agreement_module
from genorder.profiling.agreement import Agreement, AgreementConfig, Source
from genorder.profiling.determination import Determination, counting_seconds, determine
from genorder.training import ProgressReporter
from made_data import TOKENS, encoded

IntArray = NDArray[np.int64]
TASKS = ("relu", "square", "triangle", "mlp", "sine", "cubic")
DELAYS = ("relu", "coupled-ring", "modular", "sine", "square", "mixed", "asymmetric")


def drawn(samples: int, width: int, seed: int = 0) -> IntArray:
    """Inputs. Some of the tests have more of them than they use, so that hardly two samples are the same."""
    return np.random.default_rng(seed).integers(TOKENS, size=(samples, width))


def found(train: EncodedDataset, **limits: int) -> Determination:
    determination = determine(train, AgreementConfig(**limits))
    assert determination is not None
    return determination


def by_hand(tokens_NP: IntArray, inputs: int, size: int) -> list[set[tuple[int, ...]]]:
    """Of each target, the smallest sets of positions on which it is a function, by a table for each."""
    positions = range(tokens_NP.shape[1])
    sources: list[set[tuple[int, ...]]] = []
    for target in positions[inputs:]:
        smallest: set[tuple[int, ...]] = set()
        for chosen in (each for count in range(size + 1) for each in combinations(positions, count)):
            rows = len(set(map(tuple, tokens_NP[:, list(chosen)])))
            is_function = target not in chosen and rows == len(set(map(tuple, tokens_NP[:, [*chosen, target]])))
            if is_function and not any(set(part) < set(chosen) for part in smallest):
                smallest.add(chosen)
        sources.append(smallest)
    return sources


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_the_sources_are_those_of_tables_made_by_hand(seed: int) -> None:
    """Each column is a function of one or two before it, or of nothing; some are solvable backwards too."""
    rng = np.random.default_rng(seed)
    columns = list(rng.integers([3, 3, 30, 30], size=(2_000, 4)).T)  # the last two only make the samples differ
    for _ in range(4):
        one, other = rng.choice([0, 1, *range(4, len(columns))], size=2)
        columns.append(rng.integers(3, size=(3, 3))[columns[one], columns[other]])
    tokens_NP = np.stack(columns, axis=1)
    agreement = Agreement(encoded(tokens_NP[:, :4], tokens_NP[:, 4:]), AgreementConfig(pairs=30))
    counted = [{source.positions for source in sources} for sources in agreement.sources(2)]
    assert counted == by_hand(tokens_NP, 4, 2)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("hidden", [0, 1])
def test_the_order_and_the_graph_of_a_recurrence(task: str, hidden: int) -> None:
    data, train, _ = task_data(task, "10", hidden)
    determination = found(train)
    order = determination.order()
    assert order is not None
    assert order == data.true_of_column.inverse()
    graph = make_graph(task, "10", hidden)
    chosen = determination.along(order)
    assert chosen is not None
    first = order[0]  # computed from x0 and x1, which it may also be with the two in other places
    assert [set(source.positions) for target, source in enumerate(chosen) if target != first] == [
        parents for target, parents in enumerate(graph) if target != first
    ]


def make_graph(task: str, length: str, hidden: int) -> list[set[int]]:
    """The true positions that each stored column is computed from."""
    data, train, _ = task_data(task, length, hidden)
    graph = data.graph_of_columns()
    return [
        {*graph.input_parents[target], *(train.input_width + parent for parent in graph.target_parents(target))}
        for target in range(train.target_width)
    ]


@pytest.mark.parametrize("network", DELAYS)
def test_the_order_of_a_delay_network(network: str) -> None:
    data, train, _ = task_data(f"delay-{network}", "16", 0, train=40_000)
    order = found(train).order()
    assert order is not None
    true = data.true_of_column.compose(order)
    assert cost_ratio(true, data.task.dependencies()) == 1.0


@pytest.mark.parametrize("network", ["modular", "square", "sine"])
def test_sums_that_can_be_solved_for_any_term_are_read_in_the_direction_of_the_inputs(network: str) -> None:
    _, train, _ = task_data(f"delay-{network}", "16", 0, train=40_000)
    determination = found(train)
    order = determination.order()
    assert order is not None
    chosen = determination.along(order)
    assert chosen is not None
    assert [set(source.positions) for source in chosen] == make_graph(f"delay-{network}", "16", 0)
    if network == "modular":
        assert any(len(sources) > 1 for sources in determination.sources)


def test_a_simpler_source_is_taken_though_it_is_known_later() -> None:
    """y1 is a function of three inputs, and so it is known at once; but of y0 alone as well."""
    x_NW = drawn(20_000, 6)
    y0_N = (x_NW[:, 0] + 2 * x_NW[:, 1] + 3 * x_NW[:, 2]) % TOKENS
    y1_N = y0_N // 2
    determination = found(encoded(x_NW, np.stack([y1_N, y0_N], axis=1)))
    assert determination.order() == Order.of([1, 0])
    assert determination.needs(Order.of([1, 0]))  # the inputs determine both, but one of them by more tokens


def test_as_few_inputs_will_do() -> None:
    x_NW = drawn(20_000, 4)
    determination = found(encoded(x_NW, (x_NW[:, :3] + x_NW[:, 1:]) % TOKENS))
    order = determination.order()
    assert order is not None
    assert not determination.needs(order)
    assert determination.read_in(order) == 6


def test_of_sources_with_as_many_positions_that_with_fewer_tokens_is_simpler() -> None:
    """y1 copies the parity that is y0, which is that of x0 too."""
    x_NW = drawn(2_000, 5)
    x_NW[:, 4] = np.arange(2_000)
    y0_N = x_NW[:, 0] % 2
    determination = found(encoded(x_NW, np.stack([y0_N, 1 - y0_N], axis=1)))
    chosen = determination.along(Order.of([0, 1]))
    assert chosen is not None
    assert [source.positions for source in chosen] == [(0,), (5,)]
    assert chosen[0] == Source((0,), TOKENS, 2_000 - TOKENS)


def test_constant_targets_need_nothing() -> None:
    determination = found(encoded(drawn(2_000, 6), np.full((2_000, 3), 4)))
    assert all([source.positions for source in sources] == [()] for sources in determination.sources)
    assert not determination.needs(Order.forward(3))


def noisy(share: float) -> EncodedDataset:
    x_NW = drawn(20_000, 6)
    y_NL = x_NW.cumsum(axis=1) % TOKENS
    rng = np.random.default_rng(1)
    return encoded(x_NW, np.where(rng.random(y_NL.shape) < share, rng.integers(TOKENS, size=y_NL.shape), y_NL))


def random_targets() -> EncodedDataset:
    return encoded(drawn(20_000, 6), drawn(20_000, 6, seed=1))


def of_all_inputs() -> EncodedDataset:
    x_NW = drawn(20_000, 6)
    return encoded(x_NW, np.stack([x_NW.sum(axis=1) % TOKENS, x_NW.sum(axis=1) // 2 % TOKENS], axis=1))


def hardly_two_alike() -> EncodedDataset:
    """A number for each sample determines everything, and tells nothing."""
    x_NW = drawn(2_000, 6)
    x_NW[:, 0] = np.arange(2_000)
    return encoded(x_NW, drawn(2_000, 3, seed=1))


def nearly_constant() -> EncodedDataset:
    """Two samples in a thousand differ: hundreds of pairs agree in the target by chance."""
    y_NL = (np.random.default_rng(1).random((1_000, 2)) < 0.002).astype(np.int64)
    return encoded(drawn(1_000, 3), y_NL)


def repeated() -> EncodedDataset:
    """Random targets; one sample in ten is there twice, and agrees with itself in everything."""
    rng = np.random.default_rng(0)
    x_NW, y_NL = rng.integers(5_000, size=(20_000, 4)), rng.integers(TOKENS, size=(20_000, 3))
    return encoded(np.concatenate([x_NW, x_NW[:2_000]]), np.concatenate([y_NL, y_NL[:2_000]]))


def of_one_combination() -> EncodedDataset:
    """Random targets; a twentieth of the inputs is empty and has the same answer."""
    rng = np.random.default_rng(0)
    x_NW, y_NL = rng.integers(50_000, size=(20_000, 3)), rng.integers(TOKENS, size=(20_000, 3))
    empty_N1 = rng.random((20_000, 1)) < 0.05
    number_N1 = np.arange(20_000)[:, None]  # so that the samples differ
    return encoded(np.concatenate([np.where(empty_N1, 0, x_NW), number_N1], axis=1), np.where(empty_N1, 0, y_NL))


def nearly_constant_where_it_is() -> EncodedDataset:
    """The second target is there in half of the samples, and then nearly always the same."""
    rng = np.random.default_rng(0)
    x_NW = drawn(2_000, 4)
    y_NL = np.stack([x_NW[:, 0], (rng.random(2_000) < 0.001).astype(np.int64)], axis=1)
    return encoded(x_NW, y_NL, rng.integers(1, 3, size=2_000))


@pytest.mark.parametrize("train", [repeated(), of_one_combination(), nearly_constant_where_it_is()])
def test_pairs_that_prove_nothing(train: EncodedDataset) -> None:
    assert determine(train, AgreementConfig()) is None


def test_so_many_relations_that_it_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    train = sums()
    assert determine(train, AgreementConfig()) is not None
    monkeypatch.setattr(agreement_module, "_MOST_COMPARED", 10_000)
    assert determine(train, AgreementConfig()) is None


def test_many_relations() -> None:
    """Any two of the targets tell all others."""
    x_NW = drawn(5_000, 6)
    y_NL = (x_NW[:, :1] + np.arange(1, 7) * x_NW[:, 1:2]) % TOKENS
    determination = found(encoded(x_NW, y_NL))
    assert determination.read_in(Order.forward(6)) == 12
    assert all(len(sources) >= 15 for sources in determination.sources)


@pytest.mark.parametrize(
    "train", [noisy(0.001), noisy(0.1), random_targets(), of_all_inputs(), hardly_two_alike(), nearly_constant()]
)
def test_where_counting_cannot_tell_it_says_nothing(train: EncodedDataset) -> None:
    assert determine(train, AgreementConfig()) is None


def sums() -> EncodedDataset:
    x_NW = drawn(5_000, 4)
    return encoded(x_NW, x_NW.cumsum(axis=1) % TOKENS)


@pytest.mark.parametrize("limits", [{"positions": 0}, {"positions": 1}, {"sets": 20}, {"pairs": 5_000}])
def test_limits(limits: dict[str, int]) -> None:
    assert determine(sums(), AgreementConfig()) is not None
    assert determine(sums(), AgreementConfig(**limits)) is None


def test_constraints_are_kept_or_nothing_is_said() -> None:
    determination = found(sums())
    assert determination.order() == Order.forward(4)
    assert determination.order(Constraints(before=((0, 3),))) == Order.forward(4)
    assert determination.order(Constraints(before=((3, 0),))) == Order.of([1, 2, 3, 0])
    assert determination.order(Constraints(before=((3, 1),))) is None


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        (Constraints(before=((3, 0),)), [3, 0, 1, 2]),
        (Constraints(keep_first=1, before=((3, 1),)), [0, 3, 1, 2]),
        (Constraints(groups=2), [0, 1, 2, 3]),
        (Constraints(groups=2, before=((2, 0),)), None),
        (Constraints(keep_first=1, groups=3), [0, 1, 2, 3]),
    ],
)
def test_what_waits_for_one_that_must_wait_waits_too(constraints: Constraints, expected: list[int] | None) -> None:
    """y0, y1 and y2 are a chain, y3 stands alone."""
    x_NW = drawn(5_000, 6)
    chain_NL = x_NW[:, :4].cumsum(axis=1)[:, 1:]
    y_NL = np.concatenate([chain_NL, x_NW[:, 4:5] + x_NW[:, 5:]], axis=1) % TOKENS
    order = found(encoded(x_NW, y_NL)).order(constraints)
    assert order == (None if expected is None else Order.of(expected))


def test_along_is_true_of_exactly_the_orders_that_have_a_source_before_each_target() -> None:
    """y0 = x0, y1 from y0 and x1, y2 from y1 or y0."""
    determination = Determination(
        2, ((Source((0,), 7, 9),), (Source((1, 2), 49, 9),), (Source((3,), 7, 9), Source((2,), 7, 9)))
    )
    for columns in permutations(range(3)):
        step_of = Order.of(columns).inverse()
        allowed = step_of[0] < step_of[1] and min(step_of[0], step_of[1]) < step_of[2]
        assert (determination.along(Order.of(columns)) is not None) == allowed


def test_targets_of_several_lengths() -> None:
    """Samples that lack a target say nothing of it."""
    x_NW = drawn(8_000, 4)
    y_NL = x_NW.cumsum(axis=1) % TOKENS
    lengths_N = np.random.default_rng(1).integers(1, 5, size=8_000)
    determination = found(encoded(x_NW, y_NL, lengths_N))
    assert determination.order() == Order.forward(4)
    assert [source.positions for source in determination.along(Order.forward(4)) or []] == [
        (0,),
        (1, 4),
        (2, 5),
        (3, 6),
    ]


def test_few_samples() -> None:
    assert determine(encoded(drawn(1, 3), drawn(1, 3)), AgreementConfig()) is None
    assert determine(encoded(drawn(50, 3), drawn(50, 3, seed=1)), AgreementConfig()) is None


@pytest.mark.parametrize(
    ("positions", "made"),
    [(0, sums), (1, sums), (3, sums), (3, lambda: encoded(np.zeros((50, 0), int), np.zeros((50, 1), int)))],
)
def test_its_time_can_be_told_before(positions: int, made: Callable[[], EncodedDataset]) -> None:
    config = AgreementConfig(positions=positions)
    seconds = counting_seconds(made(), config)
    assert (seconds > 0) == (positions > 0)


def test_a_request_to_stop_is_heeded() -> None:
    stop = StopRequest()
    stop.requested = True
    with pytest.raises(Interrupted, match="the same command"):
        determine(sums(), AgreementConfig(), ProgressReporter(stop=stop))
