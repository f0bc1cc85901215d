"""A topological sort that repeats itself: the same distances from a target to its parents again and again.

A Transformer learns to look so many tokens back; the fewer kinds of that there are, the sooner, and the token right
before needs no looking at all. Many ways to begin a sort grow side by side, and those go on that repeat themselves most
(a beam), so that of a network of several variables over time a pattern comes out that goes through all times.

Nodes are numbered from 0 in a sequence that is such a sort itself, and decides where nothing else does.
"""

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from genorder.profiling.part_watch import PartWatch

Kind = tuple[int, ...]  # distances from a node to its parents, ascending

_BEAM = 400  # ways to begin that are kept, at most
_MOST_LOOKS = 300_000  # at a node that might come next, in all, as long as more than one way is kept
_ENDING = 6  # nodes at the end by which ways to begin differ, though they have emitted the same
_KNOWN_KIND, _NEXT_TO_PARENT, _FAR = 2.0, 1.0, -0.02  # what makes a node liked as the next
_PRICE_OF_A_KIND = 3  # in nodes next to a parent: one kind fewer is worth so many of them


@final
@dataclass(frozen=True)
class _Beginning:
    """Of a sort: the nodes emitted, what may come next, and how well it is liked."""

    nodes: list[int]
    emitted: int  # the same nodes as the bits of a number
    step_of: dict[int, int]
    missing: list[int]  # parents of each node that are not emitted yet
    available: list[int]
    kinds: Counter[Kind]
    liking: float

    def kind(self, parents: Sequence[int]) -> Kind:
        """Of a node with these parents, if it comes next."""
        return tuple(sorted(len(self.nodes) - self.step_of[parent] for parent in parents))

    def liking_with(self, kind: Kind) -> float:
        if not kind:
            return self.liking
        far = sum(kind) / len(kind)
        return self.liking + _KNOWN_KIND * math.log1p(self.kinds[kind]) + _NEXT_TO_PARENT * (1 in kind) + _FAR * far

    def longer(self, node: int, kind: Kind, liking: float, children: Sequence[int]) -> "_Beginning":
        missing = self.missing.copy()
        for child in children:
            missing[child] -= 1
        free = [child for child in children if not missing[child]]
        return _Beginning(
            [*self.nodes, node],
            self.emitted | 1 << node,
            {**self.step_of, node: len(self.nodes)},
            missing,
            sorted([*(other for other in self.available if other != node), *free]),
            self.kinds + Counter([kind] if kind else []),
            liking,
        )


def regular_sequence(parents: Sequence[Sequence[int]], watch: PartWatch | None = None) -> list[int]:
    """All nodes, each behind its parents; no less regular than by their numbers, among those nodes that have edges."""
    watch = watch or PartWatch()
    children: list[list[int]] = [[] for _ in parents]
    for node, own in enumerate(parents):
        for parent in own:
            children[parent].append(node)
    roots = [node for node, own in enumerate(parents) if not own]
    apart = [node for node in roots if not children[node]]
    first = {node: step for step, node in enumerate(apart)}
    joined = [node for node in roots if children[node]]
    emitted = sum(1 << node for node in apart)
    beginnings = [_Beginning(apart, emitted, first, [len(own) for own in parents], joined, Counter(), 0.0)]
    for done in range(len(apart), len(parents)):
        watch("sorting the graph", done, len(parents))
        looks = sum(len(beginning.available) for beginning in beginnings)
        most = min(_BEAM, max(1, _MOST_LOOKS * len(beginnings) // (looks * len(parents))))
        beginnings = [
            beginning.longer(node, kind, liking, children[node])
            for liking, beginning, node, kind in heapq.nlargest(most, _grown(beginnings, parents), key=lambda g: g[0])
        ]
    found = [*(beginning.nodes for beginning in beginnings), list(range(len(parents)))]
    return min(found, key=lambda nodes: irregularity(nodes, parents))


_Grown = tuple[float, _Beginning, int, Kind]


def _grown(beginnings: Sequence[_Beginning], parents: Sequence[Sequence[int]]) -> list[_Grown]:
    """All of them by one node more; of those that have emitted the same and end alike, the best one."""
    found: dict[tuple[int, tuple[int, ...]], _Grown] = {}
    for beginning in beginnings:
        for node in beginning.available:
            kind = beginning.kind(parents[node])
            liking = beginning.liking_with(kind)
            key = (beginning.emitted | 1 << node, (*beginning.nodes[-_ENDING:], node))
            if key not in found or liking > found[key][0]:
                found[key] = (liking, beginning, node, kind)
    return list(found.values())


def irregularity(nodes: Sequence[int], parents: Sequence[Sequence[int]]) -> int:
    """Of a sort: many kinds are bad, many nodes next to a parent are good."""
    step_of = {node: step for step, node in enumerate(nodes)}
    kinds = [tuple(sorted(step - step_of[parent] for parent in parents[node])) for node, step in step_of.items()]
    return _PRICE_OF_A_KIND * len({kind for kind in kinds if kind}) - sum(1 in kind for kind in kinds)
