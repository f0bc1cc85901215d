"""Training of the routed model on random orders: one short run gives the loss of any target given any others.

Axes: N samples, G groups with one order each, L targets, M selected targets, P positions (inputs, targets, and one that
is always empty), V vocabulary.
"""

from collections.abc import Callable

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from genorder.data import EncodedDataset
from genorder.execution import StopRequest
from genorder.models.routed import RoutedConfig, RoutedModel
from genorder.orders import Order
from genorder.seeding import derive_seed, numpy_generator, torch_generator
from genorder.training import CheckpointFolder, ParameterGroup, Progress, TrainingConfig, fit


class AnyOrderConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: RoutedConfig = RoutedConfig()
    training: TrainingConfig = TrainingConfig(
        steps=400, batch_size=256, learning_rate=3e-3, warmup_steps=50, beta2=0.98, weight_decay=0.0
    )
    groups: int = Field(default=16, ge=1)  # of a batch, each with its own random order
    routing_rate_factor: float = Field(default=17.0, gt=0)  # relative learning rate of the routing logits
    validation_samples: int = Field(default=512, ge=2)
    graph_steps: int = Field(default=200, ge=0)  # of training in the best order, with the read penalty
    read_penalty: float = Field(default=0.02, ge=0)  # in loss, per position that a target attends to


def with_steps(config: AnyOrderConfig, steps: int) -> AnyOrderConfig:
    return config.model_copy(update={"training": config.training.model_copy(update={"steps": steps})})


def routed_model(train: EncodedDataset, config: AnyOrderConfig, seed: int) -> RoutedModel:
    """A new model for this data."""
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
    """Train the model in place on random orders. Returns the seconds, including those before an interruption.

    With an order, train on this order only and add the read penalty: each target then attends to its parents only.
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
        tokens_NP = position_tokens(train, rows_N, model.vocabulary)
        logits_GBLV = model(tokens_NP.view(groups, samples, -1), available_GLP)
        loss = routed_losses(logits_GBLV.flatten(0, 1), train, rows_N).sum() / train.target_lengths_N[rows_N].sum()
        return loss if fixed_GLP is None else loss + config.read_penalty * model.read_penalty(available_GLP)

    fitted = fit(
        model,
        loss_at,
        config.training,
        seed=derive_seed(seed, "fit"),
        checkpoints=checkpoints,
        on_progress=on_progress,
        stop=stop,
        keep_end=True,
        parameter_groups=[
            ParameterGroup([parameter for name, parameter in model.named_parameters() if name != "routing_LHP"]),
            ParameterGroup([model.routing_LHP], rate_factor=config.routing_rate_factor),
        ],
    )
    return fitted.seconds


def position_tokens(encoded: EncodedDataset, rows_N: Tensor, empty: int) -> Tensor:
    """tokens_NP: inputs, targets, and the empty position. Targets beyond a sample's length are padding tokens."""
    inputs_NW, targets_NL = encoded.inputs_NW[rows_N], encoded.targets_NL[rows_N]
    return torch.cat([inputs_NW, targets_NL, torch.full_like(targets_NL[:, :1], empty)], dim=1).long()


def available_before(orders_GL: Tensor, inputs: int) -> Tensor:
    """available_GLP: for each target the inputs, the targets before it in the order, and the empty position."""
    groups, targets = orders_GL.shape
    step_GL = orders_GL.argsort(dim=1)
    before_GLL = step_GL[:, None, :] < step_GL[:, :, None]
    always = torch.ones(groups, targets, 1, dtype=torch.bool, device=orders_GL.device)
    return torch.cat([always.expand(-1, -1, inputs), before_GLL, always], dim=2)


def available_given(emitted_GL: Tensor, inputs: int) -> Tensor:
    """available_GLP: for each target the inputs, the emitted targets except itself, and the empty position."""
    groups, targets = emitted_GL.shape
    others_LL = ~torch.eye(targets, dtype=torch.bool, device=emitted_GL.device)
    always = torch.ones(groups, targets, 1, dtype=torch.bool, device=emitted_GL.device)
    return torch.cat([always.expand(-1, -1, inputs), emitted_GL[:, None, :] & others_LL, always], dim=2)


def routed_losses(
    logits_NMV: Tensor, encoded: EncodedDataset, rows_N: Tensor, targets_M: Tensor | None = None
) -> Tensor:
    """Cross-entropy_NM of the targets; zero beyond a sample's length."""
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
