"""`genorder rank`: loss-profile given orders."""

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from genorder.cli import options
from genorder.cli.console import ProgressLine, duration, emit_json, progress_line, say, screen
from genorder.cli.reporting import reported
from genorder.cli.source import Source, configure
from genorder.data import EncodedDataset, encode
from genorder.errors import InputError
from genorder.execution import StopRequest, choose_device, describe_machine, set_threads
from genorder.orders import Order, parse_candidates, read_orders
from genorder.presets import ExplorationConfig, family_of, resolve_exploration
from genorder.profiling import profile_orders, race
from genorder.seeding import derive_seed, numpy_generator
from genorder.store import RunDirectory, fingerprint, write_bytes_atomic
from genorder.training import CheckpointFolder, Progress

_SHOWN = 20
JUDGES = ("mixture", "race")


def rank(
    data: options.Data = None,
    task: options.Task = None,
    length: options.Length = None,
    hidden_order_seed: options.HiddenByDefault = None,
    candidates: Annotated[
        str | None,
        typer.Option(help="Sets of orders, e.g. random:128,forward; also reverse, sort:N, block:N, topo:N."),
    ] = None,
    orders: Annotated[Path | None, typer.Option(help="JSON file with a list of orders.")] = None,
    judge: Annotated[
        str,
        typer.Option(help="mixture: one short run on all orders; race: a short run for each, halved by loss."),
    ] = "mixture",
    exact: Annotated[
        bool | None, typer.Option(help="Score all orders on all samples, or drop the surely worse early.")
    ] = None,
    workers: options.Workers = None,
    preset: options.Preset = "cpu",
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    threads: options.Threads = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Rank orders by the early loss of one short run on their mixture, or of a short run for each.

    Example: genorder rank --task relu --length 30 --candidates random:128,forward
    """
    if judge not in JUDGES:
        raise InputError(f"--judge {judge!r}: expected {' or '.join(JUDGES)}")
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
        "judge": judge,
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
    with (
        RunDirectory.open(path, described, command=sys.argv, environment=describe_machine()) as directory,
        reported(directory),
    ):
        result = directory.read_result()
        if result is None:
            say(f"{source.label}: {len(ranked)} orders; run directory {directory.path}")
            encoded = [
                encode(split, input_width=source.splits.input_width, target_width=source.length).to(chosen)
                for split in (source.splits.train, source.splits.validation)
            ]
            with StopRequest() as stop, progress_line() as line:
                work = _Work(encoded[0], encoded[1], ranked, resolved, seed, source, directory, line, stop)
                result = work.profile() if judge == "mixture" else work.race(workers)
            directory.write_result(result)
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


@dataclass(frozen=True)
class _Work:
    train: EncodedDataset
    validation: EncodedDataset
    orders: list[Order]
    config: ExplorationConfig
    seed: int
    source: Source
    directory: RunDirectory
    line: ProgressLine
    stop: StopRequest

    def profile(self) -> dict[str, Any]:
        checkpoints = CheckpointFolder(self.directory.checkpoints("profile"))
        profile = profile_orders(
            self.train,
            self.validation,
            self.orders,
            self.config.profiler,
            seed=self.seed,
            folder=checkpoints.path,
            on_progress=self._on_step,
            stop=self.stop,
        )
        saved = profile.to_dict()
        ranking = [
            {
                **self.source.about_order(profile.orders[index]),
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
        result = self._result(ranking, {"train": profile.train_seconds, "score": profile.score_seconds})
        checkpoints.delete()
        return {**result, "curve_steps": profile.curve_steps}

    def race(self, workers: int | None) -> dict[str, Any]:
        raced = race(
            self.train,
            self.validation,
            self.orders,
            self.config.race,
            seed=self.seed,
            folder=self.directory.checkpoints("race"),
            journal=self.directory.journal,
            workers=workers,
            on_job=self._on_job,
            stop=self.stop,
        )
        ranking = [
            {
                **self.source.about_order(Order(tuple(row["order"]))),
                "rank": place,
                "loss": row["losses"][-1],
                "standard_error": row["standard_errors"][-1],
                "tied_with_best": row["tied_with_best"],
                "samples": len(self.validation),
                "losses": row["losses"],
                "left_after_round": row["left_after_round"],
                "curves": row["curves"],
                "finite": not row["diverged"],
            }
            for place, row in enumerate(raced.to_dict(), start=1)
        ]
        return {**self._result(ranking, {"race": raced.seconds}), "round_steps": list(self.config.race.round_steps)}

    def _on_step(self, progress: Progress) -> None:
        self.line.training("profiling", progress)
        self.directory.write_progress({"stage": "profile", **vars(progress)})

    def _on_job(self, round_number: int, done: int, total: int) -> None:
        self.line.jobs(f"race, round {round_number + 1}", done, total)
        self.directory.write_progress({"stage": "race", "round": round_number + 1, "jobs": done, "of": total})

    def _result(self, ranking: list[dict[str, Any]], seconds: dict[str, float]) -> dict[str, Any]:
        _write_csv(ranking, self.directory.path / "ranking.csv")
        return {"ranking": ranking, "seconds": seconds, "seed": self.seed, "run_dir": str(self.directory.path)}


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
    say("time: " + ", ".join(f"{name} {duration(seconds)}" for name, seconds in result["seconds"].items()))
    say(f"all of them in {Path(result['run_dir']) / 'ranking.csv'}")
