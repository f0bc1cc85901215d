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
    generated: str  # shortened, as is what was expected: long ones may look alike and not be
    expected: str
    right: bool


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
    length = example.get("length", len(expected) - 1)  # earlier versions did not keep it
    names = [run.target(column) for column in order if column < length]
    tokens = [
        Token(names[step] if step < len(names) else "end", _shown(made), _shown(wanted), made == wanted)
        for step, (made, wanted) in enumerate(zip(generated[:_TOKENS], expected[:_TOKENS], strict=True))
    ]
    inputs = [_shown(token) for token in example["input"][:_TOKENS]]
    cut = length + 1 - len(tokens) + example.get("input_length", len(example["input"])) - len(inputs)
    return Sample(example["row"], bool(example["right"]), inputs, tokens, cut)


def _shown(token: str) -> str:
    return visible(token, _TOKEN_WIDTH) or "''"
