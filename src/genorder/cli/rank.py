"""`genorder rank`: loss-profile given orders."""

import csv
import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from genorder.cli import options
from genorder.cli.console import duration, emit_json, say, screen, training_progress
from genorder.cli.source import Source, configure
from genorder.data import encode
from genorder.errors import InputError
from genorder.execution import StopRequest, choose_device, describe_machine, set_threads
from genorder.orders import Order, parse_candidates, read_orders
from genorder.presets import ExplorationConfig, family_of, resolve_exploration
from genorder.profiling import Profile, profile_orders
from genorder.seeding import derive_seed, numpy_generator
from genorder.store import RunDirectory, fingerprint, write_bytes_atomic
from genorder.training import CheckpointFolder, Progress

_SHOWN = 20


def rank(
    data: options.Data = None,
    task: options.Task = None,
    length: options.Length = None,
    hidden_order_seed: Annotated[
        int | None, typer.Option(help="Seed of the secret order that a task's target columns are stored in; default 0.")
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(help="Sets of orders, e.g. random:128,forward; also reverse, sort:N, block:N, topo:N."),
    ] = None,
    orders: Annotated[Path | None, typer.Option(help="JSON file with a list of orders.")] = None,
    exact: Annotated[
        bool | None, typer.Option("--exact/--race", help="Score all on all samples, or drop the surely worse early.")
    ] = None,
    preset: options.Preset = "cpu",
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    threads: options.Threads = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; the same command continues in it.")] = None,
    json: options.Json = False,
) -> None:
    """Rank orders by the early loss of one short run on their mixture.

    Example: genorder rank --task relu --length 30 --candidates random:128,forward
    """
    chosen = choose_device(device)
    used_threads = set_threads(threads)
    changes = [*(settings or []), *([] if exact is None else [f"profiler.exact={str(exact).lower()}"])]
    hidden = 0 if task is not None and hidden_order_seed is None else hidden_order_seed

    def configured(train_samples: int | None) -> ExplorationConfig:
        family = family_of(task)
        return resolve_exploration(preset, family, train_samples=train_samples, config_file=config, settings=changes)

    resolved, source = configure(configured, data, task, length, hidden)
    ranked = _candidates(candidates, orders, source, seed)
    described = {
        "verb": "rank",
        "data": source.description,
        "orders": fingerprint([list(order) for order in ranked]),
        "candidates": len(ranked),
        "preset": preset,
        "config": resolved.model_dump(),
        "seed": seed,
        "device": chosen.type,
        "threads": used_threads,
    }
    asked = fingerprint({**described, "device": device, "threads": threads})
    path = out or Path("runs") / f"rank-{source.label}-{asked[:8]}"
    with RunDirectory.open(path, described, command=sys.argv, environment=describe_machine()) as directory:
        result = directory.read_result()
        if result is None:
            steps = resolved.profiler.training.steps
            say(f"{source.label}: {len(ranked)} orders, one run of {steps} steps; run directory {directory.path}")
            encoded = [
                encode(split, input_width=source.splits.input_width, target_width=source.length).to(chosen)
                for split in (source.splits.train, source.splits.validation)
            ]
            checkpoints = CheckpointFolder(directory.checkpoints("profile"))
            with StopRequest() as stop, training_progress("profiling", steps) as show:

                def on_progress(progress: Progress) -> None:
                    show(progress)
                    directory.write_progress({"stage": "profile", **vars(progress)})

                profile = profile_orders(
                    encoded[0],
                    encoded[1],
                    ranked,
                    resolved.profiler,
                    seed=seed,
                    folder=checkpoints.path,
                    on_progress=on_progress,
                    stop=stop,
                )
            result = _result(profile, source, seed, directory)
            checkpoints.delete()
        else:
            say(f"{path} holds the finished run of this command; showing its result")
    if json:
        emit_json(result)
    else:
        _show(result)


def _candidates(named: str | None, file: Path | None, source: Source, seed: int) -> list[Order]:
    if (named is None) == (file is None):
        raise InputError("give --candidates, such as random:128,forward, or --orders FILE, one of the two")
    if file is not None:
        return read_orders(file, source.length)
    assert named is not None
    rng = numpy_generator(derive_seed(seed, "candidates"))
    return parse_candidates(named, source.candidate_source(), rng)


def _result(profile: Profile, source: Source, seed: int, directory: RunDirectory) -> dict[str, Any]:
    saved = profile.to_dict()
    ranking = [
        {
            **source.about_order(profile.orders[index]),
            "rank": place,
            "loss": saved["losses"][index],
            "standard_error": saved["errors"][index],
            "tied_with_best": saved["tied"][index],
            "samples": saved["samples"][index],
            "curve": [point[index] for point in saved["curves"]],
            "finite": saved["losses"][index] is not None,
        }
        for place, index in enumerate(profile.ranking.tolist(), start=1)
    ]
    result = {
        "ranking": ranking,
        "curve_steps": profile.curve_steps,
        "seconds": {"train": profile.train_seconds, "score": profile.score_seconds},
        "seed": seed,
        "run_dir": str(directory.path),
    }
    _write_csv(ranking, directory.path / "ranking.csv")
    directory.write_result(result)
    return result


def _write_csv(ranking: list[dict[str, Any]], path: Path) -> None:
    text = io.StringIO()
    columns = ["rank", "loss", "standard_error", "tied_with_best", "samples", "order"]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in ranking:
        writer.writerow({**row, "order": " ".join(map(str, row["order"]))})
    write_bytes_atomic(path, text.getvalue().encode())


def _show(result: dict[str, Any]) -> None:
    ranking = result["ranking"]
    known = "order_in_true_indices" in ranking[0]
    table = Table("rank", "loss", "± error", "", "true order" if known else "order", box=None)
    for row in ranking[:_SHOWN]:
        loss = "not finite" if row["loss"] is None else f"{row['loss']:.4f}"
        error = "" if row["standard_error"] is None else f"{row['standard_error']:.4f}"
        order = Order(tuple(row["order_in_true_indices" if known else "order"])).short()
        mark = "tied" if row["tied_with_best"] and row["rank"] > 1 else ""
        table.add_row(str(row["rank"]), loss, error, mark, order if len(order) <= 70 else f"{order[:67]}...")
    type(screen)(soft_wrap=False).print(table)
    if len(ranking) > _SHOWN:
        say(f"and {len(ranking) - _SHOWN} more")
    seconds = result["seconds"]
    say(f"trained in {duration(seconds['train'])}, scored in {duration(seconds['score'])}")
    say(f"all of them in {Path(result['run_dir']) / 'ranking.csv'}")
