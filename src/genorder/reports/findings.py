"""What a discovery found, read from its result: the verdict, what determines each target, and the evidence for it.

Results of earlier versions lack some keys. They are filled in here, so that everything else reads one form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from genorder.dependencies.graph import FoundBy, TargetDependency
from genorder.reports.wording import count_of, percent

ORDER_FOUND, NO_ORDER, NOTHING_LEARNT = "order found", "no order preferred", "nothing learnt"
NOT_SETTLED, CONSTANT = "not settled", "constant targets"
_KEEPS_GIVEN = (NO_ORDER, NOTHING_LEARNT, CONSTANT)
_RUN = 4  # consecutive inputs that are written as a range: x0-x3
_RARE = 0.0005  # share of pairs that `percent` would round to zero


@final
@dataclass(frozen=True, kw_only=True)
class Findings:
    verdict: str | None  # None: the strategy judges nothing
    advice: str | None
    dependencies: list[TargetDependency]  # one for each target; empty: not known
    keeps_given: bool  # the verdict names no order of its own: the given one is the answer
    repaired: bool  # the given order is kept as far as the constraints allow
    race_decided: bool  # the order is the first of the race, or tied with it, and it is the answer

    @property
    def found_by_model(self) -> bool:
        return any(dependency.found_by == "model" for dependency in self.dependencies)


def findings_of(result: Mapping[str, Any]) -> Findings:
    """Of a result of `discover`, also of an earlier version, and of other results, which have none."""
    details = result.get("proposed", {}).get("details", {})
    verdict = result.get("verdict", details.get("verdict"))
    keeps_given = verdict in _KEEPS_GIVEN
    order, race = result.get("order"), result.get("race") or []
    first = bool(race) and (order == race[0]["order"] or race[0]["order"] in (result.get("tied_orders") or []))
    return Findings(
        verdict=verdict,
        advice=result.get("advice", details.get("advice")),
        # What a model reads that has learnt nothing is chance.
        dependencies=[] if verdict == NOTHING_LEARNT else dependencies_of(result),
        keeps_given=keeps_given,
        repaired=keeps_given and bool(result.get("constraints")) and order != result.get("given_order"),
        race_decided=first and not keeps_given,
    )


def dependencies_of(result: Mapping[str, Any]) -> list[TargetDependency]:
    """As they stand in the result, whatever the verdict is."""
    details = result.get("proposed", {}).get("details", {})
    rows = result.get("dependencies", details.get("dependencies")) or []
    return [TargetDependency.from_dict(row) for row in rows]


def recipe(dependency: TargetDependency, target: Callable[[int], str], source: Callable[[int], str]) -> str:
    """`s2 <- q2, s1`; `target` and `source` name a target and an input."""
    inputs, targets = _input_names(dependency.inputs, source), [target(column) for column in dependency.targets]
    if dependency.found_by == "none":
        told = "not determined by other tokens"
    elif dependency.pointer:
        choosers = [*(source(position) for position in dependency.choosers), *targets]
        told = f"one of {', '.join(inputs)}, chosen by {', '.join(choosers) or 'the others'}"
    else:
        told = ", ".join([*inputs, *targets]) or (
            "nothing: constant" if dependency.found_by == "counting" else "nothing"
        )
    return f"{target(dependency.target)} <- {told}"


def _input_names(positions: Sequence[int], source: Callable[[int], str]) -> list[str]:
    """Consecutive inputs without names of their own as a range."""
    names: list[str] = []
    start = 0
    while start < len(positions):
        end = start + 1
        while end < len(positions) and positions[end] == positions[end - 1] + 1:
            end += 1
        run = [source(position) for position in positions[start:end]]
        plain = all(name == f"x{position}" for name, position in zip(run, positions[start:end], strict=True))
        names += [f"{run[0]}-{run[-1]}"] if plain and len(run) >= _RUN else run
        start = end
    return names


def evidence_line(dependencies: Sequence[TargetDependency]) -> str:
    """`counted: 20 of 20 targets determined, 99,639 or more pairs of samples each, no counterexample`."""
    counted, by_model, open_ = _by_source(dependencies)
    parts = []
    if counted:
        told = [f"counted: {len(counted)} of {count_of(len(dependencies), 'target')} determined", *_pairs(counted)]
        parts.append(", ".join([*told, *_violations(counted, "no counterexample")]))
    if by_model:
        parts.append(f"{count_of(len(by_model), 'target')} by a trained model")
    if open_:
        parts.append(f"{count_of(len(open_), 'target')} not determined")
    return "; ".join(parts)


def counted_evidence(dependencies: Sequence[TargetDependency], order: Sequence[int]) -> list[str]:
    """What was counted, in sentences; empty where nothing was."""
    counted, *_ = _by_source(dependencies)
    if not counted:
        return []
    which = "every target is" if len(counted) == len(dependencies) else _some(counted, dependencies)
    place = {column: step for step, column in enumerate(order)}
    earlier = all(place[parent] < place[one.target] for one in counted for parent in one.targets)
    size = max((len(one.inputs) + len(one.targets) for one in counted if not one.pointer), default=0)
    tokens = f" by at most {count_of(size, 'earlier token' if earlier else 'other token')}" if size else ""
    told = [*(f"in {pairs}" for pairs in _pairs(counted)), *_violations(counted, "without a counterexample")]
    sentences = [f"Counted: {', '.join([f'{which} determined{tokens}', *told])}."]
    if pointers := sum(one.pointer for one in counted):
        copies = "copies one of the inputs" if pointers == 1 else "copy one of the inputs each"
        sentences.append(f"{count_of(pointers, 'target')} {copies}, chosen by other tokens (pointer).")
    return sentences


def other_evidence(dependencies: Sequence[TargetDependency]) -> list[str]:
    """For what was not counted, in sentences."""
    _, by_model, open_ = _by_source(dependencies)
    sentences = []
    if by_model:
        sentences.append(f"What {_some(by_model, dependencies)} computed from was read off a trained model.")
    if open_:
        sentences.append(f"{_some(open_, dependencies)} not determined by other tokens, as far as could be found.")
    return sentences


def _by_source(dependencies: Sequence[TargetDependency]) -> tuple[list[TargetDependency], ...]:
    kinds: tuple[FoundBy, ...] = ("counting", "model", "none")
    return tuple([one for one in dependencies if one.found_by == kind] for kind in kinds)


def _some(part: Sequence[TargetDependency], whole: Sequence[TargetDependency]) -> str:
    """`3 of 20 targets are`."""
    return f"{len(part)} of {count_of(len(whole), 'target')} {'is' if len(part) == 1 else 'are'}"


def _pairs(counted: Sequence[TargetDependency]) -> list[str]:
    known = [one.pairs for one in counted if one.pairs is not None]
    return [f"{min(known):,} or more pairs of samples each"] if known else []


def _violations(counted: Sequence[TargetDependency], none: str) -> list[str]:
    known = [(one.violations, one.pairs) for one in counted if one.violations is not None and one.pairs]
    violations, pairs = sum(differ for differ, _ in known), sum(compared for _, compared in known)
    if not known:
        return []
    if not violations:
        return [none]
    share = f"{violations:,} of {pairs:,}" if violations / pairs < _RARE else f"{percent(violations / pairs)} of the"
    return [f"{share} pairs differ (noise)"]
