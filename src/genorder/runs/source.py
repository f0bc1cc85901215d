"""The samples of a run: from a file, from a built-in task, or handed over by a Python program."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from genorder.data import (
    DatasetSummary,
    Finding,
    Names,
    ReadOptions,
    SequenceDataset,
    Splits,
    Vocabulary,
    check_dataset,
    read_dataset,
    read_jsonl,
    split_dataset,
    summarise_dataset,
    unseen_tokens,
    write_jsonl,
)
from genorder.data.inspection import token_preview
from genorder.data.readers import (
    STANDARD_INPUT,
    FileContents,
    display_name,
    is_special_source,
    options_to_save,
    read_file,
)
from genorder.errors import InputError
from genorder.orders import CandidateSource, DependencyGraph, Order, cost_ratio, relative_to
from genorder.presets import DataSize, SampleSizes
from genorder.runs.request import HELD_OUT, DataSpec, RunRequest, SplitLike
from genorder.seeding import derive_seed, numpy_generator
from genorder.settings import AnyConfig, Resolver, SampleLimits
from genorder.store import ensure_writable_directory, write_json_atomic
from genorder.tasks import Task, TaskData, make_task, task_splits, unhide_order
from genorder.tasks.registry import absolute_spec

_HELD_OUT_SHARE = 0.1  # of a file's samples, at most, for validation and for test each
_SPLIT_SEED = 0  # the same for every run, so that runs of other seeds are tested on the same samples
_SAVED = "data"  # the folder in the run directory that holds samples from a Python program
_SPLITS = ("train", "validation", "test")
_EXPECTED_SPLIT = "a SequenceDataset, a path, or a pair of lists (inputs, targets)"
EXPECTED_DATASET = "a SequenceDataset, Splits, the data of a task, a path, or a pair of lists (inputs, targets)"


@final
@dataclass(frozen=True, eq=False)
class Source:
    splits: Splits
    label: str  # for names of run directories
    description: dict[str, Any]  # for config.json: enough to load the same samples again, and to notice a change
    held_out: tuple[str, ...] = ()  # the splits that were separate, not cut off the data
    true_of_column: Order | None = None  # for a built-in task
    graph: DependencyGraph | None = None  # of the stored columns, for a built-in task
    task: Task | None = None
    remarks: tuple[str, ...] = ()  # what was read from a file, in lines for the user
    names: Names = field(default_factory=Names)  # of the input and target positions, where there are any

    @property
    def length(self) -> int:
        return self.splits.target_width

    @property
    def size(self) -> DataSize:
        """What a preset may know of the data. A task draws as many samples as the preset says."""
        positions = self.splits.input_width + 1 + self.splits.target_width  # inputs, SEP and targets
        drawn = "task" in self.description
        return DataSize(None if drawn else len(self.splits.train), positions)

    def named(self, names: Names) -> "Source":
        """With these names, or by default those in the data. Raises InputError for a wrong number of them."""
        widths = self.splits.input_width, self.splits.target_width
        own = self.splits.train.names.cut(*widths)
        names = Names(names.inputs or own.inputs, names.targets or own.targets)
        names.check(*widths)
        return replace(self, names=names)

    def candidate_source(self) -> CandidateSource:
        """What candidate sets refer to: the true order of a built-in task, the given one of a file."""
        if self.task is None or self.true_of_column is None:
            return CandidateSource(Order.forward(self.length))
        column_of_true = self.true_of_column.inverse()
        return CandidateSource(
            reference=column_of_true,
            graph=self.graph,
            variables=self.task.variables_per_step,
            hand_designed={
                name: relative_to(column_of_true, order) for name, order in self.task.hand_designed_orders().items()
            },
        )

    def true_order(self, order: Order) -> Order | None:
        """An order over the stored columns, in the true indices of a built-in task."""
        return None if self.true_of_column is None else unhide_order(order, self.true_of_column)

    def about_order(self, order: Order) -> dict[str, Any]:
        """The order, and for a built-in task also its true indices and its cost ratio, as JSON."""
        true = self.true_order(order)
        if true is None or self.graph is None:
            return {"order": list(order)}
        return {
            "order": list(order),
            "order_in_true_indices": list(true),
            "cost_ratio": cost_ratio(order, self.graph),
        }

    def save(self, path: Path) -> None:
        """Write samples from a Python program to the run directory `path`, so that the run can be read by itself."""
        if "kept" not in self.description or (path / _SAVED / "vocabulary.json").exists():
            return
        folder = ensure_writable_directory(path / _SAVED)
        for name, split in zip(_SPLITS, self.splits.all, strict=True):
            write_jsonl(split, folder / f"{name}.jsonl")
        write_json_atomic(folder / "vocabulary.json", list(self.splits.train.vocabulary.tokens))


def resolve_request(request: RunRequest, resolver: Resolver[AnyConfig]) -> tuple[AnyConfig, Source]:
    """The configuration and the samples of a run. Raises InputError for what cannot be used.

    A dataset is used whole, and so are separate validation and test splits, unless the settings limit them. If a split
    is not given, at most a tenth of the dataset is cut off for it.
    """
    limits = resolver.sample_limits(request.preset, request.overrides)
    source = load_source(request.data, limits).named(request.data.names)
    held_out = {name: len(getattr(source.splits, name)) for name in source.held_out}
    return resolver.resolve(request.preset, request.overrides, source.size, held_out), source


def load_source(spec: DataSpec, limits: SampleLimits) -> Source:
    if spec.data is None:
        return _from_task(spec, limits.or_preset())
    if isinstance(spec.data, TaskData | Splits):
        return _from_splits(spec.data, limits)
    paths = [split for split in (spec.data, *spec.held_out.values()) if isinstance(split, str | Path)]
    if len(paths) == 1 + len(spec.held_out):
        return _from_file(spec, limits)
    return _from_python(spec.data, spec.held_out, limits)


def reload_source(path: Path, description: Mapping[str, Any]) -> Source:
    """The samples of the run in `path`. Raises InputError if they have changed since."""
    if "kept" in description:
        source, where = _read_saved(path), str(path / _SAVED)
    else:
        sizes = SampleSizes(**description["samples"])
        where = str(description.get("path") or description.get("task"))
        if where == STANDARD_INPUT:
            raise InputError("the run's data came from standard input and is gone; give it again as a file")
        if "path" in description:
            held_out = {name: description[name] for name in HELD_OUT if name in description}
            reading = ReadOptions(**description.get("reading", {}))
            source = _from_file(DataSpec(data=where, reading=reading, **held_out), sizes, again=True)
        else:
            names = ("task", "length", "hidden_order_seed")
            source = _from_task(DataSpec(**{name: description[name] for name in names}), sizes)
    if source.description["fingerprint"] != description["fingerprint"]:
        raise InputError(f"{where} has changed since the run: its content is not what the model was trained on")
    return source


def _from_task(spec: DataSpec, sizes: SampleSizes) -> Source:
    assert spec.task is not None
    task = make_task(spec.task, spec.length)
    built = task_splits(
        task,
        train=sizes.train,
        validation=sizes.validation,
        test=sizes.test,
        hidden_order_seed=spec.hidden_order_seed,
    )
    description = {
        "task": absolute_spec(spec.task),
        "length": str(task.lengths),
        "hidden_order_seed": spec.hidden_order_seed,
        "samples": sizes.model_dump(),
        "fingerprint": built.splits.fingerprint(),
    }
    label, graph = f"{task.name}-L{task.lengths}", built.graph_of_columns()
    return Source(built.splits, label, description, true_of_column=built.true_of_column, graph=graph, task=task)


def _from_file(spec: DataSpec, limits: SampleLimits | SampleSizes, *, again: bool = False) -> Source:
    path, paths = str(spec.data), {name: str(file) for name, file in spec.held_out.items()}
    file = read_file(path, spec.reading)
    remarks = data_report(path, file)
    held_out, more_remarks = _read_held_out(paths, file.dataset, path, spec.reading)
    splits = _split(file.dataset, limits, held_out, again=again)
    options = options_to_save([path, *paths.values()], spec.reading)
    description = {
        "path": _lasting(path),
        **{name: _lasting(other) for name, other in paths.items()},
        "samples": _sample_counts(splits),
        "fingerprint": splits.fingerprint(),
        **({"reading": options} if options else {}),
    }
    dropped = [f"{splits.dropped} samples dropped: same input in another split"] if splits.dropped else []
    return Source(splits, _label(path), description, tuple(paths), remarks=(*remarks, *more_remarks, *dropped))


def _from_python(data: SplitLike, held_out: Mapping[str, SplitLike], limits: SampleLimits) -> Source:
    dataset = _dataset(data, "dataset", EXPECTED_DATASET)
    paths = {name: str(split) for name, split in held_out.items() if isinstance(split, str | Path)}
    read, _ = _read_held_out(paths, dataset, "the dataset", ReadOptions())
    read |= {
        name: _dataset(split, f"{name} split", _EXPECTED_SPLIT) for name, split in held_out.items() if name not in paths
    }
    splits = _split(dataset, limits, read)
    _refuse_empty(splits)
    return Source(splits, "data", _saved_description(splits), tuple(read))


def _from_splits(data: TaskData | Splits, limits: SampleLimits) -> Source:
    """As many samples of each split as the settings say, or all."""
    splits = data.splits if isinstance(data, TaskData) else Splits.of(*data.all, data.dropped)
    _refuse_empty(splits)
    splits = _cut(splits, limits)
    if isinstance(data, Splits):
        return Source(splits, "data", _saved_description(splits), HELD_OUT)
    return Source(
        splits,
        f"{data.task.name}-L{data.task.lengths}",
        _saved_description(splits),
        HELD_OUT,
        true_of_column=data.true_of_column,
        graph=data.graph_of_columns(),
        task=data.task,
    )


def _split(
    dataset: SequenceDataset,
    limits: SampleLimits | SampleSizes,
    held_out: Mapping[str, SequenceDataset] = MappingProxyType({}),
    *,
    again: bool = False,
) -> Splits:
    """Training, validation and test samples; at most a tenth of the dataset for a split that is not in `held_out`.

    With `again`, the limits are the sizes that an earlier split had in the end. Raises InputError for separate splits
    whose columns have other names.
    """
    for name, split in held_out.items():
        if dataset.names and split.names and split.names != dataset.names:  # such as a range in a table of another sort
            raise InputError(f"the {name} samples have {split.names}; expected those of the data: {dataset.names}")
    most = max(1, int(_HELD_OUT_SHARE * len(dataset)))
    sizes = limits.or_preset() if isinstance(limits, SampleLimits) else limits
    splits = split_dataset(
        dataset,
        validation=held_out["validation"] if "validation" in held_out else min(sizes.validation, most),
        test=held_out["test"] if "test" in held_out else min(sizes.test, most),
        seed=_SPLIT_SEED,
        count_kept=again,
    )
    return _cut(splits, limits)


def _cut(splits: Splits, limits: SampleLimits | SampleSizes) -> Splits:
    """At most as many samples as the limits say: random ones for training (a file may be sorted), else the first."""
    train = splits.train
    if limits.train is not None and limits.train < len(train):
        rows = numpy_generator(derive_seed(_SPLIT_SEED, "fewer training samples")).permutation(len(train))
        train = train.take(np.sort(rows[: limits.train]))
    validation, test = (
        split if limit is None else split.head(limit)
        for split, limit in ((splits.validation, limits.validation), (splits.test, limits.test))
    )
    return replace(splits, train=train, validation=validation, test=test)


def _read_held_out(
    paths: Mapping[str, str], dataset: SequenceDataset, name: str, reading: ReadOptions
) -> tuple[dict[str, SequenceDataset], list[str]]:
    """The splits that have files of their own, and remarks on each; `name` is that of `dataset`."""
    splits, remarks = {}, []
    for split, path in paths.items():
        file = read_file(path, reading)
        splits[split] = file.dataset
        remarks.append(f"{display_name(path)} ({file.format}): {len(file.dataset)} samples for {split}")
        tokens, samples = unseen_tokens(file.dataset, dataset.vocabulary)
        if samples:
            remarks.append(
                f"note: {samples} of them hold tokens that do not occur in {display_name(name)}, so that no model can "
                f"learn them: {token_preview(tokens)}"
            )
    return splits, remarks


def _dataset(data: Any, name: str, expected: str) -> SequenceDataset:
    if isinstance(data, SequenceDataset):
        return data
    if isinstance(data, str | Path):
        return read_dataset(data)
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InputError(f"the {name} is a {type(data).__name__}; expected {expected}")
    inputs, targets = data
    for side, rows in (("inputs", inputs), ("targets", targets)):
        if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(_is_row(row) for row in rows):
            raise InputError(f"the {side} are not lists of tokens, one for each sample; expected {expected}")
    if len(inputs) != len(targets):
        raise InputError(f"there are {len(inputs)} inputs, but {len(targets)} targets")
    return SequenceDataset.from_sequences(inputs, targets)


def _is_row(row: object) -> bool:
    return isinstance(row, list | tuple) and all(type(token) in (int, str) for token in row)


def _refuse_empty(splits: Splits) -> None:
    for name, split in zip(_SPLITS, splits.all, strict=True):
        if not len(split):
            raise InputError(f"the {name} split holds no samples")
        empty = np.flatnonzero(split.targets.lengths == 0)
        if len(empty):
            raise InputError(f"the target of sample {empty[0]} of the {name} split is empty; expected a token or more")


def _read_saved(path: Path) -> Source:
    """What `Source.save` wrote. Raises InputError where it is missing or damaged."""
    file = path / _SAVED / "vocabulary.json"
    try:
        vocabulary = Vocabulary(tuple(json.loads(file.read_bytes())))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise InputError(f"{file} is damaged: expected a JSON list of tokens") from None
    train, validation, test = (
        read_jsonl(file.with_name(f"{name}.jsonl")).with_vocabulary(vocabulary) for name in _SPLITS
    )
    splits = Splits(train, validation, test)
    return Source(splits, "data", _saved_description(splits))


def _sample_counts(splits: Splits) -> dict[str, int]:
    return {name: len(split) for name, split in zip(_SPLITS, splits.all, strict=True)}


def _saved_description(splits: Splits) -> dict[str, Any]:
    return {"kept": _SAVED, "samples": _sample_counts(splits), "fingerprint": splits.fingerprint()}


def _lasting(path: str) -> str:
    """A path that means the same from another directory."""
    return path if is_special_source(path) else str(Path(path).resolve())


def _label(path: str) -> str:
    """The name of the file without its ending, as a part of a directory's name."""
    name = Path(display_name(path).removesuffix(".gz")).stem
    return re.sub(r"[\s\x00-\x1f\x7f]", "-", name)


def data_report(path: str, file: FileContents) -> tuple[str, ...]:
    """What a data file holds, in lines for the user. Raises InputError, with all reasons, for data of no use."""
    findings = check_dataset(file.dataset, file.blank_lines)
    refusals = [finding.message for finding in findings if finding.prevents]
    if refusals:
        raise InputError(f"{display_name(path)}: {'; '.join(refusals)}")
    return (*summary_lines(path, file.format, summarise_dataset(file.dataset)), *finding_lines(findings))


def summary_lines(path: str, format: str, summary: DatasetSummary) -> list[str]:
    inputs, targets = (token_preview(tokens) for tokens in summary.sample)
    return [
        f"{display_name(path)} ({format}): {summary.samples} samples, inputs of {summary.inputs} and targets of "
        f"{summary.targets} tokens, {summary.vocabulary} different tokens",
        f"the first one: {inputs} -> {targets}",
    ]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    return [f"{'problem' if finding.prevents else 'note'}: {finding.message}" for finding in findings]
