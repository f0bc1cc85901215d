"""`genorder discover`: its JSON, its screen, what it refuses, and that it continues; `genorder rank --judge race`."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import ENVIRONMENT, PROGRAM, Genorder, files_under

from genorder.cli import discover
from genorder.cli.discovery_screen import DiscoveryScreen
from genorder.orders import parse_order
from genorder.outcomes import TrainOutcome
from genorder.reports.answer import training_hint
from genorder.search import STRATEGIES
from genorder.tasks import make_task, stored_columns

SMALL_MODEL = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32}
EXPLORING = {
    "samples.train": 300, "samples.validation": 30, "samples.test": 30, "profiler.training.steps": 24,
    "profiler.training.batch_size": 8, "race.first_rung": 3,
    "final.training.steps": 24, "final.training.batch_size": 8,
    **{f"{part}.model.{name}": value for part in ("profiler", "final") for name, value in SMALL_MODEL.items()},
}  # fmt: skip
FINAL = {
    "any_order.training.steps": 24, "any_order.training.batch_size": 16,
    "any_order.model.width": 16, "any_order.model.hidden": 32,
    "any_order.graph_steps": 8,
}  # fmt: skip


def changes(settings: dict[str, Any]) -> list[str]:
    return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]


SQUARE_4 = ("--task", "square", "--length", "4")
SMALL = ("--threads", "1", *changes({**EXPLORING, **FINAL}))
DEPTH_2 = ("--strategy", "global-local", "--depth", "2")
COMMAND = ("discover", *SQUARE_4, *SMALL, *DEPTH_2)
KEYS = {
    "order", "order_in_true_indices", "cost_ratio", "success_rate", "success_rate_given_order", "strategy", "seconds",
    "seed", "run_dir", "weights_sha256",
}  # fmt: skip
RANK = ("rank", *SQUARE_4, "--threads", "1", *changes(EXPLORING), "--judge", "race")


def without_time(value: Any) -> Any:
    if isinstance(value, dict):
        times = ("seconds", "evaluation_seconds", "run_dir")
        return {name: without_time(part) for name, part in value.items() if name not in times}
    return [without_time(part) for part in value] if isinstance(value, list) else value


@pytest.fixture
def data(genorder: Genorder) -> Path:
    path = Path("my data.jsonl")
    genorder("generate", *SQUARE_4, "--samples", 300, "--out", path)
    return path


def test_json(genorder: Genorder) -> None:
    shown = genorder(*COMMAND, "--seed", 4, "--out", "r", "--json")
    result = shown.result()
    assert set(result) >= KEYS
    assert set(result["seconds"]) == {"propose", "race", "train", "evaluate", "total"}
    columns = stored_columns(make_task("square", 4), 0)
    assert result["order_in_true_indices"] == [columns[column] for column in result["order"]]
    assert result["cost_ratio"] >= 1
    assert 0 <= result["success_rate"] <= 1
    assert 0 <= result["success_rate_given_order"] <= 1
    assert (result["strategy"], result["seed"]) == ("global-local", 4)
    assert Path(result["run_dir"]) == Path("r").resolve()
    for row in (*result["race"], *result["proposed"]["proposals"]):
        assert row["order_in_true_indices"] == [columns[column] for column in row["order"]]
        assert row["cost_ratio"] >= 1
    assert json.loads(Path("r/result.json").read_text()) == result
    for said in ("square-L4: 300 training samples", "global-local: 4 runs; about", "local 2 between: 2 candidates"):
        assert said in shown.err
    assert genorder("status", "r", "--json").result()["state"] == "finished"
    assert genorder("evaluate", "r", "--json", "--threads", 1).result()["success_rate"] == result["success_rate"]


def test_screen(genorder: Genorder) -> None:
    shown = genorder(*COMMAND, "--out", "r")
    result = json.loads(Path("r/result.json").read_text())
    assert shown.code == 0
    assert len(shown.out.splitlines()) == 1 + len(result["race"])
    for said in ("found: ", "it costs ", "success rate ", "in the given order: ", "model in ", "time: propose "):
        assert said in shown.err


def test_time_that_is_told(genorder: Genorder) -> None:
    """What a search does for sure, and what it may do beside it: train where counting is not enough, train on."""
    command = ("discover", *SQUARE_4, *SMALL)
    plan = genorder(*command, "--dry-run", "--json").result()
    (planned,) = plan["runs"]
    assert (planned["steps"], planned["more_steps"]) == (0, 24 + 8 + 48 + 96)
    race = plan["estimated_seconds"]["race"]
    assert plan["more_seconds"] > race / 2  # ten orders instead of five
    told = [line for line in genorder(*command, "--dry-run").err.splitlines() if "up to" in line]
    assert [line.partition(":")[0] for line in told] == ["if mining is not enough", "total"]
    assert told[0].endswith("any-order 1: 7 candidates, up to 176 steps")
    more = r"up to .* more if a model must be trained to propose, many orders race, or learning is slow\n"
    for strategy, runs in (("dependencies", ""), ("any-order", ": 1 run")):
        said = genorder(*command, "--explore-only", "--strategy", strategy, "--out", strategy).err
        assert re.search(rf"{strategy}{runs}; about .* in all \(.*\); {more}", said)
        assert "final training" not in said
    assert "up to" not in genorder(*COMMAND, "--dry-run").err


def test_steps_that_are_told(genorder: Genorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate below 90 % after a training whose loss still fell calls for more of them."""
    shown = genorder(*COMMAND, "--out", "r")
    assert "training: up to 24 steps of 8 samples, 1 layer of width 16\n" in shown.err
    assert f"model in {Path('r').resolve()}/model, trained for 24 steps\n" in shown.err
    hint = "the loss was still falling after 24 steps: more may help, such as --set final.training.steps=48"
    for falling, rate, hinted in ((True, 0.89, True), (True, 0.9, False), (False, 0.5, False)):
        result = json.loads(Path("r/result.json").read_text())
        Path("r/result.json").write_text(json.dumps({**result, "loss_still_falling": falling, "success_rate": rate}))
        assert (f"{hint}, with another --out\n" in genorder(*COMMAND, "--out", "r").err) == hinted


@pytest.mark.parametrize(
    ("losses", "rate", "names", "hinted"),
    [
        ({9: 2.9}, 0.07, None, "y9"),
        ({9: 2.9}, 0.95, None, None),
        ({9: 2.9, 3: 0.7}, 0.04, [f"name {n}" for n in range(20)], "name 3, name 9"),
        ({9: 2.9, 3: 0.3}, 0.04, None, None),  # one of them is being learnt
        (dict.fromkeys(range(6), 2.9), 0.0, None, None),  # too many for chance
        ({}, 0.5, None, None),
    ],
)
def test_targets_that_a_training_missed(
    losses: dict[int, float], rate: float, names: list[str] | None, hinted: str | None
) -> None:
    result = {
        "success_rate": rate, "steps": 100, "order": list(range(20))[::-1], "target_names": names or [],
        "loss_by_target": [losses.get(column, 0.01) for column in range(20)], "error_rate_by_target": [0.0] * 20,
        "samples": 10, "success_rate_interval": [0.0, 1.0], "teacher_forced_match_rate": rate, "loss": 1.0,
        "eos_error_rate": 0.0, "eos_loss": 0.0, "weights_sha256": "", "seed": 0, "run_dir": "r",
    }  # fmt: skip
    said = training_hint(TrainOutcome.from_dict(result), "--steps {}")
    assert (said or "").startswith(f"all targets but {hinted} were learnt") == (hinted is not None)
    assert (said is None) == (hinted is None)
    hidden = TrainOutcome.from_dict({**result, "order_in_true_indices": list(range(20)), "target_names": []})
    assert hinted != "y9" or "all targets but y10 were" in (training_hint(hidden, "--steps {}") or "")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies(genorder: Genorder, strategy: str) -> None:
    own = {
        "dependencies": {"rounds": 1},
        "any-order": {"restarts": 2, "rounds": 1},
        "global-local": {"depth": 2, "local": "false"},
        "evolutionary": {"population": 4, "generations": 2, "fitness": "separate", "separate_steps": 3},
        "random": {"runs": 2, "candidates": 4},
        "soft-permutation": {"steps": 4},
    }[strategy]
    settings = changes({f"search.{name}": value for name, value in own.items()})
    command = ("discover", *SQUARE_4, *SMALL, "--strategy", strategy, *settings, "--explore-only", "--json")
    result = genorder(*command).result()
    assert result["strategy"] == strategy
    assert sorted(result["order"]) == [0, 1, 2, 3]
    (run,) = Path("runs").glob("discover-square-L4-*")
    kept = json.loads((run / "config.json").read_text())
    assert {name: kept["search"][name] for name in own} == {
        name: False if value == "false" else value for name, value in own.items()
    }


def test_the_strategy_that_is_taken_by_default(genorder: Genorder) -> None:
    """`auto` by name, and by saying nothing: the same run, which names the strategy that it is."""
    command = ("discover", *SQUARE_4, *SMALL, "--explore-only", "--json", "--out", "r")
    assert genorder(*command, "--strategy", "auto").result()["strategy"] == "dependencies"
    assert genorder(*command).result()["strategy"] == "dependencies"


def test_explore_only(genorder: Genorder) -> None:
    result = genorder(*COMMAND, "--explore-only", "--out", "r", "--json").result()
    assert set(result["seconds"]) == {"propose", "race", "total"}
    assert "success_rate" not in result
    assert not Path("r/model").exists()
    shown = genorder(*COMMAND, "--explore-only", "--out", "r")
    assert "found: " in shown.err
    assert "success rate" not in shown.err


def test_no_baseline(genorder: Genorder) -> None:
    result = genorder(*COMMAND, "--no-baseline", "--out", "r", "--json").result()
    assert result["success_rate_given_order"] is None
    assert not Path("r/given").exists()
    assert "in the given order" not in genorder(*COMMAND, "--no-baseline", "--out", "r").err


def test_orders_of_ones_own_are_raced_too(genorder: Genorder) -> None:
    also = ("--also", "2,0,3,1", "--also", "random:7", "--also", "2,0,3,1")
    plain = genorder(*COMMAND, "--explore-only", "--json").result()
    result = genorder(*COMMAND, "--explore-only", *also, "--out", "r", "--json").result()
    random = list(parse_order("random:7", 4))
    raced = {tuple(row["order"]) for row in result["race"]}
    assert raced == {(2, 0, 3, 1), tuple(random), *(tuple(row["order"]) for row in plain["race"])}
    assert json.loads(Path("r/config.json").read_text())["also"] == [[2, 0, 3, 1], random]
    assert without_time(result["proposed"]) == without_time(plain["proposed"])


def test_hand_designed_orders_are_raced_too(genorder: Genorder) -> None:
    command = ("discover", "--task", "delay-sine", "--length", "8", *SMALL, *DEPTH_2, "--explore-only", "--json")
    result = genorder(*command, "--also", "hand").result()
    true_orders = {tuple(row["order_in_true_indices"]) for row in result["race"]}
    assert true_orders >= {tuple(order) for order in make_task("delay-sine", "8").hand_designed_orders().values()}


def test_data_file(genorder: Genorder, data: Path) -> None:
    result = genorder("discover", data, *SMALL, *DEPTH_2, "--json").result()
    assert sorted(result["order"]) == [0, 1, 2, 3]
    assert not {"order_in_true_indices", "cost_ratio"} & set(result)
    assert set(result) >= KEYS - {"order_in_true_indices", "cost_ratio"}
    assert result["samples"] == 30
    assert Path(result["run_dir"]).name.startswith("discover-my-data-")
    assert "it costs" not in genorder("discover", data, *SMALL, *DEPTH_2).err


def test_a_file_of_orders_to_start_from(genorder: Genorder) -> None:
    Path("orders.json").write_text("[[2, 1, 3, 0], [1, 0, 3, 2]]")
    result = genorder(*COMMAND, "--init", "orders.json", "--max-runs", 1, "--explore-only", "--json").result()
    (stage,) = result["proposed"]["stages"]
    tried = sorted(row["order"] for row in stage["best"])
    assert tried == [[0, 3, 1, 2], [1, 0, 3, 2], [2, 1, 3, 0], [2, 3, 0, 1]]


def test_another_content_of_that_file_is_another_run(genorder: Genorder) -> None:
    command = (*COMMAND, "--init", "orders.json", "--max-runs", 1, "--explore-only")
    Path("orders.json").write_text("[[2, 1, 3, 0]]")
    first = genorder(*command, "--json").result()
    assert genorder(*command, "--out", first["run_dir"]).code == 0
    Path("orders.json").write_text("[[0, 1, 2, 3]]")
    refused = genorder(*command, "--out", first["run_dir"])
    assert refused.code == 2
    assert "search.init_orders" in refused.err
    second = genorder(*command, "--json").result()
    assert second["run_dir"] != first["run_dir"]
    Path("orders.json").write_text("[[2, 1, 3, 0]]")
    assert genorder(*command, "--json").result() == first


def test_dry_run_leaves_nothing(genorder: Genorder, tmp_path: Path) -> None:
    shown = genorder(*COMMAND, "--dry-run", "--out", "r")
    assert shown.code == 0
    assert shown.out == ""
    assert "global 1: 4 candidates, 24 steps" in shown.err
    plan = genorder(*COMMAND, "--dry-run", "--json").result()
    names = ["global 1", "global 2", "local 2 within", "local 2 between"]
    assert [run["name"] for run in plan["runs"]] == names
    assert set(plan["estimated_seconds"]) == {"propose", "race", "train", "total"}
    assert plan["strategy"] == "global-local"
    assert files_under(tmp_path) == {}


CONSTRAINED = ("--keep-first", "1", "--before", "3<1, 3<2")
ASKED = "--keep-first 1 --before 3<1 --before 3<2"


def test_constraints(genorder: Genorder) -> None:
    shown = genorder(*COMMAND, *CONSTRAINED, "--out", "r", "--json")
    result = shown.result()
    assert result["constraints"] == {"keep_first": 1, "keep_last": 0, "groups": 1, "before": [[3, 1], [3, 2]]}
    stages = [row for stage in result["proposed"]["stages"] for row in stage["best"]]
    raced = [row for row in result["race"] if row["order"] != result["given_order"]]  # which trains along
    for row in (result, *raced, *result["proposed"]["proposals"], *stages):
        assert row["order"][:2] == [0, 3]
    assert result["success_rate_given_order"] is not None
    assert f"orders that are allowed: {ASKED}" in shown.err
    assert json.loads(Path("r/config.json").read_text())["constraints"] == result["constraints"]
    again = genorder(*COMMAND, *CONSTRAINED, "--out", "r")
    assert f"among the orders that were allowed: {ASKED}" in again.err
    assert f"Only orders that meet {ASKED.replace('<', '&lt;')} were searched" in Path("r/report.html").read_text()
    refused = genorder(*COMMAND, "--out", "r")
    assert refused.code == 2
    assert "holds a run of another configuration" in refused.err


def test_without_constraints_a_run_is_described_as_before(genorder: Genorder) -> None:
    """Runs that were begun when there were none go on."""
    plan = genorder(*COMMAND, "--dry-run", "--json").result()
    assert "constraints" not in plan
    assert genorder(*COMMAND, "--groups", 1, "--keep-first", 0, "--dry-run", "--json").result().keys() == plan.keys()
    assert genorder(*COMMAND, "--explore-only", "--json").result()["constraints"] is None


def test_dry_run_shows_constraints(genorder: Genorder, tmp_path: Path) -> None:
    shown = genorder(*COMMAND, *CONSTRAINED, "--dry-run")
    assert f"orders that are allowed: {ASKED}" in shown.err
    plan = genorder(*COMMAND, *CONSTRAINED, "--dry-run", "--json").result()
    assert plan["constraints"]["before"] == [[3, 1], [3, 2]]
    assert {run["candidates"] for run in plan["runs"]} == {2}  # 0 3 1 2 and 0 3 2 1
    assert files_under(tmp_path) == {}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_constraints_that_leave_one_order(genorder: Genorder, strategy: str) -> None:
    one = ("--groups", "2", "--before", "3<0", "--budget", "30m")
    settings = changes({"search.steps": 4}) if strategy == "soft-permutation" else []
    command = ("discover", *SQUARE_4, *SMALL, "--strategy", strategy, *settings, *one, "--json", "--out", "r")
    result = genorder(*command).result()
    assert result["order"] == [2, 3, 0, 1]
    assert [row["order"] for row in result["race"]] == [[2, 3, 0, 1], [0, 1, 2, 3]]  # the given one trains along
    assert result["given"] is not None
    assert Path("r/report.html").exists()


def test_targets_of_several_lengths_under_constraints(genorder: Genorder) -> None:
    """The columns are those of the longest."""
    lengths = ("--task", "square", "--length", "2-4", *SMALL, "--keep-last", "1", "--keep-first", "1")
    result = genorder("discover", *lengths, "--set", "samples.train=200", "--json").result()
    assert (result["order"][0], result["order"][-1]) == (0, 3)
    assert result["samples"] == 30


def test_finished_command_shows_the_same_result_without_work(
    genorder: Genorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = genorder(*COMMAND, "--out", "r", "--json").result()
    monkeypatch.setattr(discover, "run_discovery", lambda *_, **__: pytest.fail("searched again"))
    again = genorder(*COMMAND, "--out", "r", "--json")
    assert again.result() == first
    assert "r holds the finished run of this command; showing its result" in again.err
    refused = genorder(*COMMAND, "--seed", 1, "--out", "r")
    assert refused.code == 2
    assert "holds a run of another configuration" in refused.err


MOMENTS = {
    "after a stage": ("stage", lambda stage: stage.name == "global 1"),
    "in a profiling run": ("progress", lambda stage, _: stage == "global 2"),
    "in the race": ("race", lambda progress: (progress.rung, progress.done) == (1, 1)),
    "in the final training": ("race", lambda progress: progress.rung is None),
}


def test_interrupted_command_continues_to_the_same_result(genorder: Genorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Ctrl-C in each of its parts, one after the other."""
    undisturbed = genorder(*COMMAND, "--out", "undisturbed", "--json").result()
    for method, is_now in MOMENTS.values():
        original = getattr(DiscoveryScreen, method)
        signals: list[int] = []

        def stopping(
            watcher: Any, *told: Any, original: Any = original, is_now: Any = is_now, signals: Any = signals
        ) -> None:
            original(watcher, *told)
            if is_now(*told) and not signals:  # a second one would end the command at once
                signals.append(signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

        with monkeypatch.context() as patched:
            patched.setattr(DiscoveryScreen, method, stopping)
            stopped = genorder(*COMMAND, "--out", "r", "--json")
        assert (stopped.code, stopped.out) == (130, "")
        assert re.match(r"interrupted: stopped .*; the same command continues from there", stopped.err.splitlines()[-1])
        assert genorder("status", "r", "--json").result()["state"] == "interrupted"
    finished = genorder(*COMMAND, "--out", "r", "--json").result()
    assert finished["order"] == undisturbed["order"]
    assert finished["weights_sha256"] == undisturbed["weights_sha256"]
    assert without_time(finished) == without_time(undisturbed)


def test_ctrl_c_to_the_program(tmp_path: Path) -> None:
    long = ("--set", "profiler.training.steps=1000000")
    command = [PROGRAM, *COMMAND, *long, "--out", str(tmp_path / "r"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stderr is not None
        said = b""
        while b"global 1: step" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert err.splitlines()[-1].startswith(b"interrupted: stopped at step ")


def test_a_budget_of_time(genorder: Genorder) -> None:
    """Decided once: a continued command keeps to it."""
    command = (*COMMAND, "--explore-only", "--out", "r", "--json")
    result = genorder(*command, "--budget", "10m").result()
    assert 1 <= len(result["proposed"]["stages"]) <= 4
    Path("r/result.json").unlink()
    assert genorder(*command, "--budget", "10m").result() == result


def test_a_budget_of_time_that_is_too_small(genorder: Genorder, tmp_path: Path) -> None:
    slow = ("--set", "profiler.training.steps=10000000")
    refused = genorder(*COMMAND, *slow, "--budget", "1s", "--out", "r").error()
    assert re.fullmatch(
        r"--budget 1 s is too small for one profiling run and the race after it, which take about \d+ s here; give "
        r"more, or fewer steps by --set",
        refused,
    )
    assert files_under(tmp_path) == {}


TASK = "discover --task square --length 4"
PAPER = f"{TASK} --strategy global-local"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("discover", "give a DATA file or --task NAME, one of the two; received neither"),
        (f"{TASK} --budget nonsense", "--budget 'nonsense': expected a time such as 90s, 10m or 2h"),
        (f"{TASK} --budget 0s", "--budget '0s': expected a time such as 90s, 10m or 2h"),
        (f"{TASK} --budget 10", "--budget '10': expected a time such as 90s, 10m or 2h"),
        (f"{TASK} --budget=-5m", "--budget '-5m': expected a time such as 90s, 10m or 2h"),
        (f"{PAPER} --depth 0", "--depth 0: expected a number of blocks, at least 1"),
        ("discover --task square --length 9 --strategy global-local --depth 8", "--depth 8 profiles 2 x 8! = 80,640*"),
        (f"{PAPER} --depth 4 --max-candidates 47", "--depth 4 profiles 2 x 4! = 48 candidates*the limit of 47;*"),
        (f"{PAPER} --init short.json", "short.json: entry 2 has 3 indices; the data has 4 targets"),
        (f"{TASK} --depth 3", "--strategy dependencies has no setting depth; it has: restarts, rounds"),
        (f"{PAPER} --init block", "initial pool block shuffles blocks of 5 targets; this data has only one block"),
        (f"{PAPER} --init nosuch.json", "initial pool 'nosuch.json': expected one of random, sort, *JSON file of*"),
        (f"{PAPER} --init vars", "initial pool vars needs a time series of several variables*"),
        ("discover data.jsonl --strategy global-local --init topo", "initial pool topo needs a dependency*"),
        ("discover data.jsonl --length 3", "--length and --hidden-order-seed belong to --task*"),
        (f"{TASK} --strategy magic", "--strategy 'magic': expected one of auto, dependencies, any-order, glo*"),
        (f"{TASK} --strategy random --depth 3", "--strategy random has no setting depth; it has: runs, candidates,*"),
        (f"{TASK} --strategy soft-permutation --init random", "--strategy soft-permutation has no setting init;*"),
        (f"{PAPER} --set search.foo=1", "--strategy global-local has no setting foo; it has: depth, init, local*"),
        (f"{PAPER} --set search.depth", "--set 'search.depth': expected NAME=VALUE*"),
        (f'{PAPER} --set search.depth="x"', "--strategy global-local: setting depth = 'x'; expected int"),
        (f"{PAPER} --set search.depth=2.5", "--strategy global-local: setting depth = 2.5; expected int"),
        (f"{PAPER} --set search.local=1", "--strategy global-local: setting local = 1; expected bool"),
        (f"{PAPER} --set search.depth.deep=1", "--strategy global-local: setting depth = {'deep': 1}; expected int"),
        (f"{TASK} --set searching.depth=1", "*there is no setting searching; there are: samples, mining, prof*"),
        (f"{TASK} --set final.model.heads=3", "*width 128 is not a multiple of*"),
        (f"{TASK} --max-runs 0", "a budget of 0 profiling runs is too small: a search needs at least one"),
        (f"{TASK} --max-candidates 1", "a budget of 1 candidates per run is too small: expected at least 2"),
        (f"{TASK} --keep-first=-1", "--keep-first -1: expected a number of columns, at least 0"),
        (f"{TASK} --keep-first 3 --keep-last 2", "--keep-first 3 and --keep-last 2 keep more columns than the 4*"),
        (f"{TASK} --groups 0", "--groups 0: expected a number of columns, at least 1"),
        (f"{TASK} --groups 3", "--groups 3: the 4 free columns (of 4, *) are not a whole number of blocks of 3;*"),
        (f"{TASK} --keep-last 1 --groups 2", "--groups 2: the 3 free columns (of 4,*"),
        (f"{TASK} --before 3", "--before '3': expected two columns such as 3<7, or several pairs: 3<7,2<5"),
        (f"{TASK} --before 1<1", "--before 1<1: a column cannot come before itself"),
        (f"{TASK} --before 1<4", "--before 1<4: there is no column 4; the targets have 0 to 3"),
        (f"{TASK} --before 2<1,1<0 --before 0<2", "--before *: they form a cycle, so that a column would come before*"),
        (f"{TASK} --groups 2 --before 1<0", "--before 1<0 contradicts --groups 2, by which column 0 comes before*"),
        (f"{TASK} --keep-first 1 --before 3<0", "--before 3<0 contradicts --keep-first 1, by which column 0 comes*"),
        (f"{TASK} --keep-last 1 --before 3<1", "--before 3<1 contradicts --keep-last 1, by which column 1 comes*"),
        (f"{PAPER} --init pool.json --keep-first 1", "initial pool pool.json: none of its orders meets --keep-*"),
        (f"{TASK} --also 0,1,2", "0,1,2: the order has length 3, expected 4"),
        (f"{TASK} --also nonsense", "'nonsense' is not an order: expected forward, reverse, random:SEED,*"),
        (f"{TASK} --also hand", "there are no hand-designed orders for this data; the delay networks have five each"),
        (f"{TASK} --also 1,0,2,3 --keep-first 1", "the order 1 0 2 3 that is to be raced too is not allowed: --keep-*"),
        (TASK + "".join(f" --also random:{n}" for n in range(12)), "* orders of your own to race; expected at most 8*"),
        (f"{TASK} --workers 0", "Invalid value for '--workers': *"),
        (f"{TASK} --preset big", "--preset 'big': expected one of cpu, paper, paper-prod, paper-delay"),
        ("discover --task square --length 2-4 --strategy soft-permutation", "soft-permutation needs targets of one*"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dry_run", [False, True])
def test_bad_input(genorder: Genorder, tmp_path: Path, arguments: str, line: str, dry_run: bool) -> None:
    (tmp_path / "short.json").write_text("[[0, 1, 2, 3], [0, 1, 2]]")
    (tmp_path / "pool.json").write_text("[[3, 2, 1, 0], [1, 0, 2, 3]]")
    samples = [{"input": [n % 7, n // 7], "target": [n % 3, 1, 2]} for n in range(30)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, samples)))
    before = files_under(tmp_path)
    sizes = ("--set", "samples.train=50", "--set", "samples.validation=5", "--threads", "1")
    received = genorder(*arguments.split(), *sizes, *(["--dry-run"] if dry_run else [])).error()
    assert re.fullmatch(".*".join(map(re.escape, line.split("*"))), received), received
    assert files_under(tmp_path) == before


def test_a_judge_that_rank_does_not_have(genorder: Genorder, tmp_path: Path) -> None:
    refused = genorder("rank", *SQUARE_4, "--threads", 1, "--candidates", "forward", "--judge", "jury").error()
    assert refused == "--judge 'jury': expected mixture or race"
    assert files_under(tmp_path) == {}


def test_rank_by_a_race(genorder: Genorder) -> None:
    shown = genorder(*RANK, "--candidates", "forward,reverse,random:3", "--out", "r", "--json")
    result = shown.result()
    ranking = result["ranking"]
    assert [row["rank"] for row in ranking] == list(range(1, len(ranking) + 1))
    assert set(ranking[0]) == {
        "order", "order_in_true_indices", "cost_ratio", "rank", "loss", "standard_error", "tied_with_best", "samples",
        "losses", "steps", "left_after_rung", "curves", "finite",
    }  # fmt: skip
    assert result["unigram_loss"] > 0
    assert set(result["seconds"]) == {"race"}
    in_the_last = [row for row in ranking if row["left_after_rung"] is None]
    assert ranking[: len(in_the_last)] == in_the_last
    assert [row["loss"] for row in in_the_last] == sorted(row["loss"] for row in in_the_last)
    assert ranking[0]["tied_with_best"] is True
    for row in ranking:
        ends = [3, 4, 5, 7, 9, 12, 15, 19]
        rungs = len(ends) if row["left_after_rung"] is None else row["left_after_rung"] + 1
        assert row["steps"] == ends[:rungs]
        assert [len(curve) for curve in row["curves"]] == [3, 1, 1, 2, 2, 3, 3, 4][:rungs]
        assert len(row["losses"]) == rungs
        assert row["loss"] == row["losses"][-1]
        assert row["samples"] == 30
        assert row["finite"] is True
    true = [tuple(row["order_in_true_indices"]) for row in ranking]
    assert {(0, 1, 2, 3), (3, 2, 1, 0)} <= set(true)
    assert "race, rung 1: " in shown.err
    again = genorder(*RANK, "--candidates", "forward,reverse,random:3", "--out", "r")
    assert len(again.out.splitlines()) == 1 + len(ranking)
    assert Path("r/ranking.csv").read_text().count("\n") == 1 + len(ranking)


def test_a_race_ranks_forward_before_reverse(genorder: Genorder) -> None:
    learning = {
        "samples.train": 4000, "samples.validation": 200, "race.first_rung": 240, "final.training.steps": 300,
        "final.training.batch_size": 32, "final.training.learning_rate": 0.005, "final.model.width": 32,
        "final.model.feedforward": 64,
    }  # fmt: skip
    command = (*RANK, *changes(learning), "--task", "relu", "--candidates", "reverse,forward", "--json")
    first, last = genorder(*command).result()["ranking"]
    assert (first["order_in_true_indices"], first["cost_ratio"]) == ([0, 1, 2, 3], 1)
    assert last["order_in_true_indices"] == [3, 2, 1, 0]
    assert first["loss"] < last["loss"]
    assert (first["tied_with_best"], last["tied_with_best"]) == (True, False)
