"""The paper's soft permutations: an order as a doubly stochastic matrix P, learned by gradient. They do not work.

A target sequence is fed and asked for as `Y P`: the token of step k is the mixture of all targets with the weights of
column k. P is Sinkhorn-normalised; at the end the permutation that holds the most of its mass is proposed.

*joint* minimises the loss over model and P at once. Every soft token holds something of all the targets, so the tokens
read so far tell the token to come, and P is drawn to where they tell the most, not to an order.

*two-stage* alternates: the model on `Y P` with P fixed, then P by the entropy of the attention maps with the model
fixed. A map can become sparser without P becoming an order: nothing ties the two together.

The loss that is minimised. The paper writes l(T, X, Y P) and leaves l open where the label is a mixture. Cross-entropy
against the mixture is never below the mixture's own entropy, up to log L: it would add to the loss of a soft P a part
that no model can avoid, and with it a pull towards hard permutations that has nothing to do with prediction. The
default is therefore the Kullback-Leibler divergence, cross-entropy less that floor: 0 is reached where the prediction
is right, for soft and hard alike, and both are the plain loss where P is hard, so the curves can be compared.
`label_loss="cross-entropy"` is the other reading. Mixtures of many targets vary less from sample to sample, which makes
a part of their loss small without any reading ahead; `blind_by_step` in the details says how large that part is.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from genorder.errors import InputError
from genorder.models.losses import mean_loss
from genorder.orders import Order, relative_to
from genorder.search.base import PlannedRun, Proposal, Search, SearchProblem, SearchResult, Stage
from genorder.search.soft_model import (
    LabelLoss,
    SoftOrderModel,
    attention_entropy,
    mass_around,
    nearest_order,
    order_matrix,
    soft_loss,
    soft_losses_by_step,
    unigram_losses_by_step,
)
from genorder.search.soft_runs import SoftPermutationTrainer, Train
from genorder.seeding import derive_seed, torch_generator

Variant = Literal["joint", "two-stage"]

EXPECTED_TO_FAIL = (
    "Soft permutations are the paper's negative baselines: their low loss comes from soft tokens that give later "
    "targets away, and the order proposed is not expected to be a good one."
)


@final
@dataclass(frozen=True)
class SoftPermutation(Search):
    """Trains models of its own, of the profiler's configuration, and spends no profiling run.

    The start is uniform but for small noise. With `reference_bias`, which is added to the logits of the reference
    order, it begins near that order instead: for the paper's figure, not for a search.
    """

    name: ClassVar[str] = "soft-permutation"

    variant: Variant = "joint"
    label_loss: LabelLoss = "divergence"
    steps: int = 500  # of joint
    rounds: int = 5  # of two-stage: alternations of the two that follow
    model_steps: int = 60
    entropy_steps: int = 40
    sinkhorn_iterations: int = 20
    temperature: float = 1.0  # the logits are divided by it
    logit_rate_factor: float = 30.0  # the learning rate of the logits, as a multiple of the model's
    noise: float = 0.1  # standard deviation of the first logits
    reference_bias: float = 0.0
    compare: bool = True  # also train on the reference order and its reverse, on the same batches

    def __post_init__(self) -> None:
        for name, choices in (("variant", get_args(Variant)), ("label_loss", get_args(LabelLoss))):
            if getattr(self, name) not in choices:
                raise InputError(f"{name} {getattr(self, name)!r}: expected one of {', '.join(choices)}")
        for name in ("steps", "rounds", "model_steps", "entropy_steps", "sinkhorn_iterations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: expected at least 1")
        for name in ("temperature", "logit_rate_factor"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} {getattr(self, name)}: expected a number above 0")
        if not 0 <= self.noise < math.inf or not math.isfinite(self.reference_bias):
            raise InputError(f"noise {self.noise}, reference_bias {self.reference_bias}: expected finite, noise from 0")

    def check(self, problem: SearchProblem) -> None:
        if not (problem.train.is_fixed_length and problem.validation.is_fixed_length):
            raise InputError("soft-permutation needs targets of one length; this data has several")

    def plan(self, problem: SearchProblem) -> list[PlannedRun]:
        runs = [PlannedRun(f"soft {self.variant}", 1, self._all_steps)]
        if self.compare:
            runs += [PlannedRun(name, 1, self._fixed_order_steps) for name in ("friendly", "unfriendly")]
        return runs

    def propose(self, problem: SearchProblem) -> SearchResult:
        self.check(problem)
        # All work is on columns in the sequence of the reference. Random logits mean the same in any sequence of the
        # columns, so nothing is given away; and the search of a dataset with relabelled columns, such as one whose
        # order is hidden, gives exactly the relabelled answer.
        workshop = SoftPermutationTrainer(problem, derive_seed(problem.seed, self.name))
        soft = self._train_soft(workshop)
        found = Order.of(soft.pop("order"))
        seconds = {"train": soft.pop("seconds")}
        fixed = {}
        if self.compare:
            length = problem.length
            for name, order in (("friendly", Order.forward(length)), ("unfriendly", Order.reverse(length))):
                fixed[name] = self._train_fixed(workshop, name, order)
            seconds["compare"] = sum(result["seconds"] for result in fixed.values())
        proposal = Proposal(relative_to(problem.source.reference, found), soft["validation_loss"]["hard_order"])
        problem.finish_stage(Stage(f"soft {self.variant}", 1, 1, [proposal], seconds))
        details = {"variant": self.variant, "label_loss": self.label_loss, "expected_to_fail": EXPECTED_TO_FAIL, **soft}
        for measure in ("training_loss", "validation_loss", "attention_entropy"):
            details[measure] |= {name: result[measure] for name, result in fixed.items()}
        return SearchResult([proposal], problem.stages, details)

    @property
    def _all_steps(self) -> int:
        return self.steps if self.variant == "joint" else self.rounds * (self.model_steps + self.entropy_steps)

    @property
    def _fixed_order_steps(self) -> int:
        """As many steps as the model of the soft permutation is trained for."""
        return self.steps if self.variant == "joint" else self.rounds * self.model_steps

    def _is_entropy_step(self, step: int) -> bool:
        return self.variant == "two-stage" and step % (self.model_steps + self.entropy_steps) >= self.model_steps

    def _train_soft(self, workshop: SoftPermutationTrainer) -> dict[str, Any]:
        length = workshop.train.target_width

        def work(train: Train) -> dict[str, Any]:
            rng = torch_generator(derive_seed(workshop.seed, "logits"))
            logits_LL = self.noise * torch.randn(length, length, generator=rng)
            logits_LL += self.reference_bias * torch.eye(length)
            gpt = workshop.new_gpt()
            model = SoftOrderModel(
                gpt, logits_LL.to(workshop.device), temperature=self.temperature, iterations=self.sinkhorn_iterations
            )

            def loss_at(step: int) -> Tensor:
                # What gets no gradient at a step is left alone by AdamW, so one run holds both stages.
                entropy_step = self._is_entropy_step(step)
                gpt.requires_grad_(not entropy_step)
                rows_B, matrix_LL = workshop.rows_at(step), model.matrix()
                if entropy_step:
                    return attention_entropy(gpt, workshop.train, rows_B, matrix_LL)
                if self.variant == "two-stage":
                    matrix_LL = matrix_LL.detach()
                return soft_loss(gpt, workshop.train, rows_B, matrix_LL, self.label_loss)

            logits_group = {"params": [model.logits_LL], "rate_factor": self.logit_rate_factor, "weight_decay": 0.0}
            losses = train(model, loss_at, [{"params": list(gpt.parameters())}, logits_group])
            return self._measured(workshop, model, losses)

        settings = {name: value for name, value in asdict(self).items() if name != "compare"}
        return workshop.run(f"soft {self.variant}", settings, self._all_steps, work)

    def _train_fixed(self, workshop: SoftPermutationTrainer, name: str, order: Order) -> dict[str, Any]:
        def work(train: Train) -> dict[str, Any]:
            gpt = workshop.new_gpt()
            batch_at = workshop.batches(order)
            losses = train(gpt, lambda step: mean_loss(gpt, batch_at(step)), None)
            hard_LL = order_matrix(order).to(workshop.device)
            return {
                "training_loss": losses,
                "validation_loss": workshop.validation_loss(gpt, hard_LL),
                "attention_entropy": workshop.validation_entropy(gpt, hard_LL),
            }

        return workshop.run(f"soft {name}", {"order": list(order)}, self._fixed_order_steps, work)

    @torch.no_grad()
    def _measured(self, workshop: SoftPermutationTrainer, model: SoftOrderModel, losses: list[float]) -> dict[str, Any]:
        matrix_LL = model.matrix()
        gpt, plain_LL = model.gpt, matrix_LL.double().cpu().numpy()
        found = workshop.allowed(nearest_order(plain_LL))
        hard_LL = order_matrix(found).to(workshop.device)
        measured = workshop.measured, workshop.measured_rows
        return {
            "order": list(found),
            "soft_matrix": plain_LL.tolist(),  # rows: targets in the sequence of the reference; columns: steps
            "off_diagonal_mass": mass_around(plain_LL, found),
            "training_loss": {"soft": [v for step, v in enumerate(losses) if not self._is_entropy_step(step)]},
            "entropy_curve": [v for step, v in enumerate(losses) if self._is_entropy_step(step)],
            "validation_loss": {
                "soft": workshop.validation_loss(gpt, matrix_LL, self.label_loss),
                "hard_order": workshop.validation_loss(gpt, hard_LL),
            },
            "divergence_by_step": soft_losses_by_step(gpt, *measured, matrix_LL).tolist(),
            "blind_by_step": unigram_losses_by_step(*measured, matrix_LL).tolist(),
            "attention_entropy": {
                "soft": workshop.validation_entropy(gpt, matrix_LL),
                "hard_order": workshop.validation_entropy(gpt, hard_LL),
            },
        }
