import json
import math
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from profiling_helpers import FORWARD, REVERSE, all_orders, relu_splits

from genorder.errors import InputError, Interrupted
from genorder.execution import StopRequest, map_jobs, using_threads
from genorder.models import GPTConfig
from genorder.orders import Order
from genorder.profiling import RaceConfig, RaceResult, race
from genorder.profiling.race_rules import kept_after_round
from genorder.store import Journal
from genorder.training import TrainingConfig

RACE = import_module("genorder.profiling.race")  # the package has the function under this name
JOBS = import_module("genorder.profiling.race_jobs")
SHORT = RaceConfig(
    model=GPTConfig(layers=1, heads=2, width=16, feedforward=32, dropout=0.1),
    training=TrainingConfig(steps=1, batch_size=32, learning_rate=5e-3, warmup_steps=2),
    round_steps=(8, 16, 24),
    close=0.0,  # the share alone decides
    far=1e9,
)
FIVE = [REVERSE, *all_orders(4)[3:6], FORWARD]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.sqlite") as opened:
        yield opened


def run(
    journal: Journal, orders: list[Order], config: RaceConfig = SHORT, *, length: str = "4", **options: Any
) -> RaceResult:
    train, validation = relu_splits(length)
    settings: dict[str, Any] = {"seed": 0, "workers": 1, **options}
    return race(train, validation, orders, config, folder=journal.path.parent, journal=journal, **settings)


def in_memory(tmp_path: Path, name: str, orders: list[Order], config: RaceConfig = SHORT, **options: Any) -> RaceResult:
    (tmp_path / name).mkdir()
    with Journal(tmp_path / name / "journal.sqlite") as journal:
        return run(journal, orders, config, **options)


def told(result: RaceResult) -> list[dict[str, Any]]:
    return [vars(contestant) for contestant in result.contestants]


def first_comes_first(job: Any) -> list[float]:
    """Losses of 200 samples that rank orders alphabetically, no two of them alike."""
    return [10 + job.order[0] + job.order[1] / 10 + job.order[2] / 100] * 200


def test_forward_wins(journal: Journal) -> None:
    config = RaceConfig(
        model=GPTConfig(layers=1, heads=2, width=32, feedforward=64),
        training=TrainingConfig(steps=1, batch_size=64, learning_rate=5e-3, warmup_steps=10, beta2=0.98),
        round_steps=(80, 160),
    )
    orders = [REVERSE, Order((2, 3, 1, 0)), Order((3, 1, 2, 0)), FORWARD]
    result = run(journal, orders, config)
    assert result.winner == FORWARD
    assert result.tied == [FORWARD]


def test_the_better_half_goes_on(journal: Journal) -> None:
    progress: list[tuple[int, int, int]] = []
    result = run(journal, FIVE, on_job=lambda told: progress.append((told.round, told.done, told.total)))
    assert progress == [(0, n, 5) for n in range(1, 6)] + [(1, n, 3) for n in range(1, 4)] + [(2, 1, 2), (2, 2, 2)]
    assert [c.left_after for c in result.contestants] == [None, None, 1, 0, 0]
    assert [len(c.losses) for c in result.contestants] == [3, 3, 2, 1, 1]
    for contestant in result.contestants:
        assert [len(curve) for curve in contestant.curves] == [8, 16, 24][: len(contestant.losses)]
        assert len(contestant.errors) == len(contestant.losses)
        assert not contestant.diverged
    finals = [c.losses[-1] for c in result.contestants]
    assert finals[0] <= finals[1]
    assert finals[3] <= finals[4]
    # Whoever left a round had lost to all that stayed.
    first = {c.order: c.losses[0] for c in result.contestants}
    assert max(first[c.order] for c in result.contestants[:3]) <= min(c.losses[0] for c in result.contestants[3:])
    assert result.contestants[0].tied_with_best
    assert not any(c.tied_with_best for c in result.contestants[2:])
    assert len(journal.jobs()) == 10


@pytest.mark.parametrize(
    ("share", "orders", "counts"), [(0.5, 8, [8, 4, 2]), (0.5, 3, [3, 2, 0]), (0.1, 9, [9, 0, 0]), (0.9, 3, [3, 3, 3])]
)
def test_survivors(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, share: float, orders: int, counts: list[int]
) -> None:
    def quick(job: Any) -> dict[str, Any]:
        return {"losses": first_comes_first(job), "curve": [], "seconds": 0.0}

    monkeypatch.setattr(RACE, "run_job", quick)
    told: list[int] = []
    config = SHORT.model_copy(update={"kept_share": share})
    result = run(journal, all_orders(4)[:orders], config, on_job=lambda progress: told.append(progress.round))
    assert [told.count(number) for number in range(3)] == counts
    assert [c.order for c in result.contestants] == sorted(all_orders(4)[:orders], key=lambda o: o.indices)


def test_workers_change_nothing(tmp_path: Path) -> None:
    config = SHORT.model_copy(update={"round_steps": (8,), "seeds": 2})
    results = [in_memory(tmp_path, f"{n}", FIVE[:2], config, workers=n) for n in (1, 2)]
    assert told(results[0]) == told(results[1])


@pytest.mark.parametrize(("threads", "cores", "workers"), [(2, 8, 2), (64, 2, 2), (2, 2, 2), (4, 1, 1)])
def test_workers_that_are_not_asked_for(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, threads: int, cores: int, workers: int
) -> None:
    """A run that was begun with many threads may go on where there are few cores."""
    used: list[int] = []

    def noting(*arguments: Any, workers: int, **options: Any) -> Any:
        used.append(workers)
        return map_jobs(*arguments, workers=1, **options)

    monkeypatch.setattr(RACE, "map_jobs", noting)
    monkeypatch.setattr(RACE, "usable_cores", lambda: cores)
    with using_threads(threads):
        run(journal, FIVE[:1], workers=None)
    assert set(used) == {workers}


def test_order_of_the_orders_changes_nothing(tmp_path: Path) -> None:
    assert told(in_memory(tmp_path, "a", FIVE)) == told(in_memory(tmp_path, "b", FIVE[::-1]))


def test_the_seed_matters_and_threads_are_put_back(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    assert told(in_memory(tmp_path, "a", FIVE[:2])) != told(in_memory(tmp_path, "b", FIVE[:2], seed=1))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("jobs", [1, 5, 9])
def test_interrupted_and_continued_gives_the_same(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    done: list[tuple[int, ...]] = []
    original = RACE.run_job

    def counted(job: Any, stop: StopRequest | None = None) -> Any:
        done.append((*job.order, job.steps))
        return original(job)

    monkeypatch.setattr(RACE, "run_job", counted)
    whole = in_memory(tmp_path, "whole", FIVE)
    assert len(done) == 10
    expected, done = done, []
    stop = StopRequest()

    def stop_in_time(progress: Any) -> None:
        stop.requested = len(done) == jobs

    # A stop that is asked for after the last job of a round is heeded before the next one.
    with pytest.raises(Interrupted, match="the same command continues from there"):
        run(journal, FIVE, on_job=stop_in_time, stop=stop)
    assert len(done) == len(journal.jobs()) == jobs
    progress: list[tuple[int, int, int]] = []
    again = run(journal, FIVE, on_job=lambda told: progress.append((told.round, told.done, told.total)))
    assert done == expected
    assert told(again) == told(whole)
    assert progress[0] == (0, 1, 5)
    assert len(progress) == 10
    assert told(run(journal, FIVE)) == told(whole)
    assert len(done) == 10


@pytest.mark.parametrize("moment", [1, 13, 41])
def test_a_training_that_is_interrupted_goes_on_where_it_was(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Two orders of 8, 16 and 24 steps each; the moment is a step of them all."""
    config = SHORT.model_copy(update={"close": 1e9})
    whole = in_memory(tmp_path, "whole", [FORWARD, REVERSE], config)
    stop, steps = StopRequest(), 0
    mean_loss = JOBS.mean_loss

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        stop.requested |= steps == moment
        return mean_loss(*arguments)

    monkeypatch.setattr(JOBS, "mean_loss", counted)
    with pytest.raises(Interrupted, match=r"stopped at step \d+ of \d+"):
        run(journal, [FORWARD, REVERSE], config, stop=stop)
    assert steps == moment
    again = run(journal, [FORWARD, REVERSE], config)
    assert steps == 2 * (8 + 16 + 24)
    assert told(again) == told(whole)
    assert [file.name for file in tmp_path.glob("job-*")] == []


def test_a_worker_that_is_killed_leaves_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job goes on from the last of them: on long rounds, minutes are not lost."""
    train, validation = relu_splits()
    data, digest = JOBS.keep_data(train, validation, tmp_path)
    job = JOBS.RaceJob(data, digest, "cpu", FORWARD.indices, SHORT.model, SHORT.training, 30, 0)
    expected = JOBS.run_job(job)["losses"]
    fit, mean_loss, steps = JOBS.fit, JOBS.mean_loss, 0

    def dying(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 21:
            raise SystemExit
        return mean_loss(*arguments)

    monkeypatch.setattr(JOBS, "fit", partial(fit, checkpoint_seconds=0.0))
    monkeypatch.setattr(JOBS, "mean_loss", dying)
    with pytest.raises(SystemExit):
        JOBS.run_job(job)
    assert JOBS.run_job(job)["losses"] == expected
    assert steps == 21 + 10


def test_other_settings_do_not_find_the_old_jobs(journal: Journal) -> None:
    short = SHORT.model_copy(update={"round_steps": (2,)})
    run(journal, FIVE[:2], short)
    assert len(journal.jobs()) == 2
    run(journal, FIVE[:2], short)
    run(journal, FIVE[:2], short.model_copy(update={"kept_share": 0.7}))  # no part of a job
    assert len(journal.jobs()) == 2
    wider = short.model.model_copy(update={"width": 8})
    run(journal, FIVE[:2], short.model_copy(update={"model": wider}))
    assert len(journal.jobs()) == 4
    run(journal, FIVE[:2], short, length="2-4")
    assert len(journal.jobs()) == 6


def test_every_order_diverges(journal: Journal) -> None:
    training = SHORT.training.model_copy(update={"learning_rate": 1e38})
    result = run(journal, FIVE, SHORT.model_copy(update={"training": training}))
    assert {c.order for c in result.contestants} == set(FIVE)
    assert all(c.diverged and c.losses[-1] == math.inf and c.errors[-1] == math.inf for c in result.contestants)
    assert result.tied == []
    assert all(job.result["losses"] is None and "loss" in job.result["why"] for job in journal.jobs())


@pytest.mark.parametrize("diverging_round", [0, 1, 2])
def test_a_diverged_order_ranks_last(journal: Journal, monkeypatch: pytest.MonkeyPatch, diverging_round: int) -> None:
    """However far it came: what was dropped before with a finite loss is the better choice."""

    def quick(job: Any) -> dict[str, Any]:
        if job.order == FORWARD.indices and job.steps == SHORT.round_steps[diverging_round]:
            return {"losses": None, "curve": [], "why": "the loss became nan", "seconds": 0.0}
        return {
            "losses": [10 + job.order[0] + job.order[1] / 10 + job.order[2] / 100] * 200,
            "curve": [],
            "seconds": 0.0,
        }

    monkeypatch.setattr(RACE, "run_job", quick)
    others = [Order((n, *(i for i in range(4) if i != n))) for n in (1, 2, 3)]
    result = run(journal, [*others, FORWARD], SHORT.model_copy(update={"kept_share": 0.7}))
    last = result.contestants[-1]
    assert last.order == FORWARD
    assert last.diverged
    assert not last.tied_with_best
    assert len(last.losses) == diverging_round + 1
    assert result.winner == others[0]
    assert not any(c.diverged for c in result.contestants[:-1])


def test_a_leader_that_diverges_at_last_is_no_winner(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def quick(job: Any) -> dict[str, Any]:
        if job.steps == SHORT.round_steps[-1] and job.order == FORWARD.indices:
            return {"losses": None, "curve": [], "why": "the loss became nan", "seconds": 0.0}
        return {
            "losses": [10 + job.order[0] + job.order[1] / 10 + job.order[2] / 100] * 200,
            "curve": [],
            "seconds": 0.0,
        }

    monkeypatch.setattr(RACE, "run_job", quick)
    result = run(journal, [FORWARD, REVERSE], SHORT.model_copy(update={"close": 1e9}))
    assert result.winner == REVERSE
    assert [c.diverged for c in result.contestants] == [False, True]


def test_of_those_that_are_learnt_the_soonest_wins(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in a hundred samples may be wrong; the last of them is not learnt, however soon its loss fell."""
    orders = all_orders(4)[:4]
    losses, curves = [0.0001, 0.0002, 0.0003, 0.02], [[1.0, 0.8], [1.0, 0.0], [0.5, 0.52], [0.1, 0.1]]

    def quick(job: Any) -> dict[str, Any]:
        place = orders.index(Order(job.order))
        return {"losses": [losses[place]] * 200, "curve": curves[place], "seconds": 0.0}

    monkeypatch.setattr(RACE, "run_job", quick)
    result = run(journal, orders, SHORT.model_copy(update={"close": 0.05, "round_steps": (8,)}))
    assert [c.order for c in result.contestants] == [orders[place] for place in (1, 2, 0, 3)]
    assert [c.learnt for c in result.contestants] == [True, True, True, False]
    assert result.tied == [orders[1], orders[2]]
    losses[:3] = 0.003, 0.004, 0.005  # of five predictions a sample
    result = run(journal, orders, SHORT.model_copy(update={"round_steps": (9,)}))  # other jobs
    assert [c.order for c in result.contestants] == orders
    assert not any(c.learnt for c in result.contestants)


def test_several_seeds(journal: Journal) -> None:
    config = SHORT.model_copy(update={"round_steps": (8,), "seeds": 3})
    result = run(journal, FIVE[:2], config)
    jobs = journal.jobs()
    assert len(jobs) == 6
    losses = [np.mean(job.result["losses"]) for job in jobs]
    assert len(set(losses)) == 6
    expected = {FIVE[0]: np.mean(losses[:3]), FIVE[1]: np.mean(losses[3:])}
    assert {c.order: c.losses[0] for c in result.contestants} == pytest.approx(expected)


def test_duplicates_run_once(journal: Journal) -> None:
    config = SHORT.model_copy(update={"round_steps": (4,)})
    result = run(journal, [FORWARD, REVERSE, FORWARD, FORWARD], config)
    assert sorted(c.order.indices for c in result.contestants) == [FORWARD.indices, REVERSE.indices]
    assert len(journal.jobs()) == 2


def test_one_order(journal: Journal) -> None:
    result = run(journal, [REVERSE])
    assert result.winner == REVERSE
    assert result.tied == [REVERSE]
    assert len(result.contestants[0].losses) == 1  # nobody to race against


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        ([1.0, 1.01, 1.04, 1.05], [0, 1, 2, 3]),  # nothing learnt yet: all go on
        ([1.0, 1.2, 1.3, 1.4], [0, 1]),  # the better half
        ([1.0, 1.01, 1.04, 1.3], [0, 1, 2]),  # the close ones too
        ([0.2, 1.7, 1.8, 1.9], [0]),  # decided
        ([1.0, 1.4, 1.6, 1.7], [0, 1]),
        ([1.0, 1.6, 1.7, 1.8], [0]),
        ([0.01, 0.05, 0.08, 0.3], [0, 1]),  # nearly zero, all of them: not far apart
        ([1.0, math.inf, math.inf, math.inf], [0]),
        ([math.inf, math.inf], [0, 1]),
        ([1.0], [0]),
    ],
)
def test_who_goes_on(losses: list[float], kept: list[int]) -> None:
    assert kept_after_round(losses, SHORT.model_copy(update={"close": 0.05, "far": 0.5})) == kept


def test_a_race_of_nobody() -> None:
    train, validation = relu_splits("4")
    with pytest.raises(InputError, match="at least one order"):
        race(train, validation, [], SHORT, seed=0, folder=Path(), journal=cast(Journal, None))


def test_variable_length_counts_predictions(journal: Journal) -> None:
    config = SHORT.model_copy(update={"round_steps": (8,)})
    result = run(journal, [FORWARD], config, length="2-4")
    _, validation = relu_splits("2-4")
    predictions = validation.target_lengths_N.numpy() + 1
    assert len(set(predictions.tolist())) == 3
    losses = journal.jobs()[0].result["losses"]
    assert result.contestants[0].losses[0] == pytest.approx(np.average(losses, weights=predictions))


def test_all_orders_see_the_same_batches_and_start_from_the_same_weights(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both follow from a job's seed, which must be that of the repetition, whatever the order or the round."""
    seeds: dict[tuple[int, ...], list[int]] = {}

    def quick(job: Any) -> dict[str, Any]:
        seeds.setdefault((*job.order, job.steps), []).append(job.seed)
        return {
            "losses": [10 + job.order[0] + job.order[1] / 10 + job.order[2] / 100] * 200,
            "curve": [],
            "seconds": 0.0,
        }

    monkeypatch.setattr(RACE, "run_job", quick)
    run(journal, FIVE, SHORT.model_copy(update={"seeds": 2}))
    assert len(seeds) == 10
    first, *others = seeds.values()
    assert len(set(first)) == 2
    assert all(other == first for other in others)


def test_configuration_from_json() -> None:
    assert RaceConfig.model_validate(json.loads(SHORT.model_dump_json())) == SHORT


def test_what_is_told_of_each_job(journal: Journal) -> None:
    config = SHORT.model_copy(update={"seeds": 2})
    progress: list[Any] = []
    result = run(journal, FIVE, config, on_job=progress.append)
    first = [one for one in progress if one.round == 0]
    assert [(one.order, one.repeat) for one in first] == [(order, repeat) for order in FIVE for repeat in (0, 1)]
    for place, one in enumerate(first):
        done = first[: place + 1]
        assert one.best_loss == min(earlier.loss for earlier in done)
        assert one.best in [earlier.order for earlier in done if earlier.loss == one.best_loss]
        assert len(one.curve) == 8
    curves = {contestant.order: contestant.curves[0] for contestant in result.contestants}
    assert all(one.curve == curves[one.order] for one in first if one.repeat == 0)
    assert all(one.seconds_left > 0 for one in progress[:-1])
    assert progress[-1].seconds_left == 0
