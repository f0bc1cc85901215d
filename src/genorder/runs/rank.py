"""DatasetLike orders, ranked by one short run on their mixture, or by a race: the run of `genorder rank`."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from genorder.data import EncodedDataset, encode_for_exploring
from genorder.errors import InputError
from genorder.execution import StopRequest
from genorder.orders import Order, deduplicated, parse_candidates, read_orders
from genorder.outcomes import RankedOrder, RankOutcome
from genorder.presets import ExplorationConfig
from genorder.profiling import profile_orders
from genorder.profiling.scoring import finite_or_none
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
    spec: RunSpec[RankOutcome]


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
    spec = run_spec(request, source, "rank", described, RankOutcome)
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
) -> RankOutcome:
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
    if run.judge == "mixture":
        outcome = _profile(directory, run, train, validation, report_step, stop)
    else:
        with Race(
            train,
            validation,
            run.config.final,
            run.config.race,
            seed=run.seed,
            folder=directory.checkpoints("race"),
            journal=directory.journal,
            workers=workers,
            on_progress=report_job,
            stop=stop,
        ) as race:
            raced = race.run(run.orders)
            race.forget()
        outcome = RankOutcome(
            ranked=[RankedOrder.of(contestant, len(validation)) for contestant in raced.contestants],
            seconds={"race": raced.seconds},
            unigram_loss=raced.unigram.loss,
            seed=run.seed,
            run_dir=directory.path,
        )
    _write_csv(outcome.ranked, directory.path / "ranking.csv")
    return outcome.with_truth(run.source.true_of_column, run.source.graph)


def _profile(
    directory: RunDirectory,
    run: RankRun,
    train: EncodedDataset,
    validation: EncodedDataset,
    on_progress: Callable[[Progress], None],
    stop: StopRequest | None,
) -> RankOutcome:
    checkpoints = CheckpointFolder(directory.checkpoints("profile"))
    profile = profile_orders(
        train,
        validation,
        run.orders,
        run.config.profiler,
        seed=run.seed,
        folder=checkpoints.path,
        on_progress=on_progress,
        stop=stop,
    )
    checkpoints.delete()
    ranked = [
        RankedOrder(
            order=profile.orders[index],
            loss=finite_or_none(profile.losses[index]),
            standard_error=finite_or_none(profile.errors[index]),
            tied_with_best=bool(profile.tied[index]),
            samples=int(profile.samples[index]),
            curve=[finite_or_none(point[index]) for point in profile.curves],
        )
        for index in profile.ranking.tolist()
    ]
    return RankOutcome(
        ranked=ranked,
        seconds={"train": profile.train_seconds, "score": profile.score_seconds},
        curve_steps=profile.curve_steps,
        seed=run.seed,
        run_dir=directory.path,
    )


def _write_csv(ranked: Sequence[RankedOrder], path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank", "loss", "standard_error", "tied_with_best", "samples", "order"])
    for rank, one in enumerate(ranked, start=1):
        order = " ".join(map(str, one.order))
        writer.writerow([rank, one.loss, one.standard_error, one.tied_with_best, one.samples, order])
    write_bytes_atomic(path, text.getvalue().encode())
