"""Cycles that no start leads to.

A node without an incoming flow beside a start event has findings of its own (``node-unreachable`` and its like), and
what lies behind it is as dead as it is.  What those rules do not see is nodes that reach only each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.activities import AdHocSubProcess
from trioflow.model.checks.view import containers
from trioflow.model.graph import Graph
from trioflow.model.soundness.net import ENTRY, Net, Role

__all__ = ["dead_cycles"]


def dead_cycles(graph: Graph) -> Iterator[tuple[str, ...]]:
    """A way round each cycle that nothing outside of it leads to, in document order of the nodes found first."""
    for scope in containers(graph):
        if not isinstance(scope, AdHocSubProcess):
            yield from _in_scope(Net.of(graph, scope, interrupting=frozenset(), sides=False))


def _in_scope(net: Net) -> Iterator[tuple[str, ...]]:
    alive = set(net.reachable(ENTRY))
    dead = [node.number for node in net.nodes if node.number not in alive]
    # What lies behind a node that nothing leads to is accounted for by that node.
    seen = alive.union(*(net.reachable(number) for number in dead if not _before(net, number)))
    for number in dead:
        if number not in seen:
            found = _backwards(net, number)
            seen.update(net.reachable(found[0]))
            yield net.names(found)


def _before(net: Net, number: int) -> list[int]:
    return [arc.source for arc in net.nodes[number].ins if arc.role is not Role.NEVER]


def _backwards(net: Net, number: int) -> list[int]:
    """From a node back until one comes again: the cycle, forward from that one and back to it."""
    passed: dict[int, None] = {}
    while number not in passed:
        passed[number] = None
        number = _before(net, number)[0]
    way = list(passed)
    return [number, *reversed(way[way.index(number) :])]
