"""`genorder predict`: targets for new inputs."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import emit_json, emit_line, say
from genorder.data.readers import SPLITTERS, ReadOptions
from genorder.data.readers.jsonl import parse_json, parse_object
from genorder.data.readers.options import join_columns
from genorder.data.readers.text import display_name, numbered_lines
from genorder.data.readers.tokens import parse_tokens, short_repr
from genorder.errors import InputError
from genorder.evaluation import predict as predict_targets
from genorder.execution import choose_device, set_threads
from genorder.fixed_order import model_folder
from genorder.models import load_model
from genorder.runs import origin_of_model

_PART = 4096  # inputs that are read, predicted and written together


def predict(
    model: Annotated[Path, typer.Option(help="Run directory, a model's folder, or an exported one.")],
    inputs: Annotated[
        str,
        typer.Argument(help='File of inputs, - for standard input: tokens, a JSON list, or {"input": ...} a line.'),
    ] = "-",
    split: Annotated[
        str | None,
        typer.Option(
            "--split", "--split-tokens", help=f"What cuts a line: {', '.join(SPLITTERS)}; default: the run's."
        ),
    ] = None,
    input_column: Annotated[str | None, typer.Option(help="Key of the input in an object; default: the run's.")] = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Predict targets for inputs, one a line, in the original order of the target columns.

    Inputs are read like the data of the run. Targets of a built-in task are in the task's own sequence.

    Example: echo "4 -7 -7 -3 8" | genorder predict --model runs/train-relu-L5-forward-1a2b3c4d
    """
    chosen = choose_device(device)
    set_threads(threads)
    saved = load_model(model_folder(model), chosen)
    origin = origin_of_model(model)
    changes = {"split": split, "input_column": input_column}
    reading = replace(origin.reading, **{option: value for option, value in changes.items() if value is not None})
    if origin.note:
        say(origin.note)
    name = display_name(inputs)
    lines = numbered_lines(inputs)
    predicted: list[list[str]] = []
    count = 0
    while part := list(itertools.islice(lines, _PART)):
        count += len(part)
        rows = [[str(token) for token in _parse_line(line, where, reading)] for where, line in part]
        stored = predict_targets(saved, rows, where=[where for where, _ in part])
        targets = [origin.in_own_sequence(target) for target in stored]
        if json:
            predicted += targets
        else:
            for target in targets:
                emit_line(" ".join(target))
    if not count:
        raise InputError(f"{name} holds no inputs; expected one a line")
    if json:
        emit_json({"predictions": predicted})


def _parse_line(line: str, where: str, reading: ReadOptions) -> list[object]:
    text, splitter = line.strip(), SPLITTERS[reading.split]
    if text.startswith("{"):
        record = parse_object(text, where)
        columns = reading.find_input_columns(record, where, "keys")
        if columns is None:
            expected = reading.input_column or "input"
            raise InputError(f"{where}: no {expected!r} among the keys {short_repr(sorted(record))}")
        (tokens,) = join_columns(columns, lambda name: [record[name]])
        return parse_tokens(tokens, where, reading.input_column or columns[0], splitter)
    return parse_tokens(parse_json(text, where) if text.startswith("[") else text, where, "input", splitter)
