"""Variables over time: targets in lines, along which each reads what the one before it did, one level on.

The graph of what each target is computed from is all that is known: nothing says which target is of which variable, or
time. Targets stand on levels, by the longest way to them from the inputs. The first levels, if they have about the same
number of targets, are matched so that each target reads what the one before it in its line did. From there on the lines
grow: what the next target of a line must read is known, and of all that determines the targets left, some source may be
just that. (A target may have several sources, and the simplest of them is not always that of its kind: late values
often follow from others in a roundabout way.)
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import final

from genorder.orders import Order

_MOST_LINES = 5
_FEWEST_LEVELS = 3  # that must be matched before lines grow
_FEWEST_ALIKE = 4  # times that a line must go on as it did, lest any few levels be taken for lines
_MOSTLY = 0.6  # of the times, that it must
_MOST_MISPLACED = 2  # targets of later levels that another source has brought to a level
_BEAM = 60  # ways to match the first levels that are kept
_MOST_GROWN = 200  # rows that are tried in vain
_MOST_FITTING = 8  # targets that are tried as the next of a line


@final
@dataclass(frozen=True)
class Reads:
    """What a target may be computed from."""

    targets: frozenset[int]
    inputs: int  # how many of them

    @property
    def positions(self) -> int:
        return len(self.targets) + self.inputs


Place = tuple[int, int]  # a level, or how many levels back, and a line


@final
@dataclass(frozen=True)
class Lines:
    rows: tuple[tuple[int, ...], ...]  # by level, the targets, each in the place of its line
    reads: tuple[Reads, ...]  # of each target

    @property
    def width(self) -> int:
        return len(self.rows[0])

    def seen(self) -> dict[int, frozenset[Place]]:
        """What each target reads of targets: how many levels back, and in which line."""
        place_of = places(self.rows)
        return {target: _seen_from(level, self.reads[target], place_of) for target, (level, _) in place_of.items()}

    def usual(self) -> "list[Usual]":
        """What most targets of each line read."""
        seen = self.seen()
        lines = zip(*self.rows, strict=True)
        return [Counter(Usual(seen[t], self.reads[t].positions) for t in line).most_common(1)[0][0] for line in lines]

    @property
    def apart(self) -> bool:
        """Does no line read another?"""
        return all(other == own for own, usual in enumerate(self.usual()) for _, other in usual.places)

    def as_good(self) -> "list[Lines]":
        """These first, then others of the same targets: where lines may change places, as in a ring, they may do so
        once more at each level, and every target still reads what the one before it does. One of each kind, by how they
        read each other.
        """
        kinds = {_kind(self.usual()): self}
        known, waiting = {self._paths()}, [self]
        while waiting:
            lines = waiting.pop()
            for turn in _symmetries(lines.usual()):
                rows = tuple(_turned(row, turn, level) for level, row in enumerate(lines.rows))
                turned = Lines(rows, self.reads)
                if turned._paths() not in known:
                    known.add(turned._paths())
                    waiting.append(turned)
                    kinds.setdefault(_kind(turned.usual()), turned)
        return list(kinds.values())

    def _paths(self) -> frozenset[tuple[int, ...]]:
        return frozenset(zip(*self.rows, strict=True))


@final
@dataclass(frozen=True)
class Usual:
    """What the targets of a line read, as far as they are targets, and how many positions in all."""

    places: frozenset[Place]
    positions: int

    def renamed(self, turn: Sequence[int]) -> "Usual":
        """If line i is called turn[i]."""
        return Usual(frozenset((back, turn[line]) for back, line in self.places), self.positions)


def _symmetries(usual: Sequence[Usual]) -> list[tuple[int, ...]]:
    """All ways in which lines may change places so that none reads otherwise than before."""
    lines = range(len(usual))
    return [turn for turn in permutations(lines) if all(usual[turn[i]] == usual[i].renamed(turn) for i in lines)]


def _kind(usual: Sequence[Usual]) -> tuple[tuple[tuple[Place, ...], int], ...]:
    """The same for lines that read each other alike, whatever they are called."""

    def named(turn: Sequence[int]) -> tuple[tuple[tuple[Place, ...], int], ...]:
        by_name = {turn[line]: own.renamed(turn) for line, own in enumerate(usual)}
        return tuple((tuple(sorted(by_name[name].places)), by_name[name].positions) for name in sorted(by_name))

    return min(named(turn) for turn in permutations(range(len(usual))))


def _turned(row: tuple[int, ...], turn: Sequence[int], times: int) -> tuple[int, ...]:
    for _ in range(times):
        row = tuple(row[place] for place in turn)
    return row


def find_lines(sources: Sequence[Sequence[Reads]], order: Order) -> Lines | None:
    """If all targets stand in lines. The first source of each is that of a graph, of which `order` is a sort."""
    sequence = list(order)
    levels = _levels(sources, sequence)
    width = len(levels[0])
    wide = (width <= len(row) <= width + _MOST_MISPLACED for row in levels)
    alike = next((number for number, fits in enumerate(wide) if not fits), len(levels))
    if not 1 < width <= _MOST_LINES or len(sequence) % width:
        return None
    matched = _matched(levels[:alike], sources)
    if len(matched) < _FEWEST_LEVELS:
        return None
    chosen = {target: sources[target][0] for row in matched for target in row}
    kept = next(
        (n for n in range(_FEWEST_LEVELS, len(matched)) if not all(_going_on(matched[: n + 1], chosen))), len(matched)
    )
    lines = _grown(matched[:kept], sources, sequence)
    return lines if lines and _confirmed(lines) else None


def _confirmed(lines: Lines) -> bool:
    chosen = dict(enumerate(lines.reads))
    going_on = [_going_on(lines.rows[:end], chosen) for end in range(2, len(lines.rows) + 1)]
    fewest = max(_FEWEST_ALIKE, _MOSTLY * len(going_on))
    return all(sum(line) >= fewest for line in zip(*going_on, strict=True))


def _levels(sources: Sequence[Sequence[Reads]], sequence: Sequence[int]) -> list[list[int]]:
    level_of: dict[int, int] = {}
    for target in sequence:
        level_of[target] = max((level_of[parent] + 1 for parent in sources[target][0].targets), default=0)
    return [[t for t in sequence if level_of[t] == level] for level in range(max(level_of.values()) + 1)]


def _matched(levels: Sequence[Sequence[int]], sources: Sequence[Sequence[Reads]]) -> list[tuple[int, ...]]:
    """Of each level as many targets as the first one has, in a sequence in which they read what those of the level
    before did, as far as can be found.
    """
    beam: list[tuple[int, list[tuple[int, ...]]]] = [(0, [tuple(levels[0])])]
    for level in levels[1:]:
        grown = ((score + gain, rows, row) for score, rows in beam for gain, row in _continued(rows, level, sources))
        best = heapq.nlargest(_BEAM, grown, key=lambda each: each[0])
        if not best:
            break
        beam = [(score, [*rows, row]) for score, rows, row in best]
    return beam[0][1]


def _continued(
    rows: Sequence[tuple[int, ...]], level: Sequence[int], sources: Sequence[Sequence[Reads]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """All sequences of as many targets of a level, and how much these have in common with those of the level before."""
    place_of = places(rows)
    before = [_seen_from(len(rows) - 1, sources[target][0], place_of) for target in rows[-1]]
    able = [target for target in level if place_of.keys() >= sources[target][0].targets]
    now = {target: _seen_from(len(rows), sources[target][0], place_of) for target in able}
    common = {
        (target, line): 2 * len(now[target] & read) - len(now[target] | read)
        for target in able
        for line, read in enumerate(before)
    }
    for row in permutations(able, len(rows[0])):
        yield sum(common[target, line] for line, target in enumerate(row)), row


def places(rows: Sequence[Sequence[int]]) -> dict[int, Place]:
    """Level and line of each target."""
    return {target: (level, line) for level, row in enumerate(rows) for line, target in enumerate(row)}


def _seen_from(level: int, reads: Reads, place_of: dict[int, Place]) -> frozenset[Place]:
    return frozenset((level - place_of[target][0], place_of[target][1]) for target in reads.targets)


def _going_on(rows: Sequence[Sequence[int]], chosen: dict[int, Reads]) -> list[bool]:
    """Does each target of the last row read what the one before it did? An input may have become a target."""
    place_of, level = places(rows), len(rows) - 1
    return [
        chosen[one].positions == chosen[other].positions
        and _seen_from(level - 1, chosen[one], place_of) <= _seen_from(level, chosen[other], place_of)
        for one, other in zip(rows[-2], rows[-1], strict=True)
    ]


def _grown(
    rows: Sequence[tuple[int, ...]], sources: Sequence[Sequence[Reads]], sequence: Sequence[int]
) -> Lines | None:
    """By one row after the other, until all targets are in lines. Where several fit, one after the other is tried."""
    chosen = {target: sources[target][0] for row in rows for target in row}
    place_of = places(rows)
    usual = [Usual(_seen_from(len(rows) - 1, chosen[t], place_of), chosen[t].positions) for t in rows[-1]]
    waiting = [(list(rows), chosen, usual)]
    for _ in range(_MOST_GROWN + len(sources)):
        if not waiting:
            return None
        rows_now, chosen, usual = waiting.pop()
        if len(chosen) == len(sources):
            return Lines(tuple(rows_now), tuple(chosen[target] for target in range(len(sources))))
        left = [target for target in sequence if target not in chosen]
        found = islice(_next_rows(rows_now, usual, left, sources), _MOST_GROWN)
        waiting += [_with_row(rows_now, chosen, usual, row) for row in reversed(list(found))]
    return None


def _with_row(
    rows: list[tuple[int, ...]], chosen: dict[int, Reads], usual: Sequence[Usual], row: dict[int, Reads]
) -> tuple[list[tuple[int, ...]], dict[int, Reads], list[Usual]]:
    place_of = places(rows)
    seen = [_seen_from(len(rows), reads, place_of) for reads in row.values()]
    grown = [Usual(one.places | more, one.positions) for one, more in zip(usual, seen, strict=True)]
    return [*rows, tuple(row)], chosen | row, grown


def _next_rows(
    rows: Sequence[tuple[int, ...]], usual: Sequence[Usual], left: Sequence[int], sources: Sequence[Sequence[Reads]]
) -> Iterator[dict[int, Reads]]:
    """Of the targets left, those that read what each line usually does, those that read just that first."""
    known = {target for row in rows for target in row}
    fitting: list[list[tuple[int, Reads]]] = []
    for line in usual:
        needed = {rows[len(rows) - back][other] for back, other in line.places}
        able = [(target, reads) for target in left for reads in sources[target] if reads.targets <= known]
        whole = [(t, reads) for t, reads in able if reads.positions == line.positions and needed <= reads.targets]
        part = [(t, reads) for t, reads in able if not reads.inputs and reads.targets < needed]
        by_first_source: dict[int, Reads] = {}
        for target, reads in (*whole, *part):
            by_first_source.setdefault(target, reads)
        fitting.append(list(islice(by_first_source.items(), _MOST_FITTING)))
    for row in product(*fitting):
        if len({target for target, _ in row}) == len(row):
            yield dict(row)
