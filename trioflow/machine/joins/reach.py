"""Ways to and from a join, inside one scope; what does not depend on tokens is kept in the program.

Backwards, because what a join misses is at its flows: a search ends at the first node that is wanted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from trioflow.machine.program import NodeProgram, Program, Ways

__all__ = ["behind", "find_back", "ways_to"]

_NO_FLOWS: frozenset[str] = frozenset()


def find_back(program: Program, join: str, sources: Iterable[str], is_wanted: Callable[[str], bool]) -> str | None:
    """The first node that is wanted, backwards from ``sources``; a way ends at the join, and does not pass it.

    The join itself is found if it is wanted: a token that stands there has passed it, and can come round.
    """
    front = deque(dict.fromkeys(sources))
    seen = set(front)
    while front:
        current = front.popleft()
        if is_wanted(current):
            return current
        if current == join:
            continue
        for source in _before(program.nodes[current]):
            if source not in seen:
                seen.add(source)
                front.append(source)
    return None


def behind(program: Program, node_id: str) -> Iterable[str]:
    """The nodes to which ways lead from this one, in the order of the walk."""
    followers = _followers(program)
    seen = dict.fromkeys(followers[node_id])
    front = deque(seen)
    while front:
        for follower in followers[front.popleft()]:
            if follower not in seen:
                seen[follower] = None
                front.append(follower)
    return seen


def ways_to(program: Program, join: NodeProgram) -> Mapping[str, Ways]:
    """Each node from which the join can be reached, with the incoming flows that can be; computed at first use.

    The join is one of them where a way leads from it back to it.
    """
    ways = program.ways.get(join.id)
    if ways is None:
        holding = _reached(program, join, with_boundary=True)
        releasing = _reached(program, join, with_boundary=False)
        ways = {node: Ways(flows, releasing.get(node, _NO_FLOWS)) for node, flows in holding.items()}
        program.ways[join.id] = ways
    return ways


def _reached(program: Program, join: NodeProgram, *, with_boundary: bool) -> dict[str, frozenset[str]]:
    """A work list: a node takes over what its followers reach; equal sets are one object, so a chain costs nothing."""
    followers = _followers(program)
    direct: dict[str, list[str]] = {}
    for flow in join.incoming:
        direct.setdefault(flow.source, []).append(flow.id)
    found: dict[str, frozenset[str]] = {}
    work = deque(direct)
    listed = set(work)
    while work:
        current = work.popleft()
        listed.discard(current)
        parts = [found[node] for node in followers[current] if node in found and node != join.id]
        if not with_boundary:
            own = {node for node in followers[current] if program.nodes[node].attached_to == current}
            parts = [found[node] for node in followers[current] if node in found and node not in own | {join.id}]
        reached = _union(direct.get(current, ()), parts)
        if reached == found.get(current):
            continue
        found[current] = reached
        if current == join.id:
            continue
        for node in _before(program.nodes[current], with_boundary=with_boundary):
            if node not in listed:
                listed.add(node)
                work.append(node)
    return found


def _union(direct: Iterable[str], parts: list[frozenset[str]]) -> frozenset[str]:
    own = frozenset(direct)
    distinct = {id(part): part for part in parts}
    if not own and len(distinct) == 1:
        return parts[0]
    return own.union(*distinct.values())


def _before(node: NodeProgram, *, with_boundary: bool = True) -> Iterator[str]:
    """Where a token can come from."""
    for flow in node.incoming:
        yield flow.source
    yield from node.jumps
    if with_boundary and node.attached_to is not None:
        yield node.attached_to


def _followers(program: Program) -> Mapping[str, tuple[str, ...]]:
    """Where a token can go from each node; computed at first use."""
    if not program.followers:
        followers: dict[str, dict[str, None]] = {node: {} for node in program.nodes}
        for node in program.nodes.values():
            for source in _before(node):
                followers[source][node.id] = None
        program.followers.update({source: tuple(targets) for source, targets in followers.items()})
    return program.followers
