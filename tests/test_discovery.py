"""From a dataset to a trained model: what is raced, trained, told, and not done twice."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from genorder.dependencies.graph import FoundBy, TargetDependency
from genorder.discovery import Discovery, contestants_of, discover
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.orders import CandidateSource, Constraints, Order, random_orders
from genorder.presets import DiscoveryConfig
from genorder.race import race as race_module
from genorder.race.jobs import JobResult, RaceJob, run_job
from genorder.search import (
    MOST_PROPOSALS,
    Budget,
    Dependencies,
    GlobalLocal,
    PlannedRun,
    Proposal,
    Search,
    SearchDetails,
    SearchProblem,
    SearchResult,
    Verdict,
)
from genorder.seeding import numpy_generator
from genorder.settings import resolve_discovery
from genorder.store import RunDirectory
from genorder.tasks import TaskData, make_task, task_splits

SMALL_MODEL = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32}
SETTINGS = {
    "samples.train": 300, "samples.validation": 30, "samples.test": 30, "race.first_rung": 4,
    "profiler.training.steps": 8, "profiler.training.batch_size": 8,
    "final.training.steps": 24, "final.training.batch_size": 8,
    **{f"{part}.model.{name}": value for part in ("profiler", "final") for name, value in SMALL_MODEL.items()},
}  # fmt: skip
LEARNING = {"race.first_rung": 100, "final.training.learning_rate": 0.01, "race.patient_steps": 0}
SEARCH = GlobalLocal(depth=2)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def config() -> DiscoveryConfig:
    return resolve_discovery("cpu", settings=[f"{name}={value}" for name, value in SETTINGS.items()])


@cache
def square(length: int) -> TaskData:
    return task_splits(make_task("square", str(length)), train=300, validation=30, test=30, hidden_order_seed=0)


def small(search: Search = SEARCH, *, length: int = 4, **options: Any) -> Discovery:
    built = square(length)
    source = CandidateSource(built.true_of_column.inverse(), built.graph_of_columns())
    given = {"seed": 0, "device": torch.device("cpu"), "workers": 1, **options}
    return Discovery(built.splits, source, config(), search, **given)


@contextmanager
def run_directory(path: Path) -> Iterator[RunDirectory]:
    with RunDirectory.open(path, {"verb": "discover"}, command=["test"], environment={}) as directory:
        yield directory


def found_in(path: Path, discovery: Discovery, **options: Any) -> dict[str, Any]:
    with run_directory(path) as directory:
        outcome = discover(discovery, directory, **options)
    result: dict[str, Any] = json.loads(json.dumps(outcome.to_dict()))
    return result


def without_time(value: Any) -> Any:
    if isinstance(value, dict):
        times = ("seconds", "evaluation_seconds", "run_dir")
        return {name: without_time(part) for name, part in value.items() if name not in times}
    return [without_time(part) for part in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Knowing(Search):
    """Proposes what it was given, without any work."""

    name: ClassVar[str] = "knowing"
    orders: tuple[Order, ...]

    def check(self, problem: SearchProblem) -> None: ...

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        return []

    def propose(self, problem: SearchProblem) -> SearchResult:
        return SearchResult([Proposal(order) for order in self.orders], [])


class Notes:
    """A watcher that writes down what it is told, and may ask for a stop."""

    def __init__(self, stop_at: str = "") -> None:
        self.stop = StopRequest()
        self.told: list[str] = []
        self._stop_at = stop_at

    def progress(self, stage: str, progress: Any) -> None:
        self._note(stage)

    def stage(self, stage: Any) -> None:
        self._note(f"{stage.name} done")

    def proposed(self, proposed: SearchResult) -> None:
        self._note(f"{len(proposed.proposals)} proposals")

    def race(self, progress: Any) -> None:
        self._note(f"rung {progress.rung}: {progress.done} of {progress.total}")

    def _note(self, text: str) -> None:
        self.told.append(text)
        self.stop.requested |= text == self._stop_at


def test_result(tmp_path: Path) -> None:
    notes = Notes()
    result = found_in(tmp_path / "run", small(), watcher=notes)
    assert sorted(result["order"]) == [0, 1, 2, 3]
    assert result["given_order"] == [0, 1, 2, 3]
    assert result["order"] not in result["tied_orders"]
    assert (result["strategy"], result["seed"]) == ("global-local", 0)
    assert Path(result["run_dir"]) == tmp_path / "run"
    assert result["samples"] == 30
    assert 0 <= result["success_rate"] <= 1
    assert result["success_rate_given_order"] == result["given"]["success_rate"]
    seconds = dict(result["seconds"])
    assert set(seconds) == {"propose", "race", "train", "evaluate", "total"}
    assert seconds.pop("total") == pytest.approx(sum(seconds.values()))
    assert (tmp_path / "run" / "model" / "model.json").exists()
    stages = [text for text in dict.fromkeys(notes.told) if not text.startswith("rung")]
    names = ["global 1", "global 2", "local 2 within", "local 2 between"]
    assert stages[:8] == [text for name in names for text in (name, f"{name} done")]
    assert stages[8:] == [f"{len(result['proposed']['proposals'])} proposals"]
    finalists = len(result["race"])
    assert f"rung 0: {finalists} of {finalists}" in notes.told
    assert notes.told[-1] == "rung None: 2 of 2"


def test_the_given_order_and_its_reverse_are_raced_with_the_proposals(tmp_path: Path) -> None:
    proposed = tuple(random_orders(4, 12, numpy_generator(0)))
    result = found_in(tmp_path / "run", small(Knowing(proposed), explore_only=True))
    raced = {tuple(row["order"]) for row in result["race"]}
    assert raced == {*(order.indices for order in proposed[:MOST_PROPOSALS]), (0, 1, 2, 3), (3, 2, 1, 0)}
    assert len(raced) == len(result["race"])
    # So short a race shows nothing: the first proposal stands.
    assert result["order"] == list(proposed[0])
    assert not result["shown_by_training"]


@pytest.mark.parametrize(
    ("constraints", "beside"),
    [
        (Constraints(keep_first=1), [(0, 1, 2, 3)]),
        (Constraints(before=((3, 1),)), [(3, 2, 1, 0)]),
        (Constraints(before=((3, 1), (0, 2))), []),
    ],
    ids=str,
)
def test_only_allowed_orders_are_raced(tmp_path: Path, constraints: Constraints, beside: list[tuple[int, ...]]) -> None:
    """Also of a search that knows nothing of constraints; the given order is trained all the same."""
    proposed = tuple(random_orders(4, 3, numpy_generator(5)))
    result = found_in(tmp_path / "run", small(Knowing(proposed), constraints=constraints))
    raced = {tuple(row["order"]) for row in result["race"]}
    assert raced == {*(constraints.repaired(order).indices for order in proposed), *beside, (0, 1, 2, 3)}
    assert all(constraints.allows(Order(tuple(row["order"]))) for row in result["proposed"]["proposals"])
    assert constraints.allows(Order(tuple(result["order"])))
    assert result["constraints"] == constraints.to_dict()
    assert result["given"] is not None


def test_a_proposal_that_had_to_be_repaired_has_no_loss(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Measuring(Knowing):
        def propose(self, problem: SearchProblem) -> SearchResult:
            return SearchResult([Proposal(order, loss=0.5) for order in self.orders], [])

    search = Measuring((Order((1, 0, 2, 3)), Order((0, 2, 1, 3)), Order((2, 0, 1, 3))))
    result = found_in(tmp_path / "run", small(search, constraints=Constraints(keep_first=1), explore_only=True))
    proposed = [(row["order"], row["loss"]) for row in result["proposed"]["proposals"]]
    assert proposed == [([0, 1, 2, 3], None), ([0, 2, 1, 3], 0.5)]


def test_explore_only(tmp_path: Path) -> None:
    result = found_in(tmp_path / "run", small(explore_only=True))
    assert set(result["seconds"]) == {"propose", "race", "total"}
    assert not {"success_rate", "given", "weights_sha256"} & set(result)
    assert not (tmp_path / "run" / "model").exists()


def test_without_the_given_order(tmp_path: Path) -> None:
    whole = found_in(tmp_path / "whole", small())
    assert whole["order"] != whole["given_order"]
    assert (tmp_path / "whole" / "given").exists()
    result = found_in(tmp_path / "run", small(baseline=False))
    assert (result["given"], result["success_rate_given_order"]) == (None, None)
    assert not result["shown_by_training"]
    assert not (tmp_path / "run" / "given").exists()
    assert result["weights_sha256"] == whole["weights_sha256"]


def test_a_given_order_that_cannot_be_trained_does_not_cost_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverging(job: RaceJob, **options: Any) -> JobResult:
        if job.order == (0, 1, 2, 3):
            return JobResult(job.recipe.training.steps, 0.0, [], None, [], failure="the loss became nan at step 3")
        return run_job(job, **options)

    monkeypatch.setattr(race_module, "run_job", diverging)
    result = found_in(tmp_path / "run", small())
    assert result["given_failed"] == "the loss became nan at step 3"
    assert (result["given"], result["success_rate_given_order"]) == (None, None)
    assert 0 <= result["success_rate"] <= 1


@pytest.mark.parametrize("baseline", [True, False])
def test_a_given_order_that_wins_is_trained_once(tmp_path: Path, baseline: bool) -> None:
    result = found_in(tmp_path / "run", small(length=1, baseline=baseline))
    assert result["order"] == [0]
    assert result["success_rate_given_order"] == result["success_rate"]
    assert not (tmp_path / "run" / "given").exists()


def test_a_second_call_does_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found_in(tmp_path / "run", small())
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: pytest.fail("trained again"))
    assert found_in(tmp_path / "run", small()) == first


def test_a_model_that_was_removed_is_trained_again_to_the_same_bits(tmp_path: Path) -> None:
    """Its checkpoints are removed with the end of the run."""
    first = found_in(tmp_path / "run", small())
    weights = [(tmp_path / "run" / name / "weights.safetensors").read_bytes() for name in ("model", "given")]
    assert not list((tmp_path / "run").rglob("training-*"))
    shutil.rmtree(tmp_path / "run" / "model")
    assert found_in(tmp_path / "run", small()) == first
    assert [(tmp_path / "run" / name / "weights.safetensors").read_bytes() for name in ("model", "given")] == weights
    assert not list((tmp_path / "run").rglob("training-*"))


def test_interrupted_everywhere_and_continued_gives_the_same(tmp_path: Path) -> None:
    whole = found_in(tmp_path / "whole", small())
    moments = ["global 1 done", "local 2 within", "rung 0: 2 of", "rung 1: 1 of", "rung None: 1 of 2"]
    finalists = len(whole["race"])
    for moment in moments:
        notes = Notes(moment + f" {finalists}" * moment.endswith("of"))
        with pytest.raises(Interrupted):
            found_in(tmp_path / "parts", small(), watcher=notes, stop=notes.stop)
    assert without_time(found_in(tmp_path / "parts", small())) == without_time(whole)


def test_without_a_race_the_first_proposal_is_trained_by_the_recipe(tmp_path: Path) -> None:
    changes = [f"{name}={value}" for name, value in {**SETTINGS, "race.enabled": "false"}.items()]
    discovery = replace(
        small(Knowing((Order((2, 0, 3, 1)), Order((1, 0, 2, 3))))), config=resolve_discovery("cpu", settings=changes)
    )
    notes = Notes()
    result = found_in(tmp_path / "run", discovery, watcher=notes)
    assert (result["order"], result["race"], result["race_ended"]) == ([2, 0, 3, 1], [], None)
    assert (result["steps"], result["given"]["steps"], result["seconds"]["race"]) == (24, 24, 0)
    assert notes.told == ["2 proposals", "rung None: 1 of 2", "rung None: 2 of 2"]
    assert not list((tmp_path / "run").rglob("training-*"))


def test_seeds_differ(tmp_path: Path) -> None:
    first, again, other = (
        without_time(found_in(tmp_path / str(number), small(seed=seed, explore_only=True)))
        for number, seed in enumerate((0, 0, 1))
    )
    assert first == again
    assert first["proposed"] != other["proposed"]


GIVEN, SORT, OTHER_SORT, WRONG = Order((0, 1, 2)), Order((1, 0, 2)), Order((1, 2, 0)), Order((2, 0, 1))
PROPOSED = [SORT, OTHER_SORT, WRONG]


def found(verdict: Verdict | None, found_by: FoundBy = "counting", last: FoundBy | None = None) -> SearchDetails:
    """Targets 0 and 2 are computed from target 1, and the last one may be found in another way."""
    graph = [
        TargetDependency(target=0, targets=(1,), found_by=found_by),
        TargetDependency(target=1, inputs=(0,), found_by=found_by),
        TargetDependency(target=2, targets=(1,), found_by=last or found_by),
    ]
    return SearchDetails(verdict=verdict, advice="Some.", dependencies=graph)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (found("order found"), [SORT, OTHER_SORT]),  # no other can be better
        # What a model has learnt may be wrong: the race decides.
        (found("order found", "model"), [*PROPOSED, GIVEN, Order((2, 1, 0))]),
        (found("order found", last="model"), [*PROPOSED, GIVEN, Order((2, 1, 0))]),
        (SearchDetails(verdict="order found", advice="Some."), [*PROPOSED, GIVEN, Order((2, 1, 0))]),
        (found("not settled"), [*PROPOSED, GIVEN, Order((2, 1, 0))]),
        (SearchDetails(), [*PROPOSED, GIVEN, Order((2, 1, 0))]),  # of a strategy without a verdict
        # Where there is nothing to gain, nothing is changed.
        (found("no order preferred"), [GIVEN]),
        (found("nothing learnt", "none"), [GIVEN]),
    ],
)
def test_which_orders_race(details: SearchDetails, expected: list[Order]) -> None:
    discovery = small(length=3)
    proposed = SearchResult([Proposal(order) for order in PROPOSED], [], details)
    assert contestants_of(discovery, proposed) == expected
    own = replace(discovery, also=(Order((1, 2, 0)), Order((0, 2, 1))))
    assert {*contestants_of(own, proposed)} == {*expected, *own.also}


@pytest.mark.parametrize(
    ("task", "settings", "shown", "reason"),
    [
        ("square", {"final.training.steps": 600, "final.training.batch_size": 32}, True, None),
        ("square", {}, False, "no order beats the unigram baseline"),
    ],
    ids=["learnt", "not learnt"],
)
def test_what_training_shows(
    tmp_path: Path, task: str, settings: dict[str, Any], shown: bool, reason: str | None
) -> None:
    changes = [f"{name}={value}" for name, value in {**SETTINGS, **LEARNING, **settings}.items()]
    made = task_splits(make_task(task, 4), train=2_000, validation=200, test=30, hidden_order_seed=2)
    discovery = replace(
        small(Dependencies()),
        splits=made.splits,
        source=CandidateSource(Order.forward(4)),
        config=resolve_discovery("cpu", settings=changes),
    )
    result = found_in(tmp_path / "run", discovery)
    assert result["verdict"] == "order found"
    assert [made.true_of_column[column] for column in result["order"]] == [0, 1, 2, 3]  # the dependencies decide
    assert result["shown_by_training"] is shown
    assert (result["not_shown_because"] or "").startswith(reason or "")
    assert result["unigram_loss"] > 0
    steps = [row["steps"][-1] for row in result["race"]]
    assert result["steps"] > steps[0]
    assert steps[1] >= steps[0]  # the given order trains as long, or longer


@dataclass(frozen=True)
class Telling(Knowing):
    """With a verdict."""

    verdict: str = "no order preferred"

    def propose(self, problem: SearchProblem) -> SearchResult:
        graph = [TargetDependency(target=target) for target in range(problem.length)]
        details = SearchDetails(verdict=self.verdict, advice="Some.", dependencies=graph)
        return SearchResult([Proposal(order) for order in self.orders], [], details)


@pytest.mark.parametrize("verdict", ["no order preferred", "nothing learnt"])
def test_where_no_order_is_preferred_the_given_one_is_trained(tmp_path: Path, verdict: str) -> None:
    result = found_in(tmp_path / "run", small(Telling((Order((2, 0, 3, 1)),), verdict)))
    assert (result["order"], result["tied_orders"]) == ([0, 1, 2, 3], [])
    assert (result["verdict"], result["advice"]) == (verdict, "Some.")
    assert [row["target"] for row in result["dependencies"]] == [0, 1, 2, 3]
    assert [row["order"] for row in result["race"]] == [[0, 1, 2, 3]]
    assert result["success_rate_given_order"] == result["success_rate"]
    assert not (tmp_path / "run" / "given").exists()


def test_the_given_order_is_the_answer_only_as_far_as_it_is_allowed(tmp_path: Path) -> None:
    constraints = Constraints(before=((3, 0),))
    result = found_in(
        tmp_path / "run", small(Telling((Order((3, 0, 1, 2)),)), constraints=constraints, explore_only=True)
    )
    assert constraints.allows(Order(tuple(result["order"])))


def test_a_strategy_that_says_nothing_has_no_verdict(tmp_path: Path) -> None:
    result = found_in(tmp_path / "run", small(Knowing((Order((2, 0, 3, 1)),)), explore_only=True))
    assert (result["verdict"], result["advice"], result["dependencies"]) == (None, None, [])


def test_a_budget_of_proposals(tmp_path: Path) -> None:
    """The first of them alone is raced, beside the given order and its reverse; all of them are told."""
    free, limited = (
        found_in(tmp_path / name, small(budget=Budget(proposals=most), explore_only=True))
        for name, most in (("free", None), ("limited", 1))
    )
    assert limited["proposed"]["proposals"] == free["proposed"]["proposals"]
    first = free["proposed"]["proposals"][0]["order"]
    raced = {tuple(row["order"]) for row in limited["race"]}
    assert raced == {tuple(first), (0, 1, 2, 3), (3, 2, 1, 0)}
    assert len(free["race"]) > len(raced)
