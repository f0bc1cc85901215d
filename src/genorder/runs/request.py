"""What a run is asked to do: one value, built by the command line or by a Python call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import torch

from genorder.data import Names, ReadOptions, SequenceDataset, Splits
from genorder.data.readers import STANDARD_INPUT
from genorder.errors import InputError
from genorder.execution import choose_device, set_threads
from genorder.orders import Order, parse_order
from genorder.settings import Override, read_overrides
from genorder.store import fingerprint, read_config
from genorder.tasks import TaskData

HELD_OUT = ("validation", "test")  # the splits that may have files of their own

Rows = Sequence[Sequence[object]]
SplitLike = SequenceDataset | Path | str | tuple[Rows, Rows]
DatasetLike = SplitLike | Splits | TaskData
OrderLike = Order | Sequence[int]


@final
@dataclass(frozen=True)
class Machine:
    """The device and the threads of a run, and what was requested of both."""

    device: torch.device
    threads: int
    requested_device: str
    requested_threads: int | None

    @classmethod
    def choose(cls, device: str, threads: int | None) -> "Machine":
        """Sets torch's threads: one per core for None. Raises InputError for a device that is not available."""
        chosen = choose_device(device)
        return cls(chosen, set_threads(threads), device, threads)

    @classmethod
    def as_set(cls, device: str) -> "Machine":
        """With torch's current number of threads, for programs that set it themselves."""
        return cls(choose_device(device), torch.get_num_threads(), device, None)

    def described(self, path: Path) -> dict[str, object]:
        """The device and the threads of the run in `path`.

        The number of threads changes how sums are rounded. Unless it is requested, a run keeps the number that it was
        started with.
        """
        started = read_config(path) if self.requested_threads is None else None
        threads = (started or {}).get("threads", self.threads)
        return {"device": self.device.type, "threads": threads if type(threads) is int else self.threads}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DataSpec:
    """The samples of a run: a dataset and how it is read, with separate validation or test splits; or a task."""

    data: DatasetLike | None = None
    validation: SplitLike | None = None
    test: SplitLike | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)
    task: str | None = None
    length: str | None = None
    hidden_order_seed: int | None = None
    names: Names = field(default_factory=Names)  # of the positions; they replace those in the data

    def __post_init__(self) -> None:
        if (self.data is None) == (self.task is None):
            given = "both" if self.data is not None else "neither"
            raise InputError(f"give a DATA file or --task NAME, one of the two; received {given}")
        if self.data is not None and (self.length is not None or self.hidden_order_seed is not None):
            raise InputError("--length and --hidden-order-seed belong to --task; a DATA file is taken as it is")
        if self.task is not None and self.held_out:
            names = " and ".join(f"--{name}" for name in self.held_out)
            raise InputError(f"{names}: for a DATA file; a task draws all its splits itself")
        if self.task is not None and (changed := self.reading.changed()):
            names = ", ".join(f"--{name.replace('_', '-')}" for name in changed)
            raise InputError(f"{names}: how a DATA file is read; leave it out with --task")
        if isinstance(self.data, TaskData | Splits) and self.held_out:
            raise InputError(f"{' and '.join(self.held_out)} given, but the dataset is split already; leave them out")
        for name, split in self.held_out.items():
            if isinstance(split, str) and split == STANDARD_INPUT:
                raise InputError(f"--{name} {STANDARD_INPUT}: expected a file; only DATA is read from standard input")

    @property
    def held_out(self) -> dict[str, SplitLike]:
        """The separate validation and test splits, by name."""
        return {name: split for name in HELD_OUT if (split := getattr(self, name)) is not None}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RunRequest:
    """What every run needs to know: its data, configuration, seed, machine, and where its files go."""

    data: DataSpec
    machine: Machine
    preset: str = "cpu"
    config_file: Path | None = None
    settings: tuple[str, ...] = ()  # of the form a.b=c
    seed: int = 0
    out: Path | None = None

    def with_settings(self, *settings: str) -> "RunRequest":
        """With settings that take precedence over those of the request."""
        return replace(self, settings=(*self.settings, *settings))

    @cached_property
    def overrides(self) -> tuple[Override, ...]:
        return read_overrides(self.config_file, self.settings)

    def run_path(self, name: str, described: Mapping[str, Any]) -> Path:
        """`out`, or else a name that follows from the request, not from this machine: it is the same elsewhere."""
        machine = {"device": self.machine.requested_device, "threads": self.machine.requested_threads}
        return self.out or Path("runs") / f"{name}-{fingerprint({**described, **machine})[:8]}"


def order_of_length(order: OrderLike | str, length: int) -> Order:
    """An order, also from what `--order` takes: forward, reverse, random:SEED, a JSON file, or 0,3,1,2.

    Raises InputError for an order of another length.
    """
    if isinstance(order, str):
        return parse_order(order, length)
    found = order if isinstance(order, Order) else Order.of(order)
    if len(found) != length:
        raise InputError(f"an order has {len(found)} indices; the data has {length} targets")
    return found
