"""The any-order oracle: losses of any target given any others, an order, and parents, from a trained routed model.

- `AnyOrderOracle` measures losses on validation samples.
- `greedy_order` emits at each step the target of least loss.
- `learned_dependencies` finds the parents of each target by permutation importance (Breiman, 2001).

Axes: N samples, L targets, M selected targets, U units, H slots, P positions (inputs, targets, and one that is always
empty), V vocabulary.
"""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genorder.data import EncodedDataset
from genorder.dependencies.graph import TargetDependency
from genorder.models.routed import RoutedModel
from genorder.orders import Constraints, Order
from genorder.profiling.any_order import available_before, available_given, position_tokens, routed_losses
from genorder.seeding import derive_seed, torch_generator
from genorder.training import ProgressReporter

_READ = 0.01  # attention weight below which a slot is taken not to read a position
_FEW_ROWS, _FEWEST_SAMPLES = 20_000, 64  # predictions of each of many measurements, and the least number of samples
_ROWS = 40_000  # predictions computed at once: enough to fill the cores, few enough for the caches
_PARENT_SHARE = 0.1  # least rise of a target's loss that makes a position a parent, relative to the largest rise
_PARENT_ERRORS = 4.0  # least rise in standard errors


@final
class AnyOrderOracle:
    """The losses of a trained routed model on the first `samples` validation samples. The seed is for permutations."""

    def __init__(
        self,
        model: RoutedModel,
        validation: EncodedDataset,
        samples: int,
        *,
        seed: int,
        reporter: ProgressReporter | None = None,
    ) -> None:
        self.model = model.eval()
        self.reporter = reporter or ProgressReporter()
        self.validation = validation.head(samples)
        self._seed = seed
        self._rows_N = torch.arange(len(self.validation), device=validation.inputs_NW.device)
        self._tokens_NP = position_tokens(self.validation, self._rows_N, model.vocabulary)

    @property
    def targets(self) -> int:
        return self.model.targets

    def on_fewer_samples(self) -> "AnyOrderOracle":
        """An oracle for measurements at every position: the more targets, the fewer samples."""
        samples = max(_FEWEST_SAMPLES, _FEW_ROWS // self.targets)
        return AnyOrderOracle(self.model, self.validation, samples, seed=self._seed, reporter=self.reporter)

    def with_permuted(self, position: int) -> "AnyOrderOracle":
        """An oracle whose tokens at one position are permuted among the samples, so that they carry no information.

        The permutation is a cycle, so every sample gets the token of another one. It is the same at each position.
        """
        permuted = AnyOrderOracle(self.model, self.validation, len(self.validation), seed=self._seed)
        rng = torch_generator(derive_seed(self._seed, "permutation"))
        cycle_N = torch.randperm(len(self.validation), generator=rng)
        source_N = torch.empty_like(cycle_N)
        source_N[cycle_N] = cycle_N.roll(1)
        permuted._tokens_NP = self._tokens_NP.clone()
        permuted._tokens_NP[:, position] = self._tokens_NP[source_N.to(self._tokens_NP.device), position]
        return permuted

    def log_mass_given(self, emitted: Sequence[int]) -> Tensor:
        """`RoutedModel.log_mass` once `emitted` are available; undefined for the emitted targets themselves."""
        available_P = torch.ones(self.model.inputs + self.targets + 1, dtype=torch.bool, device=self._rows_N.device)
        available_P[self.model.inputs : -1] = False
        available_P[[self.model.inputs + target for target in emitted]] = True
        return self.model.log_mass(available_P)

    def losses(self, available_MP: Tensor, targets_M: Tensor | None = None) -> NDArray[np.float64]:
        """losses_NM of all targets, or of `targets_M`, with these available positions."""
        chunk = max(1, _ROWS // self.targets)
        parts = []
        with torch.inference_mode():
            for rows_B in torch.split(self._rows_N, chunk):
                logits_BMV = self.model(self._tokens_NP[rows_B][None], available_MP[None], targets_M)[0]
                parts.append(routed_losses(logits_BMV, self.validation, rows_B, targets_M).double().cpu().numpy())
        return np.concatenate(parts)

    def given(self, emitted: Sequence[int], targets: Sequence[int] | None = None) -> NDArray[np.float64]:
        """losses_NM of all targets, or of `targets`, once `emitted` are available."""
        device = self._rows_N.device
        emitted_1L = torch.zeros(1, self.targets, dtype=torch.bool, device=device)
        emitted_1L[0, list(emitted)] = True
        available_LP = available_given(emitted_1L, self.model.inputs)[0]
        if targets is None:
            return self.losses(available_LP)
        targets_M = torch.tensor(list(targets), device=device)
        return self.losses(available_LP[targets_M], targets_M)

    def of_order(self, order: Order) -> NDArray[np.float64]:
        """losses_NL of all targets when they are emitted in this order."""
        orders_1L = torch.tensor([list(order)], device=self._rows_N.device)
        return self.losses(available_before(orders_1L, self.model.inputs)[0])

    def mean_of_order(self, order: Order) -> NDArray[np.float64]:
        """losses_N whose mean is the loss per target when the targets are emitted in this order."""
        lengths_N = self.validation.target_lengths_N.cpu().numpy()
        losses_N: NDArray[np.float64] = self.of_order(order).sum(axis=1) / lengths_N.mean()
        return losses_N

    def mean_given(self, emitted: Sequence[int], targets: Sequence[int]) -> NDArray[np.float64]:
        """losses_M of `targets` once `emitted` are available, each a mean over the samples that have the target."""
        return self._mean_over_samples(targets, self.given(emitted, targets))

    def mean_following(self, emitted: Sequence[int], units: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """losses_U of units that follow `emitted`: the targets of a unit are emitted one after the other.

        Targets that no sample has do not count, unless a unit has no others.
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
        losses_M = self._mean_over_samples(targets, self.losses(available_MP, targets_M))
        parts = np.split(losses_M, np.cumsum([len(unit) for unit in units])[:-1])
        return np.array([part[np.isfinite(part)].mean() if np.isfinite(part).any() else np.inf for part in parts])

    def _mean_over_samples(
        self, targets: Sequence[int] | NDArray[np.int64], losses_NM: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """losses_M of each target over the samples that have it; infinite if no sample has it."""
        lengths_N = self.validation.target_lengths_N.cpu().numpy()
        samples_M = (lengths_N[:, None] > np.asarray(targets)).sum(axis=0)
        losses_M: NDArray[np.float64] = losses_NM.sum(axis=0) / np.maximum(samples_M, 1)
        return np.where(samples_M > 0, losses_M, np.inf)


@final
class GrowingLosses:
    """`AnyOrderOracle.mean_given` for sets of emitted targets that only grow, with fewer measurements.

    A loss is measured again only if newly emitted targets take more than a hundredth of the attention of a slot.
    """

    def __init__(self, oracle: AnyOrderOracle) -> None:
        self._oracle = oracle
        self._losses_L = np.full(oracle.targets, np.nan)
        self._log_mass_LH = oracle.log_mass_given([])  # at the time of each target's measurement

    def mean_given(self, emitted: Sequence[int], targets: Sequence[int]) -> NDArray[np.float64]:
        log_mass_LH = self._oracle.log_mass_given(emitted)
        new_share_LH = -torch.expm1(self._log_mass_LH - log_mass_LH)
        stale_L = (new_share_LH > _READ).any(dim=1).cpu().numpy() | np.isnan(self._losses_L)
        if stale := [target for target in targets if stale_L[target]]:
            self._losses_L[stale] = self._oracle.mean_given(emitted, stale)
            self._log_mass_LH[stale] = log_mass_LH[stale]
        losses_M: NDArray[np.float64] = self._losses_L[list(targets)]
        return losses_M


def greedy_order(oracle: AnyOrderOracle, constraints: Constraints | None = None) -> Order:
    """The order that emits at each step the target of least loss, among those that the constraints allow."""
    units = (constraints or Constraints()).units(oracle.targets)
    growing = GrowingLosses(oracle)

    def choose(emitted: Sequence[int], available: Sequence[int]) -> int:
        oracle.reporter("constructing greedily", len(emitted), oracle.targets)
        if len(available) == 1:
            return 0
        following = [units.free[unit] for unit in available]
        if all(len(unit) == 1 for unit in following):
            return int(growing.mean_given(emitted, [unit[0] for unit in following]).argmin())
        return int(oracle.mean_following(emitted, following).argmin())

    return units.sort(choose)


def learned_dependencies(oracle: AnyOrderOracle, order: Order) -> list[TargetDependency]:
    """The parents of every target when the targets are emitted in this order, by permutation importance.

    A position is a parent of a target if the target's loss rises when the position's tokens are permuted.
    """
    model = oracle.model
    inputs, targets = model.inputs, model.targets
    oracle = oracle.on_fewer_samples()
    device = oracle.validation.inputs_NW.device
    available_LP = available_before(torch.tensor([list(order)], device=device), inputs)[0]
    read_LP = model.slot_weights(available_LP[None])[0].amax(dim=0) >= _READ
    losses_NL = oracle.losses(available_LP)
    rise_PL, error_PL = np.zeros((inputs + targets, targets)), np.zeros((inputs + targets, targets))
    for position in range(inputs + targets):
        oracle.reporter("permuting positions", position, inputs + targets)
        readers_M = read_LP[:, position].nonzero()[:, 0]
        if len(readers_M):
            readers = readers_M.cpu().numpy()
            permuted_NM = oracle.with_permuted(position).losses(available_LP[readers_M], readers_M)
            rise_NM = permuted_NM - losses_NL[:, readers]
            rise_PL[position, readers] = rise_NM.mean(axis=0)
            error_PL[position, readers] = rise_NM.std(axis=0, ddof=1) / np.sqrt(len(rise_NM))
    is_parent_PL = (rise_PL >= _PARENT_SHARE * rise_PL.max(axis=0)) & (rise_PL > _PARENT_ERRORS * error_PL)
    found = []
    for target in range(targets):
        rise_P = rise_PL[:, target]
        parents = sorted(is_parent_PL[:, target].nonzero()[0].tolist(), key=lambda position: -rise_P[position])
        names = {position: f"x{position}" if position < inputs else f"y{position - inputs}" for position in parents}
        found.append(
            TargetDependency(
                target=target,
                inputs=tuple(position for position in parents if position < inputs),
                targets=tuple(position - inputs for position in parents if position >= inputs),
                loss=float(losses_NL[:, target].mean()),
                loss_without={names[position]: float(rise_P[position]) for position in parents},
            )
        )
    return found
