"""What each target is computed from, with the evidence: mined determinants, and dependencies from either source."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:  # imports torch, which takes seconds
    from genorder.orders import Order

Positions = tuple[int, ...]  # of inputs, then of targets; ascending
FoundBy = Literal["counting", "model", "none"]  # mining counts samples


@final
@dataclass(frozen=True)
class Determinant:
    """Positions that determine a target: a functional dependency, with the evidence."""

    target: int
    positions: Positions
    bits: float  # the sum of the positions' entropies, which grows with the size of the function's table
    pairs: int  # pairs of samples that agree at the positions
    violations: int  # of these pairs, the number that differ in the target
    pointer: bool = False  # the positions choose which input is copied

    @property
    def complexity(self) -> tuple[int, float, Positions]:
        return len(self.positions), self.bits, self.positions

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> "Determinant":
        return cls(**{**row, "positions": tuple(row["positions"])})


@final
@dataclass(frozen=True)
class FunctionalDependencies:
    """The determinants of the targets, and those that forward chaining from the inputs chose among them."""

    inputs: int
    targets: int
    determinants: dict[int, Determinant]  # the chosen one of each reached target; targets in the sequence of chaining
    found: dict[int, tuple[Determinant, ...]]  # all mined determinants of each target, the simplest first
    ambiguous: tuple[int, ...]  # targets for which an equally small choice without their determinant exists
    noise: float  # share of the targets' tokens that are drawn at random

    @classmethod
    def none(cls, inputs: int, targets: int) -> "FunctionalDependencies":
        """Nothing was mined."""
        return cls(inputs, targets, {}, dict.fromkeys(range(targets), ()), (), 0.0)

    @property
    def open(self) -> list[int]:
        """The targets that forward chaining does not reach."""
        return [target for target in range(self.targets) if target not in self.determinants]

    def to_dict(self) -> dict[str, object]:
        return {
            "known": [asdict(one) for one in self.determinants.values()],
            "found": [asdict(one) for found in self.found.values() for one in found],
            "ambiguous": list(self.ambiguous),
            "noise": self.noise,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], inputs: int, targets: int) -> "FunctionalDependencies":
        known, every = ([Determinant.from_dict(row) for row in saved[name]] for name in ("known", "found"))
        found = {target: tuple(one for one in every if one.target == target) for target in range(targets)}
        chosen = {one.target: one for one in known}
        return cls(inputs, targets, chosen, found, tuple(saved["ambiguous"]), saved["noise"])


@final
@dataclass(frozen=True, kw_only=True)
class TargetDependency:
    """The tokens that a target is computed from, and the evidence for it."""

    target: int  # stored column
    inputs: tuple[int, ...] = ()  # positions
    targets: tuple[int, ...] = ()  # stored columns
    found_by: FoundBy = "model"
    pairs: int | None = None  # counting: pairs of samples that agree on the determinant
    violations: int | None = None  # counting: of these pairs, the number that differ in the target
    pointer: bool = False  # the target copies one of the inputs, chosen by `targets` and `choosers`
    choosers: tuple[int, ...] = ()  # pointer: input positions that choose
    loss: float | None = None  # model: of the target, given these tokens
    loss_without: Mapping[str, float] = field(default_factory=dict)  # model: rise of the loss by broken token: x3, y5

    @staticmethod
    def of(determinant: Determinant, inputs: int) -> "TargetDependency":
        """`inputs` is the number of input positions; a pointer may copy any of them."""
        read = tuple(p for p in determinant.positions if p < inputs)
        return TargetDependency(
            target=determinant.target,
            inputs=tuple(range(inputs)) if determinant.pointer else read,
            targets=tuple(p - inputs for p in determinant.positions if p >= inputs),
            found_by="counting",
            pairs=determinant.pairs,
            violations=determinant.violations,
            pointer=determinant.pointer,
            choosers=read if determinant.pointer else (),
        )

    @staticmethod
    def from_dict(row: Mapping[str, Any]) -> "TargetDependency":
        """Rows of earlier versions lack some keys."""
        return TargetDependency(
            target=row["target"],
            inputs=tuple(row["inputs"]),
            targets=tuple(row["targets"]),
            found_by=row.get("found_by", "model"),
            pairs=row.get("pairs"),
            violations=row.get("violations"),
            pointer=bool(row.get("pointer")),
            choosers=tuple(row.get("choosers", ())),
            loss=row.get("loss"),
            loss_without=row.get("loss_without") or {},
        )

    def to_dict(self) -> dict[str, object]:
        lists = {name: list(getattr(self, name)) for name in ("inputs", "targets", "choosers")}
        return {**asdict(self), **lists}

    @property
    def violation_rate(self) -> float | None:
        return None if self.violations is None or not self.pairs else self.violations / self.pairs


def is_topological(order: "Order", dependencies: Sequence[TargetDependency]) -> bool:
    """Whether each target comes after the targets that it is computed from."""
    step = order.inverse()
    return all(step[parent] < step[one.target] for one in dependencies for parent in one.targets)
