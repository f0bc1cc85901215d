"""The content of result.json, read and written: of real runs, of earlier versions, and of files that miss something."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from genorder.cli.app import run
from genorder.data import Names
from genorder.errors import InputError
from genorder.orders import DependencyGraph, Order
from genorder.outcomes import DiscoveryOutcome, GroundTruth, RankOutcome, RunOutcome, read_outcome

SMALL_MODEL = ("layers=1", "heads=1", "width=8", "feedforward=16")
FEW = ("samples.train=60", "samples.validation=8", "samples.test=8")
EXPLORING = (
    *FEW, "profiler.training.steps=3", "profiler.training.batch_size=4", "final.training.steps=6",
    "final.training.batch_size=4", "race.first_rung=2",
    *(f"{part}.model.{size}" for part in ("profiler", "final") for size in SMALL_MODEL),
)  # fmt: skip
TRAINING = (*FEW, "training.steps=3", "training.batch_size=4", *(f"model.{size}" for size in SMALL_MODEL))
RANDOM = ("--strategy", "random", "--max-runs", "1", "--max-candidates", "4")
TASK = ("--task", "square", "--length", "3", "--threads", "1")

RUNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "discovered": (("discover", *TASK, *RANDOM), EXPLORING),
    "explored": (("discover", *TASK, *RANDOM, "--explore-only", "--keep-first", "1"), EXPLORING),
    "without a race": (("discover", *TASK, *RANDOM, "--no-baseline"), (*EXPLORING, "race.enabled=false")),
    "trained": (("train", *TASK, "--order", "reverse", "--target-names", "a,b,c"), TRAINING),
    "ranked": (("rank", *TASK, "--candidates", "random:3,forward"), EXPLORING),
    "ranked by a race": (("rank", *TASK, "--candidates", "random:2,forward", "--judge", "race"), EXPLORING),
    "attended": (("analyze", "attention", *TASK), TRAINING),
}

NEEDED = {
    "discover": ("order", "strategy", "proposed", "seconds", "seed", "run_dir"),
    "train": ("order", "success_rate", "weights_sha256", "seed", "run_dir"),
    "rank": ("ranking", "seconds", "seed", "run_dir"),
    "analyze attention": ("attention", "seconds", "run_dir"),
}


@pytest.fixture(scope="module", params=RUNS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """The verb, and the content of result.json."""
    arguments, settings = RUNS[request.param]
    out = tmp_path_factory.mktemp("outcomes") / "run"
    changes = [part for setting in settings for part in ("--set", setting)]
    threads = torch.get_num_threads()
    assert run([*arguments, *changes, "--out", str(out)]) == 0
    verb = "analyze attention" if arguments[0] == "analyze" else arguments[0]
    yield verb, json.loads((out / "result.json").read_text())
    torch.set_num_threads(threads)


def read(verb: str, content: dict[str, Any]) -> RunOutcome:
    outcome = read_outcome(verb, content, Path("r"))
    assert outcome
    return outcome


def test_reading_and_writing_gives_the_same(saved: tuple[str, Any]) -> None:
    verb, content = saved
    assert json.loads(json.dumps(read(verb, content).to_dict())) == content


def test_a_task_has_true_indices_and_names_may_change(saved: tuple[str, Any]) -> None:
    outcome = read(*saved)
    assert outcome.truth
    assert {*outcome.truth.cost_ratios} == {*outcome.orders}
    renamed = outcome.with_names(Names((), ("p", "q", "r")))
    assert renamed.to_dict()["target_names"] == ["p", "q", "r"]
    unknown = json.dumps(replace(outcome, truth=None).to_dict())
    assert "order_in_true_indices" not in unknown
    assert "cost_ratio" not in unknown


def test_a_missing_key_is_one_line(saved: tuple[str, Any]) -> None:
    verb, content = saved
    for key in NEEDED[verb]:
        older = {name: value for name, value in content.items() if name != key}
        with pytest.raises(
            InputError, match=rf"^r/result\.json was written by an older version: no '{key}'; "
        ) as caught:
            read(verb, older)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [lambda _: {"order": 3}, lambda _: {"order": [0, 0, 1]}, lambda old: {"proposed": [old]}, lambda _: {"race": 5}],
    ids=["a number", "no permutation", "a list", "another number"],
)
def test_damaged_content_is_one_line(change: Callable[[Any], dict[str, Any]]) -> None:
    content = {**discovered().to_dict(), "race": []}
    with pytest.raises(InputError, match=r"^r/result\.json cannot be read: ") as caught:
        read("discover", {**content, **change(content)})
    assert "\n" not in str(caught.value)


def test_other_verbs_have_no_outcome() -> None:
    assert read_outcome("dance", {"anything": 1}, Path("r")) is None


def discovered(**changes: Any) -> DiscoveryOutcome:
    known: dict[str, Any] = {"strategy": "own", "order": Order((1, 0, 2)), "seed": 0, "run_dir": Path("r")}
    return DiscoveryOutcome(**{**known, "seconds": {"propose": 1.0, "race": 2.0}, **changes})


def test_optional_keys_of_earlier_versions() -> None:
    kept = ("strategy", "order", "proposed", "seed", "run_dir", "seconds")
    older = {name: value for name, value in discovered().to_dict().items() if name in kept}
    assert read("discover", older) == discovered()


def test_true_indices_and_costs() -> None:
    graph = DependencyGraph(3, ((), (0,), (1,)), ((0,), (1,), (2,)))  # of the stored columns
    outcome = discovered().with_truth(Order((2, 0, 1)), graph)
    assert outcome.truth
    assert outcome.truth.true_order(Order((1, 0, 2))) == Order((0, 2, 1))
    assert outcome.to_dict()["order_in_true_indices"] == [0, 2, 1]
    assert outcome.cost_ratio == outcome.truth.cost_ratios[outcome.order] > 1
    assert [outcome.target_name(column) for column in range(3)] == ["y2", "y0", "y1"]
    assert outcome.with_names(Names((), ("a", "b", "c"))).target_name(0) == "a"
    assert discovered().with_truth(None, None) == discovered()


def test_ground_truth_of_rows() -> None:
    rows = [
        {"order": [1, 0, 2], "order_in_true_indices": [0, 2, 1], "cost_ratio": 1.5},
        {"order": [0, 1, 2], "order_in_true_indices": [2, 0, 1]},
    ]
    truth = GroundTruth.from_rows(rows)
    assert truth == GroundTruth(Order((2, 0, 1)), {Order((1, 0, 2)): 1.5})
    assert GroundTruth.from_rows([{"order": [0]}]) is GroundTruth.from_rows([]) is None


def test_a_ranking_without_orders_is_refused() -> None:
    empty = {"ranking": [], "seconds": {}, "seed": 0, "run_dir": "r"}
    with pytest.raises(InputError, match="cannot be read: no order was ranked"):
        RankOutcome.from_dict(empty)
