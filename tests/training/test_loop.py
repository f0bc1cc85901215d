from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genorder.data import SequenceDataset, encode
from genorder.errors import GenorderError, Interrupted
from genorder.execution import StopRequest
from genorder.models import GPT, GPTConfig
from genorder.models.losses import mean_loss
from genorder.seeding import torch_generator
from genorder.training import BatchPlan, CheckpointFolder, FitResult, ParameterGroup, Progress, TrainingConfig, fit
from genorder.training.checkpoint import TrainingState

STEPS = 50
CONFIG = TrainingConfig(steps=STEPS, batch_size=16, learning_rate=5e-3, warmup_steps=5)


class Crash(Exception):
    pass


class Copying:
    """A tiny GPT that learns to copy its two inputs, and may be stopped or crash at a step."""

    def __init__(self, dropout: float = 0.0) -> None:
        x = np.random.default_rng(0).integers(0, 4, (40, 2))
        dataset = SequenceDataset.from_sequences(x.tolist(), x.tolist())
        encoded = encode(dataset, input_width=2, target_width=2)
        config = GPTConfig(layers=1, heads=2, width=8, feedforward=16, dropout=dropout)
        self.model = GPT(config, vocabulary=encoded.model_vocabulary, positions=5, rng=torch_generator(0))
        self.batches = BatchPlan(encoded, torch.tensor([[1, 0]]), CONFIG.batch_size, seed=1)
        self.stop = StopRequest()

    def train(self, *, stop_at: int | None = None, crash_at: int | None = None, **options: Any) -> FitResult:
        def loss_at(step: int) -> Tensor:
            if step == crash_at:
                raise Crash
            if step + 1 == stop_at:
                self.stop.requested = True
            return mean_loss(self.model, self.batches(step))

        return fit(self.model, loss_at, CONFIG, seed=3, stop=self.stop, **options)

    def weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.model.state_dict().items()}


def assert_identical(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def test_loss_falls() -> None:
    result = Copying().train()
    assert len(result.losses) == STEPS
    assert result.seconds > 0
    assert np.mean(result.losses[-5:]) < 0.75 * np.mean(result.losses[:5])


def test_same_seed_same_weights_whatever_the_global_generator_holds() -> None:
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        run = Copying(dropout=0.2)
        run.train()
        runs.append(run.weights())
    assert_identical(*runs)


@pytest.mark.parametrize(
    ("dropout", "stops"),
    [(0.0, [33]), (0.0, [7, 8, 21, 40]), (0.2, [1]), (0.2, [20]), (0.2, [STEPS - 1]), (0.2, [7, 8, 21, 40])],
)
def test_interrupted_and_continued_equals_uninterrupted(tmp_path: Path, dropout: float, stops: list[int]) -> None:
    whole = Copying(dropout)
    expected = whole.train()
    folder = CheckpointFolder(tmp_path)
    for stop_at in stops:
        with pytest.raises(Interrupted, match=f"stopped at step {stop_at} of {STEPS}; the same command continues"):
            Copying(dropout).train(stop_at=stop_at, checkpoints=folder)
        saved = folder.load_latest()
        assert saved is not None
        assert saved.step == stop_at
    last = Copying(dropout)
    seen: list[Progress] = []
    result = last.train(checkpoints=folder, on_progress=seen.append)
    assert result.losses == expected.losses
    assert_identical(last.weights(), whole.weights())
    assert result.seconds >= saved.seconds
    assert seen[0].step > stops[-1]


@pytest.mark.parametrize(("dropout", "crash_at"), [(0.0, 26), (0.2, 1), (0.2, STEPS - 1)])
def test_crashed_and_continued_equals_uninterrupted(tmp_path: Path, dropout: float, crash_at: int) -> None:
    whole = Copying(dropout)
    expected = whole.train()
    folder = CheckpointFolder(tmp_path)
    with pytest.raises(Crash):
        Copying(dropout).train(crash_at=crash_at, checkpoints=folder, checkpoint_seconds=0.0)
    saved = folder.load_latest()
    assert saved is not None
    assert saved.step == crash_at
    again = Copying(dropout)
    result = again.train(checkpoints=folder)
    assert result.losses == expected.losses
    assert_identical(again.weights(), whole.weights())


def test_continues_from_the_checkpoint_before_a_damaged_one(tmp_path: Path) -> None:
    whole = Copying()
    expected = whole.train()
    folder = CheckpointFolder(tmp_path)
    with pytest.raises(Crash):
        Copying().train(crash_at=30, checkpoints=folder, checkpoint_seconds=0.0)
    (tmp_path / "step-000000030.safetensors").write_bytes(b"damaged")
    again = Copying()
    assert again.train(checkpoints=folder).losses == expected.losses
    assert_identical(again.weights(), whole.weights())


def test_no_checkpoints_unless_due(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        Copying().train(crash_at=40, checkpoints=CheckpointFolder(tmp_path), checkpoint_seconds=1000.0)
    assert list(tmp_path.iterdir()) == []


def test_stop_asked_for_in_the_last_step_lets_the_run_end(tmp_path: Path) -> None:
    whole = Copying()
    result = whole.train(stop_at=STEPS, checkpoints=CheckpointFolder(tmp_path))
    assert len(result.losses) == STEPS
    assert not whole.model.training


def test_stop_without_checkpoints_interrupts_too() -> None:
    with pytest.raises(Interrupted):
        Copying().train(stop_at=5)


def test_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        Copying().train(stop_at=5, checkpoints=CheckpointFolder(tmp_path))
    other = nn.Linear(2, 1)
    with pytest.raises(ValueError, match="checkpoint is of another model"):
        fit(other, lambda _: other(torch.ones(2)).sum(), CONFIG, seed=0, checkpoints=CheckpointFolder(tmp_path))


def test_progress_is_reported_in_ascending_steps_and_ends_with_the_last() -> None:
    seen: list[Progress] = []
    result = Copying().train(on_progress=seen.append)
    assert [progress.step for progress in seen] == [20, 40, STEPS]
    assert all(progress.steps == STEPS for progress in seen)
    assert [progress.seconds for progress in seen] == sorted(progress.seconds for progress in seen)
    assert seen[0].loss == pytest.approx(np.mean(result.losses[:20]))
    assert seen[2].loss == pytest.approx(np.mean(result.losses[30:]))
    assert seen[2].seconds_left == 0
    assert seen[0].seconds_left == pytest.approx(seen[0].seconds * 1.5)


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def loss(self, step: int, bad_step: int | None = None, bad: float = float("nan")) -> Tensor:
        loss = (self.weight**2).sum()
        return loss * bad if step == bad_step else loss


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(("bad_step", "known"), [(0, None), (13, None), (29, 20), (49, 40)])
def test_loss_that_is_not_finite_is_explained(tmp_path: Path, bad: float, bad_step: int, known: int | None) -> None:
    line, folder = Line(), CheckpointFolder(tmp_path)
    if known is not None:
        tensors = {f"optimizer.{kind}.weight": torch.zeros(3) for kind in ("exp_avg", "exp_avg_sq")}
        tensors |= {"optimizer.step.weight": torch.tensor(float(known)), "model.weight": torch.ones(3)}
        folder.save(TrainingState(known, 1.0, {**tensors, "losses": torch.zeros(known)}))
    with pytest.raises(GenorderError) as caught:
        fit(line, lambda step: line.loss(step, bad_step, bad), CONFIG, seed=0, checkpoints=folder)
    message = str(caught.value)
    assert "\n" not in message
    assert f"the loss became {bad} at step {bad_step} " in message
    assert f"learning rate {CONFIG.learning_rate_at(bad_step):.3g}" in message
    expected = "there is no checkpoint yet" if known is None else f"the last good checkpoint is of step {known}"
    assert expected in message
    assert not isinstance(caught.value, Interrupted)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_checkpoint_is_made_of_a_model_that_is_lost(tmp_path: Path, bad: float) -> None:
    line, folder = Line(), CheckpointFolder(tmp_path)
    with pytest.raises(GenorderError, match="the last good checkpoint is of step 7"):
        fit(
            line, lambda step: line.loss(step, 7, bad), CONFIG, seed=0,
            checkpoints=folder, checkpoint_seconds=0.0,
        )  # fmt: skip
    saved = folder.load_latest()
    assert saved is not None
    assert saved.tensors["model.weight"].isfinite().all()


def test_rate_factor_multiplies_the_rate_of_its_group() -> None:
    """The first step of Adam moves each weight by its rate, whatever the gradient."""
    model = nn.ParameterDict({name: nn.Parameter(torch.ones(2)) for name in ("plain", "fast", "still")})
    config = TrainingConfig(steps=1, batch_size=1, learning_rate=0.01, weight_decay=0)
    groups = [
        ParameterGroup([model["plain"]]),
        ParameterGroup([model["fast"]], rate_factor=5.0),
        ParameterGroup([model["still"]], rate_factor=0.0),
    ]
    fit(model, lambda _: sum(p.sum() for p in model.values()), config, seed=0, parameter_groups=groups)
    moved = {name: 1 - float(value.detach().mean()) for name, value in model.items()}
    assert moved == pytest.approx({"plain": 0.01, "fast": 0.05, "still": 0.0}, abs=1e-6)


def test_parameter_outside_the_groups_stays_and_does_not_hinder_continuing(tmp_path: Path) -> None:
    def run(stop_at: int | None) -> nn.ParameterDict:
        torch.manual_seed(0)
        model = nn.ParameterDict({name: nn.Parameter(torch.ones(2)) for name in ("taught", "kept")})
        stop = StopRequest()

        def loss_at(step: int) -> Tensor:
            stop.requested = step + 1 == stop_at
            return (model["taught"] ** 2).sum()

        groups = [ParameterGroup([model["taught"]])]
        fit(
            model, loss_at, CONFIG, seed=0, parameter_groups=groups, stop=stop,
            checkpoints=CheckpointFolder(tmp_path) if stop_at != -1 else None,
        )  # fmt: skip
        return model

    whole = run(-1)
    with pytest.raises(Interrupted):
        run(10)
    continued = run(None)
    assert torch.equal(continued["taught"], whole["taught"])
    assert torch.equal(continued["kept"], torch.ones(2))
    assert not torch.equal(continued["taught"], torch.ones(2))


def test_gradients_are_clipped() -> None:
    """Two steps of Adam tell a clipped first gradient from a huge one."""

    def second_move(clip_norm: float) -> float:
        line = Line()
        config = TrainingConfig(
            steps=2, batch_size=1, learning_rate=0.01, weight_decay=0, clip_norm=clip_norm, warmup_steps=2
        )
        fit(line, lambda step: (line.weight * (1000.0 if step == 0 else 0.001)).sum(), config, seed=0)
        return 1 - 0.005 - float(line.weight.detach()[0])

    assert second_move(1e-3) > 1.2 * second_move(1e9)


def test_learning_rate_follows_the_schedule() -> None:
    """With a constant gradient every step of Adam is its rate."""
    line, moves = Line(), []

    def loss_at(step: int) -> Tensor:
        moves.append(float(line.weight.detach()[0]))
        return line.weight.sum()

    config = CONFIG.model_copy(update={"weight_decay": 0.0})
    fit(line, loss_at, config, seed=0)
    moves.append(float(line.weight.detach()[0]))
    assert -np.diff(moves) == pytest.approx([config.learning_rate_at(step) for step in range(STEPS)], rel=1e-2)


def test_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Copying(dropout=0.2).train()
    assert torch.equal(torch.rand(3), expected)


def test_after_step_is_called_with_every_number_of_steps_done(tmp_path: Path) -> None:
    seen: list[int] = []
    first = Copying()
    with pytest.raises(Interrupted):
        first.train(stop_at=7, checkpoints=CheckpointFolder(tmp_path), after_step=seen.append)
    Copying().train(checkpoints=CheckpointFolder(tmp_path), after_step=seen.append)
    assert seen == list(range(1, STEPS + 1))


def test_weights_that_are_not_finite_are_never_kept_as_good(tmp_path: Path) -> None:
    run = Copying()

    def loss_at(step: int) -> Tensor:
        if step == 9:  # a finite loss with a gradient that is not: the square root of zero
            return (
                mean_loss(run.model, run.batches(step))
                + run.model.token_embedding.sum().sub(run.model.token_embedding.sum().detach()).abs().sqrt()
            )
        return mean_loss(run.model, run.batches(step))

    with pytest.raises(GenorderError, match=r"at step 9 .*the last good checkpoint is of step 9"):
        fit(run.model, loss_at, CONFIG, seed=3, checkpoints=CheckpointFolder(tmp_path), checkpoint_seconds=0.0)
    state = CheckpointFolder(tmp_path).load_latest()
    assert state is not None
    assert all(bool(value.isfinite().all()) for value in state.tensors.values())
