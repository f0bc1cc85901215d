"""The model card of an export: what the model was trained on, how well it does, how to use it."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genorder.errors import InputError
from genorder.models import SavedModel
from genorder.outcomes import DiscoveryOutcome, TrainedModel, read_outcome
from genorder.runs import FinishedRun

_CARD = """\
---
library_name: transformers
pipeline_tag: text-generation
tags:
- gpt2
- genorder
---

# {title}

A GPT-2 that reads an input sequence and emits its target tokens in a chosen order, written by `genorder export`.

| | |
|---|---|
{facts}

Success rate: the share of test samples whose whole target is generated greedily without an error; in brackets, its
95 % confidence interval.

## The order

`order[k]` is the original index of the target that is emitted at step k, both counted from 0:

```json
{order}
```

A target of n < {targets} tokens is emitted in the same order without the indices from n on.

## How to use it

A prompt is the input's words, padded with `<pad>` to {inputs} words *before* `<sep>`: the model has learnt to read
`<pad>` as a word like any other, so the attention mask must be 1 there. {lengths} The answer ends with `<eos>`.
{escapes}
```python
{snippet}```

`genorder predict --model {folder} FILE` does the same.
"""

_SNIPPET = """\
import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = Path({folder})
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
about = json.loads((folder / "genorder.json").read_text())
word_of = dict(zip(about["vocabulary"], about["words"]))
token_of = dict(zip(about["words"], about["vocabulary"]))
width, order = about["input_width"], about["order"]


def prompt(tokens):
    words = [word_of[str(token)] for token in tokens]
    return " ".join([*words, *["<pad>"] * (width - len(words)), "<sep>"])


def undo_order(words):
    length = min(words.index("<eos>") if "<eos>" in words else len(words), len(order))
    target = [None] * length
    for step, index in enumerate(index for index in order if index < length):
        target[index] = token_of.get(words[step], words[step])
    return target


def predict(inputs):
    encoded = tokenizer([prompt(tokens) for tokens in inputs], return_tensors="pt")
    with torch.inference_mode():
        tokens = model.generate(**encoded, max_new_tokens=len(order) + 1, do_sample=False)
    return [undo_order(tokenizer.convert_ids_to_tokens(row)) for row in tokens[:, width + 1 :].tolist()]


print(predict([{example}]))
"""


def model_card(run: FinishedRun, saved: SavedModel, words: list[str], folder: str, *, given: bool) -> str:
    example = _example(run, saved)
    if saved.shortest_input == saved.input_width:
        lengths = f"All inputs have {saved.input_width} tokens."
    else:
        lengths = f"Inputs have {saved.shortest_input} to {saved.input_width} tokens."
    return _CARD.format(
        title=folder,
        facts="\n".join(f"| {name} | {value} |" for name, value in _facts(run, saved, given=given).items()),
        order=json.dumps(list(saved.order)),
        targets=saved.target_width,
        inputs=saved.input_width,
        lengths=lengths,
        escapes=_escapes(saved, words),
        snippet=_SNIPPET.format(folder=json.dumps(folder), example=json.dumps(example)),
        folder=folder,
    )


def _facts(run: FinishedRun, saved: SavedModel, *, given: bool) -> dict[str, str]:
    outcome = read_outcome(run.config["verb"], run.result, run.path)
    models = outcome.models if outcome else {}
    own = (models.get("given") if given else None) or models.get("model")
    sizes = run.config["data"]["samples"]
    gpt, training = saved.model.config, run.config["config"]
    training = training.get("final", training)["training"]
    facts = {
        "data": _data(run.config["data"]),
        "samples": ", ".join(f"{count} {name}" for name, count in sizes.items()),
        "order": "the given one" if given else _origin(run),
        "success rate": f"{_rate(own)} on {own.evaluation.samples} test samples" if own else "not tested",
    }
    if not given and isinstance(outcome, DiscoveryOutcome):
        facts["in the given order"] = "not trained" if outcome.given is None else _rate(outcome.given)
    if not given and outcome and outcome.truth and outcome.best_order:
        facts["order in the task's own indices"] = json.dumps(list(outcome.truth.true_order(outcome.best_order)))
        facts["operations, relative to the best order"] = f"{outcome.cost_ratio or math.nan:.2f} times"
    model = f"{gpt.layers} layers, {gpt.heads} heads, width {gpt.width}, {saved.model.parameter_count():,} parameters"
    return facts | {
        "model": model,
        "training": f"{own.steps if own else training['steps']} steps of {training['batch_size']} samples",
        "tokens": f"{len(saved.vocabulary)}, and `<pad>`, `<sep>`, `<eos>`",
        "seed": str(run.config["seed"]),
    }


def _data(description: Mapping[str, Any]) -> str:
    """What the data is, without the folder of a file: the card is for other users."""
    if "path" in description:
        return f"`{Path(description['path']).name}`"
    if "task" not in description:
        return "given in a Python program"
    hidden = description["hidden_order_seed"]
    columns = "" if hidden is None else f", its target columns hidden by seed {hidden}"
    return f"the built-in task `{Path(description['task']).name}`, length {description['length']}{columns}"


def _origin(run: FinishedRun) -> str:
    if run.config["verb"] == "train":
        return "chosen by hand"
    return f"found by `{run.result['strategy']}`"


def _rate(model: TrainedModel) -> str:
    low, high = model.evaluation.success_rate_interval
    return f"{100 * model.evaluation.success_rate:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _escapes(saved: SavedModel, words: list[str]) -> str:
    """A paragraph about the tokens that are not words by themselves; empty if there are none."""
    if tuple(words) == saved.vocabulary.tokens:
        return ""
    return (
        "\nSome tokens are not words by themselves, as they hold white space, `%` or the name of a special token; they "
        'are percent-encoded (`a b` is the word `a%20b`), and the empty token is `%`: `"words"` in `genorder.json` '
        'has them in the sequence of `"vocabulary"`.\n'
    )


def _example(run: FinishedRun, saved: SavedModel) -> list[str]:
    """A test input; if the data is gone, any input that the model can read."""
    try:
        return run.source.splits.test.input(0)
    except InputError:
        return list(saved.vocabulary.tokens[:1]) * saved.shortest_input
