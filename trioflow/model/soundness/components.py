"""The strongly connected components of a part of a net, in the order in which tokens come to them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from attrs import define, field

from trioflow.model.soundness.net import Arc, Net
from trioflow.model.soundness.steps import Steps

__all__ = ["components"]


def components(net: Net, members: AbstractSet[int], entry: int, steps: Steps) -> list[list[int]]:
    """The components that can be reached from ``entry`` within ``members``: each before those that it leads to.

    Arcs back to the entry do not count, so that it is a component by itself.  (Tarjan 1972, without recursion.)
    """
    return _Search(net, members, entry, steps).run()


@define(eq=False)
class _Search:
    net: Net
    members: AbstractSet[int]
    entry: int
    steps: Steps
    index: dict[int, int] = field(factory=dict)
    lowest: dict[int, int] = field(factory=dict)
    open: list[int] = field(factory=list)
    closed: set[int] = field(factory=set)
    found: list[list[int]] = field(factory=list)

    def run(self) -> list[list[int]]:
        walk = [(self.entry, self._visit(self.entry))]
        while walk:
            node, arcs = walk[-1]
            below = self._next(node, arcs)
            if below is not None:
                walk.append((below, self._visit(below)))
                continue
            walk.pop()
            if walk:
                above = walk[-1][0]
                self.lowest[above] = min(self.lowest[above], self.lowest[node])
            if self.lowest[node] == self.index[node]:
                self._close(node)
        self.found.reverse()
        return self.found

    def _visit(self, node: int) -> Iterator[Arc]:
        self.index[node] = self.lowest[node] = len(self.index)
        self.open.append(node)
        return iter(self.net.nodes[node].outs)

    def _next(self, node: int, arcs: Iterator[Arc]) -> int | None:
        """The next node that was not visited yet."""
        for arc in arcs:
            self.steps.take()
            target = arc.target
            if target == self.entry or target not in self.members or target in self.closed:
                continue
            if target not in self.index:
                return target
            self.lowest[node] = min(self.lowest[node], self.index[target])
        return None

    def _close(self, node: int) -> None:
        component: list[int] = []
        while not component or component[-1] != node:
            component.append(self.open.pop())
        self.closed.update(component)
        component.sort()
        self.found.append(component)
