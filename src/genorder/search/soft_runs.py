"""The trainings of the soft-permutation search: equal starts, equal batches, one job of the journal each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

import torch
from torch import Tensor, nn

from genorder.data import EncodedDataset
from genorder.models import GPT, fresh_gpt
from genorder.orders import Order
from genorder.search.base import SearchProblem
from genorder.search.soft_model import LabelLoss, attention_entropy, soft_losses_by_step
from genorder.seeding import derive_seed
from genorder.training import BatchPlan, CheckpointFolder, fit

_MEASURED_SAMPLES = 256  # of the validation split, for what is measured after training

# Train a module in place on a loss per step, with parameter groups or none; gives the loss of every step.
Train = Callable[[nn.Module, Callable[[int], Tensor], list[dict[str, Any]] | None], list[float]]


@final
class SoftPermutationTrainer:
    """The problem's data in the sequence of its reference order, and models and runs on it."""

    def __init__(self, problem: SearchProblem, seed: int) -> None:
        self._problem, self.seed = problem, seed
        self.train, validation = (self._in_reference(split) for split in (problem.train, problem.validation))
        self.measured = validation.head(_MEASURED_SAMPLES)
        self.measured_rows = torch.arange(len(self.measured), device=self.device)
        self._any_order = self.batches(Order.forward(problem.length))

    @property
    def device(self) -> torch.device:
        return self._problem.train.inputs_NW.device

    def new_gpt(self) -> GPT:
        """Equal weights every time: soft and fixed orders start alike."""
        return fresh_gpt(self._problem.profiler.model, self.train, self.seed)

    def allowed(self, order: Order) -> Order:
        """The order of steps of the reference, repaired where its columns break the problem's constraints."""
        reference = self._problem.source.reference
        return reference.inverse().compose(self._problem.constraints.repaired(reference.compose(order)))

    def batches(self, order: Order) -> BatchPlan:
        orders_1L = torch.tensor([list(order)], device=self.device)
        size = self._problem.profiler.training.batch_size
        return BatchPlan(self.train, orders_1L, size, derive_seed(self.seed, "batches"))

    def rows_at(self, step: int) -> Tensor:
        """The samples that every run, of soft and fixed orders alike, sees at this step."""
        rows, _ = self._any_order.rows_and_orders(step)
        return torch.from_numpy(rows).to(self.device)

    @torch.no_grad()
    def validation_loss(self, gpt: GPT, matrix_LL: Tensor, label_loss: LabelLoss = "divergence") -> float:
        """Mean over the targets, without EOS."""
        return float(soft_losses_by_step(gpt, self.measured, self.measured_rows, matrix_LL, label_loss)[:-1].mean())

    @torch.no_grad()
    def validation_entropy(self, gpt: GPT, matrix_LL: Tensor) -> float:
        return float(attention_entropy(gpt, self.measured, self.measured_rows, matrix_LL))

    def run(
        self, name: str, described: dict[str, Any], steps: int, work: Callable[[Train], dict[str, Any]]
    ) -> dict[str, Any]:
        """One job of the journal, with one training in it that goes on from its checkpoints."""
        problem = self._problem
        training = problem.profiler.training.model_copy(update={"steps": steps})
        described = {
            **described,
            "reference": list(problem.source.reference),
            "model": problem.profiler.model.model_dump(),
            "training": training.model_dump(),
        }
        checkpoints = CheckpointFolder(problem.folder_of(name, described))

        def train(
            model: nn.Module, loss_at: Callable[[int], Tensor], groups: list[dict[str, Any]] | None
        ) -> list[float]:
            on_progress = problem.on_progress
            return fit(
                model,
                loss_at,
                training,
                seed=derive_seed(self.seed, "dropout"),
                checkpoints=checkpoints,
                on_progress=(lambda progress: on_progress(name, progress)) if on_progress else None,
                stop=problem.stop,
                parameter_groups=groups,
            ).losses

        result = problem.timed(name, described, lambda: work(train))
        checkpoints.delete()
        return result

    def _in_reference(self, split: EncodedDataset) -> EncodedDataset:
        columns_L = torch.tensor(list(self._problem.source.reference), device=split.targets_NL.device)
        return replace(split, targets_NL=split.targets_NL[:, columns_L])
