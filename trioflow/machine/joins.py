"""The parallel join: queues per incoming flow and scope instance, and how a join that can never fire is found.

A join holds one queue per incoming flow.  It fires when every flow has a token, consumes exactly one of each,
and the last to arrive goes on (``semantics.md`` section 2).

*Stuck* (section 6): a join misses a flow that no live token of its scope instance can reach without passing
the join.  Looking for that after every step would be quadratic in a fan-out; so for each missing flow a join
remembers the node of one token that can still serve it (its *holder*), and looks again only when the last
token leaves that node.  Looking walks the flows backwards and ends at the first occupied node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
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

__all__ = ["arrive", "clear", "fire_with_what_is_there", "index", "look_again", "look_for_holders", "missing", "settle", "vacated", "withdraw"]


def arrive(turn: Turn, track: Track, node: NodeProgram) -> bool:
    """Queue the token.  True: the join fired, and ``track`` is the survivor; else it waits."""
    if len(node.incoming) < 2:
        return True
    scope = turn.state.scopes[track.scope]
    join = scope.joins.get(node.id)
    queues = join.queues if join is not None else {}
    own = queues.get(track.flow)
    if not own and len(queues) + 1 == len(node.incoming):
        _consume_one_each(turn, scope, node, keep=track)
        return True
    if join is None:
        join = scope.joins[node.id] = Join()
    arrival = Arrival(turn.state.new_id(), scope.id, node.id, track.flow, track.id)
    turn.state.arrivals.put(arrival)
    join.queues.setdefault(track.flow, deque()).append(arrival)
    if track.flow in join.holders:
        _release_holder(scope, node.id, track.flow)
    track.state = TrackState.JOINING
    turn.state.tracks.touch(track)
    if join.fresh or join.incident is not None:
        turn.state.unsettled[scope.id] = scope
    return False


def _consume_one_each(turn: Turn, scope: Scope, node: NodeProgram, *, keep: Track) -> None:
    """Take the oldest token of each queue; all of them end but ``keep``, which may be one of them or the last to arrive."""
    join = scope.joins.get(node.id)
    if join is None:
        return
    for flow in list(join.queues):
        arrival = _pop(turn.state, join, flow)
        merged = turn.state.tracks[arrival.track]
        if merged is not keep:
            turn.fact("token-merged", merged)
            turn.forget(merged)
    _fired(turn, scope, node.id, join)


def _pop(state: State, join: Join, flow: str) -> Arrival:
    queue = join.queues[flow]
    arrival = queue.popleft()
    state.arrivals.drop(arrival.id)
    if not queue:
        del join.queues[flow]
    return arrival


def _fired(turn: Turn, scope: Scope, node_id: str, join: Join) -> None:
    """After tokens were taken: close the incident, forget the holders, and look at what is left."""
    if join.incident is not None:
        turn.state.incidents.drop(join.incident.id)
        join.incident = None
    for flow in list(join.holders):
        _release_holder(scope, node_id, flow)
    if join.queues:
        join.fresh = True
        turn.state.unsettled[scope.id] = scope
    else:
        del scope.joins[node_id]
    if scope.joins:
        vacated(turn.state, scope, node_id)


def withdraw(turn: Turn, track: Track) -> None:
    """A token that waits at a join is cancelled: its place in the queue is given up."""
    scope = turn.state.scopes[track.scope]
    join = scope.joins[track.node]
    queue = join.queues[track.flow]
    arrival = next(each for each in queue if each.track == track.id)
    queue.remove(arrival)
    turn.state.arrivals.drop(arrival.id)
    if not queue:
        del join.queues[track.flow]
    _fired(turn, scope, track.node, join)


def clear(turn: Turn, scope: Scope) -> None:
    """The whole scope is being emptied: no token waits at any of its joins any more."""
    for join in scope.joins.values():
        for queue in join.queues.values():
            for arrival in queue:
                turn.state.arrivals.drop(arrival.id)
        if join.incident is not None:
            turn.state.incidents.drop(join.incident.id)
    scope.joins.clear()
    scope.held.clear()
    scope.vacated.clear()


def fire_with_what_is_there(turn: Turn, scope: Scope, node: NodeProgram) -> Track:
    """An operator lets a stuck join go on: one token per queue is consumed, the youngest of them survives."""
    join = scope.joins[node.id]
    heads = [queue[0] for queue in join.queues.values()]
    survivor = turn.state.tracks[max(heads, key=lambda arrival: arrival.id).track]
    _consume_one_each(turn, scope, node, keep=survivor)
    return survivor


def missing(join: Join, node: NodeProgram) -> Iterator[str]:
    """The incoming flows that hold no token, in document order."""
    return (flow.id for flow in node.incoming if flow.id not in join.queues)


def index(scope: Scope, arrival: Arrival) -> None:
    """Put a stored arrival back into the derived queues; called in the order of ids."""
    join = scope.joins.setdefault(arrival.node, Join())
    join.queues.setdefault(arrival.flow, deque()).append(arrival)


# ------------------------------------------------------------------ looking for stuck joins


def vacated(state: State, scope: Scope, node_id: str) -> None:
    """The last token left a node: the joins that it held back must look for another one."""
    if node_id in scope.held:
        scope.vacated.append(node_id)
        state.unsettled[scope.id] = scope


def look_again(turn: Turn, scope: Scope, node_id: str) -> None:
    """Have a join look for all its holders anew (an operator retries its incident)."""
    scope.joins[node_id].fresh = True
    turn.state.unsettled[scope.id] = scope


def look_for_holders(program: Program, scope: Scope) -> None:
    """Find the holders of all joins of a folded scope; what is stuck was found before it was captured."""
    if scope.joins and not _all_held(program, scope):
        _served(program, scope)


def settle(turn: Turn) -> None:
    """Look at every join that something happened to; those that can never fire become incidents."""
    unsettled = list(turn.state.unsettled.values())
    turn.state.unsettled.clear()
    for scope in unsettled:
        if not _all_held(turn.program, scope):
            _open_stuck(turn, scope)


def _all_held(program: Program, scope: Scope) -> bool:
    """Find holders where they are missing, among tokens that wait at no join; False: some flow has none."""
    held = True
    for node_id, flow in _to_look_for(program, scope):
        holder = _holder(program, node_id, flow, scope.occupied.__contains__)
        if holder is None:
            held = False
        else:
            _hold(scope, node_id, flow, holder)
    return held


def _to_look_for(program: Program, scope: Scope) -> list[tuple[str, str]]:
    wanted: dict[tuple[str, str], None] = {}
    for vacant in scope.vacated:
        if vacant in scope.occupied:
            continue
        for node_id, flow in list(scope.held.get(vacant, ())):
            _release_holder(scope, node_id, flow)
            wanted[(node_id, flow)] = None
    scope.vacated.clear()
    for node_id, join in scope.joins.items():
        if join.fresh:
            join.fresh = False
            for flow in missing(join, program.nodes[node_id]):
                if flow not in join.holders:
                    wanted[(node_id, flow)] = None
    return [(node_id, flow) for node_id, flow in wanted if _is_missing(scope, node_id, flow)]


def _is_missing(scope: Scope, node_id: str, flow: str) -> bool:
    join = scope.joins.get(node_id)
    return join is not None and flow not in join.queues


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
    seen = {node_id, source}
    if source == node_id:
        return None
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


def _open_stuck(turn: Turn, scope: Scope) -> None:
    """Some join found no holder among free tokens: decide for all joins of the scope together.

    A token at a join can serve another join only if its own can still fire; the least fixed point of that
    leaves out joins that merely wait for each other.
    """
    served = _served(turn.program, scope)
    for node_id, join in scope.joins.items():
        if node_id not in served and join.incident is None:
            join.incident = _stuck_incident(turn, scope, turn.program.nodes[node_id], join)


def _served(program: Program, scope: Scope) -> set[str]:
    for node_id, join in scope.joins.items():
        for flow in list(join.holders):
            _release_holder(scope, node_id, flow)
    served: set[str] = set()
    grown = True
    while grown:
        grown = False
        for node_id, join in scope.joins.items():
            if node_id not in served and _find_all(program, scope, node_id, join, served):
                served.add(node_id)
                grown = True
    return served


def _find_all(program: Program, scope: Scope, node_id: str, join: Join, served: set[str]) -> bool:
    complete = True
    for flow in missing(join, program.nodes[node_id]):
        if flow in join.holders:
            continue
        holder = _holder(program, node_id, flow, lambda node: node in scope.occupied or node in served)
        if holder is None:
            complete = False
        else:
            _hold(scope, node_id, flow, holder)
    return complete


def _stuck_incident(turn: Turn, scope: Scope, node: NodeProgram, join: Join) -> Incident:
    lost = [flow for flow in missing(join, node) if flow not in join.holders]
    arrived = ", ".join(f"{flow} ({len(queue)})" for flow, queue in join.queues.items())
    message = (
        f"the join {node.label} can never fire: it holds a token from {arrived}, and misses {', '.join(lost)}, "
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
