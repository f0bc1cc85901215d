"""Verdicts that can be trusted, phases of training, and odd data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned_helpers import (
    LEARNING,
    IntArray,
    Solve,
    constant,
    copies,
    noisy_copies,
    one_token,
    open_problem,
    propose,
    random_targets,
    shortened,
    splits_of,
    square,
    stopped_at,
    stopped_while,
    sums,
    told,
)

from genorder.data import EncodedDataset
from genorder.errors import InputError, Interrupted
from genorder.orders import Order, cost_ratio
from genorder.profiling import AnyOrderConfig
from genorder.profiling.unigram import unigram_loss
from genorder.search import MOST_PROPOSALS, AnyOrder, AnyOrderDetails, Budget, SearchResult, any_order
from genorder.search.any_order import _agreement
from genorder.search.diagnosis import Diagnosis
from genorder.tasks import make_task, task_splits
from made_data import TOKENS


def noisy_squares(inputs_NW: IntArray, rng: np.random.Generator) -> IntArray:
    """Each of an input and of the target before it, but one of seven is replaced: much is left to predict for ever."""
    targets_NL = inputs_NW.copy()
    for target in range(1, targets_NL.shape[1]):
        targets_NL[:, target] = (inputs_NW[:, target] + targets_NL[:, target - 1] ** 2) % TOKENS
    return np.where(rng.random(targets_NL.shape) < 1 / 7, rng.integers(TOKENS, size=targets_NL.shape), targets_NL)


# Verdicts.


@pytest.mark.parametrize(("hidden", "seed"), [(None, 0), (3, 1)])
def test_the_order_of_a_recurrence_is_found(tmp_path: Path, hidden: int | None, seed: int) -> None:
    result = propose(tmp_path, square("6", hidden), seed=seed)
    assert result.details.verdict == "order found"
    assert trained_steps(result) == 500  # what is settled does not train on
    data = task_splits(make_task("square", "6"), train=1, validation=1, test=1, hidden_order_seed=hidden)
    assert cost_ratio(result.proposals[0].order, data.graph_of_columns()) == 1.0
    losses = details_of(result).losses
    assert losses.best < losses.random < losses.unigram
    assert losses.best == pytest.approx(result.proposals[0].loss)
    assert losses.advantage == pytest.approx(losses.random - losses.best)
    assert losses.advantage > 4 * losses.advantage_error > 0


def details_of(result: SearchResult) -> AnyOrderDetails:
    assert isinstance(result.details, AnyOrderDetails)
    return result.details


def diagnosis_of(loss: float, unigram: float = 2.0, targets: int = 10, previous: float | None = None) -> Diagnosis:
    """Random orders are no better than the unigram baseline."""
    noise_N = 0.01 * np.random.default_rng(0).random(50)
    random_1N = np.array([unigram - noise_N])
    return Diagnosis([Order.forward(targets)], np.array([loss + noise_N]), random_1N, unigram, previous)


def columns_of(targets_NL: np.ndarray, lengths_N: np.ndarray | None = None) -> EncodedDataset:
    targets = torch.from_numpy(targets_NL)
    lengths = torch.full((len(targets),), targets.shape[1]) if lengths_N is None else torch.from_numpy(lengths_N)
    return EncodedDataset(torch.zeros(len(targets), 1, dtype=torch.long), targets, lengths, 1000)


def test_the_unigram_baseline_knows_the_frequencies_of_training() -> None:
    """Few validation samples hold few of many tokens: their own frequencies would look like knowledge."""
    rng = np.random.default_rng(0)
    train = columns_of(rng.integers(300, size=(50_000, 2)))
    for samples in (2, 100):
        unigram = unigram_loss(train, columns_of(rng.integers(300, size=(samples, 2))))
        assert unigram == pytest.approx(np.log(300), rel=0.02)
    assert unigram_loss(train, columns_of(np.full((3, 2), 999))) > np.log(300)  # never seen, and yet not impossible
    constant = np.full((5, 2), 7)
    assert unigram_loss(columns_of(constant), columns_of(constant)) == 0
    assert unigram_loss(train, columns_of(constant)) > 1
    short = columns_of(constant, np.array([1, 1, 1, 1, 1]))
    assert unigram_loss(columns_of(np.array([[7, 1], [7, 2]])), short) == 0


def test_it_has_converged_when_no_target_can_be_misplaced_or_nothing_more_is_learnt() -> None:
    assert diagnosis_of(0.05).converged
    assert diagnosis_of(0.05).verdict[0] == "order found"
    assert not diagnosis_of(0.15).converged  # one target of ten may be misplaced
    assert diagnosis_of(0.15).verdict[0] == "not settled"
    assert not diagnosis_of(0.05, targets=100).converged
    assert diagnosis_of(0.15, previous=0.16).converged
    assert not diagnosis_of(0.15, previous=0.5).converged
    assert not diagnosis_of(1.99, previous=1.99).converged  # nothing is learnt


@pytest.mark.parametrize(("seed", "shortest"), [(0, None), (1, 1)])
def test_of_random_targets_nothing_is_learnt(tmp_path: Path, seed: int, shortest: int | None) -> None:
    result = propose(tmp_path, splits_of(random_targets, shortest=shortest), shortened(40), seed=seed)
    assert result.details.verdict == "nothing learnt"
    assert all(not one.targets for one in result.details.dependencies)


@pytest.mark.parametrize(("solve", "seed", "shortest"), [(copies, 0, None), (copies, 1, 1), (noisy_copies, 0, 1)])
def test_independent_targets_prefer_no_order(tmp_path: Path, solve: Solve, seed: int, shortest: int | None) -> None:
    search = AnyOrder()
    result = propose(tmp_path, splits_of(solve, shortest=shortest), shortened(200), search, seed=seed)
    assert result.details.verdict == "no order preferred"
    assert all(not one.targets for one in result.details.dependencies)


def test_losses_are_of_single_predictions_whatever_the_lengths(tmp_path: Path) -> None:
    """The unigram loss of uniform tokens is log 7, and so is that of a model that has learnt nothing."""
    result = propose(tmp_path, splits_of(random_targets, shortest=1), shortened(60))
    for name in ("best", "reverse", "random", "unigram"):
        assert getattr(details_of(result).losses, name) == pytest.approx(np.log(TOKENS), rel=0.05)


def test_targets_of_several_lengths_have_an_order_too(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(sums, shortest=1))
    assert result.details.verdict == "order found"
    assert cost_ratio(result.proposals[0].order, make_task("relu", "4").dependencies()) == 1.0


def test_targets_whose_dependence_is_not_learnt_yet_are_not_called_independent(tmp_path: Path) -> None:
    """After a few steps the model knows the copy among the targets and nothing of the others."""
    result = propose(tmp_path, splits_of(sums, inputs=6), shortened(40))
    assert result.details.verdict != "no order preferred"


def test_a_verdict_comes_with_advice(tmp_path: Path) -> None:
    details = propose(tmp_path, splits_of(random_targets), shortened(5)).details
    assert "--set any_order.training.steps" in (details.advice or "")


# Phases of training, and restarts.


def trained_steps(result: SearchResult) -> int:
    return details_of(result).steps


def test_what_has_not_converged_trains_on(tmp_path: Path) -> None:
    """Each phase is twice as long as the one before."""
    splits = splits_of(random_targets)
    for rounds, steps in ((1, 20), (2, 60), (3, 140)):
        result = propose(tmp_path / str(rounds), splits, shortened(20), AnyOrder(rounds=rounds))
        assert trained_steps(result) == steps
        assert len(result.stages) == 1


def test_noise_has_converged_once_the_loss_stops_falling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What noise leaves is never predicted."""
    trained: list[int] = []
    fit_any_order = any_order.fit_any_order

    def in_random_orders(model: Any, train: Any, config: AnyOrderConfig, **options: Any) -> float:
        trained.append(config.training.steps)
        return fit_any_order(model, train, config, **options)

    monkeypatch.setattr(any_order, "fit_any_order", in_random_orders)
    result = propose(tmp_path, splits_of(noisy_squares), shortened(400))
    assert trained == [400, 800, LEARNING.graph_steps]
    assert result.details.verdict == "order found"


@pytest.mark.parametrize(
    ("solve", "steps", "share", "late"),
    [
        (random_targets, 20, None, True),  # nothing is learnt: all phases, and no graph
        (copies, 200, None, False),
        (random_targets, 20, 59, True),
        (copies, 200, 250, False),  # no room for the graph
        (copies, 200, 300, False),
    ],
)
def test_the_plan_counts_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solve: Any, steps: int, share: int | None, late: bool
) -> None:
    """Those of a model that converges at once, its graph included, and those that may come on top."""
    trained: list[int] = []
    fitted = any_order.fit_any_order

    def counting(model: Any, train: Any, config: AnyOrderConfig, **options: Any) -> float:
        trained.append(config.training.steps)
        return fitted(model, train, config, **options)

    monkeypatch.setattr(any_order, "fit_any_order", counting)
    with open_problem(tmp_path, splits_of(solve), shortened(steps), budget=Budget(steps=share)) as problem:
        (planned,) = AnyOrder().plan(problem)
        AnyOrder().propose(problem)
    graph = LEARNING.graph_steps
    if late:
        assert sum(trained) + (graph if share is None else 0) == planned.steps + planned.more_steps
    else:
        assert sum(trained) == planned.steps


def test_a_budget_of_steps_is_kept(tmp_path: Path) -> None:
    splits = splits_of(random_targets)
    for most, steps in ((10, 10), (20, 20), (59, 20), (60, 60), (139, 60), (140, 140), (1000, 140)):
        assert trained_steps(propose(tmp_path, splits, shortened(20), budget=Budget(steps=most))) == steps


def test_interrupted_in_the_second_phase_gives_the_same(tmp_path: Path) -> None:
    """Progress is reported at steps 20 and 30 of the first phase, then at 20, 40 and 60 of the second."""
    splits, search = splits_of(random_targets), AnyOrder()
    whole = propose(tmp_path / "whole", splits, shortened(30), search)
    folder = tmp_path / "parts"
    with pytest.raises(Interrupted, match="of 60"):
        propose(folder, splits, shortened(30), search, **stopped_at(3))
    assert {(path.parent.name, path.stem) for path in folder.rglob("step-*.json")} == {
        ("0", "step-000000030"),
        ("1", "step-000000021"),
    }
    continued = propose(folder, splits, shortened(30), search)
    assert told(continued) == told(whole)
    assert all(seconds > 0 for stage in continued.stages for seconds in stage.seconds.values())
    assert not list(folder.rglob("*.safetensors"))


PARTS = (
    "constructing greedily",
    "permuting positions",
)


@pytest.mark.parametrize("part", PARTS)
def test_interrupted_where_nothing_is_trained_gives_the_same(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes, Ctrl-C is heard in it, and what was trained before is not trained again."""
    monkeypatch.setattr("genorder.training.progress._REPORT_SECONDS", 0.0)
    splits, config = square("5"), shortened(30).model_copy(update={"graph_steps": 10})
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
    assert "any-order 1, round 1" not in trained


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
    assert 0 <= details_of(result).agreement <= 1
    best = min((stage.best for stage in result.stages), key=lambda best: best[0].loss or 0.0)
    assert result.proposals[0] == best[0]
    # Another model's losses say nothing of a tie with this one's.
    of_best = {proposal.order for proposal in best}
    assert all(proposal.order in of_best for proposal in result.proposals if proposal.tied)


def test_many_restarts_propose_no_more_than_can_race(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(random_targets), shortened(2), AnyOrder(restarts=10, rounds=2))
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


@pytest.mark.parametrize("inputs", [0, 4])
@pytest.mark.parametrize("solve", [constant, one_token, random_targets])
def test_targets_with_nothing_to_find(tmp_path: Path, solve: Solve, inputs: int) -> None:
    result = propose(tmp_path, splits_of(solve, inputs=inputs), shortened(20))
    assert result.details.verdict not in ("order found", "not settled")
    told(result)


@pytest.mark.parametrize("length", ["1", "2"])
def test_short_targets(tmp_path: Path, length: str) -> None:
    result = propose(tmp_path, square(length), shortened(100))
    assert sorted(result.proposals[0].order) == list(range(int(length)))
    assert result.details.verdict in (None, "no order preferred")
    told(result)


@pytest.mark.parametrize("validation", [2, 3])
def test_few_validation_samples(tmp_path: Path, validation: int) -> None:
    """No random targets pass for ordered ones, however few the samples to judge by."""
    for seed in range(3):
        result = propose(
            tmp_path, splits_of(random_targets, validation=validation), shortened(30), AnyOrder(rounds=1), seed=seed
        )
        assert result.details.verdict == "nothing learnt"
        told(result)


def test_one_validation_sample_is_refused_at_once(tmp_path: Path) -> None:
    with open_problem(tmp_path, splits_of(sums, validation=1)) as problem:
        for refusing in (AnyOrder().check, AnyOrder().propose):
            with pytest.raises(InputError, match="2 validation samples"):
                refusing(problem)
        assert problem.journal.jobs() == []


def test_one_training_sample(tmp_path: Path) -> None:
    result = propose(tmp_path, splits_of(sums, train=1), shortened(30))
    assert result.details.verdict == "nothing learnt"
