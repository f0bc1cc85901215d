"""`genorder predict`: targets for new inputs."""

import itertools
from pathlib import Path
from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import emit_json, emit_line
from genorder.data.readers.jsonl import parse_json, parse_object
from genorder.data.readers.lines import numbered_lines, shown_name
from genorder.data.readers.tokens import parse_tokens, shortened
from genorder.errors import InputError
from genorder.evaluation import predict as predict_targets
from genorder.execution import choose_device, set_threads
from genorder.fixed_order import model_folder
from genorder.models import load_model

_PART = 4096  # inputs that are read, predicted and written together


def predict(
    model: Annotated[Path, typer.Option(help="Run directory, a model's folder, or an exported one.")],
    inputs: Annotated[
        str,
        typer.Argument(help='File of inputs, - for standard input: tokens, a JSON list, or {"input": ...} a line.'),
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
    name = shown_name(inputs)
    lines = numbered_lines(inputs)
    predicted: list[list[str]] = []
    count = 0
    while part := list(itertools.islice(lines, _PART)):
        count += len(part)
        rows = [[str(token) for token in _parse_line(line, where)] for where, line in part]
        targets = predict_targets(saved, rows, where=[where for where, _ in part])
        if json:
            predicted += targets
        else:
            for target in targets:
                emit_line(" ".join(target))
    if not count:
        raise InputError(f"{name} holds no inputs; expected one a line")
    if json:
        emit_json({"predictions": predicted})


def _parse_line(line: str, where: str) -> list[object]:
    text = line.strip()
    if text.startswith("{"):
        record = parse_object(text, where)
        if "input" not in record:
            raise InputError(f"{where}: no 'input' among the keys {shortened(sorted(record))}")
        return parse_tokens(record["input"], where, "input")
    if text.startswith("["):
        return parse_tokens(parse_json(text, where), where, "input")
    return list(text.split())
