"""DatasetLike orders, ranked by one short run on their mixture, or by a race: the run of `genorder rank`."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import EncodedDataset, encode_for_exploring
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.orders import Order, deduplicated, parse_candidates, read_orders
from genorder.presets import ExplorationConfig
from genorder.profiling import profile_orders
from genorder.race import Race, RaceProgress
from genorder.runs.request import OrderLike, RunRequest, order_of_length
from genorder.runs.session import RunSpec, race_status, run_spec
from genorder.runs.source import Source, resolve_request
from genorder.seeding import derive_seed, numpy_generator
from genorder.settings import resolve_exploration
from genorder.store import RunDirectory, fingerprint, write_bytes_atomic
from genorder.training import CheckpointFolder, Progress

JUDGES = ("mixture", "race")


@final
@dataclass(frozen=True, eq=False)
class RankRun:
    config: ExplorationConfig
    source: Source
    orders: list[Order]
    judge: str
    seed: int
    device: torch.device
    spec: RunSpec


def plan_rank(
    request: RunRequest, orders: Iterable[OrderLike] | str | Path, *, judge: str = "mixture", exact: bool | None = None
) -> RankRun:
    """The orders are a list, the Path of a JSON file, or the names of candidate sets such as `random:128,forward`.

    `exact` says whether every order is scored on every sample, or clearly worse ones are dropped early. Raises
    InputError for what cannot be run.
    """
    if judge not in JUDGES:
        raise InputError(f"--judge {judge!r}: expected {' or '.join(JUDGES)}")
    request = request.with_settings(*([] if exact is None else [f"profiler.exact={str(exact).lower()}"]))
    config, source = resolve_request(request, resolve_exploration)
    found = _orders(orders, source, request.seed)
    described = {
        "verb": "rank",
        "judge": judge,
        "orders": fingerprint([list(order) for order in found]),
        "candidates": len(found),
        "config": config.model_dump(),
    }
    spec = run_spec(request, source, "rank", described)
    return RankRun(config, source, found, judge, request.seed, request.machine.device, spec)


def _orders(orders: Iterable[OrderLike] | str | Path, source: Source, seed: int) -> list[Order]:
    if isinstance(orders, Path):
        return read_orders(orders, source.length)
    if isinstance(orders, str):
        rng = numpy_generator(derive_seed(seed, "candidates"))
        return parse_candidates(orders, source.candidate_source(), rng)
    found = deduplicated(order_of_length(order, source.length) for order in orders)
    if not found:
        raise InputError("there are no orders to rank")
    return found


def run_rank(
    directory: RunDirectory,
    run: RankRun,
    *,
    workers: int | None = None,
    on_step: Callable[[Progress], None] | None = None,
    on_job: Callable[[RaceProgress], None] | None = None,
    stop: StopRequest | None = None,
) -> dict[str, Any]:
    """`on_step` gets the progress of the mixture run, `on_job` that of the race."""

    def report_step(progress: Progress) -> None:
        if on_step:
            on_step(progress)
        directory.write_progress({"stage": "profile", **vars(progress)})

    def report_job(progress: RaceProgress) -> None:
        if on_job:
            on_job(progress)
        directory.write_progress(race_status(progress))

    train, validation = encode_for_exploring(run.source.splits, run.device)
    work = _Work(run, train, validation, directory, stop)
    result = work.profile(report_step) if run.judge == "mixture" else work.race(workers, report_job)
    _write_csv(result["ranking"], directory.path / "ranking.csv")
    return {**result, "seed": run.seed, "run_dir": str(directory.path)}


@dataclass(frozen=True)
class _Work:
    run: RankRun
    train: EncodedDataset
    validation: EncodedDataset
    directory: RunDirectory
    stop: StopRequest | None

    def profile(self, on_step: Callable[[Progress], None]) -> dict[str, Any]:
        checkpoints = CheckpointFolder(self.directory.checkpoints("profile"))
        profile = profile_orders(
            self.train,
            self.validation,
            self.run.orders,
            self.run.config.profiler,
            seed=self.run.seed,
            folder=checkpoints.path,
            on_progress=on_step,
            stop=self.stop,
        )
        saved = profile.to_dict()
        ranking = [
            {
                **self.run.source.about_order(profile.orders[index]),
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
        checkpoints.delete()
        seconds = {"train": profile.train_seconds, "score": profile.score_seconds}
        return {"ranking": ranking, "seconds": seconds, "curve_steps": profile.curve_steps}

    def race(self, workers: int | None, on_job: Callable[[RaceProgress], None]) -> dict[str, Any]:
        with Race(
            self.train,
            self.validation,
            self.run.config.final,
            self.run.config.race,
            seed=self.run.seed,
            folder=self.directory.checkpoints("race"),
            journal=self.directory.journal,
            workers=workers,
            on_progress=on_job,
            stop=self.stop,
        ) as race:
            raced = race.run(self.run.orders)
            race.forget()
        ranking = [
            {
                **self.run.source.about_order(Order(tuple(row["order"]))),
                "rank": place,
                "loss": row["losses"][-1],
                "standard_error": row["standard_errors"][-1],
                "tied_with_best": row["tied_with_best"],
                "samples": len(self.validation),
                "losses": row["losses"],
                "steps": row["steps"],
                "left_after_rung": row["left_after_rung"],
                "curves": row["curves"],
                "finite": not row["diverged"],
            }
            for place, row in enumerate((one.to_dict() for one in raced.contestants), start=1)
        ]
        return {"ranking": ranking, "seconds": {"race": raced.seconds}, "unigram_loss": raced.unigram.loss}


def _write_csv(ranking: list[dict[str, Any]], path: Path) -> None:
    text = io.StringIO()
    columns = ["rank", "loss", "standard_error", "tied_with_best", "samples", "order"]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in ranking:
        writer.writerow({**row, "order": " ".join(map(str, row["order"]))})
    write_bytes_atomic(path, text.getvalue().encode())
