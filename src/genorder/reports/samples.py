"""Test samples with what was generated for them, token by token."""

from dataclasses import dataclass
from typing import Any, final

from genorder.reports.run import ReportedRun
from genorder.reports.wording import visible

_TOKENS = 64  # of a sequence that are shown
_TOKEN_WIDTH = 32


@final
@dataclass(frozen=True)
class Token:
    target: str  # the column that it belongs to
    generated: str
    expected: str

    @property
    def right(self) -> bool:
        return self.generated == self.expected


@final
@dataclass(frozen=True)
class Sample:
    row: int
    right: bool
    inputs: list[str]
    tokens: list[Token]  # in the order of emission
    cut: int  # tokens that are not shown


def samples_of(run: ReportedRun, name: str) -> list[Sample]:
    """Of the model in the folder `name`; empty where the run kept none."""
    result: dict[str, Any] = (run.result.get("given") or {}) if name == "given" else run.result
    order = list(range(len(run.order or []))) if name == "given" else run.order
    if order is None or (name == "given" and order == run.order):
        return []
    return [_sample(run, example, order) for example in result.get("examples", [])]


def _sample(run: ReportedRun, example: dict[str, Any], order: list[int]) -> Sample:
    expected, generated = example["expected"], example["generated"]
    length = len(expected) - 1 if expected and expected[-1] == "<eos>" else len(order)
    names = [run.target(column) for column in order if column < length]
    tokens = [
        Token(names[step] if step < len(names) else "end", _shown(made), _shown(wanted))
        for step, (made, wanted) in enumerate(zip(generated, expected, strict=True))
    ]
    inputs = [_shown(token) for token in example["input"]]
    cut = max(0, len(tokens) - _TOKENS) + max(0, len(inputs) - _TOKENS)
    return Sample(example["row"], bool(example["right"]), inputs[:_TOKENS], tokens[:_TOKENS], cut)


def _shown(token: str) -> str:
    return visible(token, _TOKEN_WIDTH) or "''"
