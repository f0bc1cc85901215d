"""Whole races: which order wins, which are dropped, the end, workers, interruption and resuming."""

import math
import shutil
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from profiling_helpers import FORWARD, REVERSE, all_orders, random_data, relu_splits
from torch import Tensor

from genorder.data import EncodedDataset
from genorder.errors import InputError, Interrupted
from genorder.execution import StopRequest, using_threads
from genorder.models import GPT, GPTConfig
from genorder.orders import Order
from genorder.outcomes import RankedOrder
from genorder.profiling.unigram import unigram_loss
from genorder.race import AT_ONCE, Contestant, Race, RaceConfig, RaceProgress, RaceResult, Recipe
from genorder.race.jobs import JobResult
from genorder.race.rules import Outcome, rung_ends
from genorder.store import Journal
from genorder.training import TrainingConfig

RACE = import_module("genorder.race.race")
JOBS = import_module("genorder.race.jobs")
SHORT = Recipe(
    model=GPTConfig(layers=1, heads=2, width=16, feedforward=32, dropout=0.1),
    training=TrainingConfig(steps=20, batch_size=32, learning_rate=5e-3, warmup_steps=2),
)
RUNGS = RaceConfig(first_rung=4, growth=1.5, patience=2)
ENDS = [4, 6, 9, 14, 16]
FIVE = [REVERSE, *all_orders(4)[3:6], FORWARD]


def race_in(journal: Journal, config: RaceConfig = RUNGS, *, recipe: Recipe = SHORT, **options: Any) -> Race:
    given: dict[str, Any] = {"seed": 0, "workers": 1, "folder": journal.path.parent / "race", **options}
    train, validation = given.pop("data", None) or relu_splits()
    return Race(train, validation, recipe, config, journal=journal, **given)


def run(journal: Journal, orders: Sequence[Order], config: RaceConfig = RUNGS, **options: Any) -> RaceResult:
    running = {name: options.pop(name) for name in ("baselines", "to_the_end", "rungs_end") if name in options}
    with race_in(journal, config, **options) as race:
        return race.run(orders, **running)


def elsewhere(path: Path, orders: Sequence[Order], config: RaceConfig = RUNGS, **options: Any) -> RaceResult:
    path.mkdir()
    with Journal(path / "journal.sqlite") as journal:
        return run(journal, orders, config, **options)


def rows_of(result: RaceResult) -> list[dict[str, Any]]:
    return [RankedOrder.of(contestant).race_row() for contestant in result.contestants]


def losses_of(contestants: Sequence[Contestant]) -> list[NDArray[np.float64]]:
    return [rung.losses_SN for contestant in contestants for rung in contestant.rungs]


def same(one: RaceResult, other: RaceResult) -> bool:
    """Bit for bit."""
    pairs = zip(losses_of(one.contestants), losses_of(other.contestants), strict=True)
    return (rows_of(one), one.ended) == (rows_of(other), other.ended) and all(np.array_equal(*pair) for pair in pairs)


def same_weights(one: GPT, other: GPT) -> bool:
    weights: list[dict[str, Tensor]] = [model.state_dict() for model in (one, other)]
    return all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


Answer = Callable[[Any], float | None]  # the loss of a job; None: it diverges


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Replaces trainings by made-up losses, all samples with the same noise. Returns the list of jobs, which grows."""

    def install(loss_of: Answer, success_of: Callable[[Any], float] = lambda job: 0.0) -> list[Any]:
        noise_N = np.random.default_rng(0).normal(0.0, 0.1, 200)
        noise_N -= noise_N.mean()
        jobs: list[Any] = []

        def quick(job: Any, *, report: Any, stop: StopRequest | None) -> JobResult:
            jobs.append(job)
            loss, steps = loss_of(job), job.recipe.training.steps
            if loss is None:
                return JobResult(steps, 0.0, [], None, [], failure="the loss became nan")
            exact_N = np.arange(200) < 200 * success_of(job)
            losses_N = loss + noise_N
            curve = [loss] * (steps - job.begin)
            return JobResult(steps, float(steps), curve, losses_N.tolist(), exact_N.tolist())

        monkeypatch.setattr(RACE, "run_job", quick)
        return jobs

    return install


def steps_of(job: Any) -> int:
    steps: int = job.recipe.training.steps
    return steps


def behind_forward(distance: float, from_step: int = 0) -> Answer:
    """Order FORWARD reads 0.5, any other more by the distance, from a step on; nothing is learnt before."""

    def loss_of(job: Any) -> float:
        if steps_of(job) < from_step:
            return 5.0
        return 0.5 if job.order == FORWARD.indices else 0.5 + distance

    return loss_of


LEARNING = Recipe(
    model=GPTConfig(layers=1, heads=2, width=32, feedforward=64),
    training=TrainingConfig(steps=250, batch_size=64, learning_rate=5e-3, warmup_steps=10, beta2=0.98),
)


def test_forward_wins(journal: Journal) -> None:
    orders = [REVERSE, Order((2, 3, 1, 0)), Order((3, 1, 2, 0)), FORWARD]
    result = run(journal, orders, RaceConfig(first_rung=60), recipe=LEARNING)
    assert result.winner == FORWARD
    assert result.tied == [FORWARD]
    assert result.beats_baseline
    assert result.separates(FORWARD, REVERSE)
    assert not result.separates(REVERSE, FORWARD)
    assert not result.of(REVERSE).tied_with_best


def random_targets(samples: int, seed: int) -> EncodedDataset:
    drawn = random_data(samples, tokens=7, seed=seed)
    targets_NL = torch.from_numpy(np.random.default_rng(seed).integers(3, 10, drawn.targets_NL.shape))
    return EncodedDataset(drawn.inputs_NW, targets_NL, drawn.target_lengths_N, drawn.model_vocabulary)


def test_on_random_targets_no_order_is_dropped_or_wins(journal: Journal) -> None:
    data = random_targets(2000, 0), random_targets(200, 1)
    orders = [FORWARD, REVERSE, Order((2, 0, 3, 1))]
    result = run(journal, orders, RaceConfig(first_rung=30), recipe=LEARNING, data=data)
    assert not result.beats_baseline
    assert all(one.dropped_after is None for one in result.contestants)
    assert result.ended == "steps spent"
    assert {len(one.rungs) for one in result.contestants} == {len(rung_ends(RaceConfig(first_rung=30), 250))}
    assert result.unigram.loss == pytest.approx(np.log(7), rel=0.01)


def test_the_baseline_of_a_race_is_the_unigram_loss(journal: Journal) -> None:
    for length in ("4", "2-4"):
        with race_in(journal, data=relu_splits(length)) as race:
            assert race.run([FORWARD], rungs_end=[1]).unigram.loss == pytest.approx(unigram_loss(*relu_splits(length)))


def test_trainings_go_on_from_rung_to_rung(tmp_path: Path, journal: Journal) -> None:
    result = run(journal, FIVE[:2])
    for contestant in result.contestants:
        assert [rung.steps for rung in contestant.rungs] == ENDS
        assert [len(curve) for curve in contestant.curves] == [4, 2, 3, 5, 2]
        (whole,) = elsewhere(tmp_path / contestant.order.short(), [contestant.order], rungs_end=[16]).contestants
        assert [loss for curve in contestant.curves for loss in curve] == whole.curves[0]
        assert np.array_equal(contestant.rungs[-1].losses_SN, whole.rungs[0].losses_SN)


def test_orders_far_behind_are_dropped_and_the_last_one_ends_the_race(
    journal: Journal, answering: Callable[..., list[Any]]
) -> None:
    jobs = answering(behind_forward(0.5, from_step=6))
    result = run(journal, FIVE)
    assert [(steps_of(job), job.begin) for job in jobs] == [(4, 0)] * 5 + [(6, 4)] * 5
    assert result.ended == "decided"
    assert [one.dropped_after for one in result.contestants] == [None, 1, 1, 1, 1]
    assert result.tied == [FORWARD]


def test_the_winner_goes_on_to_the_end_and_the_baseline_beside_it(
    journal: Journal, answering: Callable[..., list[Any]]
) -> None:
    jobs = answering(behind_forward(0.5, from_step=6))
    result = run(journal, FIVE, baselines=[REVERSE], to_the_end=True)
    assert result.ended == "steps spent"
    assert [steps_of(job) for job in jobs] == [4] * 5 + [6] * 5 + [end for end in ENDS[2:] for _ in range(2)]
    assert [one.order for one in result.contestants[:2]] == [FORWARD, REVERSE]
    assert [len(one.rungs) for one in result.contestants] == [5, 5, 2, 2, 2]
    assert result.of(REVERSE).dropped_after == 1
    assert result.tied == [FORWARD]


def test_a_baseline_that_is_no_contestant_cannot_win(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    answering(behind_forward(0.5))
    result = run(journal, [REVERSE], baselines=[FORWARD], to_the_end=True)
    assert result.winner == REVERSE
    assert result.of(FORWARD).dropped_after is None
    assert result.tied == [REVERSE]


def test_an_order_within_the_margin_stays(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    """Though significantly behind; it is no tie, then."""
    answering(behind_forward(0.05))
    result = run(journal, [REVERSE, FORWARD])
    assert result.ended == "steps spent"
    assert [one.dropped_after for one in result.contestants] == [None, None]
    assert result.tied == [FORWARD]
    assert result.separates(FORWARD, REVERSE)


def test_a_race_ends_once_an_order_is_solved(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    def success_of(job: Any) -> float:
        return 0.99 if steps_of(job) >= 9 and job.order == FORWARD.indices else 0.98

    answering(behind_forward(0.05), success_of)
    result = run(journal, [REVERSE, FORWARD], to_the_end=True)
    assert result.ended == "solved"
    assert [RankedOrder.of(one).race_row()["steps"] for one in result.contestants] == [[4, 6, 9]] * 2
    assert RankedOrder.of(result.of(FORWARD)).race_row()["success_rates"] == [0.98, 0.98, 0.99]


def test_of_orders_that_are_solved_the_sooner_wins(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other's loss is lower, for it has trained longer."""

    def quick(job: Any, *, report: Any, stop: StopRequest | None) -> JobResult:
        steps = 3 if job.order == REVERSE.indices else 4
        loss = 0.02 if steps == 3 else 0.01
        return JobResult(steps, 0.0, [1.0] * steps, [loss] * 200, [True] * 200)

    monkeypatch.setattr(RACE, "run_job", quick)
    result = run(journal, [FORWARD, REVERSE])
    assert (result.ended, result.winner) == ("solved", REVERSE)


def test_a_race_ends_when_nothing_improves(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    answering(behind_forward(0.05))
    config = RUNGS.model_copy(update={"patience": 1, "patient_steps": 9})
    result = run(journal, [REVERSE, FORWARD], config)
    assert result.ended == "converged"
    assert [len(one.rungs) for one in result.contestants] == [3, 3]


@pytest.mark.parametrize(
    ("losses", "improving", "overfits"),
    [
        ((1.0, 0.9, 0.8, 0.7, 0.6), True, False),
        ((1.0, 0.9, 0.8, 0.7, 0.7), False, False),
        ((1.0, 0.9, 0.5, 0.6, 0.7), False, True),
        ((1.0, 0.9, 0.4, 0.6, 0.5), True, True),
        ((0.5, 0.5, 0.5, 0.5, 0.5), False, False),
    ],
)
def test_how_the_best_was_doing_at_the_end(
    journal: Journal,
    answering: Callable[..., list[Any]],
    losses: tuple[float, ...],
    improving: bool,
    overfits: bool,
) -> None:
    answering(lambda job: losses[ENDS.index(steps_of(job))])
    result = run(journal, [FORWARD], to_the_end=True)
    assert (result.still_improving, result.overfits) == (improving, overfits)


def test_one_order(journal: Journal) -> None:
    result = run(journal, [REVERSE])
    assert (result.winner, result.tied, result.ended) == (REVERSE, [REVERSE], "decided")
    assert len(result.contestants[0].rungs) == 1  # there is no other order
    assert not result.still_improving
    assert not result.overfits


def test_duplicates_run_once(journal: Journal) -> None:
    result = run(journal, [FORWARD, REVERSE, FORWARD, FORWARD], baselines=[FORWARD], rungs_end=[2])
    assert sorted(one.order.indices for one in result.contestants) == [FORWARD.indices, REVERSE.indices]
    assert len(journal.jobs()) == 2


def test_a_race_without_orders(journal: Journal) -> None:
    with race_in(journal) as race, pytest.raises(InputError, match="at least one order"):
        race.run([])


def test_every_order_diverges(journal: Journal) -> None:
    training = SHORT.training.model_copy(update={"learning_rate": 1e38})
    result = run(journal, FIVE, recipe=Recipe(model=SHORT.model, training=training))
    assert {one.order for one in result.contestants} == set(FIVE)
    assert all(one.diverged and one.loss == math.inf for one in result.contestants)
    assert not result.beats_baseline
    assert result.ended == "diverged"
    assert not result.overfits
    assert rows_of(result)[0]["losses"] == rows_of(result)[0]["standard_errors"] == [None]
    assert all(job.result["losses"] is None and "why" in job.result for job in journal.jobs())


@pytest.mark.parametrize("diverging", ENDS)
def test_an_order_that_diverges_ranks_last(
    journal: Journal, answering: Callable[..., list[Any]], diverging: int
) -> None:
    """However far it came, and though it led until then."""
    near = behind_forward(0.05)
    answering(lambda job: None if job.order == FORWARD.indices and steps_of(job) == diverging else near(job))
    result = run(journal, FIVE)
    last = result.contestants[-1]
    assert (last.order, last.diverged, last.tied_with_best) == (FORWARD, True, False)
    assert last.dropped_after == len(last.rungs) - 1 == ENDS.index(diverging)
    assert not any(one.diverged for one in result.contestants[:-1])
    assert result.beats_baseline


def test_an_order_that_trained_along_does_not_win_where_the_last_one_diverges(
    journal: Journal, answering: Callable[..., list[Any]]
) -> None:
    """The one that was dropped last does: it is the best of those that can win."""
    answering(lambda job: 0.1 if job.order == REVERSE.indices else 0.9 if job.order != FORWARD.indices
              else None if steps_of(job) > 4 else 0.01)  # fmt: skip
    other = FIVE[1]
    result = run(journal, [FORWARD, other], baselines=[REVERSE], to_the_end=True)
    assert (result.ended, result.winner) == ("diverged", other)
    assert [one.order for one in result.contestants if one.is_baseline] == [REVERSE]


def test_a_baseline_that_diverged_trains_no_more(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    jobs = answering(lambda job: None if job.order == REVERSE.indices else 0.5)
    run(journal, [FORWARD], baselines=[REVERSE], to_the_end=True)
    assert [steps_of(job) for job in jobs if job.order == REVERSE.indices] == [4]
    assert [steps_of(job) for job in jobs if job.order == FORWARD.indices] == ENDS


def test_workers_change_nothing(tmp_path: Path) -> None:
    results = [elsewhere(tmp_path / f"{n}", FIVE[:3], workers=n, rungs_end=[4, 6]) for n in (1, 2)]
    assert same(*results)


@pytest.mark.parametrize(("threads", "workers", "each"), [(1, 1, 1), (2, 2, 1), (3, 2, 1), (8, 2, 4)])
def test_workers_that_are_not_asked_for(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, threads: int, workers: int, each: int
) -> None:
    used: list[tuple[int, int]] = []
    original = RACE.Workers
    monkeypatch.setattr(RACE, "Workers", lambda *given: used.append(given) or original(1, 1))
    with using_threads(threads):
        race_in(journal, workers=None)
        race_in(journal, workers=5)
    assert used == [(workers, each), (5, each)]
    assert AT_ONCE == 2


def test_the_sequence_of_the_orders_changes_nothing(tmp_path: Path) -> None:
    results = [elsewhere(tmp_path / name, orders) for name, orders in (("a", FIVE[:3]), ("b", FIVE[:3][::-1]))]
    assert same(*results)


def test_the_seed_matters(tmp_path: Path) -> None:
    results = [elsewhere(tmp_path / f"{seed}", FIVE[:2], seed=seed, rungs_end=[4]) for seed in (0, 1)]
    assert not same(*results)


@pytest.mark.parametrize("jobs", [1, 3, 4, 14])
def test_stopped_between_trainings_and_continued_gives_the_same(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Three orders of five rungs: fifteen jobs."""
    done: list[tuple[int, ...]] = []
    original = RACE.run_job

    def counted(job: Any, **options: Any) -> Any:
        result = original(job, **options)
        done.append((*job.order, steps_of(job)))
        return result

    monkeypatch.setattr(RACE, "run_job", counted)
    whole = elsewhere(tmp_path / "whole", FIVE[:3])
    assert len(done) == 15
    expected, done = done, []
    stop = StopRequest()

    def stop_in_time(progress: RaceProgress) -> None:
        stop.requested = len(done) == jobs

    # A stop request after the last job of a rung takes effect before the next rung.
    with pytest.raises(Interrupted, match="the same command continues from there"):
        run(journal, FIVE[:3], on_progress=stop_in_time, stop=stop)
    assert len(done) == len(journal.jobs()) == jobs
    again = run(journal, FIVE[:3])
    assert done == expected
    assert same(again, whole)
    assert same(run(journal, FIVE[:3]), whole)
    assert len(done) == 15


@pytest.mark.parametrize("moment", [1, 5, 17])
def test_stopped_within_a_training_and_continued_gives_the_same(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """The moment is a step of them all; two orders of 16 steps each."""
    whole = elsewhere(tmp_path / "whole", [FORWARD, REVERSE])
    stop, steps = StopRequest(), 0
    mean_loss = JOBS.mean_loss

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        stop.requested |= steps == moment
        return mean_loss(*arguments)

    monkeypatch.setattr(JOBS, "mean_loss", counted)
    with pytest.raises(Interrupted, match=r"stopped at step \d+ of \d+"):
        run(journal, [FORWARD, REVERSE], stop=stop)
    assert steps == moment
    again = run(journal, [FORWARD, REVERSE])
    assert steps == 2 * ENDS[-1]
    assert same(again, whole)


@pytest.mark.parametrize("kept", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_killed_with_a_part_of_its_journal_it_gives_the_same(
    tmp_path: Path, journal: Journal, kept: int, checkpoints: bool
) -> None:
    """The checkpoints may be ahead of the journal by one rung, or be lost."""
    whole = elsewhere(tmp_path / "whole", [FORWARD, REVERSE])
    recorded = 0
    record = journal.record

    class Killed(BaseException): ...

    def dying(*arguments: Any) -> None:
        nonlocal recorded
        if recorded == kept:
            raise Killed
        recorded += 1
        record(*arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Journal, "record", lambda _, *arguments: dying(*arguments))
        with pytest.raises(Killed):
            run(journal, [FORWARD, REVERSE])
    assert len(journal.jobs()) == kept
    if not checkpoints:
        shutil.rmtree(tmp_path / "race")
    assert same(run(journal, [FORWARD, REVERSE]), whole)


def test_a_worker_process_continues_what_another_has_begun(tmp_path: Path, journal: Journal) -> None:
    whole = elsewhere(tmp_path / "whole", FIVE[:3])
    stop = StopRequest()

    def stop_in_the_second_rung(progress: RaceProgress) -> None:
        stop.requested |= (progress.rung, progress.done) == (1, 1)

    with pytest.raises(Interrupted):
        run(journal, FIVE[:3], on_progress=stop_in_the_second_rung, stop=stop, workers=2)
    assert same(run(journal, FIVE[:3]), whole)


def test_a_race_to_the_end_continues_one_that_was_decided(tmp_path: Path, journal: Journal) -> None:
    """As a discovery does that explores only, and then trains."""
    config = RaceConfig(first_rung=60)
    further: dict[str, Any] = {"baselines": [REVERSE], "to_the_end": True}
    whole = elsewhere(tmp_path / "whole", [REVERSE, FORWARD], config, recipe=LEARNING, **further)
    first = run(journal, [REVERSE, FORWARD], config, recipe=LEARNING)
    assert first.ended == "decided"
    assert same(run(journal, [REVERSE, FORWARD], config, recipe=LEARNING, **further), whole)


def test_other_settings_do_not_find_the_old_jobs(journal: Journal) -> None:
    for _ in range(2):
        run(journal, FIVE[:2], rungs_end=[2])
    run(journal, FIVE[:2], RUNGS.model_copy(update={"margin": 0.7}), rungs_end=[2])  # no part of a job
    assert len(journal.jobs()) == 2
    narrow = Recipe(model=SHORT.model.model_copy(update={"width": 8}), training=SHORT.training)
    run(journal, FIVE[:2], recipe=narrow, rungs_end=[2])
    assert len(journal.jobs()) == 4
    run(journal, FIVE[:2], data=relu_splits("2-4"), rungs_end=[2])
    assert len(journal.jobs()) == 6


def test_several_seeds(journal: Journal) -> None:
    config = RUNGS.model_copy(update={"seeds": 3})
    result = run(journal, FIVE[:2], config, rungs_end=[3, 5])
    jobs = journal.jobs()
    assert len(jobs) == 2 * 2 * 3
    losses = [np.mean(job.result["losses"]) for job in jobs[:6]]
    assert len(set(losses)) == 6
    expected = {FIVE[0]: np.mean(losses[:3]), FIVE[1]: np.mean(losses[3:])}
    assert {one.order: one.rungs[0].loss for one in result.contestants} == pytest.approx(expected)
    assert result.contestants[0].rungs[0].losses_SN.shape == (3, 200)


@pytest.mark.parametrize(("behind", "stays"), [((0.5, 0.5), False), ((0.9, 0.02), True)])
def test_with_two_seeds_an_order_is_dropped_only_if_it_is_behind_for_each(
    journal: Journal, answering: Callable[..., list[Any]], behind: tuple[float, float], stays: bool
) -> None:
    seeds: list[int] = []

    def loss_of(job: Any) -> float:
        if job.seed not in seeds:
            seeds.append(job.seed)
        return 0.5 if job.order == FORWARD.indices else 0.5 + behind[seeds.index(job.seed)]

    answering(loss_of)
    result = run(journal, [FORWARD, REVERSE], RUNGS.model_copy(update={"seeds": 2}))
    assert len(seeds) == 2
    assert (result.of(REVERSE).dropped_after is None) == stays
    assert result.winner == FORWARD


def test_all_orders_see_the_same_batches_and_start_from_the_same_weights(
    journal: Journal, answering: Callable[..., list[Any]]
) -> None:
    """Both follow from a job's seed, which must be that of the repetition, whatever the order or the rung."""
    jobs = answering(lambda job: 5.0)  # nothing is learnt, so that all go on
    run(journal, FIVE[:3], RUNGS.model_copy(update={"seeds": 2}))
    seeds: dict[tuple[int, ...], list[int]] = {}
    for job in jobs:
        seeds.setdefault((*job.order, steps_of(job)), []).append(job.seed)
    assert len(seeds) == 3 * len(ENDS)
    first, *others = seeds.values()
    assert len(set(first)) == 2
    assert all(other == first for other in others)


def test_targets_of_several_lengths_count_by_their_tokens(journal: Journal) -> None:
    result = run(journal, [FORWARD], data=relu_splits("2-4"), rungs_end=[4])
    lengths_N = relu_splits("2-4")[1].target_lengths_N.numpy()
    assert len(set(lengths_N.tolist())) == 3
    losses = journal.jobs()[0].result["losses"]
    assert result.contestants[0].loss == pytest.approx(np.average(losses, weights=lengths_N))


def test_the_progress_of_a_race(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JOBS, "_REPORT_SECONDS", 0.0)
    progress: list[RaceProgress] = []
    with race_in(journal, on_progress=progress.append) as race:
        result = race.run(FIVE[:3], rungs_end=[4, 25])
        race.finish(result.contestants[:2])
    finished = [one for one in progress if one.finished]
    counted = [(one.rung, one.done, one.total, one.step) for one in finished]
    assert counted == [
        *((0, n, 3, 4) for n in (1, 2, 3)), *((1, n, 3, 25) for n in (1, 2, 3)), (None, 1, 2, 26), (None, 2, 2, 26),
    ]  # fmt: skip
    assert [one.order for one in finished[:3]] == FIVE[:3]
    curves = {one.order: one.curves for one in result.contestants}
    for place, one in enumerate(finished[:3]):
        done = finished[: place + 1]
        assert one.loss == result.of(one.order).rungs[0].loss
        assert one.best_loss == min(earlier.loss for earlier in done)
        assert one.best in [earlier.order for earlier in done if earlier.loss == one.best_loss]
        assert one.curve == curves[one.order][0]
    assert [finished[n].seconds_left for n in (2, 5, 7)] == [0, 0, 0]
    assert all(math.isnan(one.run_seconds_left) for one in progress if one.rung == 0)
    assert all(one.run_seconds_left >= one.seconds_left for one in progress if one.rung != 0)
    assert finished[7].run_seconds_left == 0
    on_the_way = [one for one in progress if not one.finished and one.rung == 1]
    assert [one.step for one in on_the_way] == [20, 25] * 3
    assert (on_the_way[0].done, on_the_way[0].best, on_the_way[0].best_loss) == (0, None, math.inf)
    assert all(one.curve == [] and one.seconds_left > 0 and math.isfinite(one.loss) for one in on_the_way[:-1])


@pytest.mark.parametrize(("to_the_end", "seeds"), [(False, 1), (True, 1), (True, 2)])
def test_the_time_left_counts_the_decay_of_two_orders(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, to_the_end: bool, seeds: int
) -> None:
    """Nothing is learnt in four steps, so all orders train for all 25. Then the rates of two decay."""
    monkeypatch.setattr(JOBS, "_REPORT_SECONDS", 0.0)
    progress: list[RaceProgress] = []
    with race_in(journal, RUNGS.model_copy(update={"seeds": seeds}), on_progress=progress.append) as race:
        race.run(FIVE[:3], rungs_end=[4, 25], to_the_end=to_the_end)
    first = next(one for one in progress if one.rung == 1)
    left = (25 - first.step) + (3 * seeds - 1) * (25 - 4)
    decay = 0.25 * 25 * 2 if to_the_end else 0
    assert first.run_seconds_left / first.seconds_left == pytest.approx((left + decay) / left)


def test_what_was_done_before_is_reported_as_finished(journal: Journal) -> None:
    run(journal, FIVE[:2], rungs_end=[4])
    progress: list[RaceProgress] = []
    result = run(journal, FIVE[:3], rungs_end=[4], on_progress=progress.append)
    assert [(one.order, one.done, one.finished) for one in progress] == [
        (FIVE[0], 2, True), (FIVE[1], 2, True), (FIVE[2], 3, True),
    ]  # fmt: skip
    assert [one.step for one in progress] == [4, 4, 4]
    assert len(progress[0].curve) == 4
    assert progress[-1].best == result.winner


def test_seconds_count_the_trainings_whoever_did_them(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    """Each training tells the seconds of all its steps: one a step here. Two at once take half of that."""
    answering(behind_forward(0.05))
    for _ in range(2):
        with race_in(journal) as race:
            result = race.run([FORWARD, REVERSE])
            assert race.seconds == result.seconds == 2 * ENDS[-1]
            race.finish(result.contestants)
            assert race.seconds == 2 * 20
    with race_in(journal, workers=2) as race:
        assert race.run([FORWARD, REVERSE]).seconds == ENDS[-1]


def test_finishing_lets_the_rate_decay(journal: Journal, answering: Callable[..., list[Any]]) -> None:
    jobs = answering(behind_forward(0.05))
    with race_in(journal) as race:
        raced = race.run([FORWARD, REVERSE], rungs_end=[4, 8])
        race.finish(raced.contestants)
    for job in jobs[:4]:
        assert {job.recipe.training.learning_rate_at(step) for step in range(2, steps_of(job))} == {5e-3}
    for job in jobs[4:]:
        training = job.recipe.training
        assert (training.steps, training.stable_steps, job.begin, job.check_steps) == (10, 8, 8, 0)
        rates = [training.learning_rate_at(step) for step in range(11)]
        assert rates == pytest.approx([2.5e-3, *[5e-3] * 8, 2.5e-3, 0.0])


def test_the_trained_model_is_that_of_one_training_with_a_decay(tmp_path: Path, journal: Journal) -> None:
    with race_in(journal) as race:
        raced = race.run([FORWARD], to_the_end=True)
        (end,) = race.finish(raced.contestants)
        model = race.trained_model(raced.contestants[0])
    training = SHORT.training.model_copy(update={"stable_steps": 16})
    alone = Contestant(FORWARD, [], [], None)  # which was not raced: by the recipe's own schedule
    (tmp_path / "alone").mkdir()
    recipe = Recipe(model=SHORT.model, training=training)
    with Journal(tmp_path / "alone" / "journal.sqlite") as other, race_in(other, recipe=recipe) as race:
        (expected,) = race.finish([alone])
        assert same_weights(model, race.trained_model(alone))
    assert not model.training
    assert (expected.steps, end.steps) == (20, 20)
    assert [*(loss for curve in raced.contestants[0].curves for loss in curve), *end.curve] == expected.curve
    assert end.losses == expected.losses


@pytest.mark.parametrize("threads", [1, 2])
def test_a_trained_model_that_is_gone_is_trained_again_to_the_same_bits(journal: Journal, threads: int) -> None:
    """Also where the race has divided the threads among its workers."""
    with using_threads(threads), race_in(journal) as race:
        raced = race.run([FORWARD, REVERSE], rungs_end=[4])
        race.finish(raced.contestants)
        models = [race.trained_model(one) for one in raced.contestants]
        race.forget()
        assert not list((journal.path.parent / "race").glob("training-*"))
        again = [race.trained_model(one) for one in raced.contestants]
    assert not same_weights(*models)
    assert all(same_weights(*pair) for pair in zip(models, again, strict=True))


def test_a_finish_that_is_interrupted_goes_on(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    with Journal(tmp_path / "whole" / "journal.sqlite") as other, race_in(other) as race:
        raced = race.run([FORWARD], to_the_end=True)
        (expected,) = race.finish(raced.contestants)
        model = race.trained_model(raced.contestants[0])
    stop, steps = StopRequest(), 0
    mean_loss = JOBS.mean_loss

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        stop.requested = steps == 18
        return mean_loss(*arguments)

    monkeypatch.setattr(JOBS, "mean_loss", counted)
    with race_in(journal, stop=stop) as race, pytest.raises(Interrupted, match="stopped at step 18 of 20"):
        race.finish(race.run([FORWARD], to_the_end=True).contestants)
    stop.requested = False
    with race_in(journal, stop=stop) as race:
        raced = race.run([FORWARD], to_the_end=True)
        (end,) = race.finish(raced.contestants)
        assert same_weights(race.trained_model(raced.contestants[0]), model)
    assert steps == 20
    assert (end.losses, end.curve) == (expected.losses, expected.curve)


def test_a_solved_training_decays_from_where_it_ended(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = JOBS._validated_chunks

    def solved(*arguments: Any) -> Any:
        for losses_B, right_B in chunks(*arguments):
            yield losses_B, np.ones_like(right_B)

    monkeypatch.setattr(JOBS, "_validated_chunks", solved)
    config = RaceConfig(first_rung=16, check_steps=6)
    with race_in(journal, config) as race:
        raced = race.run([FORWARD, REVERSE])
        ends = race.finish(raced.contestants)
    assert raced.ended == "solved"
    assert [RankedOrder.of(one).race_row()["steps"] for one in raced.contestants] == [[6], [6]]
    assert [(end.steps, len(end.curve)) for end in ends] == [(8, 2), (8, 2)]


def test_what_is_kept_of_a_contestant() -> None:
    rung = Outcome(4, np.array([[1.0, 2.0]]), np.array([[True, False]]), np.ones(2))
    kept = RankedOrder.of(Contestant(REVERSE, [rung], [[3.0, 2.5]], 0)).race_row()
    assert kept == {
        "order": [3, 2, 1, 0], "steps": [4], "losses": [1.5], "standard_errors": [pytest.approx(0.5)],
        "success_rates": [0.5], "left_after_rung": 0, "tied_with_best": False, "diverged": False,
        "curves": [[3.0, 2.5]],
    }  # fmt: skip
