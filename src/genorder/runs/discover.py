"""Find an order, prove it: the run of `genorder discover`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from genorder.discovery import Discovery, Watcher, discover
from genorder.errors import InputError
from genorder.estimates import Estimate, budget_within, estimated
from genorder.execution import StopRequest
from genorder.orders import Constraints, Order, deduplicated, parse_candidates, read_orders
from genorder.outcomes import DiscoveryOutcome
from genorder.race import RaceProgress
from genorder.runs.request import OrderLike, RunRequest, order_of_length
from genorder.runs.session import RunSpec, race_status, run_spec
from genorder.runs.source import Source, resolve_request
from genorder.search import MOST_PROPOSALS, NAMED_POOLS, Budget, Search, SearchResult, Stage, make_search
from genorder.seeding import derive_seed, numpy_generator
from genorder.settings import parse_setting, resolve_discovery
from genorder.store import RunDirectory, fingerprint, read_config, to_plain
from genorder.training import Progress

_EXPLORE_ONLY = "explore_only"
_SEARCH = "search."  # prefix of the strategy's own settings
_HAND_DESIGNED = "hand"  # in `also`: the hand-designed orders of a task


@final
@dataclass(frozen=True, eq=False)
class DiscoveryRun:
    discovery: Discovery
    source: Source
    spec: RunSpec[DiscoveryOutcome]
    seconds: float | None  # for exploring; None: no limit

    def plan(self) -> Estimate:
        """How long it will take, with the trainings of the search."""
        return estimated(self.discovery, self.discovery.problem)


def plan_discovery(
    request: RunRequest,
    strategy: str | Search = "auto",
    *,
    search_settings: Mapping[str, object] | None = None,
    seconds: float | None = None,
    max_runs: int | None = None,
    max_candidates: int | None = None,
    explore_only: bool = False,
    baseline: bool = True,
    seeds: int | None = None,
    constraints: Constraints | None = None,
    also: Iterable[OrderLike | str] = (),
    workers: int | None = None,
    dry_run: bool = False,
) -> DiscoveryRun:
    """The run, with everything checked, before a run directory exists. Raises InputError for what cannot be run.

    `search_settings` are those of the strategy, beside the request's settings that begin with `search.`. With a limit
    in `seconds`, the budget of a new run, or a `dry_run`, is decided here, by the speed of this machine.
    """
    own = [setting for setting in request.settings if setting.startswith(_SEARCH)]
    others = tuple(setting for setting in request.settings if not setting.startswith(_SEARCH))
    search = _search(strategy, {**_search_values(own), **(search_settings or {})})
    request = replace(request, settings=others).with_settings(*([] if seeds is None else [f"race.seeds={seeds}"]))
    config, source = resolve_request(request, resolve_discovery)
    constraints = constraints or Constraints()
    if config.race.seeds > 1 and not config.race.enabled:
        raise InputError(
            f"--seeds {config.race.seeds}: preset {request.preset} has no race; expected 1, or another preset"
        )
    budget = Budget(max_runs, max_candidates)
    raced_too = _orders_to_race(also, source, constraints, request.seed)
    discovery = Discovery(
        splits=source.splits,
        source=source.candidate_source(),
        config=config,
        search=search,
        seed=request.seed,
        device=request.machine.device,
        budget=budget,
        workers=workers,
        explore_only=explore_only,
        baseline=baseline,
        constraints=constraints,
        also=raced_too,
    )
    described = {
        "verb": "discover",
        "strategy": search.name,
        "search": _described(search, source),
        "budget": {"seconds": seconds, **budget.described()},
        _EXPLORE_ONLY: explore_only,
        "baseline": baseline,
        "config": config.model_dump(),
        **({"constraints": constraints.to_dict()} if constraints else {}),
        **({"also": [list(order) for order in raced_too]} if raced_too else {}),
    }
    run = DiscoveryRun(discovery, source, _spec(request, source, described), seconds)
    search.check(discovery.problem)
    if seconds is not None and (dry_run or not run.spec.path.exists()):
        discovery.problem.budget = budget_within(seconds, discovery, discovery.problem)
    return run


def run_discovery(
    directory: RunDirectory, run: DiscoveryRun, *, watchers: Sequence[Watcher] = (), stop: StopRequest | None = None
) -> DiscoveryOutcome:
    keep_budget(directory, run)
    outcome = discover(run.discovery, directory, watcher=_Watchers(directory, watchers), stop=stop)
    return outcome.with_truth(run.source.true_of_column, run.source.graph)


def keep_budget(directory: RunDirectory, run: DiscoveryRun) -> None:
    """Keep the budget that is decided when a run starts: a continued run has the same, also on another machine."""
    if run.seconds is None:
        return
    problem, seconds = run.discovery.problem, run.seconds

    def decide() -> dict[str, int | None]:
        undecided = problem.budget == run.discovery.budget  # the run directory existed, but held no budget
        return vars(budget_within(seconds, run.discovery, problem) if undecided else problem.budget)

    kept: Mapping[str, Any] = directory.journal.run({"job": "budget", "seconds": seconds}, "budget", decide)
    problem.budget = Budget(**kept)


def _search(strategy: str | Search, settings: Mapping[str, Any]) -> Search:
    if isinstance(strategy, str):
        return make_search(strategy, dict(settings))
    if settings:
        raise InputError("settings of search.* belong to a strategy by name; a Search has its settings already")
    try:
        to_plain(vars(strategy))
    except (TypeError, ValueError) as error:
        raise InputError(f"the search {strategy.name!r} cannot be written down: {error}") from None
    return strategy


def _search_values(settings: Iterable[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for setting in settings:
        values |= parse_setting(setting)["search"]
    return values


def _described(search: Search, source: Source) -> dict[str, object]:
    """The settings of a search, and the content of a file of orders that it starts from."""
    described = dict(vars(search))
    start = described.get("init")
    if isinstance(start, str) and start not in NAMED_POOLS and Path(start).exists():
        described["init_orders"] = fingerprint([list(order) for order in read_orders(Path(start), source.length)])
    return described


def _orders_to_race(
    also: Iterable[OrderLike | str], source: Source, constraints: Constraints, seed: int
) -> tuple[Order, ...]:
    """The user's orders that race beside the proposals. Raises InputError for forbidden ones, or too many."""
    orders: list[Order] = []
    for each in also:
        if each == _HAND_DESIGNED:
            rng = numpy_generator(derive_seed(seed, "candidates"))
            orders += parse_candidates(_HAND_DESIGNED, source.candidate_source(), rng)
        else:
            orders.append(order_of_length(each, source.length))
    orders = deduplicated(orders)
    if len(orders) > MOST_PROPOSALS:
        raise InputError(
            f"{len(orders)} orders of your own to race; expected at most {MOST_PROPOSALS}: `genorder rank` compares "
            "more"
        )
    for order in orders:
        if not constraints.allows(order):
            raise InputError(f"the order {order.short()} that is to be raced too is not allowed: {constraints}")
    return tuple(orders)


def _spec(request: RunRequest, source: Source, described: dict[str, object]) -> RunSpec[DiscoveryOutcome]:
    """A run that only explores is the first part of the full run, which continues it in the same directory."""
    explore_only = described[_EXPLORE_ONLY]
    spec = run_spec(request, source, "discover", {**described, _EXPLORE_ONLY: False}, DiscoveryOutcome)
    if explore_only:  # unless there is a full run already
        spec.described[_EXPLORE_ONLY] = (read_config(spec.path) or {}).get(_EXPLORE_ONLY, True)
    return replace(spec, free=(_EXPLORE_ONLY,), is_complete=lambda outcome: bool(explore_only or outcome.model))


@final
@dataclass(frozen=True)
class _Watchers:
    """Passes progress on to the run's status file and to all watchers."""

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
        self.directory.write_progress(race_status(progress))
