"""Any-order profiling: one short run of the routed model estimates the loss of any target given any others.

Axes: N samples, G groups, B samples of a group, L targets, P positions (inputs, targets, one that is always empty),
C orders.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from genorder.data import EncodedDataset
from genorder.execution import StopRequest
from genorder.models.routed import RoutedConfig, RoutedModel
from genorder.orders import Order
from genorder.seeding import derive_seed, numpy_generator, torch_generator
from genorder.training import CheckpointFolder, Progress, ProgressReporter, TrainingConfig, fit

READ = 0.01  # weight of a slot below which a position is taken not to be read
_FEW_ROWS, _FEWEST_SAMPLES = 20_000, 64  # predictions at each of many measurements, and samples in any case
_ROWS = 40_000  # predictions or targets read at once while measuring: enough to fill the cores, few for the caches


class AnyOrderConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: RoutedConfig = RoutedConfig()
    training: TrainingConfig = TrainingConfig(
        steps=400, batch_size=256, learning_rate=3e-3, warmup_steps=50, beta2=0.98, weight_decay=0.0
    )
    groups: int = Field(default=16, ge=1)  # of a batch, each with its own random order
    routing_rate_factor: float = Field(default=17.0, gt=0)  # learning rate of the routing logits, relative
    validation_samples: int = Field(default=512, ge=2)
    graph_steps: int = Field(default=200, ge=0)  # in the order found, with a price on reading, before the graph is read
    reading_price: float = Field(default=0.02, ge=0)  # in loss, of each position that a target reads


def with_steps(config: AnyOrderConfig, steps: int) -> AnyOrderConfig:
    return config.model_copy(update={"training": config.training.model_copy(update={"steps": steps})})


def positions_of(encoded: EncodedDataset, rows_N: Tensor, empty: int) -> Tensor:
    """tokens_NP: inputs, targets, and the empty position. A target beyond a sample's length is its padding token."""
    inputs_NW, targets_NL = encoded.inputs_NW[rows_N], encoded.targets_NL[rows_N]
    return torch.cat([inputs_NW, targets_NL, torch.full_like(targets_NL[:, :1], empty)], dim=1).long()


def available_before(orders_GL: Tensor, inputs: int) -> Tensor:
    """available_GLP: for each target, the inputs, the targets emitted before it, and the empty position."""
    groups, targets = orders_GL.shape
    step_GL = orders_GL.argsort(dim=1)
    before_GLL = step_GL[:, None, :] < step_GL[:, :, None]
    always = torch.ones(groups, targets, 1, dtype=torch.bool, device=orders_GL.device)
    return torch.cat([always.expand(-1, -1, inputs), before_GLL, always], dim=2)


def available_given(emitted_GL: Tensor, inputs: int) -> Tensor:
    """available_GLP where the same targets have been emitted for all; a target never reads itself."""
    groups, targets = emitted_GL.shape
    others_LL = ~torch.eye(targets, dtype=torch.bool, device=emitted_GL.device)
    always = torch.ones(groups, targets, 1, dtype=torch.bool, device=emitted_GL.device)
    return torch.cat([always.expand(-1, -1, inputs), emitted_GL[:, None, :] & others_LL, always], dim=2)


def routed_model(train: EncodedDataset, config: AnyOrderConfig, seed: int) -> RoutedModel:
    """A fresh one for this data."""
    return RoutedModel(
        config.model,
        vocabulary=train.model_vocabulary,
        inputs=train.input_width,
        targets=train.target_width,
        rng=torch_generator(derive_seed(seed, "model")),
    ).to(train.inputs_NW.device)


def fit_any_order(
    model: RoutedModel,
    train: EncodedDataset,
    config: AnyOrderConfig,
    *,
    seed: int,
    checkpoints: CheckpointFolder | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
    order: Order | None = None,
) -> float:
    """Train the model in place on fresh random orders; the seconds it took, those before an interruption among them.

    With an order, on that alone, and each target pays for what it reads: it keeps to what it is computed from.
    """
    device = train.inputs_NW.device
    groups = 1 if order else min(config.groups, config.training.batch_size)
    samples = config.training.batch_size // groups
    fixed_GLP = available_before(torch.tensor([list(order)], device=device), train.input_width) if order else None

    def loss_at(step: int) -> Tensor:
        rng = numpy_generator(derive_seed(seed, "batch", step))
        rows_N = torch.from_numpy(rng.integers(len(train), size=groups * samples)).to(device)
        if fixed_GLP is None:
            orders_GL = torch.from_numpy(rng.permuted(np.tile(np.arange(train.target_width), (groups, 1)), axis=1))
            available_GLP = available_before(orders_GL.to(device), train.input_width)
        else:
            available_GLP = fixed_GLP
        loss = batch_loss(model, train, rows_N, available_GLP)
        return loss if fixed_GLP is None else loss + config.reading_price * model.reading_cost(available_GLP)

    fitted = fit(
        model,
        loss_at,
        config.training,
        seed=derive_seed(seed, "fit"),
        checkpoints=checkpoints,
        on_progress=on_progress,
        stop=stop,
        keep_end=True,
        parameter_groups=parameter_groups(model, config.routing_rate_factor),
    )
    return fitted.seconds


def parameter_groups(model: RoutedModel, routing_rate_factor: float) -> list[dict[str, Any]]:
    """For the optimiser: where to read is learnt faster than what to make of it."""
    others = [parameter for name, parameter in model.named_parameters() if name != "routing_LHP"]
    return [{"params": others}, {"params": [model.routing_LHP], "rate_factor": routing_rate_factor}]


def batch_loss(model: RoutedModel, train: EncodedDataset, rows_N: Tensor, available_GLP: Tensor) -> Tensor:
    """Per prediction, of samples that fall into as many groups as there are kinds of what is available."""
    groups = len(available_GLP)
    tokens_NP = positions_of(train, rows_N, model.vocabulary)
    logits_GBLV = model(tokens_NP.view(groups, len(rows_N) // groups, -1), available_GLP)
    return _losses(logits_GBLV.flatten(0, 1), train, rows_N).sum() / train.target_lengths_N[rows_N].sum()


def _losses(logits_NMV: Tensor, encoded: EncodedDataset, rows_N: Tensor, targets_M: Tensor | None = None) -> Tensor:
    """losses_NM of the targets, zero beyond a sample's length."""
    labels_NM = encoded.targets_NL[rows_N].long()
    index_M = torch.arange(encoded.target_width, device=labels_NM.device)
    if targets_M is not None:
        labels_NM, index_M = labels_NM[:, targets_M], targets_M
    losses_NM = functional.cross_entropy(
        logits_NMV.float().flatten(0, 1), labels_NM.flatten(), reduction="none"
    ).view_as(labels_NM)
    if encoded.is_fixed_length:
        return losses_NM
    return losses_NM * (index_M < encoded.target_lengths_N[rows_N][:, None])


@final
class AnyOrderOracle:
    """What a trained routed model says of the validation samples."""

    def __init__(
        self, model: RoutedModel, validation: EncodedDataset, samples: int, watch: ProgressReporter | None = None
    ) -> None:
        self.model = model.eval()
        self.watch = watch or ProgressReporter()
        self.validation = validation.head(samples)
        self._rows_N = torch.arange(len(self.validation), device=validation.inputs_NW.device)
        self._tokens_NP = positions_of(self.validation, self._rows_N, model.vocabulary)

    @property
    def targets(self) -> int:
        return self.model.targets

    def on_fewer_samples(self) -> "AnyOrderOracle":
        """For measurements at every position: the longer the targets, the fewer samples."""
        samples = max(_FEWEST_SAMPLES, _FEW_ROWS // self.targets)
        return AnyOrderOracle(self.model, self.validation, samples, self.watch)

    def with_broken(self, position: int) -> "AnyOrderOracle":
        """The same, but with the tokens at one position shuffled among the samples: what they told is lost."""
        broken = AnyOrderOracle(self.model, self.validation, len(self.validation))
        circle_N = torch.randperm(len(self.validation), generator=torch_generator(0))
        shuffled_N = torch.empty_like(circle_N)
        shuffled_N[circle_N] = circle_N.roll(1)  # no sample keeps its own
        shuffled_N = shuffled_N.to(self._tokens_NP.device)
        broken._tokens_NP = self._tokens_NP.clone()
        broken._tokens_NP[:, position] = self._tokens_NP[shuffled_N, position]
        return broken

    def mass_given(self, emitted: Sequence[int]) -> Tensor:
        """mass_LH, in logarithms: see `RoutedModel.mass`; of a target that is emitted itself it means nothing."""
        available_P = torch.ones(self.model.inputs + self.targets + 1, dtype=torch.bool, device=self._rows_N.device)
        available_P[self.model.inputs : -1] = False
        available_P[[self.model.inputs + target for target in emitted]] = True
        return self.model.mass(available_P)

    def losses(self, available_MP: Tensor, targets_M: Tensor | None = None) -> NDArray[np.float64]:
        """losses_NM of each target (or of those named) given what is available to it, by sample."""
        chunk = max(1, _ROWS // self.targets)
        parts = []
        with torch.inference_mode():
            for rows_B in torch.split(self._rows_N, chunk):
                logits_BMV = self.model(self._tokens_NP[rows_B][None], available_MP[None], targets_M)[0]
                parts.append(_losses(logits_BMV, self.validation, rows_B, targets_M).double().cpu().numpy())
        return np.concatenate(parts)

    def given(self, emitted: Sequence[int], targets: Sequence[int] | None = None) -> NDArray[np.float64]:
        """losses_NM of all targets, or of those named, once `emitted` are known."""
        device = self._rows_N.device
        emitted_1L = torch.zeros(1, self.targets, dtype=torch.bool, device=device)
        emitted_1L[0, list(emitted)] = True
        available_LP = available_given(emitted_1L, self.model.inputs)[0]
        if targets is None:
            return self.losses(available_LP)
        targets_M = torch.tensor(list(targets), device=device)
        return self.losses(available_LP[targets_M], targets_M)

    def of_order(self, order: Order) -> NDArray[np.float64]:
        """losses_NL of every target when emitted in this order."""
        orders_1L = torch.tensor([list(order)], device=self._rows_N.device)
        return self.losses(available_before(orders_1L, self.model.inputs)[0])

    def mean_given(self, emitted: Sequence[int], targets: Sequence[int]) -> NDArray[np.float64]:
        """losses_M of the targets named once `emitted` are known, each a mean over the samples that have it."""
        return self.mean_of_those_with(targets, self.given(emitted, targets))

    def mean_following(self, emitted: Sequence[int], units: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """losses_U of each unit, a mean over its targets, when they follow `emitted` one after the other.

        Targets that no sample has do not count, unless a unit has no other.
        """
        if all(len(unit) == 1 for unit in units):
            return self.mean_given(emitted, [unit[0] for unit in units])
        steps = [(target, unit[:place]) for unit in units for place, target in enumerate(unit)]
        emitted_ML = torch.zeros(len(steps), self.targets, dtype=torch.bool, device=self._rows_N.device)
        emitted_ML[:, list(emitted)] = True
        for row_L, (_, before) in zip(emitted_ML, steps, strict=True):
            row_L[list(before)] = True
        targets = np.array([target for target, _ in steps])
        targets_M = torch.from_numpy(targets).to(self._rows_N.device)
        available_MP = available_given(emitted_ML, self.model.inputs)[torch.arange(len(steps)), targets_M]
        losses_M = self.mean_of_those_with(targets, self.losses(available_MP, targets_M))
        parts = np.split(losses_M, np.cumsum([len(unit) for unit in units])[:-1])
        return np.array([part[np.isfinite(part)].mean() if np.isfinite(part).any() else np.inf for part in parts])

    def mean_of_targets(self, order: Order) -> NDArray[np.float64]:
        """losses_L of every target when emitted in this order, each a mean over the samples that have it."""
        return self.mean_of_those_with(range(self.targets), self.of_order(order))

    def mean_of_those_with(
        self, targets: Sequence[int] | NDArray[np.int64], losses_NM: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """losses_M of each target; infinite where no sample has it, since nothing is known of it then."""
        lengths_N = self.validation.target_lengths_N.cpu().numpy()
        samples_M = (lengths_N[:, None] > np.asarray(targets)).sum(axis=0)
        losses_M: NDArray[np.float64] = losses_NM.sum(axis=0) / np.maximum(samples_M, 1)
        return np.where(samples_M > 0, losses_M, np.inf)

    def mean_of_order(self, order: Order) -> NDArray[np.float64]:
        """losses_N whose mean is the loss per prediction, of targets emitted in this order."""
        lengths_N = self.validation.target_lengths_N.cpu().numpy()
        losses_N: NDArray[np.float64] = self.of_order(order).sum(axis=1) / lengths_N.mean()
        return losses_N
