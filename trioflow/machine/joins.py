"""The parallel join: queues per incoming flow and scope instance, and how a join that can never fire is found.

A join holds one queue per incoming flow.  It fires when every flow has a token, consumes exactly one of each,
and the last to arrive goes on (``docs/explanation/elements.md``).

*Stuck* (section 6): a join misses a flow that no live token of its scope instance can reach without passing
the join.  Looking for that after every step would be quadratic in a fan-out; so for each missing flow a join
remembers the node of one token that can still serve it (its *holder*), and looks again only when the last
token leaves that node.  Looking walks the flows backwards and ends at the first occupied node.

A token that waits at a join can serve another one only if its own can still fire.  So a join that finds no free
token is in doubt together with all that were held by it, and the least fixed point decides: joins that merely wait
for each other are stuck together.  Who is stuck already is nobody's holder, and is not decided again until a token
is let out of a stuck join before it: nothing else can bring it back to life.  Then all behind that join are in doubt,
and whether one can be a holder again is what this look has found, not the incident that it still has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from trioflow.machine.program import NodeProgram, Program
from trioflow.machine.state import (
    Arrival,
    Incident,
    IncidentKind,
    Join,
    Resume,
    Scope,
    State,
    Track,
    TrackState,
)

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = [
    "arrive",
    "clear",
    "fire_with_what_is_there",
    "index",
    "is_held",
    "look_again",
    "look_for_holders",
    "missing",
    "settle",
    "surrender",
    "vacated",
    "withdraw",
]

_NAMED = 10
"""How many flows a message names at most."""


def arrive(turn: Turn, track: Track, node: NodeProgram) -> bool:
    """Queue the token.  True: the join fired, and ``track`` is the survivor; else it waits."""
    if len(node.incoming) < 2:
        return True
    scope = turn.state.scopes[track.scope]
    join = scope.joins.get(node.id)
    queues = join.queues if join is not None else {}
    if track.flow not in queues and len(queues) + 1 == len(node.incoming):
        _consume_one_each(turn, scope, node, keep=track)
        return True
    if join is None:
        join = scope.joins[node.id] = Join()
        _doubt(turn.state, scope, node.id)
    arrival = Arrival(turn.state.new_id(), scope.id, node.id, track.flow, track.id)
    turn.state.arrivals.put(arrival)
    join.queues.setdefault(track.flow, deque()).append(arrival)
    if track.flow in join.holders:
        _release_holder(scope, node.id, track.flow)
    track.state = TrackState.JOINING
    track.hops = 0
    turn.state.tracks.touch(track)
    return False


def fire_with_what_is_there(turn: Turn, scope: Scope, node: NodeProgram) -> Track:
    """An operator lets a stuck join go on: one token per queue is consumed, the youngest of them survives.

    It can come to other stuck joins of the scope, or bring a token there: those behind are looked at again.
    """
    join = scope.joins[node.id]
    heads = [queue[0] for queue in join.queues.values()]
    survivor = turn.state.tracks[max(heads, key=lambda arrival: arrival.id).track]
    _consume_one_each(turn, scope, node, keep=survivor)
    for node_id in _behind(turn.program, node.id):
        if node_id in scope.joins and scope.joins[node_id].incident is not None:
            _doubt(turn.state, scope, node_id)
    return survivor


def _consume_one_each(turn: Turn, scope: Scope, node: NodeProgram, *, keep: Track) -> None:
    """Take the oldest token of each queue; all end but ``keep``, which may be one of them or the last to arrive."""
    join = scope.joins.get(node.id)
    if join is None:
        return
    for flow in node.incoming:
        if flow.id not in join.queues:
            continue
        merged = turn.state.tracks[_pop(turn.state, join, flow.id).track]
        if merged is not keep:
            turn.fact("token-merged", merged)
            turn.forget(merged)
    _close_incident(turn, join)
    _taken_from(turn.state, scope, node.id, join)


def _pop(state: State, join: Join, flow: str) -> Arrival:
    queue = join.queues[flow]
    arrival = queue.popleft()
    state.arrivals.drop(arrival.id)
    if not queue:
        del join.queues[flow]
    return arrival


def _taken_from(state: State, scope: Scope, node_id: str, join: Join) -> None:
    """Tokens left the queues: the join starts over with the rest, and what it held back must look for others."""
    for flow in list(join.holders):
        _release_holder(scope, node_id, flow)
    if join.queues:
        _doubt(state, scope, node_id)
    else:
        del scope.joins[node_id]
    if scope.joins:
        vacated(state, scope, node_id)


def withdraw(turn: Turn, track: Track) -> None:
    """A token that waits at a join is cancelled by itself: its place in the queue is given up."""
    scope = turn.state.scopes[track.scope]
    join = scope.joins[track.node]
    queue = join.queues[track.flow]
    arrival = next(each for each in queue if each.track == track.id)
    queue.remove(arrival)
    turn.state.arrivals.drop(arrival.id)
    if not queue:
        del join.queues[track.flow]
    if not join.queues:
        _close_incident(turn, join)
    _taken_from(turn.state, scope, track.node, join)


def surrender(state: State, scope: Scope, node: NodeProgram) -> list[Track]:
    """Take all the tokens out of a join whose incident is given up; they are the caller's to end."""
    join = scope.joins[node.id]
    join.incident = None
    tracks = []
    for flow in node.incoming:
        while flow.id in join.queues:
            tracks.append(state.tracks[_pop(state, join, flow.id).track])
    _taken_from(state, scope, node.id, join)
    return tracks


def clear(turn: Turn, scope: Scope) -> None:
    """The whole scope is being emptied: no token waits at any of its joins any more."""
    for join in scope.joins.values():
        for queue in join.queues.values():
            for arrival in queue:
                turn.state.arrivals.drop(arrival.id)
        _close_incident(turn, join)
    scope.joins.clear()
    scope.held.clear()
    scope.vacated.clear()
    scope.doubted.clear()


def _close_incident(turn: Turn, join: Join) -> None:
    if join.incident is not None:
        turn.state.incidents.drop(join.incident.id)
        join.incident = None


def missing(join: Join, node: NodeProgram) -> Iterator[str]:
    """The incoming flows that hold no token, in document order."""
    return (flow.id for flow in node.incoming if flow.id not in join.queues)


def is_held(join: Join, node: NodeProgram) -> bool:
    """Whether each missing flow has a token that can still serve it."""
    return len(join.queues) + len(join.holders) == len(node.incoming)


def index(scope: Scope, arrival: Arrival) -> None:
    """Put a stored arrival back into the derived queues; called in the order of ids."""
    join = scope.joins.setdefault(arrival.node, Join())
    join.queues.setdefault(arrival.flow, deque()).append(arrival)


# ------------------------------------------------------------------ what must be looked at


def vacated(state: State, scope: Scope, node_id: str) -> None:
    """The last token left a node: the joins that it held back must look for another one."""
    if node_id in scope.held:
        scope.vacated.append(node_id)
        state.unsettled[scope.id] = scope


def look_again(turn: Turn, scope: Scope, node_id: str) -> None:
    """Have a join look for all its holders anew (an operator retries its incident); still stuck, it is since before."""
    join = scope.joins[node_id]
    before = join.incident
    _close_incident(turn, join)
    _doubt(turn.state, scope, node_id)
    settle(turn)
    if before is not None and join.incident is not None:
        join.incident.first = before.first


def _doubt(state: State, scope: Scope, node_id: str) -> None:
    scope.doubted[node_id] = None
    state.unsettled[scope.id] = scope


def settle(turn: Turn) -> None:
    """Look at every join that something happened to; those that can never fire become incidents."""
    unsettled = list(turn.state.unsettled.values())
    turn.state.unsettled.clear()
    for scope in unsettled:
        looked = look_for_holders(turn.program, scope)
        changed = {node_id for node_id in looked if _is_judged_wrongly(turn.program, scope, node_id)}
        if changed:
            _judge(turn, scope, changed)


def _is_judged_wrongly(program: Program, scope: Scope, node_id: str) -> bool:
    join = scope.joins[node_id]
    return is_held(join, program.nodes[node_id]) is (join.incident is not None)


def _judge(turn: Turn, scope: Scope, changed: set[str]) -> None:
    for node_id in turn.program.scopes[scope.node].nodes:
        if node_id not in changed:
            continue
        join = scope.joins[node_id]
        if join.incident is None:
            join.incident = _stuck_incident(turn, scope, turn.program.nodes[node_id], join)
            continue
        turn.facts.append(("incident-overtaken", node_id, 0, {"incident": join.incident.id}))
        _close_incident(turn, join)


# ------------------------------------------------------------------ looking


def look_for_holders(program: Program, scope: Scope) -> set[str]:
    """Find holders for all that lost theirs; the joins that were looked at, each with all the holders it can have."""
    doubted = [node_id for node_id in scope.doubted if node_id in scope.joins]
    scope.doubted.clear()
    looked = set(doubted)
    for node_id, flow in _wanted(program, scope, doubted):
        looked.add(node_id)
        holder = _holder(program, node_id, flow, scope.occupied.__contains__)
        if holder is not None:
            _hold(scope, node_id, flow, holder)
    unheld = [node_id for node_id in looked if not is_held(scope.joins[node_id], program.nodes[node_id])]
    undecided = [node_id for node_id in unheld if node_id in doubted or scope.joins[node_id].incident is None]
    if undecided:
        looked |= _look_among_joins(program, scope, undecided)
    return looked


def _wanted(program: Program, scope: Scope, doubted: Iterable[str]) -> list[tuple[str, str]]:
    """The (join, missing flow) pairs that have no holder any more, or never had one."""
    wanted: dict[tuple[str, str], None] = {}
    for vacant in scope.vacated:
        if vacant in scope.occupied:
            continue
        for node_id, flow in list(scope.held.get(vacant, ())):
            _release_holder(scope, node_id, flow)
            wanted[(node_id, flow)] = None
    scope.vacated.clear()
    for node_id in doubted:
        join = scope.joins[node_id]
        for flow in missing(join, program.nodes[node_id]):
            if flow not in join.holders:
                wanted[(node_id, flow)] = None
    return list(wanted)


def _look_among_joins(program: Program, scope: Scope, undecided: Iterable[str]) -> set[str]:
    """Decide for joins that found no free token, together with all that they held back: the least fixed point."""
    suspects = _suspects(scope, undecided)
    unserved = set(suspects)

    def can_serve(node_id: str) -> bool:
        if node_id in scope.occupied:
            return True
        join = scope.joins.get(node_id)
        return join is not None and node_id not in unserved and is_held(join, program.nodes[node_id])

    grown = True
    while grown:
        served = {
            node_id for node_id in suspects if node_id in unserved and _finds_all(program, scope, node_id, can_serve)
        }
        unserved -= served
        grown = bool(served)
    return set(suspects)


def _suspects(scope: Scope, undecided: Iterable[str]) -> list[str]:
    """These joins and all that are held by them, directly or not; none of them counts on another one any more."""
    suspects = list(undecided)
    known = set(suspects)
    for suspect in suspects:
        for node_id, flow in list(scope.held.get(suspect, ())):
            _release_holder(scope, node_id, flow)
            if node_id not in known:
                known.add(node_id)
                suspects.append(node_id)
    return suspects


def _finds_all(program: Program, scope: Scope, node_id: str, can_serve: Callable[[str], bool]) -> bool:
    join, node = scope.joins[node_id], program.nodes[node_id]
    for flow in missing(join, node):
        if flow in join.holders:
            continue
        holder = _holder(program, node_id, flow, can_serve)
        if holder is not None:
            _hold(scope, node_id, flow, holder)
    return is_held(join, node)


def _hold(scope: Scope, node_id: str, flow: str, holder: str) -> None:
    scope.joins[node_id].holders[flow] = holder
    scope.held.setdefault(holder, set()).add((node_id, flow))


def _release_holder(scope: Scope, node_id: str, flow: str) -> None:
    holder = scope.joins[node_id].holders.pop(flow)
    held = scope.held[holder]
    held.discard((node_id, flow))
    if not held:
        del scope.held[holder]


def _holder(program: Program, node_id: str, flow_id: str, can_serve: Callable[[str], bool]) -> str | None:
    """The first node backwards from the flow, not through the join, for which ``can_serve`` is true."""
    nodes = program.nodes
    source = program.flows[flow_id].source
    if source == node_id:
        return None
    seen = {node_id, source}
    front = deque((source,))
    while front:
        current = front.popleft()
        if can_serve(current):
            return current
        for flow in nodes[current].incoming:
            if flow.source not in seen:
                seen.add(flow.source)
                front.append(flow.source)
    return None


def _behind(program: Program, node_id: str) -> Iterable[str]:
    """The nodes to which ways lead from this one, in the order of the walk."""
    seen = dict.fromkeys(flow.target for flow in program.nodes[node_id].outgoing)
    front = deque(seen)
    while front:
        for flow in program.nodes[front.popleft()].outgoing:
            if flow.target not in seen:
                seen[flow.target] = None
                front.append(flow.target)
    return seen


# ------------------------------------------------------------------ the incident


def _stuck_incident(turn: Turn, scope: Scope, node: NodeProgram, join: Join) -> Incident:
    lost = [flow for flow in missing(join, node) if flow not in join.holders]
    arrived = [f"{flow.id} ({len(join.queues[flow.id])})" for flow in node.incoming if flow.id in join.queues]
    message = (
        f"the join {node.label} can never fire: it holds a token from {_listed(arrived)}, and misses {_listed(lost)}, "
        f"which no live token can reach any more; resolve the incident to go on with what is there, or drop its tokens"
    )
    incident = Incident(
        id=turn.state.new_id(),
        kind=IncidentKind.STUCK,
        node=node.id,
        scope=scope.id,
        track=0,
        resume=Resume.JOIN,
        message=message,
        first=turn.now,
        last=turn.now,
    )
    turn.state.incidents.put(incident)
    turn.facts.append(("incident-opened", node.id, 0, {"incident": incident.id, "kind": incident.kind.value}))
    return incident


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
