"""Small real runs for reports, and runs of known numbers."""

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

from genorder.cli.app import run
from genorder.outcomes import read_outcome
from genorder.reports.run import ReportedRun
from genorder.store import FinishedJob

HOSTILE = [
    "<script>alert(1)</script>", "</script>", "\x1b[31mred", "\u202eright to left", "שלום", '"onload="alert(1)',
    "{{ 7 * 7 }}", "<b>bold</b>",
]  # fmt: skip
HOSTILE_NAME = "<img src=x onerror=alert(1)>.jsonl"

SMALL_MODEL = ("layers=1", "heads=2", "width=16", "feedforward=32")
FEW = ("samples.train=300", "samples.validation=20", "samples.test=30")
EXPLORING = (
    *FEW, "profiler.training.steps=8", "profiler.training.batch_size=8",
    "race.first_rung=3", "final.training.steps=8", "final.training.batch_size=8",
    *(f"{part}.model.{size}" for part in ("profiler", "final") for size in SMALL_MODEL),
)  # fmt: skip
FINAL = (
    "any_order.training.steps=24", "any_order.training.batch_size=16", "any_order.model.width=16",
    "any_order.model.hidden=32", "any_order.graph_steps=8",
)  # fmt: skip
FIXED = (*FEW, "training.batch_size=8", *(f"model.{size}" for size in SMALL_MODEL))


def genorder(*arguments: object, settings: tuple[str, ...] = (), code: int = 0) -> None:
    changes = [part for setting in settings for part in ("--set", setting)]
    assert run([*map(str, arguments), *changes]) == code


def write_hostile_data(folder: Path) -> Path:
    """Targets that are a shift of the inputs, all of them tokens that a careless page would run or be broken by."""
    rng = random.Random(0)
    path = folder / HOSTILE_NAME
    rows = set()
    while len(rows) < 340:
        rows.add(tuple(rng.randrange(len(HOSTILE)) for _ in range(4)))
    with path.open("w", encoding="utf-8") as file:
        for row in sorted(rows):
            target = [(a + b) % len(HOSTILE) for a, b in zip(row, row[1:] + row[:1], strict=True)]
            sample = {"input": [HOSTILE[token] for token in row], "target": [HOSTILE[token] for token in target]}
            file.write(json.dumps(sample) + "\n")
    return path


def known_run(**changes: Any) -> ReportedRun:
    """A discovery of three targets, of numbers that can be checked by hand; columns 0, 1, 2 are the true 2, 0, 1."""
    raced = [
        {"order": [1, 2, 0], "steps": [2, 4], "losses": [0.5, 0.1], "standard_errors": [0.05, 0.01],
         "success_rates": [0.1, 0.9], "left_after_rung": None,
         "tied_with_best": True, "diverged": False, "curves": [[3.0, 1.0], [1.0, 0.5]], "cost_ratio": 1.0,
         "order_in_true_indices": [0, 1, 2]},
        {"order": [0, 1, 2], "steps": [2], "losses": [2.0], "standard_errors": [0.1], "success_rates": [0.0],
         "left_after_rung": 0,
         "tied_with_best": False, "diverged": False, "curves": [[3.0, 2.0]], "cost_ratio": 1.5,
         "order_in_true_indices": [2, 0, 1]},
        {"order": [2, 1, 0], "steps": [2], "losses": [None], "standard_errors": [None], "success_rates": [0.0],
         "left_after_rung": 0,
         "tied_with_best": False, "diverged": True, "curves": [[]], "cost_ratio": 2.0,
         "order_in_true_indices": [1, 0, 2]},
    ]  # fmt: skip
    evaluation = {
        "samples": 1000, "success_rate": 0.998, "success_rate_interval": [0.993, 0.999], "loss": 0.01,
        "error_rate_by_target": [0.0, 0.1, 0.2], "loss_by_target": [0.01, 0.02, 0.03],
        "teacher_forced_match_rate": 0.998, "eos_error_rate": 0.0, "eos_loss": 0.0, "weights_sha256": "ab", "steps": 10,
        "examples": [
            {"row": 4, "right": False, "input_length": 1, "length": 3, "input": ["a"],
             "expected": ["p", "q", "r", "<eos>"], "generated": ["p", "x", "r", "<eos>"]},
        ],
    }  # fmt: skip
    given = {
        **evaluation, "success_rate": 0.056, "success_rate_interval": [0.043, 0.072], "examples": [],
        "error_rate_by_target": [0.5, 0.6, 0.7], "loss_by_target": [1.0, 2.0, 3.0],
    }  # fmt: skip
    proposals = [{"order": [1, 2, 0], "loss": 0.2, "standard_error": 0.01, "tied_with_best": True}]
    stage = {"name": "any-order 1", "candidates": 2, "kept": 1, "best": proposals, "seconds": {"train": 3.0, "x": 1.0}}
    dependencies = [
        {"target": 0, "inputs": [1], "targets": [2], "loss": 0.1, "loss_without": {"x1": 3.0, "y2": 5.0}},
        {"target": 1, "inputs": [0], "targets": [], "loss": 0.2, "loss_without": {"x0": 4.0}},
        {"target": 2, "inputs": [], "targets": [1], "loss": 0.3, "loss_without": {"y1": 2.0}},
    ]
    evidence = {"found_by": "model", "pairs": None, "violations": None, "pointer": False}
    dependencies = [{**dependency, **evidence} for dependency in dependencies]
    found = {"verdict": "order found", "advice": "Good.", "dependencies": dependencies}
    details = {**found, "agreement": 1.0}
    result = {
        **evaluation, **found, "order_in_names": ["y1", "y2", "y0"], "strategy": "dependencies",
        "order": [1, 2, 0], "given_order": [0, 1, 2], "order_in_true_indices": [0, 1, 2],
        "cost_ratio": 1.0, "tied_orders": [], "race": raced, "given": given, "success_rate_given_order": 0.056,
        "proposed": {"proposals": proposals, "stages": [stage], "details": details}, "seed": 7,
        "steps": 1000, "run_dir": "runs/known", "constraints": None,
        "seconds": {"propose": 4.0, "race": 5.0, "train": 10.0, "evaluate": 1.0, "total": 20.0},
    }  # fmt: skip
    config = {
        "verb": "discover", "seed": 7, "search": {"restarts": 2},
        "data": {"task": "relu", "length": "3", "samples": {"train": 5000}, "fingerprint": "f"},
        "config": {"race": {"first_rung": 2}},
    }  # fmt: skip
    known = ReportedRun(
        path=Path("runs/known"), state="finished", failure=None, config=config, outcome=None, jobs=[], progress=None,
        starts=[{"command": ["/usr/bin/genorder", "discover", "my data.jsonl"], "versions": {"python": "3.11"}}],
        training_losses={"model": [float(10 - step) for step in range(10)]},
    )  # fmt: skip
    result = changes.pop("result", result)
    return of_result(dataclasses.replace(known, **changes), result)


def of_result(run: ReportedRun, result: dict[str, Any]) -> ReportedRun:
    """The run with the outcome of this result.json; without one for {}."""
    return dataclasses.replace(run, outcome=read_outcome(run.verb, result, run.path) if result else None)


def ranked_run(ranking: list[dict[str, Any]], **more: Any) -> ReportedRun:
    config = {"verb": "rank", **more.pop("config", {})}
    result = {"ranking": ranking, "seconds": {"race": 1.0}, "seed": 7, "run_dir": "runs/known", **more}
    return known_run(config=config, result=result)


def result_of(run: ReportedRun) -> dict[str, Any]:
    """A copy of its result.json."""
    assert run.outcome
    copied: dict[str, Any] = json.loads(json.dumps(run.outcome.to_dict()))
    return copied


def dependency(target: int, inputs: list[int], targets: list[int], **changes: Any) -> dict[str, Any]:
    """Mined, without a counterexample, unless `changes` say otherwise."""
    evidence = {"found_by": "counting", "pairs": 99_639, "violations": 0, "pointer": False, "loss": None}
    return {"target": target, "inputs": inputs, "targets": targets, **evidence, "loss_without": None, **changes}


MINED = [dependency(0, [1], [2]), dependency(1, [0], [], pairs=120_000), dependency(2, [], [1])]
BY_MODEL = dependency(0, [1], [2], found_by="model", pairs=None, violations=None, loss=0.1, loss_without={"y2": 5.0})
UNDETERMINED = dependency(0, [], [], found_by="none", pairs=None, violations=None)


def judged(
    verdict: str | None, advice: str | None = "Do this.", dependencies: list[dict[str, Any]] | None = None, **more: Any
) -> ReportedRun:
    """`known_run` with another verdict; where it names no order, the answer is the given one, as `discover` does it."""
    rows = MINED if dependencies is None else dependencies
    run = known_run()
    found = {"verdict": verdict, "advice": advice, "dependencies": rows}
    if verdict in ("no order preferred", "nothing learnt"):
        given = {"order": [0, 1, 2], "order_in_true_indices": [2, 0, 1], "order_in_names": ["y0", "y1", "y2"]}
        found |= {**given, "cost_ratio": 1.5, "success_rate_given_order": 0.998}
    details = {"verdict": verdict, "advice": advice, "dependencies": rows} if verdict else {}
    return with_result(run, **{**found, "proposed": {**result_of(run)["proposed"], "details": details}, **more})


def of_many_targets(order: list[int], dependencies: list[dict[str, Any]]) -> ReportedRun:
    """`judged`, in this order, without a race and a final training."""
    nothing = {"race": [], "proposed": {"proposals": [], "stages": [], "details": {}}}
    found = {"order": order, "order_in_true_indices": order, "dependencies": dependencies}
    return explored(judged("order found", **found, **nothing))


def explored(run: ReportedRun) -> ReportedRun:
    """The same without a final training."""
    result = {name: value for name, value in result_of(run).items() if not name.startswith(("success", "given_f"))}
    return of_result(run, result)


def of_an_earlier_version(run: ReportedRun) -> ReportedRun:
    """A result without the keys that came with counting: findings in the details only, without their evidence."""
    new = ("verdict", "advice", "dependencies", "order_in_names")
    result = {name: value for name, value in result_of(run).items() if name not in new}
    details = result["proposed"]["details"]
    evidence = ("found_by", "pairs", "violations", "pointer")
    rows = [
        {name: value for name, value in row.items() if name not in evidence} for row in details.get("dependencies", [])
    ]
    proposed = {**result["proposed"], "details": {**details, "dependencies": rows}}
    return of_result(run, {**result, "proposed": proposed})


def with_result(run: ReportedRun, **changes: Any) -> ReportedRun:
    return of_result(run, {**result_of(run), **changes})


def finished_job(name: str, result: dict[str, Any], seconds: float = 2.0) -> FinishedJob:
    return FinishedJob(fingerprint=name, name=name, result=result, seconds=seconds, finished_at="2026-01-01T00:00:00")
