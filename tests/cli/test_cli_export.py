"""`genorder export`: its JSON, what it refuses, and that `predict` and `evaluate` read its folders."""

import json
import shutil
from pathlib import Path

import pytest
from cli_helpers import RELU_3, TINY, Genorder
from test_discover import COMMAND, RANK


@pytest.fixture(scope="session")
def discovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from genorder.cli.app import run

    path = tmp_path_factory.mktemp("discovered") / "run"
    assert run([*COMMAND, "--seed", "1", "--out", str(path)]) == 0
    return path


def test_a_folder_that_predict_reads(genorder: Genorder, good_run: Path) -> None:
    exported = genorder("export", good_run, "--to", "hf", "hub/mine", "--json").result()
    assert (exported["path"], exported["kind"], exported["order"]) == ("hub/mine", "hf", [1, 0, 2])
    assert sorted(exported["files"]) == sorted(path.name for path in Path("hub/mine").iterdir())
    genorder("generate", *RELU_3, "--samples", 1000, "--split", "test", "--seed", 9, "--out", "test.jsonl")
    command = ("predict", "test.jsonl", "--threads", 1, "--json", "--model")
    assert genorder(*command, "hub/mine").result() == genorder(*command, good_run).result()


def test_screen(genorder: Genorder, good_run: Path) -> None:
    shown = genorder("export", good_run, "--to", "hf", "mine")
    assert (shown.code, shown.out) == (0, "")
    assert "model.safetensors" in shown.err
    assert "emits 1 0 2" in shown.err
    shown = genorder("export", good_run, "--to", "calt", "t.txt", "--split", "test")
    assert "200 samples in t.txt; targets in the order 1 0 2" in shown.err


def test_both_models_of_a_discovery(genorder: Genorder, discovered: Path) -> None:
    result = json.loads((discovered / "result.json").read_text())
    assert result["order"] != result["given_order"]
    for given in (False, True):
        folder = f"given-{given}"
        own = genorder("export", discovered, "--to", "hf", folder, *["--given"] * given, "--json").result()
        assert own["order"] == result["given_order" if given else "order"]
        kept = json.loads((discovered / ("given" if given else "model") / "model.json").read_text())
        assert json.loads(Path(folder, "genorder.json").read_text())["order"] == kept["order"]
    card = Path("given-False/README.md").read_text()
    given_card = Path("given-True/README.md").read_text()
    low, high = (f"{100 * bound:.1f}" for bound in result["given"]["success_rate_interval"])
    rate = f"{100 * result['success_rate_given_order']:.1f} % ({low} to {high})"
    assert f"| in the given order | {rate} |" in card
    assert f"| success rate | {rate} on 30 test samples |" in given_card
    assert "found by `global-local`" in card
    assert "| order | the given one |" in given_card
    assert "hidden by seed 0" in card
    assert "| seed | 1 |" in card
    for text, own in ((card, result), (given_card, result["given"])):
        assert f"| training | {own['steps']} steps of " in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "onnx", "x"), "--to 'onnx': expected one of hf, dataset, calt, int2int"),
        (("--to", "calt", "x", "--split", "dev"), "--split 'dev': expected one of all, train, validation, test"),
        (("--to", "hf", "x", "--split", "test"), "--split belongs to the datasets"),
        (("--to", "hf", "x", "--given"), "has no model of the given order"),
        (("--to", "hf"), "Missing argument 'PATH'"),
        (("x",), "Missing option '--to'"),
    ],
)
def test_what_cannot_be_asked(genorder: Genorder, good_run: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in genorder("export", good_run, *arguments).error()
    assert list(Path().iterdir()) == []


def test_a_run_that_only_explored_has_an_order_but_no_model(genorder: Genorder) -> None:
    order = genorder(*COMMAND, "--explore-only", "--out", "r", "--json").result()["order"]
    assert "r has no model: it only explored" in genorder("export", "r", "--to", "hf", "x").error()
    exported = genorder("export", "r", "--to", "dataset", "x.jsonl", "--json").result()
    assert (exported["order"], exported["samples"]) == (order, 360)


def test_directories_that_hold_no_finished_run(genorder: Genorder, tiny_run: Path) -> None:
    assert "no such directory" in genorder("export", "absent", "--to", "hf", "x").error()
    shutil.copytree(tiny_run, "r")
    Path("r/result.json").unlink()
    assert "r holds no finished run: it was interrupted" in genorder("export", "r", "--to", "hf", "x").error()
    genorder(*RANK, "--candidates", "forward,reverse", "--out", "ranked")
    assert "ranked is a run of 'rank', which chooses no order" in genorder(
        "export", "ranked", "--to", "calt", "x"
    ).error()  # fmt: skip
    assert not Path("x").exists()


def test_an_export_is_no_run_directory(genorder: Genorder, good_run: Path) -> None:
    genorder("export", good_run, "--to", "hf", "mine")
    said = "mine is no run directory: its config.json does not belong to a run; give the --out of a run"
    assert genorder("export", "mine", "--to", "hf", "x").error() == said
    assert genorder("evaluate", "mine", "--threads", 1).error() == said
    genorder("generate", *RELU_3, "--samples", 50, "--split", "test", "--out", "test.jsonl")
    assert genorder("evaluate", "mine", "test.jsonl", "--threads", 1, "--json").result()["samples"] == 50


def test_data_that_is_gone(genorder: Genorder) -> None:
    genorder("generate", *RELU_3, "--samples", 300, "--out", "mine.jsonl")
    trained = genorder("train", "mine.jsonl", *TINY, "--steps", 5, "--out", "r")
    assert trained.code == 0
    said = genorder("export", "r", "--to", "dataset", "mine.jsonl", "--force").error()
    assert said == "mine.jsonl is the data of the run itself; choose another file"
    Path("mine.jsonl").unlink()
    assert "cannot read" in genorder("export", "r", "--to", "dataset", "x.jsonl").error()
    assert genorder("export", "r", "--to", "hf", "x").code == 0  # a model needs no data
    assert "| data | `mine.jsonl` |" in Path("x/README.md").read_text()


def test_a_model_that_was_not_tested(genorder: Genorder, discovered: Path) -> None:
    """A run that was interrupted in its final trainings, and then only asked for the order."""
    shutil.copytree(discovered, "run")
    result = json.loads(Path("run/result.json").read_text())
    explored = {name: value for name, value in result.items() if "success_rate" not in name and name != "given"}
    Path("run/result.json").write_text(json.dumps(explored))
    assert genorder("export", "run", "--to", "hf", "mine").code == 0
    card = Path("mine/README.md").read_text()
    assert "not tested" in card
    assert "not trained" in card


def test_an_exported_folder_is_no_run(genorder: Genorder, good_run: Path) -> None:
    genorder("export", good_run, "--to", "hf", "mine")
    for verb in ("status", "report"):
        assert (
            genorder(verb, "mine")
            .error()
            .startswith("mine is no run directory: its config.json does not belong to a run")
        )
    assert not Path("mine/report.html").exists()
