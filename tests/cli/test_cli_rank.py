"""`genorder rank`: its JSON, CSV and table, what it refuses, and that it continues."""

import csv
import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import RELU_3, Genorder, files_under

from genorder.orders import Order
from genorder.profiling import Profile, Scores
from genorder.runs import rank
from genorder.tasks import make_task, stored_columns

STEPS = 12
STOPPED_AT = 7
SETTINGS = {
    "samples.train": 300, "samples.validation": 40, "profiler.model.layers": 1, "profiler.model.heads": 2,
    "profiler.model.width": 16, "profiler.model.feedforward": 32, "profiler.model.dropout": 0.1,
    "profiler.training.batch_size": 16, "profiler.training.steps": STEPS, "profiler.curve_points": 2,
}  # fmt: skip
SMALL = ("--threads", "1", *(part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")))
COMMAND = ("rank", *RELU_3, *SMALL)
ALL_SIX = ("--candidates", "random:99,forward")
KEYS = {
    "order", "order_in_true_indices", "cost_ratio", "rank", "loss", "standard_error", "tied_with_best",
    "samples", "curve", "finite",
}  # fmt: skip


def true_orders(result: dict[str, Any]) -> list[tuple[int, ...]]:
    return [tuple(row["order_in_true_indices"]) for row in result["ranking"]]


def without_time(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "run_dir")}


def rows_of_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_json(genorder: Genorder) -> None:
    shown = genorder(*COMMAND, *ALL_SIX, "--seed", 4, "--out", "r", "--json")
    result = shown.result()
    ranking = result["ranking"]
    assert len(ranking) == 6
    assert all(set(row) == KEYS for row in ranking)
    assert [row["rank"] for row in ranking] == [1, 2, 3, 4, 5, 6]
    assert [row["loss"] for row in ranking] == sorted(row["loss"] for row in ranking)
    assert all(row["standard_error"] > 0 and row["samples"] == 40 and row["finite"] for row in ranking)
    assert ranking[0]["tied_with_best"] is True
    assert result["curve_steps"] == [4, 8]
    assert all(len(row["curve"]) == 2 for row in ranking)
    assert result["seed"] == 4
    assert Path(result["run_dir"]) == Path("r").resolve()
    assert result["seconds"]["train"] > 0
    assert result["seconds"]["score"] > 0
    assert f"step {STEPS}/{STEPS}" in shown.err


def test_csv(genorder: Genorder) -> None:
    ranking = genorder(*COMMAND, *ALL_SIX, "--out", "r", "--json").result()["ranking"]
    rows = rows_of_csv(Path("r/ranking.csv"))
    assert list(rows[0]) == ["rank", "loss", "standard_error", "tied_with_best", "samples", "order"]
    assert len(rows) == 6
    for row, told in zip(rows, ranking, strict=True):
        assert (int(row["rank"]), float(row["loss"])) == (told["rank"], told["loss"])
        assert float(row["standard_error"]) == told["standard_error"]
        assert row["tied_with_best"] == str(told["tied_with_best"])
        assert [int(index) for index in row["order"].split()] == told["order"]


def test_table(genorder: Genorder) -> None:
    shown = genorder(*COMMAND, "--candidates", "random:99,forward", "--out", "r")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert re.match(r" *rank +loss +± error +true order", lines[0])
    ranking = json.loads(Path("r/result.json").read_text())["ranking"]
    assert len(lines) == 7
    for line, row in zip(lines[1:], ranking, strict=True):
        words = line.split()
        assert words[:3] == [str(row["rank"]), f"{row['loss']:.4f}", f"{row['standard_error']:.4f}"]
        assert ("tied" in words) == (row["tied_with_best"] and row["rank"] > 1)
        assert line.rstrip().endswith(Order(tuple(row["order_in_true_indices"])).short())
    assert "ranking.csv" in shown.err
    assert "time: train " in shown.err


def test_a_long_table_is_cut_and_a_long_order_too(genorder: Genorder) -> None:
    command = ("rank", "--task", "relu", "--length", 40, *SMALL, "--set", "profiler.training.steps=1")
    shown = genorder(*command, "--candidates", "random:25", "--out", "r")
    assert shown.code == 0
    assert "and 5 more" in shown.err
    assert "..." in shown.out
    assert len(rows_of_csv(Path("r/ranking.csv"))) == 25


def test_a_task_is_hidden_by_default(genorder: Genorder) -> None:
    command = ("rank", "--task", "relu", "--length", 6, *SMALL, "--candidates", "forward,reverse,given", "--json")
    columns = stored_columns(make_task("relu", 6), 0)
    result = genorder(*command, "--out", "a").result()
    by_truth = {tuple(row["order_in_true_indices"]): row for row in result["ranking"]}
    forward = by_truth[0, 1, 2, 3, 4, 5]
    assert forward["order"] == list(columns.inverse()) != [0, 1, 2, 3, 4, 5]
    assert forward["cost_ratio"] == 1
    assert (5, 4, 3, 2, 1, 0) in by_truth
    assert by_truth[columns.indices]["order"] == [0, 1, 2, 3, 4, 5]
    other = genorder(*command, "--out", "b", "--hidden-order-seed", 3).result()
    assert (0, 1, 2, 3, 4, 5) in true_orders(other)
    assert sorted(row["order"] for row in other["ranking"]) != sorted(row["order"] for row in result["ranking"])
    assert json.loads(Path("b/config.json").read_text())["data"]["hidden_order_seed"] == 3


def test_delay_networks_have_sets_of_their_own(genorder: Genorder) -> None:
    command = ("rank", "--task", "delay-modular", "--length", 8, *SMALL, "--set", "profiler.training.steps=1", "--json")
    result = genorder(*command, "--candidates", "hand,topo:9,vars").result()
    task = make_task("delay-modular", 8)
    ratio = {tuple(row["order_in_true_indices"]): row["cost_ratio"] for row in result["ranking"]}
    for name, order in task.hand_designed_orders().items():
        assert (ratio[order.indices] == 1) == (name != "reverse")
    assert sum(value == 1 for value in ratio.values()) == len(ratio) - 1


def test_a_file_of_orders(genorder: Genorder) -> None:
    Path("orders.json").write_text('{"orders": [[0, 2, 1], {"order": [1, 2, 0]}, [0, 2, 1]]}')
    result = genorder(*COMMAND, "--orders", "orders.json", "--json").result()
    assert sorted(row["order"] for row in result["ranking"]) == [[0, 2, 1], [1, 2, 0]]
    assert len(list(Path("runs").glob("rank-relu-L3-*/ranking.csv"))) == 1


def test_data_file(genorder: Genorder) -> None:
    genorder("generate", *RELU_3, "--samples", 200, "--out", "my data.jsonl")
    command = ("rank", "my data.jsonl", *SMALL)
    result = genorder(*command, "--candidates", "forward,reverse", "--json").result()
    assert sorted(row["order"] for row in result["ranking"]) == [[0, 1, 2], [2, 1, 0]]
    assert all(set(row) == KEYS - {"order_in_true_indices", "cost_ratio"} for row in result["ranking"])
    assert all(row["samples"] == 20 for row in result["ranking"])
    assert Path(result["run_dir"]).name.startswith("rank-my-data-")
    shown = genorder(*command, "--candidates", "forward,reverse")
    assert re.match(r" *rank +loss +± error +order", shown.out)
    refused = genorder(*command, "--candidates", "forward,topo:5").error()
    assert refused == "candidates topo need a dependency graph, which only built-in tasks have"
    Path("orders.json").write_text("[[0, 1, 2], [0, 1]]")
    refused = genorder(*command, "--orders", "orders.json").error()
    assert refused == "orders.json: entry 2 has 2 indices; the data has 3 targets"


def test_variable_length(genorder: Genorder) -> None:
    command = ("rank", "--task", "relu", "--length", "3-5", *SMALL, "--json")
    assert len(genorder(*command, "--candidates", "random:7").result()["ranking"]) == 7


def test_racing(genorder: Genorder) -> None:
    saved = genorder(*COMMAND, *ALL_SIX, "--no-exact", "--out", "race", "--json").result()
    assert all(row["samples"] in (16, 32, 40) for row in saved["ranking"])


@pytest.mark.parametrize(
    ("options", "exact"),
    [
        ([], True),
        (["--no-exact"], False),
        (["--set", "profiler.exact=false"], False),
        (["--set", "profiler.exact=false", "--exact"], True),
    ],
)
def test_exact_or_racing(genorder: Genorder, options: list[str], exact: bool) -> None:
    assert genorder(*COMMAND, "--candidates", "forward", *options, "--out", "r").code == 0
    assert json.loads(Path("r/config.json").read_text())["config"]["profiler"]["exact"] == exact


def test_finished_command_shows_the_same_result_without_training(
    genorder: Genorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = genorder(*COMMAND, *ALL_SIX, "--out", "r", "--json")
    monkeypatch.setattr(rank, "profile_orders", lambda *_, **__: pytest.fail("trained again"))
    again = genorder(*COMMAND, *ALL_SIX, "--out", "r", "--json")
    assert again.result() == first.result()
    assert "r holds the finished run of this command; showing its result" in again.err
    table = genorder(*COMMAND, *ALL_SIX, "--out", "r")
    assert len(table.out.splitlines()) == 7
    refused = genorder(*COMMAND, "--candidates", "forward", "--out", "r")
    assert refused.code == 2
    assert "holds a run of another configuration" in refused.err


def test_the_same_seed_gives_the_same_ranking(genorder: Genorder) -> None:
    first, second, other = (
        without_time(genorder(*COMMAND, "--candidates", "random:4", "--out", f"{n}", "--seed", seed, "--json").result())
        for n, seed in enumerate((1, 1, 2))
    )
    assert first == second
    assert true_orders(first) != true_orders(other)


def test_interrupted_run_continues_to_the_same_ranking(genorder: Genorder, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = genorder(*COMMAND, *ALL_SIX, "--out", "undisturbed", "--json").result()

    original = rank.profile_orders

    def stopped_after_a_step(*arguments: Any, **options: Any) -> Profile:
        os.kill(os.getpid(), signal.SIGINT)
        return original(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(rank, "profile_orders", stopped_after_a_step)
        stopped = [genorder(*COMMAND, *ALL_SIX, "--out", "r", "--json") for _ in range(STOPPED_AT)]
    assert [one.code for one in stopped] == [130] * STOPPED_AT
    said = f"interrupted: stopped at step {STOPPED_AT} of {STEPS}; the same command continues from there"
    assert stopped[-1].err.splitlines()[-1] == said
    status = genorder("status", "r", "--json").result()
    assert (status["state"], status["progress"]["step"]) == ("interrupted", STOPPED_AT)
    assert f"profile: step {STOPPED_AT} of {STEPS}" in genorder("status", "r").err
    finished = genorder(*COMMAND, *ALL_SIX, "--out", "r", "--json")
    assert without_time(finished.result()) == without_time(undisturbed)
    assert list(Path("r/checkpoints").iterdir()) == []
    assert genorder("status", "r", "--json").result()["state"] == "finished"
    assert "r: finished" in genorder("status", "r").err


def test_a_loss_that_is_not_finite(genorder: Genorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(train: object, validation: object, orders: list[Order], *_: Any, **__: Any) -> Profile:
        losses = np.array([[1.0, 2.0], [math.inf, 1.0]])
        return Profile.from_scores(orders, Scores(losses, np.array([4, 4])), curve_steps=[3], curves=[[1.0, math.inf]])

    monkeypatch.setattr(rank, "profile_orders", broken)
    command = (*COMMAND, "--candidates", "forward,reverse", "--out", "r")
    shown = genorder(*command)
    assert "2 not finite" in " ".join(shown.out.split())
    rows = genorder(*command, "--json").result()["ranking"]
    assert [(row["loss"], row["finite"], row["tied_with_best"]) for row in rows] == [
        (1.5, True, True),
        (None, False, False),
    ]
    assert rows[1]["curve"] == [None]
    assert rows_of_csv(Path("r/ranking.csv"))[1]["loss"] == ""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("rank", "give a DATA file or --task NAME, one of the two; received neither"),
        ("rank data.jsonl --task relu", "give a DATA file or --task NAME, one of the two; received both"),
        ("rank data.jsonl --length 3 --candidates forward", "--length and --hidden-order-seed belong to --task*"),
        ("rank data.jsonl --hidden-order-seed 3 --candidates forward", "--length and --hidden-order-seed belong to*"),
        ("rank --task relu --length 3", "give --candidates, such as random:128,forward, or --orders FILE, one of*"),
        ("rank --task relu --length 3 --candidates forward --orders twice.json", "give --candidates, such as*"),
        ("rank --task relu --length 3 --candidates nosuch", "candidates 'nosuch': expected one of random:N, *"),
        ("rank --task relu --length 3 --candidates random", "candidates 'random': expected random:N with a number*"),
        ("rank --task relu --length 3 --candidates random:0", "candidates 'random:0': expected random:N with*"),
        ("rank --task relu --length 3 --candidates ,", "no candidates were named; expected a list of random:N*"),
        ("rank --task relu --length 3 --candidates vars", "candidates vars need a time series of several variables*"),
        ("rank --task relu --length 3 --candidates hand", "there are no hand-designed orders for this data*"),
        ("rank data.jsonl --candidates topo:3", "candidates topo need a dependency graph, which only built-in tasks*"),
        ("rank data.jsonl --candidates hand", "there are no hand-designed orders for this data*"),
        ("rank --task relu --length 3 --orders twice.json", "twice.json: entry 2: not an order: index 0 appears*"),
        ("rank --task relu --length 4 --orders twice.json", "twice.json: entry 1 has 3 indices; the data has 4*"),
        ("rank --task relu --length 3 --orders cut.json", "cut.json:1: not JSON (Expecting ',' delimiter)"),
        ("rank --task relu --length 3 --orders nosuch.json", "cannot read nosuch.json: No such file or directory"),
        ("rank --task relu --length 3 --orders folder", "cannot read folder: Is a directory"),
        ("rank --task relu --candidates forward --preset big", "--preset 'big': expected one of cpu, paper, *"),
        ("rank --task relu --candidates forward --set model.width=8", "*there is no setting model; there are: *"),
        ("rank --task relu --candidates forward --set profiler.exact=7", "*profiler.exact = 7: *valid boolean*"),
        ("rank --task relu --candidates forward --set profiler.model.heads=3", "*width 128 is not a multiple of*"),
    ],
)  # fmt: skip
def test_bad_input(genorder: Genorder, tmp_path: Path, arguments: str, line: str) -> None:
    (tmp_path / "twice.json").write_text("[[0, 1, 2], [0, 0, 1]]")
    (tmp_path / "cut.json").write_text("[[0, 1")
    samples = [{"input": [n % 7, n // 7], "target": [n % 3, 1, 2]} for n in range(30)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, samples)))
    (tmp_path / "folder").mkdir()
    before = files_under(tmp_path)
    small = ("--set", "samples.train=50", "--set", "samples.validation=5") if "--set" not in arguments else ()
    received = genorder(*arguments.split(), *small).error()
    assert re.fullmatch(".*".join(map(re.escape, line.split("*"))), received), received
    assert files_under(tmp_path) == before
