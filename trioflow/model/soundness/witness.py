"""Witnesses: the ways that the tokens of one run take to where it goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import define

from trioflow.model.soundness.conditions import NEVER
from trioflow.model.soundness.net import ENTRY, Arc, Net, Node
from trioflow.model.soundness.region import Loop, Region

__all__ = ["Run", "cycle"]

Path = tuple[str, ...]


@define(eq=False)
class Run:
    """One run of a region: ``made`` are the choices that are taken (the others are not)."""

    region: Region
    made: Mapping[int, bool]

    @property
    def _net(self) -> Net:
        return self.region.net

    def carries(self, arc: Arc) -> bool:
        """Whether a token comes along the arc; inside a loop, whether one can."""
        region = self.region
        when = region.when.get(arc.number)
        if when is None and region.rank.get(arc.source, -1) == region.rank.get(arc.target, -2):
            when = region.reached.get(arc.source)
        return when is not None and region.conditions.holds(when, self.made)

    # -------------------------------------------------------------- a join that waits

    def missing(self, join: Node) -> Arc:
        """The first arc into the join that brings nothing, if there is one that never does."""
        nothing = [arc for arc in join.ins if not self.carries(arc)]
        return next((arc for arc in nothing if self.region.when.get(arc.number, NEVER) == NEVER), nothing[0])

    def is_consequence(self, join: Node) -> bool:
        """Whether what is missing at the join waits at, or behind, another join that does not fire."""
        lost = self._backwards([arc for arc in join.ins if not self.carries(arc)], lambda arc: not self.carries(arc))
        return any(self._is_starved(node) for node in lost if node != join.number)

    def _is_starved(self, number: int) -> bool:
        node = self._net.nodes[number]
        if number not in self.region.starved:
            return False
        carried = [self.carries(arc) for arc in node.ins]
        return self.region.reached[number] == NEVER or (any(carried) and not all(carried))

    def waiting_path(self, join: Node) -> Path:
        """The way of a token that waits, from where it parted from the missing one, else from the entry."""
        missing = self.missing(join)
        toward = self._backwards([missing], lambda arc: arc.target != join.number)
        steps = self._backwards([arc for arc in join.ins if self.carries(arc)], self.carries)
        for node in steps:
            others = (arc for arc in self._net.nodes[node].outs if arc is not steps[node])
            if any(arc is missing or (arc.target in toward and arc.target != join.number) for arc in others):
                return self._path(node, steps)
        return self._path(self.region.entry if self.region.entry in steps else next(reversed(steps)), steps)

    # -------------------------------------------------------------- two tokens at one node

    def meeting_paths(self, node: Node) -> tuple[Path, Path]:
        """The ways of two tokens to a node, from where they parted."""
        one, other = [self._backwards([arc], self.carries) for arc in node.ins if self.carries(arc)][:2]
        fork = max(one.keys() & other.keys(), key=lambda number: (self.region.rank[number], number))
        return self._path(fork, one), self._path(fork, other)

    # -------------------------------------------------------------- walking

    def _backwards(self, first: Iterable[Arc], follows: Callable[[Arc], bool]) -> dict[int, Arc]:
        """The nodes before some arcs, nearest first, each with the arc that leads on from there."""
        found: dict[int, Arc] = {}
        todo = list(first)
        for arc in todo:
            self.region.steps.take()
            if arc.source in found or arc.source not in self.region.members:
                continue
            found[arc.source] = arc
            if arc.source != self.region.entry:
                todo.extend(each for each in self._net.nodes[arc.source].ins if follows(each))
        return found

    def _path(self, start: int, steps: Mapping[int, Arc]) -> Path:
        """From a node along the arcs that lead on, to where the last one leads."""
        passed, node = [start], steps[start].target
        while node in steps and node not in passed:
            passed.append(node)
            node = steps[node].target
        return self._net.names((*passed, node))


def cycle(net: Net, loop: Loop) -> Path:
    """A way round a loop, from its first node that a token comes to."""
    start = next(
        (
            number
            for number in sorted(loop.members)
            if any(arc.source not in loop.members for arc in net.nodes[number].ins)
        ),
        min(loop.members),
    )
    steps: dict[int, Arc] = {}
    todo = [arc for arc in net.nodes[start].ins if arc.source in loop.members]
    for arc in todo:
        if arc.source not in steps:
            steps[arc.source] = arc
            todo.extend(each for each in net.nodes[arc.source].ins if each.source in loop.members)
    passed, node = [start], steps[start].target
    while node != start:
        passed.append(node)
        node = steps[node].target
    return net.names(number for number in (*passed, start) if number != ENTRY)
