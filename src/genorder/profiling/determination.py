"""An order from what determines each target, found by counting (see agreement.py).

From the inputs outwards, what is determined by what is known becomes known. If all targets do, each is explained by the
simplest of its sources that leads back to the inputs: sums can be solved for any of their terms, and only some of these
directions make an order. Data with noise, with relations of many positions, or with so many tokens that hardly two
samples agree, are silent here, and left to the models that are trained.
"""

import heapq
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from genorder.data import EncodedDataset
from genorder.orders import Constraints, Order
from genorder.profiling.agreement import Agreement, AgreementConfig, Source, TooManyRelations
from genorder.profiling.lines import Lines, Reads, find_lines
from genorder.training import ProgressReporter

_TIMED_SAMPLES, _TIMED_PAIRS, _TIMED_SECONDS = 10_000, 50, 0.3  # by which the time that counting takes is estimated


def determine(
    train: EncodedDataset, config: AgreementConfig, watch: ProgressReporter | None = None
) -> "Determination | None":
    """What determines the targets, if all of them can be reached from the inputs; otherwise nothing."""
    if not config.positions:
        return None
    agreement = Agreement(train, config, watch)
    for size in range(config.positions + 1):
        if agreement.sets(size) > config.sets:
            return None
        try:
            if agreement.reach_all(size):
                return Determination(train.input_width, agreement.sources(size)).in_lines()
        except TooManyRelations:
            return None
    return None


def counting_seconds(train: EncodedDataset, config: AgreementConfig) -> float:
    """About how long `determine` takes where pairs of positions suffice, by some of them on some of the samples."""
    if not config.positions:
        return 0.0
    samples = min(len(train), config.samples)
    few = min(samples, _TIMED_SAMPLES)
    started = time.monotonic()
    agreement = Agreement(train, config.model_copy(update={"samples": few}))
    whole = (time.monotonic() - started) * samples / few
    positions = train.input_width + train.target_width
    rng = random.Random(0)
    pairs = [tuple(sorted(rng.sample(range(positions), 2))) for _ in range(_TIMED_PAIRS if positions > 1 else 0)]
    # Smaller sets come first: what they explain is not looked for in pairs.
    by_size: list[list[tuple[int, ...]]] = [[()], [(position,) for position in range(positions)], pairs]
    for size, timed in enumerate(by_size[: config.positions + 1]):
        if not timed or agreement.sets(size) > config.sets:
            break
        each = _seconds_each(agreement, timed)
        if each is None:
            break
        whole += each * (agreement.sets(size) - agreement.sets(size - 1))
    return whole


def _seconds_each(agreement: Agreement, timed: Sequence[tuple[int, ...]]) -> float | None:
    """Of as many of these sets as fit into some time; none where there are too many relations."""
    began, tried = time.monotonic(), 0
    try:
        while tried < len(timed) and time.monotonic() - began <= _TIMED_SECONDS:
            agreement.determined_by(timed[tried])
            tried += 1
    except TooManyRelations:
        return None
    return (time.monotonic() - began) / tried


@final
@dataclass(frozen=True)
class Determination:
    """All that determines each target, the simplest first. There is an order in which each has a source before it.

    If the targets are variables over time, first that source of a target which is like those of the others in its line.
    """

    inputs: int
    sources: tuple[tuple[Source, ...], ...]
    lines: Lines | None = None

    def parents(self, source: Source) -> list[int]:
        """The targets among its positions."""
        return [position - self.inputs for position in source.positions if position >= self.inputs]

    def along(self, order: Order) -> list[Source] | None:
        """For each target its first source among what comes before it; nothing if one of them has none."""
        step_of = order.inverse()
        found = [
            next((s for s in sources if all(step_of[parent] < step_of[target] for parent in self.parents(s))), None)
            for target, sources in enumerate(self.sources)
        ]
        known = [source for source in found if source]
        return known if len(known) == len(found) else None

    def read_in(self, order: Order) -> int | None:
        """How many positions all targets read together in this order, if each has a source before it."""
        found = self.along(order)
        return None if found is None else sum(len(source.positions) for source in found)

    def needs(self, order: Order) -> bool:
        """Are there targets that read more, or have no source, if they are to read inputs alone?"""
        alone = (next((s for s in sources if not self.parents(s)), None) for sources in self.sources)
        found = self.along(order) or []
        return any(own is None or len(own.positions) > len(s.positions) for own, s in zip(alone, found, strict=True))

    def in_lines(self) -> "Determination":
        """The same, in the light of the lines that the targets form, if they do."""
        sequence, chosen = self._explained()
        sources = [_first(source, own) for source, own in zip(chosen, self.sources, strict=True)]
        alternatives = [[self._reads(source) for source in own] for own in sources]
        edges = [(parent, target) for target, source in enumerate(chosen) for parent in self.parents(source)]
        lines = find_lines(alternatives, _sorted(edges, sequence.inverse()))
        if lines is None:
            return self
        places = [own.index(reads) for own, reads in zip(alternatives, lines.reads, strict=True)]
        ranked = (_first(own[place], own) for own, place in zip(sources, places, strict=True))
        return Determination(self.inputs, tuple(ranked), lines)

    def _reads(self, source: Source) -> Reads:
        targets = frozenset(self.parents(source))
        return Reads(targets, len(source.positions) - len(targets))

    def order(self, constraints: Constraints | None = None) -> Order | None:
        """One in which each target has a source before it, and simple ones; none where constraints forbid it."""
        sequence, chosen = self._explained()
        edges = [(parent, target) for target, source in enumerate(chosen) for parent in self.parents(source)]
        best = _sorted(edges, sequence.inverse())
        step_of = best.inverse()
        units = (constraints or Constraints()).units(len(best))

        def choose(emitted: Sequence[int], available: Sequence[int]) -> int:
            """As in that order, of those that have a source; what is known more of does no harm to the others."""
            known = set(emitted)
            places = range(len(available))
            return min(places, key=lambda place: self._ranked(units.free[available[place]], known, step_of))

        order = units.sort(choose)
        return order if self.along(order) else None

    def _ranked(self, unit: Sequence[int], known: set[int], step_of: Order) -> tuple[bool, int]:
        """First those units whose targets are determined one after the other, by what is known."""
        known = set(known)
        for target in unit:
            if not any(known.issuperset(self.parents(source)) for source in self.sources[target]):
                return True, step_of[unit[0]]
            known.add(target)
        return False, step_of[unit[0]]

    def _explained(self) -> tuple[Order, list[Source]]:
        """An order, and a source of each target before it."""
        sequence, chosen = self._simplest_first()
        self._simplify(chosen)
        return sequence, chosen

    def _simplest_first(self) -> tuple[Order, list[Source]]:
        """From the inputs outwards, always by the simplest source of those left."""
        rows = [(target, source) for target, sources in enumerate(self.sources) for source in sources]
        missing = [len(self.parents(source)) for _, source in rows]
        waiting: list[list[int]] = [[] for _ in self.sources]  # by target, the rows that need it
        for row, (_, source) in enumerate(rows):
            for parent in self.parents(source):
                waiting[parent].append(row)

        def queued(row: int) -> tuple[bool, tuple[int, int, tuple[int, ...]], int, int]:
            target, source = rows[row]
            unlike = self.lines is not None and source != self.sources[target][0]
            return unlike, source.complexity, target, row

        ready = [queued(row) for row, count in enumerate(missing) if not count]
        heapq.heapify(ready)
        chosen: dict[int, Source] = {}
        while len(chosen) < len(self.sources):
            _, _, target, found = heapq.heappop(ready)
            if target in chosen:
                continue
            chosen[target] = rows[found][1]
            for row in waiting[target]:
                missing[row] -= 1
                if not missing[row]:
                    heapq.heappush(ready, queued(row))
        return Order.of(chosen), [chosen[target] for target in range(len(self.sources))]

    def _simplify(self, chosen: list[Source]) -> None:
        """Take an earlier source where that closes no circle, until there is none."""
        changed = True
        while changed:
            changed = False
            for target, sources in enumerate(self.sources):
                behind = self._computed_from(target, chosen)
                simplest = next(source for source in sources if not behind.intersection(self.parents(source)))
                changed |= simplest != chosen[target]
                chosen[target] = simplest

    def _computed_from(self, target: int, chosen: Sequence[Source]) -> set[int]:
        """The target itself among them."""
        readers: list[list[int]] = [[] for _ in chosen]
        for other, source in enumerate(chosen):
            for parent in self.parents(source):
                readers[parent].append(other)
        found, waiting = {target}, [target]
        while waiting:
            more = [other for other in readers[waiting.pop()] if other not in found]
            found.update(more)
            waiting += more
        return found


def _first(source: Source, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The same sources, with this one first."""
    return source, *(other for other in sources if other != source)


def _sorted(edges: Sequence[tuple[int, int]], step_of: Order) -> Order:
    """A topological sort; where it leaves a choice, by these steps."""
    units = Constraints().units(len(step_of))  # one for each target, with its number

    def choose(emitted: Sequence[int], available: Sequence[int]) -> int:
        return min(range(len(available)), key=lambda place: step_of[available[place]])

    return units.sort(choose, edges)
