"""genorder from Python: every kind of data, the results' types, and that a call is a run like the command line's."""

import json
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import genorder
from genorder.cli.app import run as run_command
from genorder.data import SequenceDataset, Splits, read_jsonl, split_dataset, write_jsonl
from genorder.orders import Order
from genorder.search import PlannedRun, Proposal, Search, SearchProblem, SearchResult
from genorder.store import read_status
from genorder.tasks import TaskData, make_task, task_splits

SMALL_MODEL = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32}
EXPLORING = {
    "samples.train": 200, "samples.validation": 20, "samples.test": 20, "profiler.training.steps": 6,
    "profiler.training.batch_size": 8, "race.first_rung": 3,
    "final.training.steps": 8, "final.training.batch_size": 8,
    **{f"{part}.model.{name}": value for part in ("profiler", "final") for name, value in SMALL_MODEL.items()},
}  # fmt: skip
DISCOVERING = {
    **EXPLORING,
    "any_order.training.steps": 8, "any_order.training.batch_size": 8,
    "any_order.model.width": 16, "any_order.model.hidden": 32,
    "any_order.graph_steps": 8,
}  # fmt: skip
TRAINING = {
    "samples.train": 200, "samples.validation": 20, "samples.test": 20, "training.steps": 8,
    "training.batch_size": 8, **{f"model.{name}": value for name, value in SMALL_MODEL.items()},
}  # fmt: skip


@dataclass(frozen=True)
class Knowing(Search):
    """Proposes what it was given, without any work."""

    name: ClassVar[str] = "knowing"
    orders: tuple[tuple[int, ...], ...] = ((2, 0, 1, 3),)

    def check(self, problem: SearchProblem) -> None:
        if problem.length != 4:
            raise genorder.InputError(f"four targets, not {problem.length}")

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        return []

    def propose(self, problem: SearchProblem) -> SearchResult:
        return SearchResult([Proposal(Order(indices)) for indices in self.orders], [])


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data() -> TaskData:
    return task_splits(make_task("relu", "4"), train=200, validation=20, test=20, hidden_order_seed=1)


@pytest.fixture(scope="module")
def lists() -> tuple[list[list[int]], list[list[int]]]:
    inputs = [[n % 7, n % 5, n % 11, n // 100] for n in range(300)]
    return inputs, [[sum(row[: k + 1]) % 10 for k in range(4)] for row in inputs]


def small_training(dataset: Any, order: Any = "forward", **options: Any) -> genorder.TrainResult:
    return genorder.train(dataset, order, settings=TRAINING, **options)


def without_time(result: genorder.TrainResult) -> dict[str, Any]:
    times = ("seconds", "evaluation_seconds", "run_dir")
    return {name: value for name, value in result.to_dict().items() if name not in times}


def test_every_kind_of_dataset_gives_the_same(lists: tuple[list[list[int]], list[list[int]]]) -> None:
    dataset = SequenceDataset.from_sequences(*lists)
    write_jsonl(dataset, "data.jsonl")
    splits = split_dataset(dataset, validation=20, test=20, seed=0)
    kinds = {
        "lists": lists, "dataset": dataset, "path": Path("data.jsonl"), "text": "data.jsonl", "splits": splits,
        "loaded": genorder.load_dataset("data.jsonl"),
    }  # fmt: skip
    found = {name: without_time(small_training(kind, "reverse", out=name)) for name, kind in kinds.items()}
    assert found["lists"]["order"] == [3, 2, 1, 0]
    assert found["lists"]["samples"] == 20
    for name in kinds:
        assert found[name] == found["lists"], name


def test_a_call_is_the_run_of_the_command(lists: tuple[list[list[int]], list[list[int]]]) -> None:
    write_jsonl(SequenceDataset.from_sequences(*lists), "data.jsonl")
    settings = [part for name, value in TRAINING.items() for part in ("--set", f"{name}={value}")]
    command = ["train", "data.jsonl", "--order", "2,0,1,3", *settings, "--threads", "1"]
    assert run_command([*command, "--out", "by-command"]) == 0
    found = small_training("data.jsonl", [2, 0, 1, 3], out="by-call", threads=1)
    assert found.content["weights_sha256"] == json.loads(Path("by-command/result.json").read_text())["weights_sha256"]
    assert run_command([*command, "--out", "by-call"]) == 0  # the command finds the call's run, and has nothing to do
    assert small_training("data.jsonl", "2,0,1,3", out="by-command", threads=1).run_dir == Path("by-command").absolute()


def test_a_finished_call_is_not_done_again(data: TaskData, monkeypatch: pytest.MonkeyPatch) -> None:
    first = small_training(data)
    assert first.run_dir.parent == Path("runs").absolute()
    assert first.run_dir.name.startswith("train-relu-L4-forward-")
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: pytest.fail("trained again"))
    assert small_training(data).to_dict() == first.to_dict()


def test_data_given_in_memory_is_kept_with_the_run(data: TaskData, capsys: pytest.CaptureFixture[str]) -> None:
    result = small_training(data, "random:3", out="r")
    capsys.readouterr()
    assert run_command(["evaluate", "r", "--json", "--threads", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["loss"] == pytest.approx(result.content["loss"])
    exported = result.export("dataset", "reordered.jsonl", split="train")
    assert exported.samples == 200
    read = read_jsonl("reordered.jsonl")
    assert read.target(7) == result.order.apply(data.splits.train.target(7))
    kept = Path("r/data/test.jsonl")
    kept.write_text(kept.read_text().replace("[", "[0, ", 1))
    with pytest.raises(genorder.InputError, match="r/data has changed since the run"):
        result.export("dataset", "again.jsonl")


def test_train_result(data: TaskData) -> None:
    told: list[int] = []
    result = small_training(data, Order((2, 0, 1, 3)), out="r", on_progress=lambda progress: told.append(progress.step))
    assert isinstance(result, genorder.TrainResult)
    assert (result.order, result.seed) == (Order((2, 0, 1, 3)), 0)
    assert told[-1] == 8
    assert 0 <= result.success_rate <= 1
    assert result.success_rate_interval is not None
    low, high = result.success_rate_interval
    assert low <= result.success_rate <= high
    assert [(row["target"], row["step"]) for row in result.rows()] == [(0, 1), (1, 2), (2, 0), (3, 3)]
    assert json.loads(Path("r/result.json").read_text()) == result.to_dict()
    assert json.loads(result.save("mine.json").read_text()) == result.to_dict()
    assert len(result.predict([[1, 2, 3, 4], ["0", "0", "0", "0"]])) == 2
    assert result.model().order == result.order
    assert repr(result).startswith("TrainResult(order='2 0 1 3', success_rate=")
    with pytest.raises(FrozenInstanceError):
        result.content = {}  # type: ignore[misc]
    result.to_dict()["order"].clear()
    assert len(result.order) == 4


def test_discovery_result(data: TaskData) -> None:
    result = genorder.discover(data, settings=DISCOVERING, workers=1, seed=3, out="r")
    assert isinstance(result, genorder.DiscoveryResult)
    assert (result.strategy, result.seed) == ("dependencies", 3)
    assert sorted(result.order) == [0, 1, 2, 3]
    about = result.to_dict()
    assert about["order_in_true_indices"] == [data.true_of_column[column] for column in result.order]
    assert about["cost_ratio"] >= 1
    assert result.success_rate is not None
    assert result.success_rate_given_order is not None
    assert result.order not in result.tied_orders
    assert {tuple(row["order"]) for row in result.rows()} >= {(0, 1, 2, 3), tuple(result.order)}
    assert set(result.seconds) == {"propose", "race", "train", "evaluate", "total"}
    status = read_status("r")
    assert (status.state, status.progress and status.progress["stage"]) == ("finished", "race")
    assert result.export("hf", "folder").order == list(result.order)
    assert result.export("hf", "given", given=True).order == [0, 1, 2, 3]


def test_a_search_of_ones_own(data: TaskData) -> None:
    result = genorder.discover(data, strategy=Knowing(), settings=DISCOVERING, workers=1, explore_only=True, out="r")
    assert (result.strategy, result.success_rate, result.success_rate_interval) == ("knowing", None, None)
    assert (2, 0, 1, 3) in {tuple(row["order"]) for row in result.rows()}
    assert json.loads(Path("r/config.json").read_text())["search"] == {"orders": [[2, 0, 1, 3]]}
    with pytest.raises(genorder.InputError, match="No such file"):
        result.model()
    with pytest.raises(genorder.InputError, match="another configuration"):
        genorder.discover(data, strategy=Knowing(((3, 0, 1, 2),)), settings=DISCOVERING, explore_only=True, out="r")


def test_constraints(data: TaskData) -> None:
    constraints = genorder.Constraints(keep_last=1, before=((2, 0),))
    given = {"constraints": constraints, "settings": DISCOVERING, "workers": 1, "explore_only": True}
    result = genorder.discover(data, **given, out="r")
    assert result.constraints == constraints
    assert all(constraints.allows(Order(tuple(row["order"]))) for row in result.rows())
    assert constraints.allows(result.order)
    settings = [part for name, value in DISCOVERING.items() for part in ("--set", f"{name}={value}")]
    genorder.write_jsonl(data.splits.train, "train.jsonl")
    asked = ["--keep-last", "1", "--before", "2<0", "--explore-only", "--threads", "1"]
    assert run_command(["discover", "train.jsonl", *settings, *asked, "--out", "command"]) == 0
    called = genorder.discover("train.jsonl", **given, out="call")
    assert json.loads(Path("command/config.json").read_text()) == json.loads(Path("call/config.json").read_text())
    assert called.order == Order(tuple(json.loads(Path("command/result.json").read_text())["order"]))
    free = genorder.discover(data, settings=DISCOVERING, workers=1, explore_only=True, out="free")
    assert free.constraints == genorder.Constraints()


def test_strategies_by_name_with_their_settings(data: TaskData) -> None:
    settings = {**DISCOVERING, "search.depth": 2, "search.local": False}
    result = genorder.discover(
        data, strategy="global-local", settings=settings, max_runs=1, workers=1, explore_only=True, out="r"
    )
    assert result.strategy == "global-local"
    assert len(result.content["proposed"]["stages"]) == 1


def test_rank_result(data: TaskData) -> None:
    orders = [Order.forward(4), [3, 2, 1, 0], (3, 2, 1, 0)]
    result = genorder.rank(data, orders, settings=EXPLORING, out="r")
    assert isinstance(result, genorder.RankResult)
    assert {*result.orders} == {Order.forward(4), Order.reverse(4)}
    assert len(result.orders) == 2
    assert result.order == result.orders[0]
    assert result.success_rate is None
    assert [row["rank"] for row in result.rows()] == [1, 2]
    losses = [row["loss"] for row in result.rows()]
    assert losses == sorted(losses)
    assert Path("r/ranking.csv").read_text().count("\n") == 3
    raced = genorder.rank(data, "random:2,given", judge="race", settings=EXPLORING, workers=1)
    assert Order.forward(4) in raced.orders
    Path("orders.json").write_text("[[0, 1, 2, 3], [1, 0, 2, 3]]")
    assert len(genorder.rank(data, Path("orders.json"), exact=False, settings=EXPLORING).orders) == 2


def test_data_frames(data: TaskData, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    result = genorder.rank(data, "forward,reverse", settings=EXPLORING)
    frame = result.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.to_dict("records") == result.rows()
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(genorder.InputError, match="needs pandas, which is not installed: pip install"):
        result.to_dataframe()


def test_report(data: TaskData) -> None:
    result = small_training(data, out="r")
    if find_spec("genorder.reports") is None:
        with pytest.raises(genorder.GenorderError, match="writes no reports"):
            result.report()
    else:
        assert result.report().exists()


def test_settings_as_text_and_as_a_dictionary(data: TaskData) -> None:
    texts = [f"{name}={value}" for name, value in TRAINING.items()]
    first = genorder.train(data, settings=texts, out="r")
    assert genorder.train(data, settings=TRAINING, out="r").to_dict() == first.to_dict()
    assert genorder.train(data, settings=TRAINING, steps=3, out="three").content["steps"] == 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda data: genorder.train(data, [0, 1]), "an order has 2 indices; the data has 4 targets"),
        (lambda data: genorder.train(data, [0, 1, 1, 3]), "index 1 appears twice"),
        (lambda data: genorder.train(data, "sideways"), "'sideways' is not an order"),
        (lambda data: genorder.rank(data, []), "no orders to rank"),
        (lambda data: genorder.rank(data, "forward", judge="dice"), "--judge 'dice': expected mixture or race"),
        (lambda data: genorder.discover(data, strategy="magic"), "--strategy 'magic': expected one of auto, depend"),
        (lambda data: genorder.discover(data, preset="gpu"), "--preset 'gpu'"),
        (lambda data: genorder.discover(data, constraints=genorder.Constraints(groups=3)), "--groups 3: the 4 free"),
        (lambda data: genorder.discover(data, constraints={"groups": 2}), "constraints are a dict; expected genorder."),
        (lambda data: genorder.discover(data, strategy=Knowing(), settings=["search.depth=2"]), "search.* belong"),
        (lambda data: genorder.discover(data, settings="samples.train=5"), "expected a list of NAME=VALUE"),
        (lambda data: genorder.train(data, settings={"samples.train": data}), "a value that JSON cannot hold"),
        (lambda data: genorder.train(data, settings=["nonsense=1"]), "there is no setting nonsense"),
        (lambda data: genorder.train(data, device="tpu"), "--device 'tpu'"),
        (lambda _: genorder.train("absent.jsonl"), "cannot read absent.jsonl"),
        (lambda _: genorder.train({"a": 1}), "the dataset is a dict; expected a SequenceDataset"),  # type: ignore[arg-type]
        (lambda _: genorder.train(None), "the dataset is a NoneType; expected a SequenceDataset"),  # type: ignore[arg-type]
        (
            lambda _: genorder.train(([[1], [2]] * 20, [[1], [2]] * 20), validation=np.zeros((20, 5), int)),  # type: ignore[arg-type]
            "the validation split is a ndarray; expected a SequenceDataset",
        ),
        (lambda _: genorder.train((["ab"], ["c"])), "inputs are not lists of tokens"),
        (lambda _: genorder.train(([[1.5]], [[2]])), "inputs are not lists of tokens"),
        (lambda _: genorder.train(([[1]], [[2], [3]])), "1 inputs, but 2 targets"),
        (lambda _: genorder.train(([[n] for n in range(50)], [[]] * 50)), "is empty"),
        (lambda _: genorder.discover(([[n] for n in range(50)], [[n] for n in range(50)]), strategy=Knowing()), "four"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line_and_leaves_nothing(data: TaskData, call: Any, said: str) -> None:
    with pytest.raises(genorder.InputError) as caught:
        call(data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(Path().iterdir()) == []


def test_splits_of_different_vocabularies(data: TaskData) -> None:
    parts = [SequenceDataset.from_sequences([[letter, "0"]] * 3, [["0", letter]] * 3) for letter in "abc"]
    result = small_training(Splits(*parts), out="r")
    assert result.content["samples"] == 3
    assert set(result.model().vocabulary.tokens) == {"0", "a", "b", "c"}


def test_threads_are_left_as_they_are(data: TaskData) -> None:
    small_training(data, out="one")
    assert torch.get_num_threads() == 1
    torch.set_num_threads(2)
    small_training(data, out="two")
    assert torch.get_num_threads() == 2
    assert json.loads(Path("two/config.json").read_text())["threads"] == 2


def test_validation_and_test_of_ones_own(lists: tuple[list[list[int]], list[list[int]]]) -> None:
    """As files and in memory, alone and mixed: the same samples give the same."""
    dataset = SequenceDataset.from_sequences(*lists)
    parts = {
        name: dataset.take(np.arange(start, end))
        for name, start, end in (("d", 0, 250), ("v", 250, 270), ("t", 270, 300))
    }
    for name, part in parts.items():
        write_jsonl(part, f"{name}.jsonl")
    pair = ([parts["t"].input(row) for row in range(30)], [parts["t"].target(row) for row in range(30)])
    changed = {name: value for name, value in TRAINING.items() if not name.startswith("samples")}
    found = [
        genorder.train(given, settings=changed, validation=validation, test=test, out=f"r{number}")
        for number, (given, validation, test) in enumerate(
            [
                ("d.jsonl", "v.jsonl", Path("t.jsonl")),
                (parts["d"], "v.jsonl", pair),
                (Path("d.jsonl"), parts["v"], parts["t"]),
            ]
        )
    ]
    assert {result.content["weights_sha256"] for result in found} == {found[0].content["weights_sha256"]}
    assert {result.content["samples"] for result in found} == {30}
    for number in range(3):
        assert run_command(["evaluate", f"r{number}", "--threads", "1"]) == 0


@pytest.mark.parametrize(
    ("given", "own", "said"),
    [
        ("data", {"test": "t.jsonl"}, "test given, but the dataset is split already; leave them out"),
        ("splits", {"test": "t.jsonl", "validation": "t.jsonl"}, "validation and test given, but the dataset is split"),
        ("lists", {"test": 3}, "the test split is a int; expected a SequenceDataset, a path, or a pair of lists"),
        ("lists", {"test": "t.jsonl"}, "every sample of the test split holds a token that no training .* as 'new'"),
        ("lists", {"test": ([[1]], [["new"]])}, "every sample of the test split holds a token that no training sample"),
    ],
)
def test_splits_of_ones_own_that_are_refused(
    data: TaskData, lists: Any, given: str, own: dict[str, Any], said: str
) -> None:
    Path("t.jsonl").write_text('{"input": ["new"], "target": [1]}\n{"input": [1], "target": ["new"]}\n')
    datasets = {"data": data, "splits": data.splits, "lists": lists}
    with pytest.raises(genorder.InputError, match=said):
        genorder.train(datasets[given], settings=TRAINING, out="r", **own)
    assert not Path("r").exists()


def test_a_call_that_fails_says_why_to_those_who_look_later(data: TaskData) -> None:
    settings = {**TRAINING, "training.learning_rate": 1e30, "training.steps": 60}
    with pytest.raises(genorder.GenorderError, match="became"):
        genorder.train(data, settings=settings, out="r")
    status = read_status("r")
    assert status.state == "failed"
    assert "became" in (status.failure or "")


def test_an_interrupted_call_has_not_failed(data: TaskData) -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_training(data, out="r", on_progress=interrupt)
    assert read_status("r").state == "interrupted"


def test_a_call_continues_with_the_threads_that_it_began_with(data: TaskData, caplog: pytest.LogCaptureFixture) -> None:
    first = small_training(data, out="r")
    Path("r/result.json").unlink()
    Path("r/journal.sqlite").unlink()
    torch.set_num_threads(2)
    assert without_time(small_training(data, out="r")) == without_time(first)
    assert "r was started with --threads 1, which changes bits: it keeps to that" in caplog.text
    assert torch.get_num_threads() == 2


def test_exploring_goes_on_to_the_whole_run(data: TaskData) -> None:
    explored = genorder.discover(data, strategy=Knowing(), settings=DISCOVERING, explore_only=True, out="r")
    assert explored.success_rate is None
    found = genorder.discover(data, strategy=Knowing(), settings=DISCOVERING, out="r")
    assert found.success_rate is not None
    assert found.content["race"] == explored.content["race"]
    again = genorder.discover(data, strategy=Knowing(), settings=DISCOVERING, explore_only=True, out="r")
    assert again.to_dict() == found.to_dict()


def test_names(lists: tuple[list[list[int]], list[list[int]]]) -> None:
    names = ["mass", "sea level", "<b>", "y"]
    plain = small_training(lists, "reverse", out="r")
    named = small_training(lists, "reverse", out="r", target_names=names)
    assert named.to_dict()["weights_sha256"] == plain.to_dict()["weights_sha256"]
    assert named.to_dict()["order_in_names"] == names[::-1]
    assert "y, &lt;b&gt;, sea level, mass" in named.report().read_text()
    with pytest.raises(genorder.InputError, match="received 3 input names; the data has 4 inputs"):
        small_training(lists, input_names=["a", "b", "c"])
    with pytest.raises(genorder.InputError, match="target_names are 'abcd'; expected a list of strings"):
        small_training(lists, target_names="abcd")


def test_a_table_that_is_loaded_keeps_its_names() -> None:
    rows = [f"{n % 7},{n % 5},{n % 3},{n % 11},{n}" for n in range(300)]
    Path("wide.csv").write_text("\n".join(["a,b,c,d,e", *rows]))
    dataset = genorder.load_dataset("wide.csv", input_column="d,e", target_column="a..c")
    result = small_training(dataset, [2, 0, 1])
    assert result.to_dict()["order_in_names"] == ["c", "a", "b"]
    assert result.to_dict()["input_names"] == ["d", "e"]


def test_attention(data: TaskData) -> None:
    told: list[str] = []
    settings = {**TRAINING, "model.heads": 1, "model.layers": 1}
    result = genorder.analyze_attention(
        data,
        ["forward", Order((1, 0, 2, 3))],
        settings=settings,
        out="a",
        on_progress=lambda name, progress: told.append(name),
    )
    assert [one.name for one in result.attention] == ["forward", Order((1, 0, 2, 3)).short()]
    assert set(told) == {one.name for one in result.attention}
    assert [row["order"] for row in result.rows()] == [[0, 1, 2, 3], [1, 0, 2, 3]]
    assert all(one.sparsity >= 0 and len(one.map) == len(one.map[0]) for one in result.attention)
    again = genorder.analyze_attention(data, ["forward", [1, 0, 2, 3]], settings=settings, out="a")
    assert again.to_dict() == result.to_dict()
    assert result.report() == Path("a/report.html").absolute()
