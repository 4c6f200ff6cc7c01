"""The queues of a join: tokens line up, are merged, withdrawn, given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trioflow.machine.joins.reach import behind
from trioflow.machine.joins.rules import rule_of
from trioflow.machine.state import Arrival, Incident, IncidentKind, Join, Resume, Scope, State, Track, TrackState

if TYPE_CHECKING:
    from trioflow.machine.program import NodeProgram
    from trioflow.machine.turn import Turn

__all__ = [
    "clear",
    "close_incident",
    "doubt",
    "doubt_stuck_behind",
    "end_round",
    "enqueue",
    "line_up",
    "merge",
    "open_incident",
    "overtake",
    "release_holder",
    "surrender",
    "vacated",
    "withdraw",
]


# ------------------------------------------------------------------ in


def line_up(turn: Turn, track: Track, node: NodeProgram) -> Join:
    """The token waits in the queue of the flow that it came by.  What it stepped is kept: it may go on at once."""
    state = turn.state
    scope = state.scopes[track.scope]
    join = scope.joins.get(node.id)
    if join is None:
        join = scope.joins[node.id] = Join()
        watch(state, scope, node)
        doubt(state, scope, node.id)
    elif track.flow not in join.queues and rule_of(node).weighs_arrivals:
        doubt(state, scope, node.id)
    arrival = Arrival(state.new_id(), scope.id, node.id, track.flow, track.id)
    state.arrivals.put(arrival)
    enqueue(join, arrival)
    if track.flow in join.holders:
        release_holder(scope, node.id, track.flow)
    track.state = TrackState.JOINING
    track.failing = None  # what kept it from entering is over
    state.tracks.touch(track)
    return join


def enqueue(join: Join, arrival: Arrival) -> None:
    """Enter an arrival into the derived queues."""
    join.queues.setdefault(arrival.flow, deque()).append(arrival)
    join.count += 1


# ------------------------------------------------------------------ out


def merge(
    turn: Turn,
    scope: Scope,
    node: NodeProgram,
    flows: Iterable[str],
    *,
    keep: Track | None = None,
    all_of: bool = False,
) -> Track | None:
    """Take the oldest token of each of these queues, or ``all_of`` them; all end but one.

    That is ``keep``, which came last and need not have lined up, else the youngest of them.  None: there was none.
    """
    join = scope.joins[node.id]
    taken: list[Arrival] = []
    for flow in flows:
        while flow in join.queues:
            taken.append(_pop(turn.state, join, flow))
            if not all_of:
                break
    if keep is None and taken:
        youngest = max(taken, key=lambda arrival: arrival.id)
        keep = turn.state.tracks[youngest.track]
        if youngest.id <= turn.state.rested:
            keep.hops = 0
    for arrival in taken:
        track = turn.state.tracks[arrival.track]
        if track is not keep:
            turn.fact("token-merged", track)
            turn.forget(track)
    return keep


def end_round(turn: Turn, scope: Scope, node: NodeProgram) -> None:
    """Tokens were taken out: the join starts over with the rest, and what counted on it must look for others.

    A token that comes out of a stuck join can come to other ones, or bring a token there: those are looked at again.
    """
    join = scope.joins[node.id]
    if join.incident is not None:
        overtake(turn, node.id, join)
        doubt_stuck_behind(turn, scope, node.id)
    _start_over(turn.state, scope, node, join)


def doubt_stuck_behind(turn: Turn, scope: Scope, node_id: str) -> None:
    """A token comes out where none was expected any more."""
    for other in behind(turn.program, node_id):
        if other in scope.joins and other != node_id and _may_be_dead(scope.joins[other]):
            doubt(turn.state, scope, other)


def _may_be_dead(join: Join) -> bool:
    """It is stuck; or it holds no token at all (a gate), so that nobody would be told."""
    return join.incident is not None or not join.queues


def withdraw(turn: Turn, track: Track) -> None:
    """A token that waits at a join is cancelled by itself: its place in the queue is given up."""
    scope = turn.state.scopes[track.scope]
    join = scope.joins[track.node]
    queue = join.queues[track.flow]
    arrival = next(each for each in queue if each.track == track.id)
    queue.remove(arrival)
    join.count -= 1
    turn.state.arrivals.drop(arrival.id)
    if not queue:
        del join.queues[track.flow]
    if not join.queues:
        close_incident(turn, join)
    _start_over(turn.state, scope, turn.program.nodes[track.node], join)


def surrender(turn: Turn, scope: Scope, node: NodeProgram) -> list[Track]:
    """Take all the tokens out of a join whose incident is given up; they are the caller's to end."""
    join = scope.joins[node.id]
    join.incident = None
    if join.gate is not None:
        turn.state.gates.drop(join.gate.id)
        join.gate, join.taken = None, frozenset()
    tracks = []
    for flow in [*(flow.id for flow in node.incoming), ""]:
        while flow in join.queues:
            tracks.append(turn.state.tracks[_pop(turn.state, join, flow).track])
    _start_over(turn.state, scope, node, join)
    for track in tracks:
        track.hops = 0
    return tracks


def clear(turn: Turn, scope: Scope) -> None:
    """The whole scope is being emptied: no token waits at any of its joins any more."""
    for node_id, join in scope.joins.items():
        for queue in join.queues.values():
            for arrival in queue:
                turn.state.arrivals.drop(arrival.id)
        if join.gate is not None:
            turn.state.gates.drop(join.gate.id)
        close_incident(turn, join)
        unwatch(turn.state, scope, turn.program.nodes[node_id])
    scope.joins.clear()
    scope.held.clear()
    scope.vacated.clear()
    scope.doubted.clear()


def _pop(state: State, join: Join, flow: str) -> Arrival:
    queue = join.queues[flow]
    arrival = queue.popleft()
    join.count -= 1
    state.arrivals.drop(arrival.id)
    if not queue:
        del join.queues[flow]
    return arrival


def _start_over(state: State, scope: Scope, node: NodeProgram, join: Join) -> None:
    for want in list(join.holders):
        release_holder(scope, node.id, want)
    join.candidates = None
    if join.queues or join.gate is not None:
        doubt(state, scope, node.id)
    else:
        unwatch(state, scope, node)
        del scope.joins[node.id]
    if scope.joins:
        vacated(state, scope, node.id)


# ------------------------------------------------------------------ who must be looked at


def vacated(state: State, scope: Scope, node_id: str) -> None:
    """The last token left a node: the joins that counted on it must look for another one."""
    if node_id in scope.held:
        scope.vacated.append(node_id)
        state.unsettled[scope.id] = scope


def doubt(state: State, scope: Scope, node_id: str) -> None:
    """The join must be looked at, whoever its holders are."""
    scope.doubted[node_id] = None
    state.unsettled[scope.id] = scope


def release_holder(scope: Scope, node_id: str, want: str) -> None:
    """The join counts on nobody any more for what it wants."""
    holder = scope.joins[node_id].holders.pop(want)
    held = scope.held[holder]
    held.discard((node_id, want))
    if not held:
        del scope.held[holder]


def watch(state: State, scope: Scope, node: NodeProgram) -> None:
    """The data that decides over a join is written: it must be asked again."""
    for name in node.behaviour.join_rule.reads:
        state.gated.setdefault(name, {})[(scope.id, node.id)] = None


def unwatch(state: State, scope: Scope, node: NodeProgram) -> None:
    """The join holds nothing any more."""
    for name in node.behaviour.join_rule.reads:
        watching = state.gated[name]
        del watching[(scope.id, node.id)]
        if not watching:
            del state.gated[name]


# ------------------------------------------------------------------ incidents


def open_incident(turn: Turn, scope: Scope, node: NodeProgram, kind: IncidentKind, message: str) -> None:
    """The join itself is at an incident: its tokens stay in their queues."""
    incident = Incident(
        id=turn.state.new_id(),
        kind=kind,
        node=node.id,
        scope=scope.id,
        track=0,
        resume=Resume.JOIN,
        message=message,
        first=scope.joins[node.id].since or turn.now,
        last=turn.now,
    )
    turn.state.incidents.put(incident)
    scope.joins[node.id].incident = incident
    turn.facts.append(("incident-opened", node.id, 0, {"incident": incident.id, "kind": kind.value}))


def overtake(turn: Turn, node_id: str, join: Join) -> None:
    """What the incident says is not so any more."""
    if join.incident is not None:
        turn.facts.append(("incident-overtaken", node_id, 0, {"incident": join.incident.id}))
        close_incident(turn, join)


def close_incident(turn: Turn, join: Join) -> None:
    """The incident of the join, if it has one, is over."""
    if join.incident is not None:
        turn.state.incidents.drop(join.incident.id)
        join.incident = None
