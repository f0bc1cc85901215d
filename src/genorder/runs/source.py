"""Where a run's data comes from: a file, or a built-in task."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, final

import numpy as np

from genorder.data import Names, ReadOptions, SequenceDataset, Splits, split_dataset
from genorder.data.readers import STANDARD_INPUT, is_no_file, own_options, read_file, shown_name
from genorder.errors import InputError
from genorder.orders import CandidateSource, DependencyGraph, Order, cost_ratio, relative_to
from genorder.presets import SampleSizes
from genorder.runs.understood import understood
from genorder.tasks import Task, make_task, task_splits, unhide_order
from genorder.tasks.registry import absolute_spec

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
    told: tuple[str, ...] = ()  # what was understood of a file, for the user
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


def load_source(
    data: str | None,
    task: str | None,
    length: str | None,
    hidden_order_seed: int | None,
    sizes: SampleSizes,
    reading: ReadOptions,
) -> Source:
    """Of a DATA file, at most `sizes.train` training samples, and a tenth of it for each of the other splits."""
    if data is not None:
        return _from_file(data, sizes, reading)
    assert task is not None
    return _from_task(task, length, hidden_order_seed, sizes)


def configure(
    resolve: Callable[[int | None], AnyConfig],
    data: str | None,
    task: str | None,
    length: str | None,
    hidden_order_seed: int | None,
    reading: ReadOptions,
    names: Names = Names(),
) -> tuple[AnyConfig, Source]:
    """The configuration and the data. `resolve` gives the configuration for a number of training samples.

    A DATA file is taken whole unless fewer training samples are asked for; a built-in task gives as many as the
    preset says.
    """
    if (data is None) == (task is None):
        given = "both" if data is not None else "neither"
        raise InputError(f"give a DATA file or --task NAME, one of the two; received {given}")
    if data is None:
        if told := reading.changed():
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in told)
            raise InputError(f"{flags}: how a DATA file is read; leave it out with --task")
        resolved = resolve(None)
        return resolved, load_source(None, task, length, hidden_order_seed, resolved.samples, reading).named(names)
    if length is not None or hidden_order_seed is not None:
        raise InputError("--length and --hidden-order-seed belong to --task; a DATA file is taken as it is")
    source = load_source(data, None, None, None, resolve(_EVERYTHING).samples, reading)
    return resolve(len(source.splits.train)), source.named(names)


def reload_source(description: dict[str, Any]) -> Source:
    """The data of an earlier run. Raises InputError if it is no longer the same."""
    sizes = SampleSizes(**description["samples"])
    if "path" in description:
        if description["path"] == STANDARD_INPUT:
            raise InputError("the run's data came from standard input and is gone; give it again as a file")
        source = _from_file(description["path"], sizes, ReadOptions(**description.get("reading", {})))
    else:
        source = _from_task(description["task"], description["length"], description["hidden_order_seed"], sizes)
    return same_data(source, description, description.get("path") or description.get("task"))


def same_data(source: Source, description: dict[str, Any], where: object) -> Source:
    """The source, if it is what the description is of. Raises InputError if not."""
    if source.description["fingerprint"] != description["fingerprint"]:
        raise InputError(f"{where} has changed since the run: its content is not what the model was trained on")
    return source


def split_for_run(dataset: SequenceDataset, sizes: SampleSizes) -> Splits:
    """At most `sizes.train` training samples, and at most a tenth of the samples for each of the other splits."""
    held_out = max(1, int(_HELD_OUT_SHARE * len(dataset)))
    splits = split_dataset(
        dataset,
        validation=min(sizes.validation, held_out),
        test=min(sizes.test, held_out),
        seed=_SPLIT_SEED,
    )
    if len(splits.train) > sizes.train:
        splits = replace(splits, train=splits.train.take(np.arange(sizes.train)))
    return splits


def _from_file(path: str, sizes: SampleSizes, reading: ReadOptions) -> Source:
    file = read_file(path, reading)
    told = understood(path, file)
    splits = split_for_run(file.dataset, sizes)
    options = own_options(path, reading)
    description = {
        "path": path if is_no_file(path) else str(Path(path).resolve()),
        "samples": {"train": len(splits.train), "validation": len(splits.validation), "test": len(splits.test)},
        "fingerprint": splits.fingerprint(),
        **({"reading": options} if options else {}),
    }
    return Source(splits, _label(path), description, told=told)


def _label(path: str) -> str:
    """The name of the file without its ending, as a part of a directory's name."""
    name = Path(shown_name(path).removesuffix(".gz")).stem
    return re.sub(r"[\s\x00-\x1f\x7f]", "-", name)


def _from_task(spec: str, length: str | None, hidden_order_seed: int | None, sizes: SampleSizes) -> Source:
    task = make_task(spec, length)
    built = task_splits(
        task,
        train=sizes.train,
        validation=sizes.validation,
        test=sizes.test,
        hidden_order_seed=hidden_order_seed,
    )
    description = {
        "task": absolute_spec(spec),
        "length": str(task.lengths),
        "hidden_order_seed": hidden_order_seed,
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
