"""`genorder evaluate`: the success rate of a trained model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from genorder.cli import options
from genorder.cli.console import emit_json, percent, say
from genorder.data import SequenceDataset, encode, read_dataset
from genorder.data.readers import display_name, inherited_options
from genorder.errors import InputError
from genorder.evaluation import evaluate as evaluate_model
from genorder.execution import choose_device, set_threads
from genorder.export.datasets import reordered
from genorder.fixed_order import model_folder
from genorder.models import load_model
from genorder.runs import origin_of_model, source_of_run
from genorder.store import read_status

_SPLITS = ("test", "validation", "train")


@options.with_reading_changes("--split-tokens")
def evaluate(
    changes: dict[str, Any],
    run_dir: options.RunDir,
    data: Annotated[str | None, typer.Argument(help="File of samples; default: the run's own split.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Which split of the run's data: test (the default), validation or train.")
    ] = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Generate every target greedily and count exact matches.

    DATA is read like the data of the run. Targets of a built-in task are in the task's own sequence, as in `predict`.

    Example: genorder evaluate runs/train-relu-L20-forward-1a2b3c4d more.jsonl
    """
    if split not in (None, *_SPLITS):
        raise InputError(f"--split {split!r}: expected one of {', '.join(_SPLITS)}")
    if split is not None and data is not None:
        raise InputError(
            f"--split {split} selects from the run's own data, but {display_name(data)} is given; leave one out"
        )
    if changes and data is None:
        named = ", ".join(f"--{'split-tokens' if name == 'split' else name.replace('_', '-')}" for name in changes)
        raise InputError(f"{named}: how DATA is read, and no DATA is given; name a file, or leave it out")
    chosen = choose_device(device)
    set_threads(threads)
    saved = load_model(model_folder(run_dir), chosen)
    if data is not None:
        dataset, name = _read(data, changes, run_dir), display_name(data)
    else:
        splits = source_of_run(run_dir, read_status(run_dir).config).splits
        dataset, name = getattr(splits, split or _SPLITS[0]), f"{split or _SPLITS[0]} split"
    for what, longest, width in (
        ("an input", dataset.inputs.longest, saved.input_width),
        ("a target", dataset.targets.longest, saved.target_width),
    ):
        if longest > width:
            raise InputError(f"{name} has {what} of {longest} tokens; the model was trained on at most {width}")
    try:
        dataset = dataset.with_vocabulary(saved.vocabulary)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    encoded = encode(dataset, input_width=saved.input_width, target_width=saved.target_width).to(chosen)
    result = evaluate_model(saved.model, encoded, saved.order)
    if json:
        emit_json({**result.to_dict(), "order": list(saved.order), "data": name})
        return
    low, high = result.success_rate_interval
    say(
        f"success rate {percent(result.success_rate)} ({percent(low)} to {percent(high)}) "
        f"on {result.samples} samples of {name}"
    )
    errors = result.error_rate_by_target
    worst = max(range(len(errors)), key=errors.__getitem__)
    say(f"loss {result.loss:.4f}; target {worst} is wrong most often: {percent(errors[worst])}")


def _read(data: str, changes: dict[str, Any], run_dir: Path) -> SequenceDataset:
    """The samples, with their targets in the columns that the model was trained on."""
    origin = origin_of_model(run_dir)
    dataset = read_dataset(data, inherited_options(origin.reading, data, changes))
    if origin.true_of_column is None:
        return dataset
    say(str(origin.note))
    return reordered(dataset, origin.true_of_column)
