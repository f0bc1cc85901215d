"""Mining first, a model for the open targets, one graph with evidence: verdicts, partial results, odd data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned_helpers import (
    IntArray,
    Solve,
    Splits,
    constant,
    copies,
    one_token,
    open_problem,
    propose,
    random_targets,
    shortened,
    splits_of,
    square,
    stopped_while,
    sums,
    told,
)

from genorder.data import encode
from genorder.dependencies.graph import Determinant, FunctionalDependencies, TargetDependency, is_topological
from genorder.dependencies.mining import MiningConfig
from genorder.errors import InputError, Interrupted
from genorder.orders import Constraints, Order, cost_ratio
from genorder.search import (
    AnyOrder,
    AnyOrderDetails,
    Budget,
    Dependencies,
    DependenciesDetails,
    Proposal,
    SearchResult,
    Verdict,
)
from genorder.search.dependencies import LearnedTargets, judge
from genorder.search.diagnosis import OrderLosses
from genorder.tasks import TaskData, make_task, task_splits
from made_data import TOKENS

QUICK = Dependencies(rounds=1)


def found(folder: Path, splits: Splits, steps: int = 40, search: Dependencies = QUICK, **options: Any) -> SearchResult:
    return propose(folder, splits, shortened(steps), search, **options)


def details_of(result: SearchResult) -> DependenciesDetails:
    assert isinstance(result.details, DependenciesDetails)
    return result.details


def oracle_of(result: SearchResult) -> AnyOrderDetails:
    oracle = details_of(result).oracle
    assert oracle is not None
    return oracle


def graph_of(result: SearchResult) -> list[TargetDependency]:
    graph = result.details.dependencies
    assert [one.target for one in graph] == list(range(len(graph)))
    return graph


def orders_of(result: SearchResult) -> list[list[int]]:
    return [list(proposal.order) for proposal in result.proposals]


@pytest.fixture
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: pytest.fail("trained"))


# What mining determines.


def chain(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """y_0 = x_0 + x_1, then y_j = y_(j-1) + x_(j+1)."""
    return sums(inputs_NW, rng)[:, 1:]


@pytest.mark.usefixtures("nothing_is_trained")
@pytest.mark.parametrize("shortest", [None, 1])
def test_a_chain_of_sums(tmp_path: Path, shortest: int | None) -> None:
    """Sums can be solved for any term: only from the inputs on do they have a direction."""
    result = found(tmp_path, splits_of(chain, inputs=5, shortest=shortest))
    assert result.details.verdict == "order found"
    assert orders_of(result) == [[0, 1, 2, 3]]
    graph = graph_of(result)
    assert [(one.inputs, one.targets) for one in graph] == [((0, 1), ()), ((2,), (0,)), ((3,), (1,)), ((4,), (2,))]
    for one in graph:
        assert (one.found_by, one.violations, one.violation_rate) == ("counting", 0, 0.0)
        assert one.pairs is not None
        assert one.pairs > 1000
    (stage,) = result.stages
    assert [list(proposal.order) for proposal in stage.best] == [[0, 1, 2, 3]]
    assert stage.seconds["mine"] > 0


@pytest.mark.usefixtures("nothing_is_trained")
def test_the_order_and_the_graph_of_a_network(tmp_path: Path) -> None:
    """Of sums modulo 19 whose columns are shuffled: several sorts, all of them optimal."""
    data = task_splits(make_task("delay-modular", "12"), train=20_000, validation=400, test=1, hidden_order_seed=3)
    splits = [encode(part, input_width=8, target_width=12) for part in (data.splits.train, data.splits.validation)]
    result = found(tmp_path, (splits[0], splits[1]))
    assert result.details.verdict == "order found"
    assert len(result.proposals) == 3
    assert all(cost_ratio(proposal.order, data.graph_of_columns()) == 1.0 for proposal in result.proposals)
    check_parents(graph_of(result), data)


def check_parents(graph: list[TargetDependency], data: TaskData) -> None:
    true = data.graph_of_columns()
    assert [(set(one.inputs), set(one.targets)) for one in graph] == [
        (set(true.input_parents[target]), set(true.target_parents(target))) for target in range(true.targets)
    ]


def neighbours(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return (inputs_NW + np.roll(inputs_NW, 1, axis=1)) % TOKENS


@pytest.mark.usefixtures("nothing_is_trained")
@pytest.mark.parametrize("solve", [copies, neighbours])
def test_targets_of_the_inputs_alone_prefer_no_order(tmp_path: Path, solve: Solve) -> None:
    result = found(tmp_path, splits_of(solve))
    assert result.details.verdict == "no order preferred"
    assert "The inputs alone determine the targets" in (result.details.advice or "")
    assert all(one.found_by == "counting" and not one.targets for one in graph_of(result))


def with_noise(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    targets_NL = chain(inputs_NW, rng)
    return np.where(rng.random(targets_NL.shape) < 0.03, rng.integers(TOKENS, size=targets_NL.shape), targets_NL)


@pytest.mark.usefixtures("nothing_is_trained")
def test_noise_is_measured_and_told(tmp_path: Path) -> None:
    """Six inputs: with five, many samples occur twice, of which noise makes two different ones."""
    result = found(tmp_path, splits_of(with_noise, inputs=6, train=20_000))
    assert result.details.verdict == "order found"
    assert details_of(result).noise == pytest.approx(0.03, rel=0.2)
    assert "apart from noise in about" in (result.details.advice or "")
    rates = [one.violation_rate for one in graph_of(result)]
    assert all(rate is not None and 0 < rate < 0.2 for rate in rates)


# What a model has to learn.


@pytest.mark.parametrize("shortest", [None, 1])
def test_of_random_targets_nothing_is_learnt(tmp_path: Path, shortest: int | None) -> None:
    result = found(tmp_path, splits_of(random_targets, shortest=shortest))
    assert result.details.verdict == "nothing learnt"
    assert "--set any_order.training.steps" in (result.details.advice or "")
    assert all((one.found_by, one.inputs, one.targets) == ("none", (), ()) for one in graph_of(result))


def test_without_mining_it_is_the_learned_oracle_alone(tmp_path: Path) -> None:
    splits = square("4")
    result = found(tmp_path / "one", splits, 400, mining=MiningConfig(enabled=False))
    alone = propose(tmp_path / "other", splits, shortened(400), AnyOrder(rounds=1))
    assert result.details.verdict == alone.details.verdict == "order found"
    assert result.details.advice == alone.details.advice
    assert oracle_of(result) == alone.details
    assert graph_of(result) == alone.details.dependencies
    assert all(one.found_by == "model" for one in graph_of(result))


SHUFFLED = [2, 0, 3, 1]  # columns of the sums, behind one of another kind and before another


def beside_sums(*others_N: IntArray, inputs_NW: IntArray) -> IntArray:
    chain_NL = (inputs_NW.cumsum(axis=1) % TOKENS)[:, 1:][:, SHUFFLED]
    return np.column_stack([others_N[0], chain_NL, *others_N[1:]])


CHAIN = [2, 4, 1, 3]  # where the sums stand


def check_chain(result: SearchResult) -> None:
    """What is mined comes first, with its evidence, whatever else there is."""
    for order in orders_of(result):
        assert order[:4] == CHAIN
    graph = graph_of(result)
    for target, inputs, targets in ((2, (0, 1), ()), (4, (2,), (2,)), (1, (3,), (4,)), (3, (4,), (1,))):
        one = graph[target]
        assert (one.found_by, one.inputs, one.targets, one.violations) == ("counting", inputs, targets, 0)
        assert one.pairs


def and_two_random_ones(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    return beside_sums(*rng.integers(TOKENS, size=(2, len(inputs_NW))), inputs_NW=inputs_NW)


def and_one_parity(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """Of ten inputs at once, which mining cannot show."""
    return beside_sums(inputs_NW.sum(axis=1) % 2, inputs_NW=inputs_NW[:, :5])


def and_noisy_copies(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """Of the third sum, every other token, and of that copy again."""
    third_N = inputs_NW[:, :4].sum(axis=1) % TOKENS
    drawn_2N = rng.integers(TOKENS, size=(2, len(inputs_NW)))
    copy_N = np.where(rng.random(len(inputs_NW)) < 0.3, drawn_2N[0], third_N)
    again_N = np.where(rng.random(len(inputs_NW)) < 0.3, drawn_2N[1], copy_N)
    return beside_sums(again_N, copy_N, inputs_NW=inputs_NW)


def and_one_of_a_random_one(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """Of its square, so that it does not go the other way."""
    random_N = rng.integers(TOKENS, size=len(inputs_NW))
    return beside_sums((random_N**2 + inputs_NW[:, 0]) % TOKENS, random_N, inputs_NW=inputs_NW)


def test_random_targets_come_behind_a_chain(tmp_path: Path) -> None:
    result = found(tmp_path, splits_of(and_two_random_ones, inputs=5))
    check_chain(result)
    assert result.details.verdict == "not settled"
    assert "Mining determines 4 of 6 targets, which come first" in (result.details.advice or "")
    graph = graph_of(result)
    assert [(graph[target].found_by, graph[target].targets) for target in (0, 5)] == [("none", ())] * 2
    assert {tuple(order[4:]) for order in orders_of(result)} <= {(0, 5), (5, 0)}


@pytest.mark.usefixtures("nothing_is_trained")
def test_one_target_that_nothing_determines_comes_last(tmp_path: Path) -> None:
    """There is no order of one target to learn."""
    result = found(tmp_path, splits_of(and_one_parity, inputs=10))
    check_chain(result)
    assert orders_of(result) == [[*CHAIN, 0]]
    assert result.details.verdict == "order found"
    assert "do not show what determines the rest" in (result.details.advice or "")
    assert graph_of(result)[0].found_by == "none"


def test_what_mining_cannot_show_is_learnt_beside_what_it_can(tmp_path: Path) -> None:
    """Columns of what a model says are those of the data, not of the part that was left to it."""
    result = found(tmp_path, splits_of(and_noisy_copies, inputs=5), 300)
    check_chain(result)
    graph = graph_of(result)
    again, copy = graph[0], graph[5]
    assert (again.found_by, copy.found_by) == ("model", "model")
    assert (copy.targets, again.targets) == ((1,), (5,))
    assert list(copy.loss_without) == ["y1"]
    assert list(again.loss_without) == ["y5"]
    assert copy.loss is not None
    assert 0 < copy.loss < np.log(TOKENS)
    assert orders_of(result)[0] == [*CHAIN, 5, 0]
    assert is_topological(result.proposals[0].order, graph)
    assert result.details.verdict in ("order found", "not settled")
    assert "Mining determines 4 of 6 targets" in (result.details.advice or "")
    assert oracle_of(result).steps == 300
    oracle, last = result.stages
    assert (oracle.name, last.name) == ("learned oracle", "dependencies")
    assert oracle.seconds["train"] > 0


def test_a_target_that_only_an_open_one_determines_follows_it(tmp_path: Path) -> None:
    result = found(tmp_path, splits_of(and_one_of_a_random_one, inputs=5), 300)
    check_chain(result)
    assert orders_of(result)[0] == [*CHAIN, 5, 0]
    graph = graph_of(result)
    assert graph[5].found_by != "counting"
    assert (graph[0].found_by, graph[0].inputs, graph[0].targets) == ("counting", (0,), (5,))
    assert graph[0].pairs
    assert graph[0].violations == 0


def noisy_functions_of_targets(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """Two sums of two inputs each, and noisy copies of them before them."""
    sums_NL = (inputs_NW[:, ::2] + inputs_NW[:, 1::2]) % TOKENS
    noisy_NL = np.where(rng.random(sums_NL.shape) < 0.3, rng.integers(TOKENS, size=sums_NL.shape), sums_NL)
    return np.concatenate([noisy_NL, sums_NL], axis=1)


def test_targets_of_the_inputs_alone_come_before_others_that_read_them(tmp_path: Path) -> None:
    """Among those that are learnt the order does not matter, and yet they come last."""
    result = found(tmp_path, splits_of(noisy_functions_of_targets), 300, Dependencies())
    assert result.details.verdict == "order found"
    assert [one.found_by for one in graph_of(result)] == ["model", "model", "counting", "counting"]
    assert [one.targets for one in graph_of(result)[:2]] == [(2,), (3,)]
    assert all(sorted(order[:2]) == [2, 3] for order in orders_of(result))


# Verdicts.


def determined(target: int, *positions: int) -> Determinant:
    return Determinant(target, positions, 10, 1000, 0)


def mined(
    *chosen: Determinant, targets: int, others: tuple[Determinant, ...] = (), **more: Any
) -> FunctionalDependencies:
    """Of two inputs, 0 and 1; target t is at position 2 + t."""
    every = (*chosen, *others)
    all_found = {target: tuple(one for one in every if one.target == target) for target in range(targets)}
    about = {"ambiguous": (), "noise": 0.0, **more}
    return FunctionalDependencies(2, targets, {one.target: one for one in chosen}, all_found, **about)


def learned(verdict: Verdict | None, targets: list[int], **read: tuple[int, ...]) -> LearnedTargets:
    """What the open targets read, such as y0=(0, 2), of inputs and known targets after them."""
    rows = [TargetDependency(target=int(target[1:]), inputs=own) for target, own in read.items()]
    losses = OrderLosses(best=1.0, unigram=2.0, reverse=1.0, random=1.0, advantage=0.0, advantage_error=0.1)
    about = {"losses": losses, "steps": 1, "agreement": 1.0}
    details = AnyOrderDetails(verdict=verdict, advice="its advice", dependencies=rows, **about) if verdict else None
    return LearnedTargets([Proposal(Order.forward(len(targets)))], [0], targets, details)


CHAINED = (determined(0, 0), determined(1, 1, 2))  # the second of an input and the first
ALONE = (determined(0, 0), determined(1, 1))


@pytest.mark.parametrize(
    ("made", "oracle", "expected", "said"),
    [
        (mined(*CHAINED, targets=2), None, "order found", "Each target is determined by tokens that come before it."),
        (mined(*CHAINED, targets=2, noise=0.05), None, "order found", "apart from noise in about 5%"),
        (mined(*ALONE, targets=2), None, "no order preferred", "The inputs alone"),
        (mined(*CHAINED, targets=2, others=(determined(1, 0, 1),)), None, "no order preferred", "The inputs alone"),
        (mined(*CHAINED, targets=2, others=(determined(1, 0, 1, 3),)), None, "order found", "Each target"),
        (mined(determined(0), determined(1), targets=2), None, "no order preferred", "any order will do"),
        (mined(*CHAINED, targets=2, ambiguous=(1,)), None, "not settled", "1 target has several equally small"),
        (mined(targets=2), learned("nothing learnt", [0, 1]), "nothing learnt", "its advice"),
        (mined(targets=2), learned("order found", [0, 1]), "order found", "its advice"),
        (mined(*ALONE, targets=4), learned("nothing learnt", [2, 3]), "not settled", "a model learnt nothing"),
        (mined(*ALONE, targets=4), learned("not settled", [2, 3]), "not settled", "a model learnt too little"),
        (mined(*ALONE, targets=4), learned("order found", [2, 3]), "order found", "2 of 4 targets; a model learnt the"),
        (mined(*ALONE, targets=4), learned("no order preferred", [2, 3], y0=(0,)), "no order preferred", "alone"),
        (mined(*ALONE, targets=4), learned("no order preferred", [2, 3], y0=(2,)), "order found", "come first"),
        (mined(*CHAINED, targets=4), learned("no order preferred", [2, 3]), "order found", "come first"),
        (mined(*CHAINED, targets=3), learned(None, [2]), "order found", "2 of 3 targets, which come first"),
        (mined(*ALONE, targets=3), learned(None, [2]), "not settled", "2 of 3 targets, which come first"),
    ],
)
def test_verdicts(made: FunctionalDependencies, oracle: LearnedTargets | None, expected: str, said: str) -> None:
    verdict, advice = judge(made, made.determinants, oracle)
    assert verdict == expected
    assert said in advice


# Constraints, budgets, and what was done before.


def test_sorts_keep_to_constraints_that_the_graph_allows(tmp_path: Path) -> None:
    """Two chains of two: 2 after 0, 3 after 1."""

    def two_chains(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
        first_NL = (inputs_NW[:, :2] + inputs_NW[:, 2:4]) % TOKENS
        return np.concatenate([first_NL, (first_NL + inputs_NW[:, 4:]) % TOKENS], axis=1)

    constraints = Constraints(before=((3, 0),))
    result = found(tmp_path, splits_of(two_chains, inputs=6), constraints=constraints)
    assert orders_of(result) == [[1, 3, 0, 2]]
    assert result.details.verdict == "order found"


def test_constraints_that_the_graph_contradicts_are_kept(tmp_path: Path) -> None:
    constraints = Constraints(before=((3, 0),))
    result = found(tmp_path, splits_of(chain, inputs=5), constraints=constraints)
    assert all(constraints.allows(proposal.order) for proposal in result.proposals)
    for order in orders_of(result):  # the edges that are left
        assert order.index(1) < order.index(2)
    assert [one.targets for one in graph_of(result)] == [(), (0,), (1,), (2,)]  # the graph is reported unchanged


def test_a_budget_of_steps_is_for_the_oracle(tmp_path: Path) -> None:
    with open_problem(tmp_path, splits_of(random_targets), shortened(20), budget=Budget(steps=15)) as problem:
        (planned,) = Dependencies().plan(problem)
        result = Dependencies().propose(problem)
    assert (planned.steps, planned.more_steps) == (0, 15)
    assert oracle_of(result).steps == 15


def test_what_is_mined_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(tmp_path, splits_of(and_two_random_ones, inputs=5))
    monkeypatch.setattr("genorder.search.dependencies.mine_dependencies", lambda *_, **__: pytest.fail("mined again"))
    again = found(tmp_path, splits_of(and_two_random_ones, inputs=5))
    assert again.to_dict() == first.to_dict()
    monkeypatch.undo()
    others = {"mining": MiningConfig(pairs=100_000)}  # other counts
    with open_problem(tmp_path, splits_of(and_two_random_ones, inputs=5), shortened(40), **others) as problem:
        QUICK.propose(problem)
        names = [job.name for job in problem.journal.jobs()]
    assert names.count("mine dependencies") == 2


@pytest.mark.parametrize("part", ["screening targets", "sorting the graph"])
def test_interrupted_and_continued_gives_the_same(tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long mining takes, Ctrl-C is heard in it."""
    monkeypatch.setattr("genorder.training.progress._REPORT_SECONDS", 0.0)
    splits = splits_of(and_one_parity, inputs=10)
    whole = found(tmp_path / "whole", splits)
    with pytest.raises(Interrupted, match=f"stopped while {part}; the same command"):
        found(tmp_path / "parts", splits, **stopped_while(part))
    assert told(found(tmp_path / "parts", splits)) == told(whole)


@pytest.mark.parametrize("settings", [{"restarts": 0}, {"rounds": 0}])
def test_too_few_restarts_or_rounds(settings: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Dependencies(**settings)


# Odd data: an answer, not a crash, and a result that can be stored.


@pytest.mark.parametrize("inputs", [0, 4])
@pytest.mark.parametrize(
    ("solve", "expected"),
    [(constant, "no order preferred"), (one_token, "no order preferred"), (random_targets, "nothing learnt")],
)
def test_targets_with_nothing_to_find(tmp_path: Path, solve: Solve, expected: str, inputs: int) -> None:
    result = found(tmp_path, splits_of(solve, inputs=inputs), 10)
    assert result.details.verdict == expected
    told(result)


@pytest.mark.parametrize("length", ["1", "2"])
def test_short_targets(tmp_path: Path, length: str) -> None:
    """Of two, all 361 inputs are there once: no two samples agree on what determines the second."""
    result = found(tmp_path, square(length))
    assert orders_of(result) == [list(range(int(length)))]
    assert result.details.verdict == {"1": None, "2": "not settled"}[length]


@pytest.mark.parametrize(("train", "validation"), [(1, 400), (4000, 2)])
def test_few_samples(tmp_path: Path, train: int, validation: int) -> None:
    """Of a single one, any set would determine anything."""
    result = found(tmp_path, splits_of(random_targets, train=train, validation=validation), 10)
    assert result.details.verdict != "order found"
    told(result)


def test_one_validation_sample_is_refused_at_once(tmp_path: Path) -> None:
    with open_problem(tmp_path, splits_of(sums, validation=1)) as problem:
        for refusing in (Dependencies().check, Dependencies().propose):
            with pytest.raises(InputError, match="2 validation samples"):
                refusing(problem)
        assert problem.journal.jobs() == []


# Nested determinants.


@pytest.mark.usefixtures("nothing_is_trained")
@pytest.mark.parametrize("hidden", [0, 1])
def test_lower_digits_come_first_though_the_inputs_determine_them_too(tmp_path: Path, hidden: int) -> None:
    """Of a product, the two lowest digits are functions of inputs alone; those of the lowest are among the other's."""
    task = make_task("multiply:digits=4,by=1", None)
    data = task_splits(task, train=40_000, validation=50, test=1, hidden_order_seed=hidden)
    train, validation = (
        encode(split, input_width=data.splits.input_width, target_width=data.splits.target_width)
        for split in (data.splits.train, data.splits.validation)
    )
    result = found(tmp_path, (train, validation))
    assert result.details.verdict == "order found"
    for proposal in result.proposals:
        assert cost_ratio(proposal.order, data.graph_of_columns()) == 1.0
