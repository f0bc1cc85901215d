"""What scripts rely on: JSON keys, rates as fractions, exit codes, and nothing but JSON on stdout."""

import json
import subprocess
import sys
from importlib.metadata import version
from itertools import accumulate
from operator import xor
from pathlib import Path

import pytest
from cli_helpers import ENVIRONMENT, PROGRAM, RELU_3, RUNNING_XOR, TINY, Genorder, program

from genorder.orders import DependencyGraph, Order, cost_ratio
from genorder.tasks import make_task, stored_columns, task_names

VERBS = ("tasks", "generate", "train", "evaluate", "predict", "rank", "status", "doctor", "bench")
RATES = ("success_rate", "teacher_forced_match_rate", "eos_error_rate")


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_has_an_example(genorder: Genorder, verb: str) -> None:
    shown = genorder(verb, "--help")
    assert shown.code == 0
    assert shown.err == ""
    assert f"Usage: genorder {verb}" in shown.out
    assert "Example:" in shown.out
    assert f"genorder {verb}" in shown.out.split("Example:")[1]


def test_help_lists_the_verbs(genorder: Genorder) -> None:
    shown = genorder("--help")
    assert shown.code == 0
    assert all(f" {verb} " in shown.out for verb in VERBS)


def test_no_arguments_show_the_help(genorder: Genorder) -> None:
    shown = genorder()
    assert shown.code == 2
    assert "train" in shown.out


def test_tasks(genorder: Genorder) -> None:
    listed = genorder("tasks", "--json").result()["tasks"]
    assert [entry["name"] for entry in listed] == list(task_names())
    assert {"summary", "default_length", "length_step", "parameters"} <= set(listed[0])
    table = genorder("tasks")
    assert table.code == 0
    assert "relu" in table.out


def test_doctor(genorder: Genorder) -> None:
    report = genorder("doctor", "--threads", 1, "--device", "cpu", "--json").result()
    assert report["device"] == "cpu"
    assert report["threads"] == 1
    assert report["matmul_gflops"] > 0
    assert {"python", "platform", "processor", "cores", "packages", "extras"} <= set(report)


def test_generate_writes_what_it_says(genorder: Genorder) -> None:
    made = genorder("generate", *RELU_3, "--samples", 7, "--split", "test", "--out", "a/b.jsonl", "--json")
    assert made.result() == {"path": "a/b.jsonl", "samples": 7, "order_in_true_indices": [0, 1, 2]}
    assert made.err == ""
    samples = [json.loads(line) for line in Path("a/b.jsonl").read_text().splitlines()]
    assert len(samples) == 7
    assert all(len(sample["input"]) == len(sample["target"]) == 3 for sample in samples)


def test_generate_names_its_file_by_itself(genorder: Genorder) -> None:
    path = genorder("generate", *RELU_3, "--samples", 7, "--split", "validation", "--json").result()["path"]
    assert path == "relu-L3-validation.jsonl"
    assert Path(path).exists()


def test_generate_again_is_fine_and_other_content_is_refused(genorder: Genorder) -> None:
    command = ("generate", *RELU_3, "--out", "x.jsonl", "--samples")
    first = genorder(*command, 7, "--json").result()
    before = Path("x.jsonl").read_bytes()
    assert genorder(*command, 7, "--json").result() == first
    refused = genorder(*command, 8).error()
    assert refused == "x.jsonl exists and holds something else; remove it or choose another --out"
    assert Path("x.jsonl").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["x.jsonl"]


def test_generate_hides_columns_as_it_says(genorder: Genorder) -> None:
    command = ("generate", "--task", "cubic", "--length", 6, "--samples", 40, "--json")
    plain = genorder(*command, "--out", "plain.jsonl").result()
    hidden = genorder(*command, "--out", "hidden.jsonl", "--hidden-order-seed", 3).result()
    columns = hidden["order_in_true_indices"]
    assert plain["order_in_true_indices"] == [0, 1, 2, 3, 4, 5]
    assert sorted(columns) == [0, 1, 2, 3, 4, 5] != columns
    rows = [[json.loads(line) for line in Path(made["path"]).read_text().splitlines()] for made in (plain, hidden)]
    for true, stored in zip(*rows, strict=True):
        assert stored["input"] == true["input"]
        assert stored["target"] == [true["target"][index] for index in columns]


def test_train(genorder: Genorder) -> None:
    made = genorder("train", *RELU_3, *TINY, "--steps", 25, "--seed", 4, "--out", "r", "--json")
    result = made.result()
    assert {
        "success_rate", "success_rate_interval", "teacher_forced_match_rate", "loss", "steps", "seconds",
        "weights_sha256", "run_dir", "order", "order_in_true_indices", "cost_ratio", "samples", "seed",
    } <= set(result)  # fmt: skip
    assert all(0 <= result[name] <= 1 for name in RATES)
    low, high = result["success_rate_interval"]
    assert 0 <= low <= result["success_rate"] <= high <= 1
    assert (result["samples"], result["steps"], result["seed"]) == (20, 25, 4)
    assert result["order"] == [0, 1, 2]
    assert Path(result["run_dir"]) == Path("r").resolve()
    assert (Path("r") / "model" / "weights.safetensors").exists()
    assert "training: step 25/25, loss" in made.err
    assert "left" in made.err


def test_train_for_people_says_percent_on_stderr_only(genorder: Genorder) -> None:
    shown = genorder("train", *RELU_3, *TINY, "--steps", 5)
    assert shown.code == 0
    assert shown.out == ""
    assert "success rate 0.0 % (" in shown.err
    assert len(list(Path("runs").glob("train-relu-L3-forward-*/result.json"))) == 1


def test_train_tells_the_order_in_true_indices(genorder: Genorder) -> None:
    command = ("train", "--task", "relu", "--length", 6, "--hidden-order-seed", 3, *TINY, "--steps", 2)
    result = genorder(*command, "--order", "5,0,3,1,2,4", "--json").result()
    task = make_task("relu", 6)
    columns = stored_columns(task, 3)
    in_truth = [columns[column] for column in (5, 0, 3, 1, 2, 4)]
    assert result["order"] == [5, 0, 3, 1, 2, 4]
    assert result["order_in_true_indices"] == in_truth
    graph: DependencyGraph = task.dependencies()
    assert result["cost_ratio"] == pytest.approx(cost_ratio(Order.of(in_truth), graph))
    best = columns.inverse()
    assert cost_ratio(best, graph.relabelled(columns)) == 1.0


def test_train_on_a_file_knows_no_true_order(genorder: Genorder) -> None:
    genorder("generate", *RELU_3, "--samples", 200, "--out", "my data.jsonl")
    result = genorder("train", "my data.jsonl", *TINY, "--steps", 2, "--order", "reverse", "--json").result()
    assert result["order"] == [2, 1, 0]
    assert "cost_ratio" not in result
    assert "order_in_true_indices" not in result
    assert Path(result["run_dir"]).name.startswith("train-my-data-reverse-")
    assert genorder("evaluate", result["run_dir"], "--threads", 1, "--json").result()["loss"] == result["loss"]


def test_dry_run_writes_nothing(genorder: Genorder, tmp_path: Path) -> None:
    command = ("train", *RELU_3, *TINY, "--steps", 7, "--dry-run")
    plan = genorder(*command, "--json").result()
    assert plan["steps"] == 7
    assert plan["estimated_seconds"] == pytest.approx(7 * plan["seconds_per_step"])
    assert plan["config"]["training"]["steps"] == 7
    shown = genorder(*command)
    assert shown.code == 0
    assert "7 steps on cpu" in shown.err
    assert list(tmp_path.iterdir()) == []


def test_settings_win_over_the_file_and_the_file_over_the_preset(genorder: Genorder) -> None:
    Path("c.toml").write_text("[training]\nsteps = 11\nbatch_size = 5\n[model]\nwidth = 24\n")
    plan = genorder(
        "train", *RELU_3, "--threads", 1, "--config", "c.toml", "--set", "training.batch_size=6",
        "--set", "samples.train=50", "--dry-run", "--json",
    ).result()  # fmt: skip
    config = plan["config"]
    assert config["training"]["steps"] == 11
    assert config["training"]["batch_size"] == 6
    assert config["model"]["width"] == 24
    assert config["model"]["layers"] == 2


def test_status_of_a_finished_run(genorder: Genorder, tiny_run: Path) -> None:
    status = genorder("status", tiny_run, "--json").result()
    assert status["state"] == "finished"
    assert [job["name"] for job in status["jobs"]] == ["train model", "evaluate model"]
    assert status["result"]["weights_sha256"] == status["jobs"][0]["result"]["weights_sha256"]
    assert status["progress"]["step"] == 5
    shown = genorder("status", tiny_run)
    assert shown.out == ""
    assert "finished" in shown.err
    assert "success rate 0.0 %" in shown.err


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_evaluate(genorder: Genorder, tiny_run: Path, split: str) -> None:
    found = genorder("evaluate", tiny_run, "--split", split, "--threads", 1, "--json").result()
    assert found["samples"] == (300 if split == "train" else 20)
    assert all(0 <= found[name] <= 1 for name in RATES)
    assert found["order"] == [0, 1, 2]
    if split == "test":
        trained = json.loads((tiny_run / "result.json").read_text())
        assert found["loss"] == pytest.approx(trained["loss"])


def test_finished_command_shows_the_same_result_without_training(
    genorder: Genorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", *RELU_3, *TINY, "--steps", 5, "--out", "r", "--json")
    first = genorder(*command)

    def no_training(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("genorder.runs.train.train_and_evaluate", no_training)
    again = genorder(*command)
    assert again.result() == first.result()
    assert again.out == first.out
    assert "holds the finished run" in again.err


def test_own_task_from_a_file(genorder: Genorder, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my_tasks.py").write_text(RUNNING_XOR)
    command = ("train", "--task", "my_tasks.py:running-xor", "--length", 6, *TINY, "--steps", 5)
    result = genorder(*command, "--json").result()
    assert len(result["order"]) == 6
    genorder("generate", "--task", "my_tasks.py:running-xor", "--length", 6, "--samples", 9, "--out", "x.jsonl")
    for line in Path("x.jsonl").read_text().splitlines():
        sample = json.loads(line)
        assert sample["target"] == list(accumulate(sample["input"], xor))
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")  # the run remembers where the task's file is
    assert genorder("evaluate", result["run_dir"], "--json").result()["loss"] == pytest.approx(result["loss"])


def test_own_task_that_fails_is_one_line(genorder: Genorder) -> None:
    Path("mine.py").write_text(
        "from genorder.tasks import RecurrenceTask, register_task\n"
        "@register_task('bad', summary='')\n"
        "def bad(lengths):\n"
        "    return RecurrenceTask('bad', lengths, low=0, high=1, step=lambda x, y: 1 / 0)\n"
    )
    failed = genorder("train", "--task", "mine.py:bad", *TINY)
    assert failed.code == 1
    assert failed.out == ""
    assert failed.err.splitlines() == [
        "failed: ZeroDivisionError: division by zero (not foreseen; GENORDER_DEBUG=1 shows where)"
    ]


def test_messages_show_names_as_they_are(genorder: Genorder) -> None:
    assert ":star:[bold].jsonl" in genorder("train", ":star:[bold].jsonl").error()


def test_the_program_prints_exactly_one_object() -> None:
    assert program("train", *RELU_3, *TINY, "--steps", 2, "--json").result()["steps"] == 2


def test_the_program_ends_with_the_exit_code() -> None:
    assert program("train", "nofile.jsonl", "--json").error() == "cannot read nofile.jsonl: No such file or directory"


def test_reader_that_goes_away_leaves_no_traceback() -> None:
    code = f"exec {PROGRAM} tasks --json"
    with subprocess.Popen(
        ["sh", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait() == 1
    assert said == ""


def test_stopping_while_torch_is_imported_leaves_no_traceback() -> None:
    script = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from genorder.cli.app import main
sys.argv = ["genorder", "tasks"]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_version_is_that_of_the_package(genorder: Genorder) -> None:
    shown = genorder("--version")
    assert (shown.code, shown.out) == (0, f"genorder {version('genorder')}\n")
