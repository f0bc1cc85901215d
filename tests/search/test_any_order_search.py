"""The graph of gains and its sorts, verdicts that can be trusted, rounds of training, and odd data."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from search_helpers import PROFILER

from genorder.data import EncodedDataset, encode
from genorder.errors import InputError, Interrupted
from genorder.execution import StopRequest
from genorder.models.routed import RoutedConfig
from genorder.orders import CandidateSource, Constraints, Order, cost_ratio
from genorder.profiling import AnyOrderConfig
from genorder.profiling.agreement import AgreementConfig
from genorder.profiling.any_order import AnyOrderOracle, OutwardConfig, routed_model
from genorder.profiling.blind import blind_loss
from genorder.profiling.construction import Gains
from genorder.search import AnyOrder, Budget, SearchProblem, SearchResult, counted
from genorder.search import rounds as trainings
from genorder.search.any_order import _agreement
from genorder.search.base import MOST_PROPOSALS
from genorder.search.graph_sorts import regular_sort, topological_sorts
from genorder.search.periodic_sorts import periodic_sorts
from genorder.search.reading import Reading, gain_graph, graph_order, verdict
from genorder.store import Journal
from genorder.tasks import TaskData, make_task, task_splits
from genorder.training import Progress, TrainingConfig
from made_data import TOKENS, encoded

IntArray = NDArray[np.int64]
Splits = tuple[EncodedDataset, EncodedDataset]

LEARNING = AnyOrderConfig(
    model=RoutedConfig(width=32, hidden=64),
    training=TrainingConfig(
        steps=500, batch_size=64, learning_rate=5e-3, warmup_steps=20, beta2=0.98, weight_decay=0.0
    ),
    groups=8,
    validation_samples=400,
    outward=OutwardConfig(batch_size=64),
    agreement=AgreementConfig(positions=0),  # what is trained, not what is counted
)


def shortened(steps: int) -> AnyOrderConfig:
    return LEARNING.model_copy(update={"training": LEARNING.training.model_copy(update={"steps": steps})})


def splits_of(
    solve: Callable[[IntArray, np.random.Generator], IntArray],
    *,
    inputs: int = 4,
    train: int = 4000,
    validation: int = 400,
    shortest: int | None = None,
) -> Splits:
    """Uniform inputs and what `solve` makes of them; with `shortest`, of several lengths."""
    rng = np.random.default_rng(0)
    parts = []
    for samples in (train, validation):
        inputs_NW = rng.integers(TOKENS, size=(samples, inputs))
        targets_NL = solve(inputs_NW, rng)
        longest = targets_NL.shape[1]
        lengths_N = None if shortest is None else rng.integers(shortest, longest + 1, size=samples)
        parts.append(encoded(inputs_NW, targets_NL, lengths_N))
    return parts[0], parts[1]


def random_targets(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return rng.integers(TOKENS, size=(len(inputs_NW), 4))


def copies(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return inputs_NW[:, ::-1].copy()


def noisy_copies(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return np.where(rng.random(inputs_NW.shape) < 0.5, inputs_NW, rng.integers(TOKENS, size=inputs_NW.shape))


def sums(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return inputs_NW.cumsum(axis=1) % TOKENS


def noisy_squares(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """Each of an input and of the target before it, but one of seven is replaced: much is left to predict for ever."""
    targets_NL = inputs_NW.copy()
    for target in range(1, targets_NL.shape[1]):
        targets_NL[:, target] = (inputs_NW[:, target] + targets_NL[:, target - 1] ** 2) % TOKENS
    return np.where(rng.random(targets_NL.shape) < 1 / 7, rng.integers(TOKENS, size=targets_NL.shape), targets_NL)


@cache
def square(length: str, hidden: int | None = None) -> Splits:
    splits = task_splits(
        make_task("square", length), train=8000, validation=400, test=1, hidden_order_seed=hidden
    ).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return train, validation


@contextmanager
def open_problem(
    folder: Path, splits: Splits, config: AnyOrderConfig = LEARNING, **options: Any
) -> Iterator[SearchProblem]:
    folder.mkdir(parents=True, exist_ok=True)
    with Journal(folder / "journal.sqlite") as journal:
        yield SearchProblem(
            *splits,
            CandidateSource(Order.forward(splits[0].target_width)),
            PROFILER,
            journal=journal,
            folder=folder / "checkpoints",
            any_order=config,
            **{"seed": 0, **options},
        )


def propose(
    folder: Path,
    splits: Splits,
    config: AnyOrderConfig = LEARNING,
    search: AnyOrder = AnyOrder(),
    **options: Any,
) -> SearchResult:
    with open_problem(folder, splits, config, **options) as problem:
        return search.propose(problem)


def told(result: SearchResult) -> Any:
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    for stage in plain["stages"]:
        del stage["seconds"]
    return plain


# The graph of gains.

gains_of_any_kind = st.integers(1, 6).flatmap(
    lambda targets: st.tuples(
        hnp.arrays(
            float, (targets, targets), elements=st.floats(-1, 3, allow_subnormal=False).map(lambda x: round(x, 1))
        ),
        hnp.arrays(float, (targets, targets), elements=st.sampled_from([0.0, 0.01, 0.2])),
    )
)


def made_gains(gain_LL: NDArray[np.float64], error_LL: NDArray[np.float64] | None = None) -> Gains:
    gain_LL = gain_LL.copy()
    np.fill_diagonal(gain_LL, 0.0)
    return Gains(np.ones(len(gain_LL)), gain_LL, np.zeros_like(gain_LL) if error_LL is None else error_LL)


def wanted_edges(gains: Gains) -> dict[tuple[int, int], float]:
    """Those of a quarter of the best gain into their target, beyond four standard errors."""
    targets = range(len(gains.alone_L))
    return {
        (known, target): gains.gain_LL[known, target]
        for known in targets
        for target in targets
        if known != target
        and gains.gain_LL[known, target] >= max(gains.gain_LL[:, target]) / 4
        and gains.gain_LL[known, target] > 4 * gains.error_LL[known, target]
    }


@given(made=gains_of_any_kind)
def test_the_graph_is_of_the_strongest_gains_without_cycles(made: tuple[Any, Any]) -> None:
    gains = made_gains(*made)
    graph = gain_graph(gains)
    wanted = wanted_edges(gains)
    assert set(graph) == set(range(len(gains.alone_L)))
    assert networkx.is_directed_acyclic_graph(graph)
    assert set(graph.edges) <= set(wanted)
    for edge, gain in wanted.items():
        if edge not in graph.edges:  # then those at least as strong close a cycle with it
            stronger = graph.edge_subgraph([kept for kept in graph.edges if wanted[kept] >= gain])
            assert edge[0] in stronger
            assert edge[1] in stronger
            assert networkx.has_path(stronger, edge[1], edge[0])
    if wanted:
        assert any(wanted[edge] == max(wanted.values()) for edge in graph.edges)


def test_of_two_targets_that_help_each_other_the_stronger_edge_stays() -> None:
    gain_LL = np.zeros((3, 3))
    gain_LL[0, 1], gain_LL[1, 0], gain_LL[1, 2], gain_LL[0, 2] = 1.0, 1.2, 2.0, 0.4
    assert set(gain_graph(made_gains(gain_LL)).edges) == {(1, 0), (1, 2)}


def test_gains_within_the_noise_are_no_edges() -> None:
    gain_LL = np.full((3, 3), 0.2)
    assert not gain_graph(made_gains(gain_LL, np.full((3, 3), 0.06))).edges
    assert gain_graph(made_gains(gain_LL, np.full((3, 3), 0.04))).edges


def untrained_oracle(targets: int) -> AnyOrderOracle:
    rng = np.random.default_rng(targets)
    data = encoded(rng.integers(TOKENS, size=(12, 2)), rng.integers(TOKENS, size=(12, targets)))
    return AnyOrderOracle(routed_model(data, shortened(1), 0), data, 12)


@given(made=gains_of_any_kind)
def test_the_order_sorts_the_graph(made: tuple[Any, Any]) -> None:
    gains = made_gains(*made)
    oracle = untrained_oracle(len(gains.alone_L))
    order = graph_order(oracle, gains)
    graph = gain_graph(gains)
    step_of = order.inverse()
    assert all(step_of[known] < step_of[target] for known, target in graph.edges)
    for step, target in enumerate(order):  # of the targets that the graph allows, that of least loss
        emitted = order.indices[:step]
        allowed = [other for other in order.indices[step:] if set(graph.predecessors(other)) <= set(emitted)]
        losses = dict(zip(allowed, oracle.given(emitted, allowed).mean(axis=0), strict=True))
        assert losses[target] == pytest.approx(min(losses.values()), rel=1e-6)


# Verdicts.


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("hidden", [None, 3])
def test_the_order_of_a_recurrence_is_found(tmp_path: Path, hidden: int | None, seed: int) -> None:
    result = propose(tmp_path, square("6", hidden), seed=seed)
    assert result.details["verdict"] == "order found"
    data = task_splits(make_task("square", "6"), train=1, validation=1, test=1, hidden_order_seed=hidden)
    assert cost_ratio(result.proposals[0].order, data.graph_of_columns()) == 1.0
    losses = result.details["losses"]
    assert losses["best"] < losses["random"] < losses["blind"]
    assert losses["best"] == pytest.approx(result.proposals[0].loss)
    assert losses["advantage_over_random"] == pytest.approx(losses["random"] - losses["best"])
    assert losses["advantage_over_random"] > 4 * losses["its_standard_error"] > 0
    steps = result.details["emissions"]
    assert [step["target"] for step in steps] == list(result.proposals[0].order)
    assert all(step["margin"] > 4 * step["margin_error"] for step in steps[1:-1])


def reading_of(best: float, second: float, blind: float = 2.0, targets: int = 10) -> Reading:
    """Of two constructions; random orders are no better than a blind guess."""
    rng = np.random.default_rng(0)
    noise_N = 0.01 * rng.random(50)
    orders = [Order.forward(targets), Order.reverse(targets)]
    losses_CN = np.array([best + noise_N, second + noise_N])
    gains = Gains(np.zeros(targets), np.zeros((targets, targets)), np.zeros((targets, targets)))
    return Reading(orders, losses_CN, np.array([blind - noise_N]), blind, gains, None)


def columns_of(targets_NL: np.ndarray, lengths_N: np.ndarray | None = None) -> EncodedDataset:
    targets = torch.from_numpy(targets_NL)
    lengths = torch.full((len(targets),), targets.shape[1]) if lengths_N is None else torch.from_numpy(lengths_N)
    return EncodedDataset(torch.zeros(len(targets), 1, dtype=torch.long), targets, lengths, 1000)


def test_a_blind_guess_knows_the_frequencies_of_training() -> None:
    """Few validation samples hold few of many tokens: their own frequencies would look like knowledge."""
    rng = np.random.default_rng(0)
    train = columns_of(rng.integers(300, size=(50_000, 2)))
    for samples in (2, 100):
        blind = blind_loss(train, columns_of(rng.integers(300, size=(samples, 2))))
        assert blind == pytest.approx(np.log(300), rel=0.02)
    assert blind_loss(train, columns_of(np.full((3, 2), 999))) > np.log(300)  # never seen, and yet not impossible
    constant = np.full((5, 2), 7)
    assert blind_loss(columns_of(constant), columns_of(constant)) == 0
    assert blind_loss(train, columns_of(constant)) > 1
    short = columns_of(constant, np.array([1, 1, 1, 1, 1]))
    assert blind_loss(columns_of(np.array([[7, 1], [7, 2]])), short) == 0


def test_what_is_left_of_all_targets_may_be_less_than_half_of_one() -> None:
    """Then it does not matter that another construction failed, as where relations have no direction."""
    assert reading_of(0.05, 1.0).settled
    assert "other constructions were worse" in verdict(reading_of(0.05, 1.0))[1]
    assert verdict(reading_of(0.05, 0.05))[1].startswith("The constructions agree")
    assert not reading_of(0.15, 1.0).settled  # one target of ten may be misplaced
    assert not reading_of(0.05, 1.0, targets=100).settled
    assert reading_of(0.15, 0.15).settled


@pytest.mark.parametrize("shortest", [None, 1])
@pytest.mark.parametrize("seed", [0, 1])
def test_of_random_targets_nothing_is_learnt(tmp_path: Path, seed: int, shortest: int | None) -> None:
    result = propose(tmp_path, splits_of(random_targets, shortest=shortest), shortened(40), seed=seed)
    assert result.details["verdict"] == "nothing learnt"
    assert all(not parents["targets"] for parents in result.details["dependencies"])


@pytest.mark.parametrize("shortest", [None, 1])
@pytest.mark.parametrize("solve", [copies, noisy_copies])
@pytest.mark.parametrize("seed", [0, 1])
def test_independent_targets_prefer_no_order(
    tmp_path: Path, solve: Callable[[IntArray, np.random.Generator], IntArray], seed: int, shortest: int | None
) -> None:
    result = propose(tmp_path, splits_of(solve, shortest=shortest), shortened(200), seed=seed)
    assert result.details["verdict"] == "no order preferred"
    assert all(not parents["targets"] for parents in result.details["dependencies"])


def test_losses_are_of_single_predictions_whatever_the_lengths(tmp_path: Path) -> None:
    """Blind guesses of uniform tokens cost log 7, and so do those of a model that knows no better."""
    result = propose(tmp_path, splits_of(random_targets, shortest=1), shortened(60))
    for name in ("best", "reverse", "random", "blind"):
        assert result.details["losses"][name] == pytest.approx(np.log(TOKENS), rel=0.05)


def test_targets_of_several_lengths_have_an_order_too(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(sums, shortest=1))
    assert result.details["verdict"] == "order found"
    assert cost_ratio(result.proposals[0].order, make_task("relu", "4").dependencies()) == 1.0


def test_targets_whose_dependence_is_not_learnt_yet_are_not_called_independent(tmp_path: Path) -> None:
    """After a few steps the model knows the copy among the targets and nothing of the others."""
    result = propose(tmp_path, splits_of(sums, inputs=6), shortened(40))
    assert result.details["verdict"] != "no order preferred"


def edges_of(parents: dict[int, list[int]]) -> list[tuple[int, int]]:
    return [(parent, target) for target, of in parents.items() for parent in of]


def test_a_graph_is_sorted_by_levels_and_by_parents() -> None:
    two_chains = edges_of({2: [0], 4: [2], 3: [1], 5: [3]})  # 0 2 4 and 1 3 5
    by_level, by_parents = topological_sorts(Order.of([0, 2, 4, 1, 3, 5]), two_chains, Constraints())
    assert list(by_level) == [0, 1, 2, 3, 4, 5]
    assert list(by_parents) == [0, 2, 4, 1, 3, 5]
    assert list(topological_sorts(Order.of([0, 1, 2, 3, 4, 5]), two_chains, Constraints())[1]) == [0, 2, 4, 1, 3, 5]


@given(st.permutations(range(5)))
def test_sorts_of_a_chain_and_what_stands_apart(apart: list[int]) -> None:
    """Targets 5 to 9 are a chain; the others are read by none. They come first, or stay where they are."""
    chain = edges_of({6: [5], 7: [6], 8: [7], 9: [8]})
    order = Order.of([target for pair in zip(apart, range(5, 10), strict=True) for target in pair])
    by_level, by_parents = topological_sorts(order, chain, Constraints())
    assert sorted(by_level[:6]) == [0, 1, 2, 3, 4, 5]  # the level without parents
    assert [target for target in by_level if target < 5] == apart
    assert by_parents == order


@settings(max_examples=40)
@given(st.permutations(range(8)), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))), st.sampled_from([1, 2, 4]))
def test_sorts_keep_to_the_graph_and_the_constraints(
    order: list[int], pairs: set[tuple[int, int]], groups: int
) -> None:
    constraints = Constraints(groups=groups, keep_last=0)
    found = constraints.repaired(Order.of(order))
    place_of = found.inverse()
    edges = [(one, other) for one, other in pairs if place_of[one] < place_of[other]]
    for sort in (*topological_sorts(found, edges, constraints), regular_sort(found, edges, constraints)):
        assert constraints.allows(sort)
        assert all(sort.inverse()[one] < sort.inverse()[other] for one, other in edges)


@settings(max_examples=40)
@given(st.permutations(range(6)))
def test_sorts_of_renamed_columns_are_the_renamed_sorts(names: list[int]) -> None:
    parents = {2: [0], 4: [2], 3: [1, 0], 5: [3]}
    renamed = {names[target]: [names[parent] for parent in of] for target, of in parents.items()}
    order = [1, 0, 3, 2, 5, 4]
    plain = topological_sorts(Order.of(order), edges_of(parents), Constraints())
    other = topological_sorts(Order.of(names[column] for column in order), edges_of(renamed), Constraints())
    assert [[names[column] for column in sort] for sort in plain] == [list(sort) for sort in other]


def test_a_regular_sort_repeats_its_distances() -> None:
    """Two variables over nine times, a(t) from b(t - 1) and b(t) from a(t - 1): two chains that cross."""
    times = range(9)
    parents = {time: [9 + time - 1] for time in times[1:]} | {9 + time: [time - 1] for time in times[1:]}
    drawn_order = sorted(range(18), key=lambda target: (target % 9, (target * 7) % 5))  # by time, at random inside
    sort = regular_sort(Order.of(drawn_order), edges_of(parents), Constraints())
    step_of = sort.inverse()
    distances = {step_of[target] - step_of[parent] for target, (parent,) in parents.items()}
    assert len(distances) == 1
    assert 1 in distances or distances == {2}


def two_variables(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """u(t) from v(t - 1) and u(t - 2), v(t) from u(t - 1) and v(t - 1): by time, v before u."""
    u, v = [inputs_NW[:, 0], inputs_NW[:, 1]], [inputs_NW[:, 2], inputs_NW[:, 3]]
    columns = []
    for _ in range(6):
        later = (v[-1] + 2 * u[-2]) % TOKENS, (u[-1] * v[-1] + v[-1]) % TOKENS
        u, v = [u[-1], later[0]], [v[-1], later[1]]
        columns += [later[1], later[0]]
    return np.stack(columns, axis=1)


def test_variables_over_time_take_turns_in_what_is_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These go to the race, and no regular sort; they are looked for once for all models."""
    found: list[list[Order]] = []

    def kept(*arguments: Any) -> list[Order]:
        found.append(periodic_sorts(*arguments))
        return found[-1]

    monkeypatch.setattr(counted, "periodic_sorts", kept)
    monkeypatch.setattr(trainings, "periodic_sorts", kept)
    monkeypatch.setattr(counted, "regular_sort", pytest.fail)
    monkeypatch.setattr(trainings, "regular_sort", pytest.fail)
    counting = shortened(60).model_copy(update={"agreement": AgreementConfig()})
    result = propose(tmp_path, splits_of(two_variables, train=20_000), counting, AnyOrder(restarts=2))
    assert sorted(result.details["variables"]) == [list(range(0, 12, 2)), list(range(1, 12, 2))]
    told = [list(proposal.order) for proposal in result.proposals]
    assert result.details["verdict"] == "order found"
    assert [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10] in told  # each u(t) right behind v(t - 1)
    in_turns = [order for order in told if [target % 2 for target in order[2:10]] in ([0, 1] * 4, [1, 0] * 4)]
    assert 1 <= len(in_turns) >= len(told) - 2  # but for what was read off the first models
    (sorts,) = found
    assert all(list(order) in told for order in sorts)


def test_a_verdict_comes_with_advice(tmp_path: Path) -> None:
    details = propose(tmp_path, splits_of(random_targets), shortened(5)).details
    assert "--set any_order.training.steps" in details["advice"]


# Rounds and restarts.


def trained_steps(result: SearchResult) -> int:
    steps: int = result.details["steps"]
    return steps


def test_what_is_not_settled_trains_on(tmp_path: Path) -> None:
    """Each round is twice as long as the one before."""
    splits = splits_of(random_targets)
    for rounds, steps in ((1, 20), (2, 60), (3, 140)):
        result = propose(tmp_path / str(rounds), splits, shortened(20), AnyOrder(rounds=rounds, outward=False))
        assert trained_steps(result) == steps
        assert len(result.stages) == 1


@pytest.mark.parametrize(
    ("solve", "rounds"), [(noisy_squares, [400, 800]), (random_targets, [20, "outward", "outward"])]
)
def test_a_promising_order_is_trained_on_before_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solve: Any, rounds: list[int | str]
) -> None:
    """What noise leaves is never predicted; that the loss has stopped falling settles it without another model."""
    trained: list[int | str] = []
    fit_any_order, fit_outward = trainings.fit_any_order, trainings.fit_outward

    def in_random_orders(model: Any, train: Any, config: AnyOrderConfig, **options: Any) -> float:
        trained.append(config.training.steps)
        return fit_any_order(model, train, config, **options)

    def outward(*arguments: Any, **options: Any) -> Any:
        trained.append("outward")
        return fit_outward(*arguments, **options)

    monkeypatch.setattr(trainings, "fit_any_order", in_random_orders)
    monkeypatch.setattr(trainings, "fit_outward", outward)
    result = propose(tmp_path, splits_of(solve), shortened(rounds[0]))
    assert trained[: len(rounds)] == rounds
    if solve is noisy_squares:
        assert trained[len(rounds) :] == [LEARNING.graph_steps]
        assert result.details["verdict"] == "order found"


def test_what_is_settled_does_not(tmp_path: Path) -> None:
    assert trained_steps(propose(tmp_path, square("6"))) == 500


@pytest.mark.parametrize(
    ("solve", "steps", "share", "late"),
    [
        (random_targets, 20, None, True),  # nothing is learnt: all rounds, and no graph
        (copies, 500, None, False),
        (random_targets, 20, 59, True),
        (copies, 500, 600, False),  # no room for the graph
        (copies, 500, 700, False),
    ],
)
def test_the_plan_counts_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solve: Any, steps: int, share: int | None, late: bool
) -> None:
    """Those of a model that settles at once, its graph included, and those that may come on top."""
    trained: list[int] = []
    fitted = trainings.fit_any_order

    def counting(model: Any, train: Any, config: AnyOrderConfig, **options: Any) -> float:
        trained.append(config.training.steps)
        return fitted(model, train, config, **options)

    monkeypatch.setattr(trainings, "fit_any_order", counting)
    with open_problem(tmp_path, splits_of(solve), shortened(steps), budget=Budget(steps=share)) as problem:
        (planned,) = AnyOrder().plan(problem)
        AnyOrder().propose(problem)
    graph = LEARNING.graph_steps
    if late:
        outward = 2 * problem.any_order.outward_training().steps if share is None else 0  # at most; it gives up before
        assert sum(trained) + (graph if share is None else 0) == planned.steps + planned.more_steps - outward
    else:
        assert sum(trained) == planned.steps


def test_a_budget_of_steps_is_kept(tmp_path: Path) -> None:
    splits = splits_of(random_targets)
    for most, steps in ((10, 10), (20, 20), (59, 20), (60, 60), (169, 140), (170, 170), (1000, 200)):
        assert trained_steps(propose(tmp_path, splits, shortened(20), budget=Budget(steps=most))) == steps


def stopped_at(event: int) -> dict[str, Any]:
    """At so many tellings of trainings."""
    stop = StopRequest()
    left = event

    def happened(_: str, progress: Progress) -> None:
        nonlocal left
        left -= progress.loss is not None
        stop.requested |= left == 0

    return {"stop": stop, "on_progress": happened}


def stopped_while(part: str) -> dict[str, Any]:
    stop = StopRequest()

    def happened(name: str, _: Progress) -> None:
        stop.requested |= name == part

    return {"stop": stop, "on_progress": happened}


def test_interrupted_in_the_second_round_gives_the_same(tmp_path: Path) -> None:
    """Progress is told at steps 20 and 30 of the first round, then at 20, 40 and 60 of the second."""
    splits, search = splits_of(random_targets), AnyOrder(outward=False)
    whole = propose(tmp_path / "whole", splits, shortened(30), search)
    folder = tmp_path / "parts"
    with pytest.raises(Interrupted, match="of 60"):
        propose(folder, splits, shortened(30), search, **stopped_at(3))
    assert {(path.parent.name, path.stem) for path in folder.rglob("step-*.json")} == {
        ("0-random", "step-000000030"),
        ("1-random", "step-000000021"),
    }
    continued = propose(folder, splits, shortened(30), search)
    assert told(continued) == told(whole)
    assert all(seconds > 0 for stage in continued.stages for seconds in stage.seconds.values())
    assert not list(folder.rglob("*.safetensors"))


PARTS = (
    "comparing samples that agree in 2",
    "measuring gains",
    "constructing greedily",
    "constructing by the graph",
    "breaking positions",
    "measuring margins",
)


@pytest.mark.parametrize("part", PARTS)
def test_interrupted_where_nothing_is_trained_gives_the_same(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes, Ctrl-C is heard in it, and what was trained before is not trained again."""
    monkeypatch.setattr("genorder.training.reporter._TELL_SECONDS", 0.0)
    splits, config = square("5"), shortened(30).model_copy(update={"agreement": AgreementConfig(), "graph_steps": 10})
    whole = propose(tmp_path / "whole", splits, config)
    with pytest.raises(Interrupted, match=f"stopped while {part}; the same command"):
        propose(tmp_path / "parts", splits, config, **stopped_while(part))
    trained: list[str] = []
    continued = propose(
        tmp_path / "parts",
        splits,
        config,
        on_progress=lambda name, progress: trained.append(name) if progress.loss is not None else None,
    )
    assert told(continued) == told(whole)
    assert ("any-order 1, round 1" in trained) == (part == PARTS[0])


# What is counted.

COUNTING = shortened(60).model_copy(update={"agreement": AgreementConfig()})


@cache
def modular_network() -> tuple[TaskData, Splits]:
    """Sums modulo 19, which can be solved for any term, so that 60 steps in random orders settle nothing."""
    data = task_splits(make_task("delay-modular", "12"), train=20_000, validation=400, test=1, hidden_order_seed=3)
    encoded_ones = [
        encode(part, input_width=8, target_width=12) for part in (data.splits.train, data.splits.validation)
    ]
    return data, (encoded_ones[0], encoded_ones[1])


def test_an_order_that_is_counted_needs_no_model_that_works_outwards(tmp_path: Path) -> None:
    data, splits = modular_network()
    result = propose(tmp_path, splits, COUNTING)
    assert cost_ratio(data.true_of_column.compose(result.proposals[0].order), data.task.dependencies()) == 1.0
    assert result.details["verdict"] == "order found"
    assert "determined by at most 2 of the tokens before it" in result.details["advice"]
    assert trained_steps(result) == 120
    graph = data.graph_of_columns()
    assert [(set(row["inputs"]), set(row["targets"])) for row in result.details["dependencies"]] == [
        (set(graph.input_parents[target]), set(graph.target_parents(target))) for target in range(12)
    ]
    optimal = [
        cost_ratio(data.true_of_column.compose(p.order), data.task.dependencies()) == 1 for p in result.proposals
    ]
    assert sum(optimal) >= 2  # other sorts of the graph are proposed as well


def test_without_counting_that_is_not_settled(tmp_path: Path) -> None:
    _, splits = modular_network()
    result = propose(tmp_path, splits, shortened(60), AnyOrder(outward=False, rounds=1))
    assert result.details["verdict"] in {"not settled", "nothing learnt"}


def test_what_is_counted_is_proposed_though_no_steps_are_left(tmp_path: Path) -> None:
    data, splits = modular_network()
    result = propose(tmp_path, splits, COUNTING, budget=Budget(steps=60))
    assert trained_steps(result) == 60
    assert 1.0 in [cost_ratio(data.true_of_column.compose(p.order), data.task.dependencies()) for p in result.proposals]


def test_the_steps_that_are_left_will_do(tmp_path: Path) -> None:
    _, splits = modular_network()
    result = propose(tmp_path, splits, COUNTING, budget=Budget(steps=70))
    assert trained_steps(result) == 70
    assert result.details["verdict"] == "order found"


def test_what_is_counted_is_among_few_proposals(tmp_path: Path) -> None:
    data, splits = modular_network()
    result = propose(tmp_path, splits, COUNTING, AnyOrder(rounds=1), budget=Budget(candidates=2))
    assert len(result.proposals) == 2
    best = result.proposals[0].order
    assert cost_ratio(data.true_of_column.compose(best), data.task.dependencies()) == 1.0


def test_a_target_may_be_determined_by_more_than_there_are_slots(tmp_path: Path) -> None:
    data, splits = modular_network()
    one_slot = COUNTING.model_copy(update={"model": RoutedConfig(width=32, hidden=64, slots=1)})
    result = propose(tmp_path, splits, one_slot)
    assert result.details["verdict"] == "order found"
    assert cost_ratio(data.true_of_column.compose(result.proposals[0].order), data.task.dependencies()) == 1.0


def neighbours(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return (inputs_NW + np.roll(inputs_NW, 1, axis=1)) % TOKENS


def test_targets_that_as_few_inputs_determine_prefer_no_order(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(neighbours), COUNTING)
    assert result.details["verdict"] == "no order preferred"
    assert "The inputs alone determine every target" in result.details["advice"]


def test_interrupted_in_the_order_that_is_counted_gives_the_same(tmp_path: Path) -> None:
    _, splits = modular_network()
    whole = propose(tmp_path / "whole", splits, COUNTING)
    with pytest.raises(Interrupted, match="of 60"):
        propose(tmp_path / "parts", splits, COUNTING, **stopped_at(5))
    assert {path.parent.name for path in (tmp_path / "parts").rglob("step-*.json")} == {"0-random", "1-determined"}
    assert told(propose(tmp_path / "parts", splits, COUNTING)) == told(whole)


def test_constraints_that_forbid_what_is_counted(tmp_path: Path) -> None:
    """Then the models that are trained have to do."""
    _, splits = modular_network()
    last = propose(tmp_path / "free", splits, COUNTING).proposals[0].order[-1]
    constraints = Constraints(before=tuple((last, other) for other in range(12) if other != last))
    result = propose(tmp_path / "held", splits, COUNTING, AnyOrder(outward=False, rounds=1), constraints=constraints)
    assert all(proposal.order[0] == last for proposal in result.proposals)
    assert "determined" not in result.details["advice"]


@pytest.mark.parametrize("other", ["settings", "data", "search"])
def test_what_an_interrupted_search_left_serves_no_other(tmp_path: Path, other: str) -> None:
    splits, config, search = splits_of(random_targets), shortened(30), AnyOrder(rounds=2)
    with pytest.raises(Interrupted):
        propose(tmp_path / "used", splits, config, search, **stopped_at(3))
    if other == "settings":
        config = config.model_copy(update={"groups": 4})
    elif other == "data":
        splits = splits_of(copies)
    else:
        search = AnyOrder(rounds=3)
    used, fresh = (propose(tmp_path / name, splits, config, search) for name in ("used", "fresh"))
    assert told(used) == told(fresh)


def test_restarts(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(sums), shortened(100), AnyOrder(restarts=2, rounds=1))
    assert [stage.name for stage in result.stages] == ["any-order 1", "any-order 2"]
    assert 0 <= result.details["agreement"] <= 1
    best = min((stage.best for stage in result.stages), key=lambda best: best[0].loss or 0.0)
    assert result.proposals[0] == best[0]
    # Another model's losses say nothing of a tie with this one's.
    of_best = {proposal.order for proposal in best}
    assert all(proposal.order in of_best for proposal in result.proposals if proposal.tied)


def test_many_restarts_propose_no_more_than_can_race(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(random_targets), shortened(2), AnyOrder(restarts=10, rounds=2, outward=False))
    assert len({proposal.order for stage in result.stages for proposal in stage.best}) > MOST_PROPOSALS
    assert len(result.proposals) == MOST_PROPOSALS


def test_agreement_is_the_mean_over_every_two_models() -> None:
    forward, swapped = Order.forward(4), Order((1, 0, 2, 3))
    assert _agreement([forward]) == 1.0
    assert _agreement([forward, swapped]) == pytest.approx(5 / 6)
    assert _agreement([forward, swapped, forward]) == pytest.approx((5 / 6 + 5 / 6 + 1) / 3)


@pytest.mark.parametrize("settings", [{"restarts": 0}, {"rounds": 0}, {"rounds": -1}])
def test_too_few_restarts_or_rounds(settings: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        AnyOrder(**settings)


# Odd data: an answer, not a crash, and a result that can be stored.


def constant(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return np.tile(np.arange(4), (len(inputs_NW), 1))


def one_token(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return np.zeros((len(inputs_NW), 4), dtype=np.int64)


@pytest.mark.parametrize("inputs", [0, 4])
@pytest.mark.parametrize("solve", [constant, one_token, random_targets])
def test_targets_with_nothing_to_find(
    tmp_path: Path, solve: Callable[[IntArray, np.random.Generator], IntArray], inputs: int
) -> None:
    result = propose(tmp_path, splits_of(solve, inputs=inputs), shortened(20))
    assert result.details["verdict"] not in ("order found", "not settled")
    told(result)


@pytest.mark.parametrize("length", ["1", "2"])
def test_short_targets(tmp_path: Path, length: str) -> None:
    result = propose(tmp_path, square(length), shortened(100))
    assert sorted(result.proposals[0].order) == list(range(int(length)))
    assert result.details.get("verdict") in (None, "no order preferred")
    told(result)


@pytest.mark.parametrize("validation", [2, 3])
def test_few_validation_samples(tmp_path: Path, validation: int) -> None:
    """No random targets pass for ordered ones, however few the samples to judge by."""
    for seed in range(3):
        result = propose(
            tmp_path, splits_of(random_targets, validation=validation), shortened(30), AnyOrder(rounds=1), seed=seed
        )
        assert result.details["verdict"] == "nothing learnt"
        told(result)


def test_one_validation_sample_is_refused_at_once(tmp_path: Path) -> None:
    with open_problem(tmp_path, splits_of(sums, validation=1)) as problem:
        for refusing in (AnyOrder().check, AnyOrder().propose):
            with pytest.raises(InputError, match="2 validation samples"):
                refusing(problem)
        assert problem.journal.jobs() == []


def test_one_training_sample(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(sums, train=1), shortened(30))
    assert result.details["verdict"] == "nothing learnt"
