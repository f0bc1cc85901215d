"""What each target is computed from, with the evidence, whatever found it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:  # they import torch, which takes seconds
    from genorder.dependencies.relations import Determinant
    from genorder.orders import Order

FoundBy = Literal["counting", "model", "none"]


@final
@dataclass(frozen=True, kw_only=True)
class TargetDependency:
    """The tokens that a target is computed from, and the evidence for it."""

    target: int  # stored column
    inputs: tuple[int, ...] = ()  # positions
    targets: tuple[int, ...] = ()  # stored columns
    found_by: FoundBy = "model"
    pairs: int | None = None  # counting: pairs of samples that agree on the determinant
    violations: int | None = None  # counting: of these pairs, how many differ in the target
    pointer: bool = False  # one of the inputs, chosen by `targets` and `choosers`
    choosers: tuple[int, ...] = ()  # pointer: input positions that choose
    loss: float | None = None  # model: of the target, given these tokens
    loss_without: Mapping[str, float] = field(default_factory=dict)  # model: rise of the loss by broken token: x3, y5

    @staticmethod
    def of(determinant: "Determinant", inputs: int) -> "TargetDependency":
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

    def to_dict(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("inputs", "targets", "choosers")}
        return {**asdict(self), **lists}

    @property
    def violation_rate(self) -> float | None:
        return None if self.violations is None or not self.pairs else self.violations / self.pairs


def is_topological(order: "Order", dependencies: Sequence[TargetDependency]) -> bool:
    """Does each target come after those that it is computed from?"""
    step = order.inverse()
    return all(step[parent] < step[one.target] for one in dependencies for parent in one.targets)
