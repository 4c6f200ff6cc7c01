"""What every activity shares, whatever its work: quantities, boundary events, instances, completion (clause 13.3.2).

An activity that has nothing of it runs without this module: its behaviour does its work on the token that arrived.  One
that has data of its own, or several instances, is *hosted* by the token that arrived: each instance is a scope with a
token of its own, at the same node, which the behaviour works on.  Boundary events, quantities and outgoing flows belong
to the host alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trioflow.errors import UnstorableValue
from trioflow.machine import associations, joins, ledger
from trioflow.machine.state import ConditionWait, IncidentKind, Resume, Scope, ScopeKind, Track, TrackState
from trioflow.machine.triggers import Place, arm_beside

if TYPE_CHECKING:
    from trioflow.machine.program import ActivityProgram, NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = [
    "Single",
    "begin",
    "close",
    "complete",
    "enter",
    "finish",
    "instance_ended",
    "is_body",
    "leave",
    "open_instance",
]


def enter(turn: Turn, track: Track, node: NodeProgram, activity: ActivityProgram) -> None:
    """A token arrives: the activity starts when enough of them are there, with its boundary events armed."""
    waits = activity.start_quantity > 1 and not track.opened
    if not waits or joins.gather(turn, track, node, activity.start_quantity):
        begin(turn, track, node, activity)


def begin(turn: Turn, track: Track, node: NodeProgram, activity: ActivityProgram) -> None:
    """Enough tokens are there, or an operator says so."""
    if not track.opened:
        track.opened = turn.state.new_id()
        if not _arm_boundary_events(turn, track, activity):
            return
    turn.facts.append(("node-entered", node.id, track.id, {}))
    turn.facts.append(("activity-ready", node.id, track.id, {}))
    if activity.frame is not None and not is_body(turn, track):
        activity.frame.begin(turn, track, node)
    elif activity.data is None or associations.take_inputs(turn, track, node, activity.data):
        node.behaviour.enter(turn, track, node)


def _arm_boundary_events(turn: Turn, track: Track, activity: ActivityProgram) -> bool:
    """Whether the activity can begin: a condition that is true already may have interrupted it."""
    true: list[ConditionWait] = []
    for event in activity.boundaries:
        place = Place(reads=track.scope, track=track.id, node=event)
        true += arm_beside(turn, turn.program.nodes[event].behaviour.plan, place)
    for wait in true:
        if wait.id in turn.state.waits:
            turn.occurred(wait, None)
    return track.state is not TrackState.ENDED


def is_body(turn: Turn, track: Track) -> bool:
    """Whether the token is the one inside an instance of its activity."""
    return turn.state.scopes[track.scope].kind is ScopeKind.INSTANCE


def open_instance(
    turn: Turn,
    host: Track,
    node: NodeProgram,
    values: Mapping[str, Value],
    *,
    parent: int | None = None,
    index: int = 0,
) -> Scope:
    """A new instance of the activity with data of its own; its token is ready to enter the activity's work."""
    scope = turn.new_scope(node.id, host, kind=ScopeKind.INSTANCE, parent=parent, index=index)
    turn.declare(scope, values)
    body = turn.start_track(scope, node.id, flow=host.flow)
    body.opened, body.origin = host.opened, host.origin
    return scope


def complete(
    turn: Turn, track: Track, node: NodeProgram, activity: ActivityProgram, outputs: Mapping[str, Any]
) -> None:
    """The work is done.  What cannot be stored leaves everything as it is: the boundary events stay armed too."""
    turn.facts.append(("activity-completing", node.id, track.id, {}))
    try:
        values = turn.canonical(outputs, f"outputs of {node.id!r}") if outputs else {}
    except UnstorableValue as error:
        turn.incident(track, IncidentKind.UNSTORABLE_VALUE, Resume.RUN, str(error))
        return
    track.failing = None  # should it fail to leave now, that is another failure
    if activity.frame is None or not is_body(turn, track):
        finish(turn, track, node, values)
        return
    scope = turn.state.scopes[track.scope]
    kept = activity.frame.own if activity.data is None else activity.frame.own + activity.data.own
    own = {name: values[name] for name in kept if name in values}
    if activity.data is not None:
        written = associations.written_by(turn, track, node, activity.data, values)
        if written is None:
            return
        values = written
    if own:
        turn.declare(scope, own)
    activity.frame.completed(turn, track, node, {name: values[name] for name in values if name not in own})


def finish(turn: Turn, track: Track, node: NodeProgram, values: Mapping[str, Value]) -> None:
    """The activity is completed: its boundary events are disarmed, then its data is written, then its token leaves."""
    ledger.activity_completed(turn, track, node)
    close(turn, track)
    if values:
        turn.write_in(track.scope, node.id, values)
    turn.fact("activity-completed", track)
    _go_on(turn, track, node)


def _go_on(turn: Turn, track: Track, node: NodeProgram) -> None:
    if node.activity is None or not node.activity.in_ad_hoc or turn.inner_completed(track):
        node.behaviour.leave(turn, track, node)


def close(turn: Turn, track: Track) -> None:
    """Nothing that was armed for the activity can happen any more; what it hosts is cancelled."""
    turn.withdraw_all(track)
    if track.hosted:
        turn.drop_hosted(track)


def leave(turn: Turn, track: Track, node: NodeProgram) -> None:
    """The work was done before, and what follows failed: choose the flows again, or let the instance end again."""
    if node.activity is not None and node.activity.frame is not None and is_body(turn, track):
        node.activity.frame.completed(turn, track, node, {})
    else:
        _go_on(turn, track, node)


def instance_ended(turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> None:
    """The token of an instance is gone without having done its work (an operator gave it up)."""
    assert node.activity is not None
    assert node.activity.frame is not None
    node.activity.frame.terminated(turn, host, node, scope)


class Single:
    """The frame of an activity that has data of its own and does not repeat: one instance."""

    __slots__ = ("own",)

    def __init__(self) -> None:
        self.own: tuple[str, ...] = ()

    def begin(self, turn: Turn, host: Track, node: NodeProgram) -> None:
        """Open it with the names that it declares."""
        assert node.activity is not None
        assert node.activity.data is not None
        turn.rest(host, TrackState.HOSTING)
        open_instance(turn, host, node, dict.fromkeys(node.activity.data.own))

    def completed(self, turn: Turn, body: Track, node: NodeProgram, outputs: Mapping[str, Value]) -> None:
        """Its end is the activity's."""
        scope = turn.state.scopes[body.scope]
        assert scope.host is not None
        host = turn.state.tracks[scope.host]
        ledger.instance_completed(turn, body, node, scope, ledger.ledger_of(turn.state.scopes[host.scope]))
        host.hops = body.hops
        finish(turn, host, node, outputs)

    def terminated(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> None:  # noqa: ARG002  # the port
        """Its token was given up, and with it the activity's."""
        turn.end(host)
