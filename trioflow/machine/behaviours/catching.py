"""Events that catch: intermediate, boundary, start events, and event sub-processes (clauses 10.5, 13.5.3, 13.5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import ExpressionError
from trioflow.machine import ledger, sweeps
from trioflow.machine.behaviours.base import Behaviour
from trioflow.machine.state import ConditionWait, Gathering, IncidentKind, Resume, Scope, Track, TrackState, Trigger
from trioflow.machine.triggers import EventPlan, Place, came, start_over

if TYPE_CHECKING:
    from trioflow.machine.program import NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["Boundary", "Catch", "EventSubProcess", "HandlerStart", "Start", "arm_token"]


@frozen
class Catch(Behaviour):
    """The token waits until the event happens, and goes on.

    A payload that cannot be written is consumed all the same, or it would come back for ever: its incident is resolved
    with outputs given by hand, and its retry waits for the next one.
    """

    plan: EventPlan

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        arm_token(turn, track, node, self.plan)

    def occurred(self, turn: Turn, node: NodeProgram, wait: Trigger, payload: Value) -> None:
        track = turn.state.tracks[wait.track]
        values = came(turn, self.plan, wait, payload)
        if values is None:
            return
        turn.disarm(track)
        turn.withdraw_all(track)
        if track.node != node.id:
            turn.place(track, node.id, next(flow.id for flow in node.incoming if flow.source == track.node))
        turn.fact("event-caught", track)
        if turn.bind(track, self.plan, values):
            turn.leave(track, node)

    def failed_to_look(self, turn: Turn, node: NodeProgram, wait: ConditionWait, error: ExpressionError) -> None:
        """The token itself is at the incident: a retry arms its event anew."""
        track = turn.state.tracks[wait.track]
        turn.withdraw_all(track)
        turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))


def arm_token(turn: Turn, track: Track, node: NodeProgram, plan: EventPlan) -> None:
    """Park a token on all that its event waits for; a condition that is true already happens at once."""
    several = len(plan.triggers) > 1
    place = Place(reads=track.scope, track=track.id, node=node.id if several else "")
    gathering = Gathering(turn.state.new_id(), track.id) if several else None
    try:
        armed = [trigger.wait(turn, place) for trigger in plan.triggers]
    except ExpressionError as error:
        turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
        return
    if gathering is not None:
        turn.park(track, gathering)
        for wait in armed:
            turn.arm(wait)
    else:
        turn.park(track, armed[0])
    for wait in armed:
        if isinstance(wait, ConditionWait) and wait.last and wait.id in turn.state.waits:
            turn.occurred(wait, None)


@frozen
class Boundary(Behaviour):
    """Armed while its activity lives (13.5.3): it cancels the activity, or a further token starts here."""

    plan: EventPlan
    interrupting: bool

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.leave(track, node)

    def occurred(self, turn: Turn, node: NodeProgram, wait: Trigger, payload: Value) -> None:
        host = turn.state.tracks[wait.track]
        values = came(turn, self.plan, wait, payload)
        if values is None:
            return
        if self.interrupting:
            self.fire(turn, node, host, values)
            return
        place = Place(reads=host.scope, track=host.id, node=node.id)
        true = start_over(turn, self.plan, wait, place)
        self.fire(turn, node, host, values)
        for condition in true:
            if condition.id in turn.state.waits:
                turn.occurred(condition, None)

    def fire(
        self,
        turn: Turn,
        node: NodeProgram,
        owner: Track | Scope,
        values: Mapping[str, Value],
        *,
        left: Track | None = None,
    ) -> None:
        """The new token is there before the host goes, so that a join that counts on the host still has whom to."""
        assert isinstance(owner, Track)
        scope = turn.state.scopes[owner.scope]
        track = turn.new_track(scope, node.id, parent=owner)
        track.origin = owner.opened
        turn.fact("event-caught", track)
        undone = [] if left is None else sweeps.partial(turn, left)
        if self.interrupting:
            turn.kill(owner)
        if not turn.bind(track, self.plan, values):
            return
        if not sweeps.start(turn, track, scope, undone):
            turn.state.agenda.append(track)

    def swept(self, turn: Turn, track: Track, node: NodeProgram, label: str) -> None:
        turn.state.agenda.append(track)


@frozen
class Start(Behaviour):
    """Where an instance begins; with a trigger, by that trigger."""

    plan: EventPlan

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.leave(track, node)


@frozen
class HandlerStart(Behaviour):
    """The start event of an event sub-process: armed while the scope around it is open and has tokens of its own."""

    plan: EventPlan
    interrupting: bool

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.leave(track, node)

    def occurred(self, turn: Turn, node: NodeProgram, wait: Trigger, payload: Value) -> None:
        scope = turn.state.scopes[wait.scope]
        values = came(turn, self.plan, wait, payload)
        if values is None:
            return
        if self.interrupting:
            self.fire(turn, node, scope, values)
            return
        true = start_over(turn, self.plan, wait, Place(reads=scope.id, scope=scope.id, node=node.id))
        self.fire(turn, node, scope, values)
        for condition in true:
            if condition.id in turn.state.waits:
                turn.occurred(condition, None)

    def fire(
        self,
        turn: Turn,
        node: NodeProgram,
        owner: Track | Scope,
        values: Mapping[str, Value],
        *,
        left: Track | None = None,
    ) -> None:
        """A handler of its own for each firing, with its own data; an interrupting one takes the scope over."""
        assert isinstance(owner, Scope)
        handler = turn.new_track(owner, node.container)
        owner.handlers += 1
        turn.open_entry(handler)
        turn.fact("activity-started", handler)
        turn.rest(handler, TrackState.HOSTING)
        body = turn.open_scope(turn.program.scopes[node.container], handler)
        if not self.plan.outputs:
            turn.declare(body, values)
        undone = [] if left is None else sweeps.partial(turn, left)
        if self.interrupting:
            owner.interrupted = True
            turn.state.scopes.touch(owner)
            turn.clear_scope(owner, but=handler)
        turn.arm_handlers(body)
        if body.interrupted:
            return
        track = turn.new_track(body, node.id)
        if self.plan.outputs and not turn.bind(track, self.plan, values):
            return
        if not sweeps.start(turn, track, owner, undone):
            turn.state.agenda.append(track)

    def swept(self, turn: Turn, track: Track, node: NodeProgram, label: str) -> None:
        turn.state.agenda.append(track)


class EventSubProcess(Behaviour):
    """A handler of its scope: its token hosts one firing, and ends with it; it has no flows."""

    __slots__ = ()
    handles = True

    def scope_completed(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if node.activity is not None:
            ledger.activity_completed(turn, track, node)
        turn.fact("activity-completed", track)
        turn.end(track)
