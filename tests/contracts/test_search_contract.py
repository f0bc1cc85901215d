"""What every strategy promises, whatever its way of searching."""

import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import search_cases
import torch
from search_cases import ANY_ORDER, CONSTRAINTS, ONE_ORDER_ONLY, SEARCHES, open_problem, propose, told

from genorder.errors import InputError, Interrupted
from genorder.execution import StopRequest
from genorder.models.routed import RoutedConfig
from genorder.orders import Constraints, Order, cost_ratio
from genorder.search import (
    MOST_PROPOSALS,
    STRATEGIES,
    AnyOrder,
    Budget,
    Dependencies,
    GlobalLocal,
    Search,
    SearchResult,
    SoftPermutation,
    make_search,
)
from genorder.store import Journal
from genorder.tasks import make_task
from genorder.training import TrainingConfig

every_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def settings_of(search: Search) -> dict[str, Any]:
    return {field.name: getattr(search, field.name) for field in fields(search)}  # type: ignore[arg-type]


def has_initial_pool(search: Search) -> bool:
    return "init" in settings_of(search)


def test_no_strategy_is_left_out() -> None:
    assert {search.name for search in SEARCHES.values()} == set(STRATEGIES)


@every_search
def test_made_by_name_and_settings(search: Search) -> None:
    assert make_search(search.name, settings_of(search)) == search


@every_search
def test_proposals_are_orders(search: Search, tmp_path: Path) -> None:
    result = propose(search, tmp_path)
    orders = [proposal.order for proposal in result.proposals]
    assert 1 <= len(orders) <= MOST_PROPOSALS
    assert len(set(orders)) == len(orders)
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    names = [stage.name for stage in result.stages]
    assert names
    assert len(set(names)) == len(names)
    assert result.stages[-1].best
    for stage in result.stages:
        assert 1 <= stage.kept <= stage.candidates
        assert len(stage.best) <= stage.candidates
        assert all(seconds >= 0 for seconds in stage.seconds.values())
        assert all(sorted(proposal.order) == [0, 1, 2, 3] for proposal in stage.best)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()


@every_search
def test_the_same_seed_gives_the_same_result_elsewhere(search: Search, tmp_path: Path) -> None:
    first, second = (propose(search, tmp_path / name) for name in ("here", "there"))
    assert told(first) == told(second)
    assert told(propose(search, tmp_path / "here", seed=1)) != told(first)


@every_search
def test_a_finished_search_is_not_done_again(search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = propose(search, tmp_path)
    with Journal(tmp_path / "journal.sqlite") as journal:
        jobs = len(journal.jobs())
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: pytest.fail("trained again"))
    assert propose(search, tmp_path).to_dict() == first.to_dict()
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert len(journal.jobs()) == jobs


@every_search
def test_no_checkpoint_is_left(search: Search, tmp_path: Path) -> None:
    propose(search, tmp_path)
    assert not list(tmp_path.rglob("step-*"))


class Stopping:
    """Requests to stop at the event of that number, from 1: a training's progress, or the end of a stage."""

    def __init__(self, event: int) -> None:
        self.stop = StopRequest()
        self._left = event

    def options(self) -> dict[str, Any]:
        return {"stop": self.stop, "on_progress": self._happened, "on_stage": self._happened}

    def _happened(self, *_: object) -> None:
        self._left -= 1
        if self._left == 0:
            self.stop.requested = True


@every_search
def test_interrupted_and_continued_gives_the_same(search: Search, tmp_path: Path) -> None:
    """Every process stops a little later than the one before: in the midst of trainings, and between them."""
    whole = propose(search, tmp_path / "whole")
    continued: SearchResult | None = None
    interruptions = 0
    while continued is None:
        try:
            continued = propose(search, tmp_path / "parts", **Stopping(1 + interruptions).options())
        except Interrupted:
            interruptions += 1
            assert interruptions < 50
    assert interruptions >= (1 if search.name == "dependencies" else 2)  # which trains for open targets only
    assert told(continued) == told(whole)
    assert not list((tmp_path / "parts").rglob("step-*"))


def test_killed_and_continued_gives_the_same(tmp_path: Path) -> None:
    """By kill -9: a process in the midst of the first training, then another in the midst of the second."""
    search = SEARCHES["global-local"]
    whole = propose(search, tmp_path / "whole")
    for event in (1, 4):
        command = [sys.executable, search_cases.__file__, "global-local", str(tmp_path / "parts"), str(event)]
        killed = subprocess.run(command, capture_output=True, timeout=120)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    with Journal(tmp_path / "parts" / "journal.sqlite") as journal:
        assert len(journal.jobs()) == 1
    assert told(propose(search, tmp_path / "parts")) == told(whole)


@every_search
@pytest.mark.parametrize(
    "budget", [Budget(runs=1), Budget(runs=2, candidates=12), Budget(runs=4, candidates=3), Budget(candidates=12)]
)
def test_the_budget_is_kept_and_the_plan_holds(search: Search, tmp_path: Path, budget: Budget) -> None:
    with open_problem(tmp_path, budget=budget) as problem:
        if isinstance(search, GlobalLocal) and budget.candidates == 3:
            with pytest.raises(InputError, match="--max-candidates"):
                search.check(problem)
            search = replace(search, depth=1)
        plan = search.plan(problem)
        assert search.plan(problem) == plan
        assert (problem.runs, problem.stages) == (0, [])
        result = search.propose(problem)
        planned = {run.name: run for run in plan}
        assert len(planned) == len(plan)
        assert all(run.candidates >= 1 and run.steps + run.more_steps >= 1 for run in plan)
        assert problem.runs <= min(len(plan), budget.runs or math.inf)
        most = max((run.candidates for run in plan), default=1)
        for stage in result.stages:
            assert stage.candidates <= (planned[stage.name].candidates if stage.name in planned else most)
            assert stage.candidates <= (budget.candidates or math.inf)
        assert result.proposals


@every_search
@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_targets(search: Search, tmp_path: Path, length: int) -> None:
    with open_problem(tmp_path, length=str(length)) as problem:
        plan = search.plan(problem)
        result = search.propose(problem)
        assert problem.runs <= len(plan)
    orders = [proposal.order for proposal in result.proposals]
    assert len(set(orders)) == len(orders) >= 1
    assert all(sorted(order) == list(range(length)) for order in orders)
    json.dumps(result.to_dict(), allow_nan=False)


@every_search
def test_targets_of_several_lengths_are_searched_or_refused_at_once(search: Search, tmp_path: Path) -> None:
    with open_problem(tmp_path, length="2-4") as problem:
        if isinstance(search, SoftPermutation):
            for refusing in (search.check, search.propose):
                with pytest.raises(InputError, match="needs targets of one length"):
                    refusing(problem)
            assert problem.journal.jobs() == []
        else:
            result = search.propose(problem)
            assert all(sorted(proposal.order) == [0, 1, 2, 3] for proposal in result.proposals)


@every_search
@pytest.mark.parametrize("constraints", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_every_proposal_is_allowed(search: Search, tmp_path: Path, constraints: Constraints) -> None:
    with open_problem(tmp_path, constraints=constraints) as problem:
        planned = search.plan(problem)
        result = search.propose(problem)
        assert problem.runs <= len(planned)
    orders = [proposal.order for proposal in result.proposals]
    assert 1 <= len(orders) == len(set(orders))
    for stage in result.stages:
        assert 1 <= stage.kept <= stage.candidates
        assert len({proposal.order for proposal in stage.best}) == len(stage.best)
        orders += [proposal.order for proposal in stage.best]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert all(constraints.allows(order) for order in orders)
    json.dumps(result.to_dict(), allow_nan=False)


@every_search
@pytest.mark.parametrize(("constraints", "only"), ONE_ORDER_ONLY.values(), ids=ONE_ORDER_ONLY)
def test_the_only_allowed_order_is_proposed(
    search: Search, tmp_path: Path, constraints: Constraints, only: Order
) -> None:
    result = propose(search, tmp_path, constraints=constraints)
    assert [proposal.order for proposal in result.proposals] == [only]


def test_constraints_that_no_order_meets_are_refused_before_there_is_a_problem(tmp_path: Path) -> None:
    contradiction = Constraints(before=((0, 1), (1, 0)))
    with pytest.raises(InputError, match="form a cycle"), open_problem(tmp_path, constraints=contradiction):
        pytest.fail("there is no such problem")


@every_search
def test_another_search_under_constraints_is_not_taken_for_this(search: Search, tmp_path: Path) -> None:
    """In one journal: what was found with constraints, and what without them."""
    free = propose(search, tmp_path / "one")
    constrained = propose(search, tmp_path / "one", constraints=CONSTRAINTS["several"])
    assert told(constrained) == told(propose(search, tmp_path / "other", constraints=CONSTRAINTS["several"]))
    assert told(propose(search, tmp_path / "one")) == told(free)


@every_search
def test_interrupted_and_continued_under_constraints(search: Search, tmp_path: Path) -> None:
    given = {"constraints": CONSTRAINTS["before"]}
    whole = propose(search, tmp_path / "whole", **given)
    with pytest.raises(Interrupted):
        propose(search, tmp_path / "parts", **given, **Stopping(1).options())
    assert told(propose(search, tmp_path / "parts", **given)) == told(whole)


POOL = [Order.of(map(int, digits)) for digits in ("3102", "0231", "1320", "2013", "1032", "0312")]
TWO_FIRST = ((2, 1), (2, 0))  # pairs, of columns in a sequence, and orders that meet them
POOL_TWO_FIRST = [Order.of(map(int, digits)) for digits in ("3201", "2310", "2130", "2013", "2301", "3210")]


LEARNED = (AnyOrder, Dependencies)  # which draw first weights for every column
ALIKE_ON_ALL_COLUMNS = {name: search for name, search in SEARCHES.items() if not isinstance(search, LEARNED)}
relabellings = pytest.mark.parametrize("columns", [Order((2, 0, 3, 1)), Order((3, 2, 1, 0))], ids=Order.short)


@pytest.mark.parametrize("search", ALIKE_ON_ALL_COLUMNS.values(), ids=ALIKE_ON_ALL_COLUMNS)
@relabellings
@pytest.mark.parametrize(("orders", "pairs"), [(POOL, ()), (POOL_TWO_FIRST, TWO_FIRST)], ids=["free", "before"])
def test_relabelled_columns_give_the_relabelled_answer(
    search: Search, tmp_path: Path, columns: Order, orders: list[Order], pairs: tuple[tuple[int, int], ...]
) -> None:
    """Nothing but the numbers of the columns changes: no strategy may prefer an order for its numbers.

    Losses may differ in their last bits, since candidates are scored in the sequence of their numbers. The data and
    the seed are such that no two candidates lie that close.
    """
    new_of = columns.inverse()
    answers = []
    for name, own in (("plain", Order.forward(4)), ("relabelled", columns)):
        pool = tmp_path / f"{name}.json"
        pool.write_text(json.dumps([list(own.inverse().compose(order)) for order in orders]))
        started = replace(search, init=str(pool)) if has_initial_pool(search) else search  # type: ignore[call-arg]
        new = own.inverse()
        before = tuple((new[one], new[other]) for one, other in pairs)
        answers.append(propose(started, tmp_path / name, columns=own, constraints=Constraints(before=before)))
    plain, other = answers
    assert len(other.stages) == len(plain.stages)
    for there, here in [
        (other.proposals, plain.proposals),
        *((there.best, here.best) for there, here in zip(other.stages, plain.stages, strict=True)),
    ]:
        assert [proposal.order for proposal in there] == [new_of.compose(proposal.order) for proposal in here]
        assert [proposal.tied for proposal in there] == [proposal.tied for proposal in here]
        for one, two in zip(there, here, strict=True):
            assert one.loss == (None if two.loss is None else pytest.approx(two.loss, rel=1e-6))
            assert one.error == (None if two.error is None else pytest.approx(two.error, rel=1e-4))


LEARNING = ANY_ORDER.model_copy(
    update={
        "model": RoutedConfig(width=32, hidden=64),
        "training": TrainingConfig(steps=400, batch_size=64, learning_rate=5e-3, warmup_steps=20, weight_decay=0.0),
        "groups": 8,
    }
)


@pytest.mark.parametrize("search", [AnyOrder(), Dependencies()], ids=lambda search: search.name)
@relabellings
def test_relabelled_columns_give_an_order_as_good(tmp_path: Path, search: Search, columns: Order) -> None:
    """The model of any-order draws first weights for every column, and so differs in them where columns are numbered
    otherwise, as it does with another seed. What it learns must not: once trained, it finds the best order in both.
    """
    graph = make_task("square", "4").dependencies()
    for name, own in (("plain", Order.forward(4)), ("relabelled", columns)):
        result = propose(search, tmp_path / name, columns=own, samples=6000, any_order=LEARNING)
        assert result.details.verdict == "order found"
        assert cost_ratio(own.compose(result.proposals[0].order), graph) == 1.0
