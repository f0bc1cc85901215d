"""The paper's soft permutations: an order as a doubly stochastic matrix P, learned by gradient. They do not work.

The model reads and predicts the target sequence `Y P`: the token of step k is the mixture of all targets with the
weights of column k. P is Sinkhorn-normalised; at the end the permutation that holds the most of its mass is proposed.

*joint* minimises the loss over model and P together. Each soft token contains a part of all targets, so the tokens read
so far reveal the next token, and P moves to where they reveal the most, not to an order.

*two-stage* alternates: the model on `Y P` with P fixed, then P by the entropy of the attention maps with the model
fixed. A map can become sparser without P becoming an order: nothing ties the two together.

The loss. The paper writes l(T, X, Y P) and does not define l for a label that is a mixture. Cross-entropy against the
mixture is never below the mixture's own entropy, up to log L: it would add to the loss of a soft P a part that no model
can avoid, and with it a pull towards hard permutations that has nothing to do with prediction. The default is therefore
the Kullback-Leibler divergence, cross-entropy minus that entropy: 0 for a right prediction, soft or hard. For a hard P
both are the plain loss, so the curves can be compared. `label_loss="cross-entropy"` is the alternative. Mixtures of
many targets vary less from sample to sample, which makes a part of their loss small without any reading ahead;
`unigram_by_step` in the details measures that part.

Axes: B batch, W input width, L targets (rows j of P) and steps (columns k of P), T = W + 1 + L tokens, Q = L + 1
predictions, D width, V vocabulary.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, final, get_args

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from genorder.analysis.attention import mean_row_entropy, row_entropies
from genorder.data import EncodedDataset
from genorder.data.encoding import EOS, SEP
from genorder.errors import InputError
from genorder.models import GPT, fresh_gpt
from genorder.models.gpt import trace_attention
from genorder.models.losses import mean_loss
from genorder.orders import Order, relative_to
from genorder.search.base import PlannedRun, Proposal, Search, SearchDetails, SearchProblem, SearchResult, Stage
from genorder.seeding import derive_seed, torch_generator
from genorder.training import BatchPlan, CheckpointFolder, ParameterGroup, fit

Variant = Literal["joint", "two-stage"]
LabelLoss = Literal["divergence", "cross-entropy"]

EXPECTED_TO_FAIL = (
    "Soft permutations are the paper's negative baselines: their low loss comes from soft tokens that give later "
    "targets away, and the order proposed is not expected to be a good one."
)
_MEASURED_SAMPLES = 256  # of the validation split, for the measurements after training

# Trains a module in place on a loss per step, with parameter groups or None; returns the loss of every step.
Train = Callable[[nn.Module, Callable[[int], Tensor], list[ParameterGroup] | None], list[float]]


@final
@dataclass(frozen=True)
class MassShares:
    """Shares of P's mass by their distance from an order."""

    diagonal: float  # on the order itself
    next_diagonals: float  # one step beside it
    off_diagonal: float  # everywhere but on the order


@final
@dataclass(frozen=True, kw_only=True)
class SoftMeasurements:
    """The model of the soft permutation after its training, with P and with the hard permutation nearest to P."""

    order: Order  # over steps of the reference
    soft_matrix: list[list[float]]  # P; rows: targets in the sequence of the reference; columns: steps
    mass: MassShares
    training_loss: list[float]  # of each step that trains the model
    entropy_curve: list[float]  # of each step that trains P by the attention's entropy
    soft_loss: float  # on validation samples
    hard_loss: float
    divergence_by_step: list[float]
    unigram_by_step: list[float]
    soft_entropy: float  # of the attention
    hard_entropy: float

    def to_dict(self) -> dict[str, object]:
        return {
            "order": list(self.order),
            "soft_matrix": self.soft_matrix,
            "off_diagonal_mass": asdict(self.mass),
            "training_loss": {"soft": self.training_loss},
            "entropy_curve": self.entropy_curve,
            "validation_loss": {"soft": self.soft_loss, "hard_order": self.hard_loss},
            "divergence_by_step": self.divergence_by_step,
            "blind_by_step": self.unigram_by_step,
            "attention_entropy": {"soft": self.soft_entropy, "hard_order": self.hard_entropy},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "SoftMeasurements":
        return cls(
            order=Order.of(saved["order"]),
            soft_matrix=saved["soft_matrix"],
            mass=MassShares(**saved["off_diagonal_mass"]),
            training_loss=saved["training_loss"]["soft"],
            entropy_curve=saved["entropy_curve"],
            soft_loss=saved["validation_loss"]["soft"],
            hard_loss=saved["validation_loss"]["hard_order"],
            divergence_by_step=saved["divergence_by_step"],
            unigram_by_step=saved["blind_by_step"],
            soft_entropy=saved["attention_entropy"]["soft"],
            hard_entropy=saved["attention_entropy"]["hard_order"],
        )


@final
@dataclass(frozen=True)
class FixedMeasurements:
    """A model that was trained on one order, for comparison."""

    training_loss: list[float]
    validation_loss: float
    attention_entropy: float


@final
@dataclass(frozen=True, kw_only=True)
class SoftPermutationDetails(SearchDetails):
    variant: Variant
    label_loss: LabelLoss
    soft: SoftMeasurements
    fixed: dict[str, FixedMeasurements] = field(
        default_factory=dict
    )  # `friendly`: the reference, `unfriendly`: reverse

    def to_dict(self) -> dict[str, object]:
        soft: dict[str, Any] = self.soft.to_dict()
        del soft["order"]
        for measure in ("training_loss", "validation_loss", "attention_entropy"):
            soft[measure] |= {name: getattr(model, measure) for name, model in self.fixed.items()}
        return {
            "variant": self.variant,
            "label_loss": self.label_loss,
            "expected_to_fail": EXPECTED_TO_FAIL,
            **soft,
        }


@final
@dataclass(frozen=True)
class SoftPermutation(Search):
    """Trains models of its own with the profiler's configuration, and uses no profiling run.

    P starts uniform except for small noise. `reference_bias` is added to the logits of the reference order, so that P
    starts near that order: for the paper's figure, not for a search.
    """

    name: ClassVar[str] = "soft-permutation"

    variant: Variant = "joint"
    label_loss: LabelLoss = "divergence"
    steps: int = 500  # of joint
    rounds: int = 5  # of two-stage: alternations of the following two
    model_steps: int = 60
    entropy_steps: int = 40
    sinkhorn_iterations: int = 20
    temperature: float = 1.0  # divides the logits
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
        # All work is on columns in the sequence of the reference. The distribution of random logits does not depend on
        # the sequence of the columns, so they reveal nothing of the order. And data with relabelled columns, such as a
        # task with a hidden order, gives exactly the relabelled answer.
        trainer = SoftPermutationTrainer(problem, derive_seed(problem.seed, self.name))
        soft, train_seconds = self._train_soft(trainer)
        seconds = {"train": train_seconds}
        fixed = {}
        if self.compare:
            length, seconds["compare"] = problem.length, 0.0
            for name, order in (("friendly", Order.forward(length)), ("unfriendly", Order.reverse(length))):
                fixed[name], fixed_seconds = self._train_fixed(trainer, name, order)
                seconds["compare"] += fixed_seconds
        proposal = Proposal(relative_to(problem.source.reference, soft.order), soft.hard_loss)
        problem.finish_stage(Stage(f"soft {self.variant}", 1, 1, [proposal], seconds))
        details = SoftPermutationDetails(variant=self.variant, label_loss=self.label_loss, soft=soft, fixed=fixed)
        return SearchResult([proposal], problem.stages, details)

    @property
    def _all_steps(self) -> int:
        return self.steps if self.variant == "joint" else self.rounds * (self.model_steps + self.entropy_steps)

    @property
    def _fixed_order_steps(self) -> int:
        """The same number of steps as the model of the soft permutation."""
        return self.steps if self.variant == "joint" else self.rounds * self.model_steps

    def _is_entropy_step(self, step: int) -> bool:
        return self.variant == "two-stage" and step % (self.model_steps + self.entropy_steps) >= self.model_steps

    def _train_soft(self, trainer: "SoftPermutationTrainer") -> tuple[SoftMeasurements, float]:
        length = trainer.train.target_width

        def work(train: Train) -> Mapping[str, object]:
            rng = torch_generator(derive_seed(trainer.seed, "logits"))
            logits_LL = self.noise * torch.randn(length, length, generator=rng)
            logits_LL += self.reference_bias * torch.eye(length)
            gpt = trainer.new_gpt()
            model = SoftOrderModel(
                gpt, logits_LL.to(trainer.device), temperature=self.temperature, iterations=self.sinkhorn_iterations
            )

            def loss_at(step: int) -> Tensor:
                # AdamW skips parameters without a gradient, so one training holds both stages.
                entropy_step = self._is_entropy_step(step)
                gpt.requires_grad_(not entropy_step)
                rows_B, matrix_LL = trainer.rows_at(step), model.matrix()
                if entropy_step:
                    return attention_entropy(gpt, trainer.train, rows_B, matrix_LL)
                if self.variant == "two-stage":
                    matrix_LL = matrix_LL.detach()
                return soft_loss(gpt, trainer.train, rows_B, matrix_LL, self.label_loss)

            logits = ParameterGroup([model.logits_LL], rate_factor=self.logit_rate_factor, weight_decay=0.0)
            losses = train(model, loss_at, [ParameterGroup(gpt.parameters()), logits])
            return self._measured(trainer, model, losses).to_dict()

        settings = {name: value for name, value in asdict(self).items() if name != "compare"}
        saved = trainer.run(f"soft {self.variant}", settings, self._all_steps, work)
        return SoftMeasurements.from_dict(saved), saved["seconds"]

    def _train_fixed(
        self, trainer: "SoftPermutationTrainer", name: str, order: Order
    ) -> tuple[FixedMeasurements, float]:
        def work(train: Train) -> Mapping[str, object]:
            gpt = trainer.new_gpt()
            batch_at = trainer.batches(order)
            losses = train(gpt, lambda step: mean_loss(gpt, batch_at(step)), None)
            hard_LL = order_matrix(order).to(trainer.device)
            loss, entropy = trainer.validation_loss(gpt, hard_LL), trainer.validation_entropy(gpt, hard_LL)
            return asdict(FixedMeasurements(losses, loss, entropy))

        saved = trainer.run(f"soft {name}", {"order": list(order)}, self._fixed_order_steps, work)
        seconds = saved.pop("seconds")
        return FixedMeasurements(**saved), seconds

    @torch.no_grad()
    def _measured(
        self, trainer: "SoftPermutationTrainer", model: "SoftOrderModel", losses: list[float]
    ) -> SoftMeasurements:
        matrix_LL = model.matrix()
        gpt, plain_LL = model.gpt, matrix_LL.double().cpu().numpy()
        found = trainer.allowed(nearest_order(plain_LL))
        hard_LL = order_matrix(found).to(trainer.device)
        measured = trainer.measured, trainer.measured_rows
        return SoftMeasurements(
            order=found,
            soft_matrix=plain_LL.tolist(),
            mass=mass_around(plain_LL, found),
            training_loss=[loss for step, loss in enumerate(losses) if not self._is_entropy_step(step)],
            entropy_curve=[loss for step, loss in enumerate(losses) if self._is_entropy_step(step)],
            soft_loss=trainer.validation_loss(gpt, matrix_LL, self.label_loss),
            hard_loss=trainer.validation_loss(gpt, hard_LL),
            divergence_by_step=soft_losses_by_step(gpt, *measured, matrix_LL).tolist(),
            unigram_by_step=unigram_losses_by_step(*measured, matrix_LL).tolist(),
            soft_entropy=trainer.validation_entropy(gpt, matrix_LL),
            hard_entropy=trainer.validation_entropy(gpt, hard_LL),
        )


@final
class SoftPermutationTrainer:
    """The problem's data in the sequence of its reference order, and trainings on it with equal starts and batches."""

    def __init__(self, problem: SearchProblem, seed: int) -> None:
        self._problem, self.seed = problem, seed
        self.train, validation = (self._in_reference(split) for split in (problem.train, problem.validation))
        self.measured = validation.head(_MEASURED_SAMPLES)
        self.measured_rows = torch.arange(len(self.measured), device=self.device)
        self._forward = self.batches(Order.forward(problem.length))

    @property
    def device(self) -> torch.device:
        return self._problem.train.inputs_NW.device

    def new_gpt(self) -> GPT:
        """A model with the same weights every time, so that soft and fixed orders start alike."""
        return fresh_gpt(self._problem.profiler.model, self.train, self.seed)

    def allowed(self, order: Order) -> Order:
        """An order over steps of the reference, repaired to meet the problem's constraints."""
        reference = self._problem.source.reference
        return reference.inverse().compose(self._problem.constraints.repaired(reference.compose(order)))

    def batches(self, order: Order) -> BatchPlan:
        orders_1L = torch.tensor([list(order)], device=self.device)
        size = self._problem.profiler.training.batch_size
        return BatchPlan(self.train, orders_1L, size, derive_seed(self.seed, "batches"))

    def rows_at(self, step: int) -> Tensor:
        """The samples of this step, the same for soft and fixed orders."""
        rows, _ = self._forward.rows_and_orders(step)
        return torch.from_numpy(rows).to(self.device)

    @torch.no_grad()
    def validation_loss(self, gpt: GPT, matrix_LL: Tensor, label_loss: LabelLoss = "divergence") -> float:
        """The mean over the targets, without EOS."""
        return float(soft_losses_by_step(gpt, self.measured, self.measured_rows, matrix_LL, label_loss)[:-1].mean())

    @torch.no_grad()
    def validation_entropy(self, gpt: GPT, matrix_LL: Tensor) -> float:
        return float(attention_entropy(gpt, self.measured, self.measured_rows, matrix_LL))

    def run(
        self,
        name: str,
        described: Mapping[str, object],
        steps: int,
        work: Callable[[Train], Mapping[str, object]],
    ) -> dict[str, Any]:
        """One job of the journal that contains one training, which continues from its checkpoints."""
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
            model: nn.Module, loss_at: Callable[[int], Tensor], groups: list[ParameterGroup] | None
        ) -> list[float]:
            return fit(
                model,
                loss_at,
                training,
                seed=derive_seed(self.seed, "dropout"),
                checkpoints=checkpoints,
                on_progress=problem.progress_of(name),
                stop=problem.stop,
                parameter_groups=groups,
            ).losses

        result = problem.timed(name, described, lambda: work(train))
        checkpoints.delete()
        return result

    def _in_reference(self, split: EncodedDataset) -> EncodedDataset:
        columns_L = torch.tensor(list(self._problem.source.reference), device=split.targets_NL.device)
        return replace(split, targets_NL=split.targets_NL[:, columns_L])


@final
class SoftOrderModel(nn.Module):
    """A GPT and the logits of P, as one module for `fit`."""

    def __init__(self, gpt: GPT, logits_LL: Tensor, *, temperature: float, iterations: int) -> None:
        super().__init__()
        self.gpt = gpt
        self.logits_LL = nn.Parameter(logits_LL)
        self._temperature, self._iterations = temperature, iterations

    def matrix(self) -> Tensor:
        """P_LL: entry (j, k) is the share of target j in step k."""
        return sinkhorn(self.logits_LL / self._temperature, self._iterations)


def sinkhorn(logits_LL: Tensor, iterations: int) -> Tensor:
    """exp(logits) with rows and columns normalised alternately: doubly stochastic in the limit.

    The columns are normalised last, so each step is exactly a distribution over the targets.
    """
    for _ in range(iterations):
        logits_LL = logits_LL - logits_LL.logsumexp(dim=1, keepdim=True)
        logits_LL = logits_LL - logits_LL.logsumexp(dim=0, keepdim=True)
    return logits_LL.exp()


def embed_mixtures(gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """Embeddings_BTD of `x SEP (Y P)`: a soft token is the mixture of its tokens' embeddings."""
    inputs_BW = encoded.inputs_NW[rows_B].long()
    read = F.embedding(F.pad(inputs_BW, (0, 1), value=SEP), gpt.token_embedding)
    targets_BLD = F.embedding(encoded.targets_NL[rows_B].long(), gpt.token_embedding)
    return torch.cat([read, torch.einsum("jk,bjd->bkd", matrix_LL, targets_BLD)], dim=1)


def mixed_labels(encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """Labels_BQV: at step k the distribution of a target drawn from column k of P; then EOS with certainty."""
    labels_BQ = F.pad(encoded.targets_NL[rows_B].long(), (0, 1), value=EOS)
    one_hot_BQV = F.one_hot(labels_BQ, encoded.model_vocabulary).to(matrix_LL.dtype)
    # Half precision, as in training on a GPU, is too coarse for the difference between a label and its own entropy.
    with torch.autocast(matrix_LL.device.type, enabled=False):
        mixed_BLV = torch.einsum("jk,bjv->bkv", matrix_LL, one_hot_BQV[:, :-1])
    return torch.cat([mixed_BLV, one_hot_BQV[:, -1:]], dim=1)


def soft_losses_by_step(
    gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor, label_loss: LabelLoss = "divergence"
) -> Tensor:
    """Losses_Q against the mixture that each step emits, as means over samples; EOS is the last."""
    embedded_BTD = embed_mixtures(gpt, encoded, rows_B, matrix_LL)
    log_predicted_BQV = gpt.forward_embedded(embedded_BTD, encoded.input_width).float().log_softmax(dim=-1)
    labels_BQV = mixed_labels(encoded, rows_B, matrix_LL)
    losses_BQ = -(labels_BQV * log_predicted_BQV).sum(dim=-1)
    if label_loss == "divergence":
        losses_BQ = losses_BQ - row_entropies(labels_BQV)
    return losses_BQ.mean(dim=0)


def soft_loss(
    gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor, label_loss: LabelLoss = "divergence"
) -> Tensor:
    """The loss of all predictions with EOS, per target token. For a hard permutation, the plain loss of its order."""
    return soft_losses_by_step(gpt, encoded, rows_B, matrix_LL, label_loss).sum() / encoded.target_width


def unigram_losses_by_step(encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """Divergences_Q of the mixtures from their own mean over samples: the least loss without reading anything.

    If it is low, a low loss is due to labels that hardly vary.
    """
    labels_BQV = mixed_labels(encoded, rows_B, matrix_LL)
    return row_entropies(labels_BQV.mean(dim=0)) - row_entropies(labels_BQV).mean(dim=0)


def attention_entropy(gpt: GPT, encoded: EncodedDataset, rows_B: Tensor, matrix_LL: Tensor) -> Tensor:
    """The paper's S of the softly permuted sequences: the mean over layers, heads, samples and positions."""
    weights = trace_attention(gpt, embed_mixtures(gpt, encoded, rows_B, matrix_LL)).weights
    return torch.stack([mean_row_entropy(weights_BHTT) for weights_BHTT in weights]).mean()


def order_matrix(order: Order) -> Tensor:
    """The hard P of an order: target order[k] at step k."""
    return F.one_hot(torch.tensor(list(order)), len(order)).T.float()


def nearest_order(matrix_LL: NDArray[np.floating]) -> Order:
    """The permutation that holds the most of P's mass."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    targets, steps = linear_sum_assignment(matrix_LL, maximize=True)
    return Order.of(targets[np.argsort(steps)])


def mass_around(matrix_LL: NDArray[np.floating], order: Order) -> MassShares:
    arranged_LL = matrix_LL[list(order)]
    length = len(order)
    diagonal = float(np.trace(arranged_LL)) / length
    beside = float(np.trace(arranged_LL, offset=1) + np.trace(arranged_LL, offset=-1)) / length
    return MassShares(diagonal, beside, 1.0 - diagonal)
