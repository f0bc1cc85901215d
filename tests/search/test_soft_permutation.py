import math
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import EncodedDataset, arrange, encode
from genorder.errors import InputError, Interrupted
from genorder.models import GPT, GPTConfig
from genorder.models.losses import mean_loss
from genorder.orders import CandidateSource, Order
from genorder.profiling import ProfilerConfig
from genorder.profiling.scoring import plain_scores
from genorder.search import SearchProblem, SearchResult, SoftPermutation, SoftPermutationDetails, soft_permutation
from genorder.search.soft_permutation import (
    attention_entropy,
    mass_around,
    mixed_labels,
    nearest_order,
    order_matrix,
    sinkhorn,
    soft_loss,
    soft_losses_by_step,
    unigram_losses_by_step,
)
from genorder.seeding import torch_generator
from genorder.store import Journal
from genorder.tasks import make_task, task_splits
from genorder.training import TrainingConfig

PROFILER = ProfilerConfig(
    model=GPTConfig(layers=2, heads=2, width=16, feedforward=32, dropout=0.1),
    training=TrainingConfig(steps=1, batch_size=16, learning_rate=3e-3, warmup_steps=5, beta2=0.98),
)
JOINT = SoftPermutation(steps=20)
TWO_STAGE = SoftPermutation(variant="two-stage", rounds=3, model_steps=6, entropy_steps=5)
BOTH = pytest.mark.parametrize("search", [JOINT, TWO_STAGE], ids=["joint", "two-stage"])


@cache
def square(length: str) -> tuple[EncodedDataset, EncodedDataset]:
    splits = task_splits(make_task("square", length), train=2000, validation=100, test=1).splits
    train, validation = (
        encode(split, input_width=splits.input_width, target_width=splits.target_width)
        for split in (splits.train, splits.validation)
    )
    return train, validation


def relabelled(encoded: EncodedDataset, columns: Order) -> EncodedDataset:
    """Column c of the result is column columns[c]."""
    return replace(encoded, targets_NL=encoded.targets_NL[:, list(columns)])


def run(
    folder: Path,
    search: SoftPermutation,
    *,
    length: str = "4",
    columns: Order | None = None,
    seed: int = 0,
    profiler: ProfilerConfig = PROFILER,
    **options: Any,
) -> SearchResult:
    folder.mkdir(exist_ok=True)
    train, validation = square(length)
    columns = columns or Order.forward(train.target_width)
    with Journal(folder / "journal.sqlite") as journal:
        problem = SearchProblem(
            relabelled(train, columns),
            relabelled(validation, columns),
            CandidateSource(columns.inverse()),
            profiler,
            seed,
            journal,
            folder,
            **options,
        )
        assert sum(planned.steps for planned in search.plan(problem)) > 0
        result = search.propose(problem)
        assert problem.runs == 0
        return result


def details_of(result: SearchResult) -> SoftPermutationDetails:
    assert isinstance(result.details, SoftPermutationDetails)
    return result.details


def model_for(encoded: EncodedDataset) -> GPT:
    """Of weights so large that orders differ in loss."""
    rng = torch_generator(0)
    positions = encoded.input_width + 1 + encoded.target_width
    model = GPT(PROFILER.model, vocabulary=encoded.model_vocabulary, positions=positions, rng=rng)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=rng), alpha=0.3)
    return model.eval()


@given(st.integers(1, 8), st.integers(0, 1000), st.floats(0, 2))
@settings(deadline=None, max_examples=40)
def test_sinkhorn_is_doubly_stochastic(length: int, seed: int, scale: float) -> None:
    logits = scale * (2 * torch.rand(length, length, generator=torch_generator(seed)) - 1)
    matrix = sinkhorn(logits, 20)
    assert (matrix > 0).all()
    torch.testing.assert_close(matrix.sum(dim=0), torch.ones(length), rtol=0, atol=1e-5)
    torch.testing.assert_close(matrix.sum(dim=1), torch.ones(length), rtol=0, atol=1e-3)


def test_sinkhorn_of_large_logits_is_the_permutation() -> None:
    order = Order((2, 0, 3, 1))
    torch.testing.assert_close(sinkhorn(50 * order_matrix(order), 20), order_matrix(order))


@given(st.permutations(range(6)), st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_nearest_order_undoes_order_matrix_despite_noise(indices: list[int], seed: int) -> None:
    order = Order.of(indices)
    noise = torch.rand(6, 6, generator=torch_generator(seed)) / 12
    assert nearest_order((order_matrix(order) + noise).numpy()) == order


def test_mass_around_an_order() -> None:
    matrix = np.array([[0.7, 0.2, 0.1], [0.2, 0.8, 0.0], [0.1, 0.0, 0.9]])
    expected = {"diagonal": 2.4 / 3, "next_diagonals": 0.4 / 3, "off_diagonal": 0.6 / 3}
    assert asdict(mass_around(matrix, Order.forward(3))) == pytest.approx(expected)
    order = Order((2, 0, 1))
    assert asdict(mass_around(matrix[list(order.inverse())], order)) == pytest.approx(expected)


@pytest.mark.parametrize("label_loss", ["divergence", "cross-entropy"])
@pytest.mark.parametrize("indices", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@torch.no_grad()
def test_a_hard_permutation_has_the_plain_loss_of_its_order(indices: tuple[int, ...], label_loss: Any) -> None:
    train, _ = square("4")
    model, rows = model_for(train), torch.arange(50)
    plain = mean_loss(model, arrange(train, rows, torch.tensor([indices])))
    soft = soft_loss(model, train, rows, order_matrix(Order(indices)), label_loss)
    torch.testing.assert_close(soft, plain, rtol=1e-5, atol=0)
    by_step = soft_losses_by_step(model, train, rows, order_matrix(Order(indices)), label_loss)
    scored = plain_scores(model, train.head(50), [Order(indices)]).losses_CN.mean()
    assert float(by_step[:-1].mean()) == pytest.approx(scored, rel=1e-5)


@torch.no_grad()
def test_losses_against_mixtures_by_hand() -> None:
    train, _ = square("3")
    model, rows = model_for(train), torch.arange(20)
    matrix = sinkhorn(torch.randn(3, 3, generator=torch_generator(3)), 50)
    labels = mixed_labels(train, rows, matrix)
    torch.testing.assert_close(labels.sum(dim=-1), torch.ones(20, 4))
    for target in range(3):  # the share of every target is in the label, more where targets are equal
        share = labels[:, :3].gather(2, train.targets_NL[:20, target, None, None].expand(-1, 3, 1).long())[..., 0]
        assert (share >= matrix[target] - 1e-6).all()
    divergence, cross_entropy = (
        soft_losses_by_step(model, train, rows, matrix, loss) for loss in ("divergence", "cross-entropy")
    )
    entropy = -torch.special.xlogy(labels, labels).sum(dim=-1).mean(dim=0)
    assert (divergence >= 0).all()
    torch.testing.assert_close(cross_entropy - divergence, entropy)
    unigram = torch.nn.functional.kl_div(
        labels.mean(dim=0).clamp_min(1e-30).log().expand_as(labels), labels, reduction="none"
    )
    torch.testing.assert_close(
        unigram_losses_by_step(train, rows, matrix), unigram.sum(-1).mean(0), atol=1e-5, rtol=1e-4
    )


def test_entropy_has_a_gradient_for_the_permutation() -> None:
    train, _ = square("4")
    logits = torch.randn(4, 4, generator=torch_generator(1), requires_grad=True)
    entropy = attention_entropy(model_for(train), train, torch.arange(10), sinkhorn(logits, 20))
    assert 0 < float(entropy.detach()) < math.log(9)
    (gradient,) = torch.autograd.grad(entropy, logits)
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0


@BOTH
@pytest.mark.parametrize("length", ["1", "2", "3"])
def test_proposes_one_order(search: SoftPermutation, length: str, tmp_path: Path) -> None:
    result = run(tmp_path, search, length=length)
    size = int(length)
    (proposal,) = result.proposals
    assert sorted(proposal.order) == list(range(size))
    assert proposal.loss == details_of(result).soft.hard_loss
    assert [stage.name for stage in result.stages] == [f"soft {search.variant}"]
    details = result.details.to_dict()
    assert "negative baselines" in details["expected_to_fail"]
    matrix = np.array(details["soft_matrix"])
    assert matrix.shape == (size, size)
    assert matrix.sum(axis=0) == pytest.approx(np.ones(size), abs=1e-5)
    assert nearest_order(matrix) == proposal.order
    assert details["off_diagonal_mass"] == asdict(mass_around(matrix, proposal.order))
    joint = search.variant == "joint"
    for name in ("soft", "friendly", "unfriendly"):
        assert len(details["training_loss"][name]) == (20 if joint else 18)
        assert 0 <= details["attention_entropy"][name] < math.log(2 * size + 1)
    assert len(details["entropy_curve"]) == (0 if joint else 15)
    assert not list(tmp_path.glob("soft-*"))


def test_leakage_is_visible(tmp_path: Path) -> None:
    """The loss of the soft permutation falls at once; the order read off it is worth nothing to the same model."""
    profiler = PROFILER.model_copy(
        update={
            "model": GPTConfig(layers=1, heads=1, width=48, feedforward=96),
            "training": PROFILER.training.model_copy(update={"batch_size": 32}),
        }
    )
    details = run(tmp_path, SoftPermutation(steps=120), length="6", profiler=profiler).details.to_dict()
    early = {name: float(np.mean(losses[15:25])) for name, losses in details["training_loss"].items()}
    assert early["soft"] < 0.4 * min(early["friendly"], early["unfriendly"])
    losses = details["validation_loss"]
    assert losses["soft"] < 0.5 < 2 < losses["hard_order"]
    assert details["off_diagonal_mass"]["off_diagonal"] > 0.5
    # From the second step on the targets are read off the steps before: not the work of labels that hardly vary.
    divergence, unigram = np.array(details["divergence_by_step"]), np.array(details["blind_by_step"])
    assert (divergence[2:-1] < 0.3 * unigram[2:-1]).all()


def test_two_stages_touch_what_they_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[tuple[bool, bool]] = []
    fit: Callable[..., Any] = soft_permutation.fit

    def watching(model: Any, *arguments: Any, **options: Any) -> Any:
        state = {name: value.clone() for name, value in model.state_dict().items()}

        def after_step(done: int) -> None:
            moved = {name for name, value in model.state_dict().items() if not torch.equal(value, state[name])}
            changed.append((any(name.startswith("gpt.") for name in moved), "logits_LL" in moved))
            state.update({name: value.clone() for name, value in model.state_dict().items()})

        return fit(model, *arguments, **options, after_step=after_step)

    monkeypatch.setattr(soft_permutation, "fit", watching)
    run(tmp_path, replace(TWO_STAGE, compare=False))
    assert changed == 3 * (6 * [(True, False)] + 5 * [(False, True)])


@BOTH
def test_interrupted_and_continued_gives_the_same(search: SoftPermutation, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", search)
    interruptions = 0
    while True:
        try:
            part = run(tmp_path / "parts", search, stop=_StopAfter(8))  # of two stages, within the second
            break
        except Interrupted:
            interruptions += 1
            assert interruptions < 20
    assert interruptions >= 3
    assert part.details == whole.details
    assert [proposal.order for proposal in part.proposals] == [proposal.order for proposal in whole.proposals]


class _StopAfter:
    """A stop request that comes after so many steps of a process, whichever training they belong to."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def requested(self) -> bool:
        self._left -= 1
        return self._left <= 0


def test_finished_runs_come_from_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path, JOINT)
    monkeypatch.setattr("genorder.search.soft_permutation.fit", lambda *_, **__: pytest.fail("trained again"))
    assert run(tmp_path, JOINT).to_dict() == first.to_dict()


@BOTH
def test_relabelled_columns_give_the_relabelled_order(search: SoftPermutation, tmp_path: Path) -> None:
    columns = Order((2, 0, 3, 1))
    plain = run(tmp_path / "plain", search)
    other = run(tmp_path / "other", search, columns=columns)
    assert other.proposals[0].order == columns.inverse().compose(plain.proposals[0].order)
    assert other.details == plain.details


def test_the_start_tells_nothing_of_the_reference(tmp_path: Path) -> None:
    search = SoftPermutation(steps=1, compare=False)
    results = [run(tmp_path / str(seed), search, seed=seed) for seed in range(8)]
    matrices = np.array([details_of(result).soft.soft_matrix for result in results])
    assert np.abs(matrices - 0.25).max() < 0.15
    assert np.trace(matrices.mean(axis=0)) / 4 == pytest.approx(0.25, abs=0.02)
    biased = run(tmp_path / "biased", replace(search, reference_bias=4.0))
    assert details_of(biased).soft.mass.diagonal > 0.8


def test_seeds_differ(tmp_path: Path) -> None:
    search = replace(JOINT, compare=False)
    assert run(tmp_path / "0", search).details != run(tmp_path / "1", search, seed=1).details
    assert set(run(tmp_path / "0", search).details.to_dict()["training_loss"]) == {"soft"}


def test_several_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="soft-permutation needs targets of one length"):
        run(tmp_path, JOINT, length="3-4")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"variant": "both"}, "variant 'both': expected one of joint, two-stage"),
        ({"label_loss": "mse"}, "label_loss 'mse': expected one of divergence, cross-entropy"),
        ({"steps": 0}, "steps 0: expected at least 1"),
        ({"rounds": 0}, "rounds 0"),
        ({"model_steps": 0}, "model_steps 0"),
        ({"entropy_steps": -1}, "entropy_steps -1"),
        ({"sinkhorn_iterations": 0}, "sinkhorn_iterations 0"),
        ({"temperature": 0.0}, "temperature 0.0: expected a number above 0"),
        ({"temperature": math.nan}, "temperature nan"),
        ({"logit_rate_factor": math.inf}, "logit_rate_factor inf"),
        ({"noise": -1.0}, "noise -1.0"),
        ({"reference_bias": math.nan}, "reference_bias nan"),
    ],
)
def test_settings_that_make_no_search(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SoftPermutation(**wrong)
