"""`genorder predict`: targets for new inputs."""

import json as json_module
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import emit_json
from genorder.data.jsonl import parse_object, parse_tokens
from genorder.errors import InputError
from genorder.evaluation import predict as predict_targets
from genorder.execution import choose_device, set_threads
from genorder.fixed_order import model_folder
from genorder.models import load_model


def predict(
    model: Annotated[Path, typer.Option(help="Run directory, or a model's folder.")],
    inputs: Annotated[
        str,
        typer.Argument(
            help='File of inputs, - for standard input: tokens, a JSON list, or {"input": ...} a line.'
        ),
    ] = "-",
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Predict targets for inputs, one a line, in the original order of the target columns.

    Example: echo "4 -7 -7 -3 8" | genorder predict --model runs/train-relu-L5-forward-1a2b3c4d
    """
    chosen = choose_device(device)
    set_threads(threads)
    saved = load_model(model_folder(model), chosen)
    name = "standard input" if inputs == "-" else inputs
    rows, places = [], []
    for number, line in enumerate(_lines(inputs), start=1):
        if line.strip():
            places.append(f"{name}:{number}")
            rows.append([str(token) for token in _parse_line(line, places[-1])])
    if not rows:
        raise InputError(f"{name} holds no inputs; expected one a line")
    predicted = predict_targets(saved, rows, where=places)
    if json:
        emit_json({"predictions": predicted})
        return
    for target in predicted:
        sys.stdout.write(" ".join(target) + "\n")


def _lines(inputs: str) -> Iterable[str]:
    if inputs == "-":
        yield from sys.stdin
        return
    try:
        with Path(inputs).open(encoding="utf-8-sig") as file:
            yield from file
    except OSError as error:
        raise InputError(f"cannot read {inputs}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{inputs} is not UTF-8 text ({error.reason} at byte {error.start})") from None


def _parse_line(line: str, where: str) -> list[object]:
    text = line.strip()
    if text.startswith("{"):
        record = parse_object(text, where)
        if "input" not in record:
            raise InputError(f"{where}: no 'input' among the keys {sorted(record)}")
        return parse_tokens(record["input"], where, "input")
    if text.startswith("["):
        try:
            return parse_tokens(json_module.loads(text), where, "input")
        except json_module.JSONDecodeError as error:
            raise InputError(f"{where}: not JSON ({error.msg}): {text[:60]}") from None
    return list(text.split())
