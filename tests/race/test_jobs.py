"""One job of a race: it continues a training and validates the model."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from profiling_helpers import FORWARD, REVERSE, random_data, random_model, relu_splits
from torch import Tensor

from genorder.data import EncodedDataset, arrange
from genorder.data.encoding import EOS, IGNORED
from genorder.errors import InputError, Interrupted
from genorder.evaluation import evaluate
from genorder.execution import StopRequest
from genorder.models import GPT, GPTConfig, fresh_gpt
from genorder.models.losses import mean_loss
from genorder.orders import Order
from genorder.race import Recipe
from genorder.race.jobs import JobResult, RaceJob, run_job, solves, validate, write_samples
from genorder.seeding import derive_seed
from genorder.training import BatchPlan, CheckpointFolder, Progress, TrainingConfig, fit

JOBS = import_module("genorder.race.jobs")
SMALL = Recipe(
    model=GPTConfig(layers=1, heads=2, width=16, feedforward=32, dropout=0.1),
    training=TrainingConfig(steps=12, batch_size=32, learning_rate=5e-3, warmup_steps=2),
)


def job(folder: Path, steps: int, *, stable: int | None = None, order: Order = FORWARD, **changes: Any) -> RaceJob:
    """At a constant learning rate, or as long as it is `stable`."""
    data = write_samples(*relu_splits(), folder)
    training = SMALL.training.model_copy(
        update={"steps": steps, "stable_steps": steps if stable is None else stable, **changes.pop("training", {})}
    )
    recipe = Recipe(model=SMALL.model, training=training)
    return RaceJob(*data, "cpu", order.indices, recipe, **{"seed": 3, **changes})


def weights(done: RaceJob) -> dict[str, Tensor]:
    state = done.checkpoints.load_latest()
    assert state is not None
    assert state.step == done.recipe.training.steps
    return {name: value for name, value in state.tensors.items() if name.startswith("model.")}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def without_time(result: JobResult) -> JobResult:
    return replace(result, seconds=0.0)


def test_a_full_disk_is_no_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the order would count as diverged for good."""

    def full(*_: Any) -> None:
        raise InputError("cannot write: no space left")

    monkeypatch.setattr(CheckpointFolder, "save", full)
    with pytest.raises(InputError, match="no space left"):
        run_job(job(tmp_path, 4))


def test_a_job_continues_where_the_one_before_it_ended(tmp_path: Path) -> None:
    """As one training of all the steps would be."""
    whole = job(tmp_path / "whole", 12)
    expected = run_job(whole)
    first, second, third = (job(tmp_path, end, begin=begin) for begin, end in ((0, 5), (5, 8), (8, 12)))
    parts = [run_job(part) for part in (first, second, third)]
    assert [len(part.curve) for part in parts] == [5, 3, 4]
    assert [part.steps for part in parts] == [5, 8, 12]
    assert [loss for part in parts for loss in part.curve] == expected.curve
    assert (parts[-1].losses, parts[-1].exact_matches) == (expected.losses, expected.exact_matches)
    assert same(weights(third), weights(whole))
    assert first.checkpoints.path == third.checkpoints.path
    assert parts[2].seconds > parts[1].seconds > parts[0].seconds > 0  # of the whole training


def test_the_training_is_that_of_its_recipe(tmp_path: Path) -> None:
    train, _ = relu_splits()
    seed, recipe = 3, job(tmp_path, 6).recipe
    model = fresh_gpt(recipe.model, train, seed)
    batch_at = BatchPlan(train, torch.tensor([list(REVERSE)]), 32, derive_seed(seed, "batches"))
    fitted = fit(
        model, lambda step: mean_loss(model, batch_at(step)), recipe.training, seed=derive_seed(seed, "dropout")
    )
    assert run_job(job(tmp_path, 6, order=REVERSE)).curve == fitted.losses
    assert run_job(job(tmp_path / "other", 6, order=REVERSE, seed=4)).curve != fitted.losses


def test_the_decay_continues_a_training_of_a_constant_rate(tmp_path: Path) -> None:
    run_job(job(tmp_path, 8))
    end = job(tmp_path, 12, stable=8, begin=8)
    decayed = run_job(end)
    whole = job(tmp_path / "whole", 12, stable=8)
    expected = run_job(whole)
    assert decayed.curve == expected.curve[8:]
    assert same(weights(end), weights(whole))
    constant = job(tmp_path / "constant", 12)
    run_job(constant)
    assert not same(weights(end), weights(constant))


def test_a_job_that_is_done_already_trains_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a process that was killed before its result was kept."""
    expected = run_job(job(tmp_path, 6))
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: pytest.fail("trained again"))
    assert without_time(run_job(job(tmp_path, 6))) == without_time(expected)


def test_a_job_whose_checkpoints_are_gone_gives_the_same(tmp_path: Path) -> None:
    run_job(job(tmp_path, 5))
    expected = run_job(job(tmp_path, 9, begin=5))
    job(tmp_path, 9).checkpoints.delete()
    assert without_time(run_job(job(tmp_path, 9, begin=5))) == without_time(expected)


@pytest.mark.parametrize("moment", [1, 7])
def test_an_interrupted_job_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    expected = run_job(job(tmp_path / "whole", 10))
    stop, steps = StopRequest(), 0

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        stop.requested = steps == moment
        return mean_loss(*arguments)

    monkeypatch.setattr(JOBS, "mean_loss", counted)
    with pytest.raises(Interrupted, match=rf"stopped at step {moment} of 10"):
        run_job(job(tmp_path, 10), stop=stop)
    assert without_time(run_job(job(tmp_path, 10), stop=stop)) == without_time(expected)
    assert steps == 10


def test_a_worker_that_is_killed_leaves_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job goes on from the last of them: on long rungs, minutes are not lost."""
    expected = run_job(job(tmp_path / "whole", 30))
    steps = 0

    def dying(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 21:
            raise SystemExit
        return mean_loss(*arguments)

    monkeypatch.setattr(JOBS, "fit", partial(fit, checkpoint_seconds=0.0))
    monkeypatch.setattr(JOBS, "mean_loss", dying)
    with pytest.raises(SystemExit):
        run_job(job(tmp_path, 30))
    assert without_time(run_job(job(tmp_path, 30))) == without_time(expected)
    assert steps == 21 + 10


def test_a_training_that_diverges_says_why(tmp_path: Path) -> None:
    result = run_job(job(tmp_path, 6, training={"learning_rate": 1e38}))
    assert (result.losses, result.curve, result.steps) == (None, [], 6)
    assert result.failure is not None
    assert "loss" in result.failure or "weight" in result.failure


def test_a_validation_loss_that_is_not_finite_is_a_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, validation = relu_splits()
    losses_N, exact_N = np.zeros(len(validation)), np.zeros(len(validation), dtype=np.bool_)
    losses_N[7] = np.inf
    monkeypatch.setattr(JOBS, "validate", lambda *_: (losses_N, exact_N))
    result = run_job(job(tmp_path, 2))
    assert (result.losses, result.failure) == (None, "the validation loss is not finite")


def test_a_training_ends_early_once_its_samples_are_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is validated at multiples of the check steps only, and not within the steps of earlier jobs."""
    _, validation = relu_splits()
    checks = 0

    def improving(*arguments: Any) -> Any:
        nonlocal checks
        checks += 1
        return [(np.zeros(len(validation)), np.arange(len(validation)) < checks * len(validation) / 3)]

    monkeypatch.setattr(JOBS, "_validated_chunks", improving)
    solved = run_job(job(tmp_path, 12, check_steps=4, solved=0.6))
    assert (solved.steps, len(solved.curve), checks) == (8, 8, 3)
    state = job(tmp_path, 12).checkpoints.load_latest()
    assert state is not None
    assert state.step == 8
    checks = 0
    later = run_job(job(tmp_path, 20, check_steps=4, solved=0.6, begin=8))
    assert (later.steps, len(later.curve)) == (16, 8)
    checks = 5
    never = run_job(job(tmp_path, 22, solved=0.6, begin=16))
    assert (never.steps, checks) == (22, 6)


def test_too_many_wrong_samples_end_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    _, validation = relu_splits()
    seen = 0

    def chunks(*_: Any) -> Iterator[tuple[Any, Any]]:
        nonlocal seen
        for exact_B in torch.split(torch.arange(len(validation)) % 10 > 0, len(validation) // 5):  # one in ten is wrong
            seen += 1
            yield None, exact_B.numpy()

    monkeypatch.setattr(JOBS, "_validated_chunks", chunks)
    model = random_model(validation)
    assert not solves(model, validation, FORWARD, 0.99)
    assert seen == 1
    assert solves(model, validation, FORWARD, 0.9)
    assert seen == 6


def test_checking_the_success_rate_changes_nothing(tmp_path: Path) -> None:
    plain, checked = job(tmp_path / "plain", 9), job(tmp_path / "checked", 9, check_steps=2, solved=1.0)
    assert without_time(run_job(plain)) == without_time(run_job(checked))
    assert same(weights(plain), weights(checked))


def test_how_far_a_job_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Progress] = []
    run_job(job(tmp_path, 25), report=reports.append)
    assert reports == []  # half a second has not gone by
    monkeypatch.setattr(JOBS, "_REPORT_SECONDS", 0.0)
    run_job(job(tmp_path, 45, begin=25), report=reports.append)
    assert [(one.step, one.steps) for one in reports] == [(40, 45), (45, 45)]
    assert all(one.loss is not None and np.isfinite(one.loss) for one in reports)


def test_what_a_job_is_known_by(tmp_path: Path) -> None:
    base = job(tmp_path, 6)
    others = [
        job(tmp_path, 7), job(tmp_path, 6, stable=3), job(tmp_path, 6, begin=2), job(tmp_path, 6, seed=4),
        job(tmp_path, 6, order=REVERSE), job(tmp_path, 6, check_steps=2), job(tmp_path, 6, solved=0.5),
        job(tmp_path, 6, training={"learning_rate": 1e-3}),
    ]  # fmt: skip
    described = [str(one.describe()) for one in (base, *others)]
    assert len(set(described)) == len(described)
    assert job(tmp_path / "elsewhere", 6).describe() == base.describe()
    folders = [one.checkpoints.path for one in others]
    continued = {base.checkpoints.path}
    assert {*folders[:3], *folders[5:7]} == continued
    assert len({*folders[3:5], folders[7]} - continued) == 3


def uniform_model(encoded: EncodedDataset) -> GPT:
    model = random_model(encoded)
    with torch.no_grad():
        model.token_embedding.zero_()  # which reads the last layer too
    return model


@pytest.mark.parametrize("fixed", [True, False])
def test_a_uniform_model_loses_the_logarithm_of_its_vocabulary(fixed: bool) -> None:
    encoded = random_data(20, fixed=fixed, tokens=7)
    assert encoded.model_vocabulary == 10
    losses_N, exact_N = validate(uniform_model(encoded), encoded, FORWARD)
    assert losses_N == pytest.approx(np.log(10))
    assert not exact_N.any()


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("order", [FORWARD, Order((2, 0, 3, 1))], ids=str)
def test_losses_and_exact_matches_one_by_one(fixed: bool, order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a plain computation; EOS must be predicted too, but its loss does not count."""
    encoded = random_data(30, fixed=fixed)
    model = random_model(encoded)
    losses, right = [], []
    for row in range(len(encoded)):
        batch = arrange(encoded, torch.tensor([row]), torch.tensor([list(order)]))
        with torch.no_grad():
            logits_TV = model(batch.tokens_BT)[0, encoded.input_width :]
        labels = [label for label in batch.labels_BQ[0].tolist() if label != IGNORED]
        assert labels.index(EOS) == len(labels) - 1 == int(encoded.target_lengths_N[row])
        logs_TV = torch.log_softmax(logits_TV, dim=-1)
        losses.append(-np.mean([logs_TV[place, label].item() for place, label in enumerate(labels[:-1])]))
        right.append([int(logits_TV[place].argmax()) for place in range(len(labels))] == labels)
    monkeypatch.setattr(JOBS, "_CHUNK", 7)
    losses_N, exact_N = validate(model, encoded, order)
    assert losses_N == pytest.approx(losses, abs=1e-5)
    assert exact_N.tolist() == right


@pytest.mark.parametrize("length", ["4", "2-4"])
def test_exact_matches_are_the_samples_that_greedy_generation_gets(length: str) -> None:
    train, validation = relu_splits(length)
    model = fresh_gpt(GPTConfig(layers=1, heads=2, width=32, feedforward=64), train, 0)
    batch_at = BatchPlan(train, torch.tensor([list(FORWARD)]), 64, 0)
    training = TrainingConfig(steps=60, batch_size=64, learning_rate=1e-2, warmup_steps=10)
    fit(model, lambda step: mean_loss(model, batch_at(step)), training, seed=0)
    _, exact_N = validate(model, validation, FORWARD)
    assert 0 < exact_N.sum() < len(exact_N)
    reached = float(exact_N.mean())
    assert [solves(model, validation, FORWARD, rate) for rate in (reached - 1e-9, reached, reached + 1e-9)] == [
        True, True, False,
    ]  # fmt: skip
    assert exact_N.mean() == evaluate(model, validation, FORWARD).success_rate
    for row in (*np.flatnonzero(exact_N)[:3], *np.flatnonzero(~exact_N)[:3]):
        one = EncodedDataset(
            validation.inputs_NW[row : row + 1], validation.targets_NL[row : row + 1],
            validation.target_lengths_N[row : row + 1], validation.model_vocabulary,
        )  # fmt: skip
        assert evaluate(model, one, FORWARD).success_rate == exact_N[row]


def test_a_loss_that_is_no_number_is_infinite() -> None:
    encoded = random_data(5)
    model = random_model(encoded)
    with torch.no_grad():
        model.token_embedding.fill_(float("nan"))
    losses_N, _ = validate(model, encoded, FORWARD)
    assert (losses_N == np.inf).all()
