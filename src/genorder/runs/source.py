"""Where a run's data comes from: a file, or a built-in task."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, final

import numpy as np

from genorder.data import Names, ReadOptions, SequenceDataset, Splits, split_dataset, unseen_tokens
from genorder.data.readers import STANDARD_INPUT, is_no_file, own_options, read_file, shown_name
from genorder.data.summary import shortened_tokens
from genorder.errors import InputError
from genorder.orders import CandidateSource, DependencyGraph, Order, cost_ratio, relative_to
from genorder.presets import SampleSizes
from genorder.runs.data_report import data_report
from genorder.seeding import derive_seed, numpy_generator
from genorder.tasks import Task, make_task, task_splits, unhide_order
from genorder.tasks.registry import absolute_spec

HELD_OUT = ("validation", "test")  # the splits that may have files of their own
_HELD_OUT_SHARE = 0.1  # of a file's samples, at most, for validation and for test each
_EVERYTHING = 10**12  # more training samples than any file has
_SPLIT_SEED = 0  # the same for every run, so that runs of other seeds are tested on the same samples


class _HasSamples(Protocol):
    @property
    def samples(self) -> SampleSizes: ...


AnyConfig = TypeVar("AnyConfig", bound=_HasSamples)


@final
@dataclass(frozen=True, eq=False)
class Source:
    splits: Splits
    label: str  # for names of run directories
    description: dict[str, Any]  # enough to load the same data again, and to notice that it changed
    true_of_column: Order | None = None  # for a built-in task
    graph: DependencyGraph | None = None  # of the stored columns, for a built-in task
    task: Task | None = None
    told: tuple[str, ...] = ()  # what was data_report of a file, for the user
    names: Names = field(default_factory=Names)  # of the places of inputs and targets, where the user has any

    @property
    def length(self) -> int:
        return self.splits.target_width

    def named(self, given: Names) -> "Source":
        """With these names, or where none are given those of the data. Raises InputError for a wrong number of them."""
        widths = self.splits.input_width, self.splits.target_width
        own = self.splits.train.names.cut(*widths)
        names = Names(given.inputs or own.inputs, given.targets or own.targets)
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

    def about_order(self, order: Order) -> dict[str, Any]:
        """What is known of an order over the stored columns."""
        about: dict[str, Any] = {"order": list(order)}
        if self.true_of_column is not None and self.graph is not None:
            about["order_in_true_indices"] = list(unhide_order(order, self.true_of_column))
            about["cost_ratio"] = cost_ratio(order, self.graph)
        return about


@final
@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """A file of samples and how it is read, with files of its own for other splits; or a built-in task."""

    data: str | None = None
    validation: str | None = None
    test: str | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)
    task: str | None = None
    length: str | None = None
    hidden_order_seed: int | None = None
    names: Names = field(default_factory=Names)  # of its places, in place of those that the data has itself

    def __post_init__(self) -> None:
        if (self.data is None) == (self.task is None):
            given = "both" if self.data is not None else "neither"
            raise InputError(f"give a DATA file or --task NAME, one of the two; received {given}")
        if self.data is not None and (self.length is not None or self.hidden_order_seed is not None):
            raise InputError("--length and --hidden-order-seed belong to --task; a DATA file is taken as it is")
        if self.task is not None and self.own_splits:
            names = " and ".join(f"--{name}" for name in self.own_splits)
            raise InputError(f"{names}: for a DATA file; a task draws all its splits itself")
        if self.task is not None and (told := self.reading.changed()):
            names = ", ".join(f"--{name.replace('_', '-')}" for name in told)
            raise InputError(f"{names}: how a DATA file is read; leave it out with --task")
        for name, path in self.own_splits.items():
            if path == STANDARD_INPUT:
                raise InputError(f"--{name} {STANDARD_INPUT}: expected a file; only DATA is read from standard input")

    @property
    def own_splits(self) -> dict[str, str]:
        """The files of splits that are not cut off DATA."""
        return {name: path for name in HELD_OUT if (path := getattr(self, name)) is not None}


def configure(resolve: Callable[..., AnyConfig], asked: DataSpec) -> tuple[AnyConfig, Source]:
    """The configuration and the data. `resolve` gives the configuration for a size of the data: see `settings.resolve`.

    A DATA file is taken whole unless fewer training samples are asked for, and so are files for validation and test;
    of a DATA file alone, at most a tenth is cut off for each of them. A built-in task gives as many as the preset says.
    """
    if asked.data is None:
        source = _from_task(asked, resolve().samples)
        return resolve(positions=positions_of(source.splits)), source.named(asked.names)
    whole = resolve(train_samples=_EVERYTHING, held_out=dict.fromkeys(asked.own_splits, _EVERYTHING))
    source = _from_file(asked, whole.samples)
    return resolve(**numbers_of(source.splits, asked.own_splits)), source.named(asked.names)


def positions_of(splits: Splits) -> int:
    """Tokens of a sample: inputs, SEP and targets."""
    return splits.input_width + 1 + splits.target_width


def numbers_of(splits: Splits, own: Iterable[str]) -> dict[str, Any]:
    """The size of the data, for `resolve`: training samples, tokens of a sample, samples of the splits of one's own."""
    return {
        "train_samples": len(splits.train),
        "positions": positions_of(splits),
        "held_out": {name: len(getattr(splits, name)) for name in own},
    }


def reload_source(description: dict[str, Any]) -> Source:
    """The data of an earlier run. Raises InputError if it is no longer the same."""
    sizes = SampleSizes(**description["samples"])
    if "path" in description:
        if description["path"] == STANDARD_INPUT:
            raise InputError("the run's data came from standard input and is gone; give it again as a file")
        own = {name: description[name] for name in HELD_OUT if name in description}
        reading = ReadOptions(**description.get("reading", {}))
        source = _from_file(DataSpec(data=description["path"], reading=reading, **own), sizes, again=True)
    else:
        names = ("task", "length", "hidden_order_seed")
        source = _from_task(DataSpec(**{name: description[name] for name in names}), sizes)
    return same_data(source, description, description.get("path") or description.get("task"))


def same_data(source: Source, description: dict[str, Any], where: object) -> Source:
    """The source, if it is what the description is of. Raises InputError if not."""
    if source.description["fingerprint"] != description["fingerprint"]:
        raise InputError(f"{where} has changed since the run: its content is not what the model was trained on")
    return source


def split_for_run(
    dataset: SequenceDataset,
    sizes: SampleSizes,
    own: Mapping[str, SequenceDataset] = MappingProxyType({}),
    *,
    again: bool = False,
) -> Splits:
    """At most as many samples as `sizes` says; of `dataset`, at most a tenth for each split that is not one's `own`.

    With `again`, the sizes are those that an earlier split had in the end. Raises InputError for splits of one's own
    whose columns have other names.
    """
    for name, split in own.items():
        if dataset.names and split.names and split.names != dataset.names:  # such as a range in a table of another sort
            raise InputError(f"the {name} samples have {split.names}; expected those of the data: {dataset.names}")
    held_out = max(1, int(_HELD_OUT_SHARE * len(dataset)))
    splits = split_dataset(
        dataset,
        validation=own["validation"] if "validation" in own else min(sizes.validation, held_out),
        test=own["test"] if "test" in own else min(sizes.test, held_out),
        seed=_SPLIT_SEED,
        count_kept=again,
    )
    return cut_to(splits, sizes)


def cut_to(splits: Splits, sizes: SampleSizes) -> Splits:
    """At most as many samples as `sizes` says: random ones for training, whose file may be sorted; else the first."""
    train = splits.train
    if sizes.train < len(train):
        rows = numpy_generator(derive_seed(_SPLIT_SEED, "fewer training samples")).permutation(len(train))
        train = train.take(np.sort(rows[: sizes.train]))
    return replace(
        splits, train=train, validation=splits.validation.head(sizes.validation), test=splits.test.head(sizes.test)
    )


def _from_file(asked: DataSpec, sizes: SampleSizes, *, again: bool = False) -> Source:
    path = asked.data
    assert path is not None
    file = read_file(path, asked.reading)
    told = data_report(path, file)
    own, told_of_own = read_own_splits(asked.own_splits, file.dataset, path, asked.reading)
    splits = split_for_run(file.dataset, sizes, own, again=again)
    options = own_options([path, *asked.own_splits.values()], asked.reading)
    description = {
        "path": _lasting(path),
        **{name: _lasting(other) for name, other in asked.own_splits.items()},
        "samples": {"train": len(splits.train), "validation": len(splits.validation), "test": len(splits.test)},
        "fingerprint": splits.fingerprint(),
        **({"reading": options} if options else {}),
    }
    left_out = f"{splits.dropped} samples left out: their inputs stand in another split"
    return Source(
        splits, _label(path), description, told=(*told, *told_of_own, *([left_out] if splits.dropped else []))
    )


def read_own_splits(
    files: Mapping[str, str | Path], dataset: SequenceDataset, name: str, reading: ReadOptions
) -> tuple[dict[str, SequenceDataset], list[str]]:
    """The splits that have files of their own, and lines on each; `name` is what `dataset` is called."""
    own, told = {}, []
    for split, path in files.items():
        file = read_file(path, reading)
        own[split] = file.dataset
        told.append(f"{shown_name(str(path))} ({file.format}): {len(file.dataset)} samples for {split}")
        tokens, samples = unseen_tokens(file.dataset, dataset.vocabulary)
        if samples:
            told.append(
                f"note: {samples} of them hold tokens that stand nowhere in {shown_name(name)}, so that no model can "
                f"learn them: {shortened_tokens(tokens)}"
            )
    return own, told


def _lasting(path: str) -> str:
    """A path that means the same from another directory."""
    return path if is_no_file(path) else str(Path(path).resolve())


def _label(path: str) -> str:
    """The name of the file without its ending, as a part of a directory's name."""
    name = Path(shown_name(path).removesuffix(".gz")).stem
    return re.sub(r"[\s\x00-\x1f\x7f]", "-", name)


def _from_task(asked: DataSpec, sizes: SampleSizes) -> Source:
    assert asked.task is not None
    task = make_task(asked.task, asked.length)
    built = task_splits(
        task,
        train=sizes.train,
        validation=sizes.validation,
        test=sizes.test,
        hidden_order_seed=asked.hidden_order_seed,
    )
    description = {
        "task": absolute_spec(asked.task),
        "length": str(task.lengths),
        "hidden_order_seed": asked.hidden_order_seed,
        "samples": sizes.model_dump(),
        "fingerprint": built.splits.fingerprint(),
    }
    return Source(
        built.splits,
        f"{task.name}-L{task.lengths}",
        description,
        built.true_of_column,
        built.graph_of_columns(),
        task,
    )
