"""Work outwards from the inputs: a target reads the inputs and the targets that are known already, and nothing else.

In random orders a target that stands in several relations, as a term of a sum does that can be solved for any of its
terms, learns to read whichever of them it meets first. Many of those look ahead, and no order follows. Here nothing
looks ahead: all targets are predicted from the inputs and from those that are known, and what is predicted well becomes
known. The sequence in which that happens is an order.

A target may become half known by the first few tokens that tell something of it, and its slots stay with them when
better ones become known. So once all are known, those that are worse than most begin their routing anew, several times,
and move behind what they need.

Axes: G groups of a batch, L targets, P positions (inputs, targets, one that is always empty), N samples, H slots,
M targets that are asked for.
"""

from collections.abc import Callable
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from genorder.data import EncodedDataset
from genorder.execution import StopRequest
from genorder.models.routed import RoutedModel
from genorder.orders import Order
from genorder.profiling.any_order import (
    AnyOrderConfig,
    AnyOrderOracle,
    available_before,
    batch_loss,
    parameter_groups,
)
from genorder.profiling.blind import blind_losses
from genorder.profiling.construction import GrowingLosses
from genorder.seeding import derive_seed, numpy_generator, torch_generator
from genorder.training import CheckpointFolder, Progress, fit

_LOOK_SAMPLES = 128  # of the validation samples, at each look at what is known
_GROUPS = 4  # of a batch
_LEARNT_SHARE = 0.9  # of the loss of a blind guess, above which nothing is learnt of a target
_FORGOTTEN_SHARE = 0.95  # the same of a target that was known: a little more, so that it does not come and go
_READ_SHARE = 0.1  # of what a slot reads, below which a target is taken not to be read
_WEAK = 2.0  # times the median of what is left of the targets: more is left of a weak one


@final
class OutwardTraining(nn.Module):
    """A routed model and how far it has come. What is known is part of its state, so that checkpoints hold it."""

    known_L: Tensor  # targets in the sequence in which they became known, then -1
    most: Tensor  # how many have been known at once
    waited: Tensor  # steps since that has risen
    weak_L: Tensor  # those that are worse than most, once all have been known
    restarts: Tensor  # how often they have begun anew
    restarted: Tensor  # steps waited then, the last time

    def __init__(
        self, model: RoutedModel, train: EncodedDataset, validation: EncodedDataset, config: AnyOrderConfig, seed: int
    ) -> None:
        super().__init__()
        self.model, self._train, self._config, self._seed = model, train, config.outward, seed
        self._round = config.training.steps  # by which lengths are told
        self._steps = config.outward_training().steps
        self._validation = validation.head(_LOOK_SAMPLES)
        self._blind_L = blind_losses(train, self._validation)
        lengths_N = self._validation.target_lengths_N.cpu().numpy()
        self._looked_at = {target for target in range(train.target_width) if (lengths_N > target).any()}
        # On the CPU whatever the device: they are read at every step.
        self.register_buffer("known_L", torch.full((train.target_width,), -1))
        self.register_buffer("weak_L", torch.zeros(train.target_width, dtype=torch.bool))
        for counter in ("most", "waited", "restarts", "restarted"):
            self.register_buffer(counter, torch.zeros((), dtype=torch.long))

    @property
    def known(self) -> list[int]:
        targets: list[int] = self.known_L[self.known_L >= 0].tolist()
        return targets

    @property
    def unknown(self) -> list[int]:
        return sorted(set(range(len(self.known_L))) - set(self.known))

    @property
    def polishing(self) -> bool:
        """Have all been known, of those that a sample has by which to judge?"""
        return int(self.most) >= len(self._looked_at)

    def enough(self) -> bool:
        """Is all known, and no better for beginning anew, or nothing to be hoped for?"""
        if not self.polishing:
            return self._waited_for(self._config.give_up)
        return self._waited_for(self._config.polish, since=self.restarted)

    def _waited_for(self, rounds: float, since: Tensor | int = 0) -> bool:
        return int(self.waited) - int(since) >= self._round * rounds

    def loss_at(self, step: int) -> Tensor:
        rng = numpy_generator(derive_seed(self._seed, "batch", step))
        samples = max(1, self._config.batch_size // _GROUPS)
        rows_N = torch.from_numpy(rng.integers(len(self._train), size=_GROUPS * samples))
        return batch_loss(self.model, self._train, rows_N.to(self._train.inputs_NW.device), self._available())

    def _available(self) -> Tensor:
        """available_GLP: the inputs, and of the known targets those that became known earlier.

        In the last group the inputs alone, so that it stays known how far these go; but not for the weak ones, which
        would come back to them.
        """
        inputs, unknown = self._train.input_width, self.unknown
        sequence_1L = torch.tensor([[*self.known, *unknown]], device=self._train.inputs_NW.device)
        available_GLP = available_before(sequence_1L, inputs).repeat(_GROUPS, 1, 1)
        available_GLP[:, :, [inputs + target for target in unknown]] = False
        available_GLP[-1, ~self.weak_L.to(available_GLP.device), inputs:-1] = False
        return available_GLP

    def after_step(self, done: int) -> None:
        self.waited += 1
        if done % self._config.interval == 0:
            self._look(done)

    def _look(self, done: int) -> None:
        """Which targets are known by now? Of the others, those of which nothing is learnt begin their routing anew."""
        before = self.known
        oracle = AnyOrderOracle(self.model, self._validation, _LOOK_SAMPLES)
        if not self.polishing:
            known, rest, shares_M = self._known(oracle, self._config.known_share, before)
            if rest and len(known) <= len(before) and self._waited_for(self._config.patience):
                nearest = int(np.argmin(shares_M))
                known += [rest[nearest]] if shares_M[nearest] <= _LEARNT_SHARE else []
            self._keep(known)
            if len(known) > int(self.most):
                self.most.fill_(len(known))
                self.waited.zero_()
                nothing_learnt = [t for t, share in zip(rest, shares_M, strict=True) if share > _LEARNT_SHARE]
                self._forget_routing(nothing_learnt, done)
        if self.polishing:
            self._polish(oracle, done)

    def _keep(self, known: list[int]) -> None:
        self.known_L.fill_(-1)
        self.known_L[: len(known)] = torch.tensor(known, dtype=torch.long)

    def _polish(self, oracle: AnyOrderOracle, done: int) -> None:
        """Count the targets that are worse than most; from time to time they move back, and begin anew."""
        shares_L = self._shares_in_sequence(oracle)
        judged_L = np.array([target in self._looked_at for target in range(len(shares_L))])
        share = max(self._config.polished_share, _WEAK * float(np.median(shares_L[judged_L])))
        self.weak_L.copy_(torch.from_numpy(judged_L & (shares_L > share)))
        weak = self.weak_L.nonzero()[:, 0].tolist()
        left = self._steps - done
        due = int(self.restarts) == 0 or self._waited_for(self._config.restart_every, since=self.restarted)
        if weak and due and int(self.restarts) < self._config.restarts and left >= self._round * self._config.polish:
            self._keep(self._moved_back(weak, oracle, share))
            self._forget_routing(weak, done)
            self.restarts += 1
            self.restarted.copy_(self.waited)

    def _moved_back(self, weak: list[int], oracle: AnyOrderOracle, share: float) -> list[int]:
        """The known targets in a sequence in which the weak ones come as late as those that read them allow.

        A pointer may read anything, so that what is read does not tell: there they come behind what does better.
        """
        if self.model.config.pointer:
            known, rest, _ = self._known(oracle, min(share, self._config.known_share), self.known)
            return [*known, *(target for target in self.known if target in rest)]
        weights_LP = self.model.slot_weights(self._available()[:1])[0].amax(dim=0)
        reads_LL = (weights_LP[:, self._train.input_width : -1] > _READ_SHARE).cpu().numpy()
        moved: list[int] = []
        waiting = self.known
        while waiting:
            free = [target for target in waiting if not reads_LL[target, waiting].any()]
            needed = [target for target in free if reads_LL[waiting, target].any()]
            moved.append(next((target for target in free if target not in weak), (needed or free)[0]))
            waiting.remove(moved[-1])
        return moved

    def _shares_in_sequence(self, oracle: AnyOrderOracle) -> NDArray[np.float64]:
        return self._shares(oracle.mean_of_targets(Order.of([*self.known, *self.unknown])))

    def _known(
        self, oracle: AnyOrderOracle, enough: float, before: list[int]
    ) -> tuple[list[int], list[int], NDArray[np.float64]]:
        """Targets of which no more than that share is left, given those before; the rest, and their shares."""
        known: list[int] = []
        growing = GrowingLosses(oracle)
        while rest := [target for target in range(len(self.known_L)) if target not in known]:
            losses_L = np.zeros(len(self.known_L))
            losses_L[rest] = growing.mean_given(known, rest)
            shares_L = self._shares(losses_L)
            nearest = sorted(rest, key=lambda target: shares_L[target])
            found = [target for target in nearest if shares_L[target] <= enough]
            # One that was known stays, but behind all that do better: it may have come before what it needs.
            found = found or [t for t in nearest if t in before and shares_L[t] <= _FORGOTTEN_SHARE][:1]
            if not found:
                return known, rest, shares_L[rest]
            known += found
        return known, [], np.zeros(0)

    def _shares(self, losses_L: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the loss of a blind guess that is left of each target; one that no sample has is never known."""
        shares_L = np.divide(losses_L, self._blind_L, out=np.zeros_like(losses_L), where=self._blind_L > 0)
        return np.where(np.isfinite(losses_L), shares_L, np.inf)

    @torch.no_grad()
    def _forget_routing(self, targets: list[int], done: int) -> None:
        """Slots that settled while there was nothing to read would hardly move to what has become known."""
        fresh_MHP = self.model.fresh_routing(torch_generator(derive_seed(self._seed, "routing", done)))[targets]
        self.model.routing_LHP[targets] = fresh_MHP.to(self.model.routing_LHP.device)


def fit_outward(
    model: RoutedModel,
    train: EncodedDataset,
    validation: EncodedDataset,
    config: AnyOrderConfig,
    *,
    seed: int,
    checkpoints: CheckpointFolder | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopRequest | None = None,
) -> tuple[list[int], int, float]:
    """Train the model in place: the targets that became known, in their sequence, the steps and the seconds it took."""
    training = OutwardTraining(model, train, validation, config, seed)
    fitted = fit(
        training,
        training.loss_at,
        config.outward_training(),
        seed=derive_seed(seed, "fit"),
        checkpoints=checkpoints,
        on_progress=on_progress,
        after_step=training.after_step,
        stop=stop,
        parameter_groups=parameter_groups(model, config.routing_rate_factor),
        keep_end=True,
        enough=training.enough,
    )
    return training.known, len(fitted.losses), fitted.seconds
