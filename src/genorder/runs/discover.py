"""Find an order, prove it: the run of `genorder discover`."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from genorder.discovery import Discovery, Watcher, discover, new_problem
from genorder.errors import InputError
from genorder.estimates import budget_within
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order, read_orders
from genorder.presets import DiscoveryConfig
from genorder.race import RaceProgress
from genorder.runs.session import Machine, RunSpec, race_progress, run_spec
from genorder.runs.source import Source
from genorder.search import MOST_PROPOSALS, NAMED_POOLS, Budget, Search, SearchProblem, SearchResult, Stage
from genorder.settings import parse_setting
from genorder.store import RunDirectory, fingerprint, read_config
from genorder.training import Progress

_EXPLORE_ONLY = "explore_only"
_SEARCH = "search."  # the settings of the strategy itself, among the others


@final
@dataclass(frozen=True, eq=False)
class DiscoveryRun:
    discovery: Discovery
    source: Source
    place: RunSpec
    seconds: float | None  # for exploring; None: as long as it takes
    decided: Budget | None = None  # what fits into the seconds, found before the run directory was there


def discovery_run(
    config: DiscoveryConfig,
    source: Source,
    search: Search,
    machine: Machine,
    *,
    preset: str,
    seed: int,
    out: Path | None,
    budget: Budget,
    seconds: float | None,
    workers: int | None,
    explore_only: bool,
    baseline: bool,
    constraints: Constraints | None = None,
    also: Sequence[Order] = (),
) -> DiscoveryRun:
    """Raises InputError for orders of the user's own that the constraints forbid, or that are too many for a race."""
    constraints = constraints or Constraints()
    if config.race.seeds > 1 and not config.race.enabled:
        raise InputError(f"--seeds {config.race.seeds}: preset {preset} has no race; expected 1, or another preset")
    _check_also(also, constraints)
    discovery = Discovery(
        splits=source.splits,
        source=source.candidate_source(),
        config=config,
        search=search,
        seed=seed,
        device=machine.device,
        budget=budget,
        workers=workers,
        explore_only=explore_only,
        baseline=baseline,
        constraints=constraints,
        also=tuple(also),
    )
    described = {
        "verb": "discover",
        "data": source.description,
        "strategy": search.name,
        "search": _search_described(search, source),
        "budget": {"seconds": seconds, **budget.described()},
        _EXPLORE_ONLY: explore_only,
        "baseline": baseline,
        "preset": preset,
        "config": config.model_dump(),
        "seed": seed,
        **({"constraints": constraints.to_dict()} if constraints else {}),
        **({"also": [list(order) for order in also]} if also else {}),
    }
    return DiscoveryRun(discovery, source, _place(out, described, source, machine), seconds)


def _search_described(search: Search, source: Source) -> dict[str, Any]:
    """Its settings; of a file of orders to start from, also what it holds."""
    described = dict(vars(search))
    start = described.get("init")
    if isinstance(start, str) and start not in NAMED_POOLS and Path(start).exists():
        length = len(source.candidate_source().reference)
        described["init_orders"] = fingerprint([list(order) for order in read_orders(Path(start), length)])
    return described


def _check_also(also: Sequence[Order], constraints: Constraints) -> None:
    if len(also) > MOST_PROPOSALS:
        raise InputError(
            f"{len(also)} orders of your own to race; expected at most {MOST_PROPOSALS}: `genorder rank` compares more"
        )
    for order in also:
        if not constraints.allows(order):
            raise InputError(f"the order {order.short()} that is to be raced too is not allowed: {constraints}")


def _place(out: Path | None, described: dict[str, Any], source: Source, machine: Machine) -> RunSpec:
    """A run that only explores is the first part of the same run in full, which goes on from it in the same place."""
    explore_only = described[_EXPLORE_ONLY]
    place = run_spec(out, f"discover-{source.label}", {**described, _EXPLORE_ONLY: False}, source, machine)
    if explore_only:  # unless there is a run in full already
        place.described[_EXPLORE_ONLY] = (read_config(place.path) or {}).get(_EXPLORE_ONLY, True)
    return replace(place, free=(_EXPLORE_ONLY,), suffices=lambda result: explore_only or "success_rate" in result)


def split_settings(settings: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The settings of the strategy itself (`search.depth=3`), and the others as they are."""
    own: dict[str, Any] = {}
    others = []
    for setting in settings:
        if setting.startswith(_SEARCH):
            own |= parse_setting(setting)["search"]
        else:
            others.append(setting)
    return own, others


@contextmanager
def scratch_problem(run: DiscoveryRun) -> Iterator[SearchProblem]:
    """The problem, in a directory that does not last: what is refused leaves no run directory.

    Raises InputError where the strategy cannot work on the data, or no order of it meets the constraints.
    """
    with (
        tempfile.TemporaryDirectory() as scratch,
        RunDirectory.open(Path(scratch) / "plan", run.place.described, command=(), environment={}) as directory,
    ):
        problem = new_problem(run.discovery, directory)
        run.discovery.search.check(problem)
        yield problem


def checked(run: DiscoveryRun, *, anew: bool = False) -> DiscoveryRun:
    """The run, with its budget decided if it begins now, or `anew`. Raises InputError as `scratch_problem` does."""
    with scratch_problem(run) as problem:
        if run.seconds is None or (run.place.path.exists() and not anew):
            return run
        return replace(run, decided=budget_within(run.seconds, run.discovery, problem))


def within_time(run: DiscoveryRun, directory: RunDirectory) -> DiscoveryRun:
    """The run with so much of a search as fits into its time.

    Decided once, by this machine's speed, and kept: a continued run must not decide otherwise.
    """
    if run.seconds is None:
        return run
    seconds = run.seconds
    kept = directory.journal.run(
        {"job": "budget", "seconds": seconds},
        "budget",
        lambda: vars(run.decided or budget_within(seconds, run.discovery, new_problem(run.discovery, directory))),
    )
    return replace(run, discovery=replace(run.discovery, budget=Budget(**kept)))


def discover_in(
    directory: RunDirectory, run: DiscoveryRun, *, watchers: Sequence[Watcher] = (), stop: StopRequest | None = None
) -> dict[str, Any]:
    result = discover(run.discovery, directory, watcher=_Teller(directory, watchers), stop=stop)
    for row in (result, *result["race"], *result["proposed"]["proposals"]):
        row |= run.source.about_order(Order(tuple(row["order"])))
    return result


@final
@dataclass(frozen=True)
class _Teller:
    """Tells how far a discovery is to those who ask for the run's status, and to its watchers."""

    directory: RunDirectory
    watchers: Sequence[Watcher]

    def progress(self, stage: str, progress: Progress) -> None:
        for watcher in self.watchers:
            watcher.progress(stage, progress)
        self.directory.write_progress({"stage": stage, **vars(progress)})

    def stage(self, stage: Stage) -> None:
        for watcher in self.watchers:
            watcher.stage(stage)

    def proposed(self, proposed: SearchResult) -> None:
        for watcher in self.watchers:
            watcher.proposed(proposed)

    def race(self, progress: RaceProgress) -> None:
        for watcher in self.watchers:
            watcher.race(progress)
        self.directory.write_progress(race_progress(progress))
