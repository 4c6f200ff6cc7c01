"""One turn of the machine: the verbs with which behaviours move tokens.

A ``Turn`` lives for one ``apply``.  All changes of an instance's state go through it, so that what must hold
together (a track's state, the index of its scope, the mark *touched*) is changed in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.facts import RawFact, Status
from trioflow.machine import joins
from trioflow.machine.data import ScopeView, write
from trioflow.machine.program import Evaluable, FlowProgram, NodeProgram, Program, ScopeProgram
from trioflow.machine.state import (
    Entry,
    Incident,
    IncidentKind,
    Resume,
    RetryWait,
    Scope,
    State,
    Track,
    TrackState,
    Wait,
)
from trioflow.machine.transition import Effect, Ended, Run, Stop, Transition
from trioflow.values import Value

__all__ = ["ConditionFailed", "Turn"]


class ConditionFailed(ExpressionError):
    """An expression raised, or a condition gave neither true nor false."""


class Turn:
    """The verbs of one ``apply``; ``now`` is the same for all that happens in it."""

    __slots__ = ("consumed", "declined", "effects", "facts", "now", "program", "refusal", "state")

    def __init__(self, program: Program, state: State, now: datetime) -> None:
        self.program = program
        self.state = state
        self.now = now
        self.facts: list[RawFact] = []
        self.effects: list[Effect] = []
        self.consumed: list[int] = []
        self.declined: list[int] = []
        self.refusal = ""

    # -------------------------------------------------------------- the agenda

    def work(self, budget: int) -> Transition:
        """Make steps until none is left or the budget is spent, then look at the joins."""
        agenda = self.state.agenda
        nodes = self.program.nodes
        while True:
            while agenda:
                if budget <= 0:
                    return self._transition(pending=True)
                budget -= 1
                track = agenda.popleft()
                if track.state is TrackState.READY:
                    self._enter(track, nodes[track.node])
            if not self.state.unsettled:
                return self._transition(pending=False)
            joins.settle(self)

    def _enter(self, track: Track, node: NodeProgram) -> None:
        track.hops += 1
        # A token that stops before a join could be missed by it; no loop is made of joins alone, so it stops behind.
        if track.hops > self.program.hop_limit and not (node.behaviour.is_join and len(node.incoming) > 1):
            limit = self.program.hop_limit
            message = f"the token made {limit} steps without a wait or an executed activity: the model loops forever"
            self.incident(track, IncidentKind.STEP_LIMIT, Resume.ENTER, message)
            return
        self.facts.append(("node-entered", node.id, track.id, _NOTHING))
        node.behaviour.enter(self, track, node)

    def _transition(self, *, pending: bool) -> Transition:
        return Transition(self.facts, self.effects, self.consumed, self.declined, self.refusal, pending)

    def fact(self, kind: str, track: Track, /, **details: Any) -> None:
        """Note what happened at the track's node."""
        self.facts.append((kind, track.node, track.id, details))

    # -------------------------------------------------------------- tokens

    def start_track(self, scope: Scope, node: str, *, flow: str = "", parent: Track | None = None) -> Track:
        """A new token at a node, ready to enter it."""
        track = Track(id=self.state.new_id(), node=node, scope=scope.id, flow=flow)
        if parent is not None:
            track.parent = parent.id
            track.hops = parent.hops
        elif scope.host is not None:
            track.hops = self.state.tracks[scope.host].hops
        self.state.tracks.put(track)
        scope.tracks[track.id] = track
        self.state.agenda.append(track)
        return track

    def rest(self, track: Track, state: TrackState) -> None:
        """The token stands still at its node, in that state."""
        track.state = state
        self.state.tracks.touch(track)
        occupied = self.state.scopes[track.scope].occupied
        occupied[track.node] = occupied.get(track.node, 0) + 1

    def lift(self, track: Track) -> None:
        """The token no longer stands at its node (it moves on, runs again, or ends).  Twice is once."""
        if not track.state.at_rest:
            return
        track.state = TrackState.READY
        scope = self.state.scopes[track.scope]
        left = scope.occupied[track.node] - 1
        if left:
            scope.occupied[track.node] = left
            return
        del scope.occupied[track.node]
        if scope.joins:
            joins.vacated(self.state, scope, track.node)

    def move(self, track: Track, flow: FlowProgram) -> None:
        """The token goes along the flow, and is ready to enter its target."""
        self.lift(track)
        track.node = flow.target
        track.flow = flow.id
        track.state = TrackState.READY
        track.attempt = track.step = 0
        track.failing = None
        self.state.tracks.touch(track)
        self.state.agenda.append(track)

    def take(self, track: Track, flows: Iterable[FlowProgram]) -> None:
        """Fork: the token goes along the first flow, new tokens along the others (``docs/explanation/elements.md``)."""
        scope = self.state.scopes[track.scope]
        remaining = iter(flows)
        self.move(track, next(remaining))
        for flow in remaining:
            self.start_track(scope, flow.target, flow=flow.id, parent=track)

    def leave(self, track: Track, node: NodeProgram) -> None:
        """The node is done: choose its outgoing flows, or end the token if it has none (clause 13.3.1)."""
        outgoing = node.outgoing
        if len(node.plain) == len(outgoing):
            if outgoing:
                self.take(track, outgoing)
            else:
                self.end(track)
            return
        try:
            flows = self._chosen(track, node)
        except ExpressionError as error:
            self.incident(track, IncidentKind.EXPRESSION, Resume.LEAVE, str(error))
            return
        if flows:
            self.take(track, flows)
        else:
            self.incident(track, IncidentKind.NO_OUTGOING_FLOW, Resume.LEAVE, nothing_to_take(node))

    def _chosen(self, track: Track, node: NodeProgram) -> list[FlowProgram]:
        true = {flow.id for flow in node.conditional if self.holds(track, flow)}
        if not true and node.default is not None:
            true.add(node.default.id)
        plain = {flow.id for flow in node.plain}
        return [flow for flow in node.outgoing if flow.id in true or flow.id in plain]

    def end(self, track: Track) -> None:
        """The token is consumed; a scope whose last token it was completes."""
        self.forget(track)
        scope = self.state.scopes[track.scope]
        if not scope.tracks:
            self.close_scope(scope, last=track)

    def forget(self, track: Track) -> None:
        """Take the track out of the state, with what it waits for; its scope is not asked whether it completes."""
        self.lift(track)
        self.disarm(track)
        self.close_incident(track)
        track.state = TrackState.ENDED
        self.state.tracks.drop(track.id)
        del self.state.scopes[track.scope].tracks[track.id]

    # -------------------------------------------------------------- activities and waits

    def open_entry(self, track: Track) -> None:
        """Count an entry of the node in this scope instance: the n of the idempotency key."""
        key = (track.scope, track.node)
        entry = self.state.entries.get(key)
        if entry is None:
            entry = self.state.entries[key] = Entry(track.scope, track.node)
        entry.count += 1
        self.state.touched_entries[key] = None
        track.entry = entry.count
        track.attempt = 0

    def run(self, track: Track, *, outside: bool) -> None:
        """Execute the step: a handler (outside) or a script."""
        track.step = self.state.new_id()
        track.attempt += 1
        track.reentries = 0
        track.hops = 0
        self.rest(track, TrackState.EXECUTING)
        self.effects.append(Run(track.id, track.step, outside))
        self.facts.append(("activity-started", track.node, track.id, {"attempt": track.attempt}))

    def park(self, track: Track, wait: Wait) -> None:
        """The token waits: for a timer, a message, a person, a retry.  All but the last say that its step works."""
        if not isinstance(wait, RetryWait):
            track.failing = None
        self.state.waits.put(wait)
        track.wait = wait
        track.hops = 0
        self.rest(track, TrackState.WAITING)

    def disarm(self, track: Track) -> None:
        """What the token waited for is not wanted any more."""
        if track.wait is not None:
            self.state.waits.drop(track.wait.id)
            track.wait = None

    # -------------------------------------------------------------- data

    def view(self, track: Track) -> ScopeView:
        """What the token can read."""
        return ScopeView(self.state, track.scope)

    def evaluate(self, track: Track, expression: Evaluable) -> Value:
        """The value of an expression where the token stands."""
        return expression.evaluate(ScopeView(self.state, track.scope), self.now)

    def holds(self, track: Track, flow: FlowProgram) -> bool:
        """Whether a flow's condition is true; what is neither true nor false is an error, null too."""
        assert flow.condition is not None
        value = self.evaluate(track, flow.condition)
        if value is True or value is False:
            return value
        raise ConditionFailed(
            f"the condition {flow.condition.text!r} of sequence flow {flow.id!r} gave {value!r}, neither true nor "
            f"false: write a comparison, such as {flow.condition.text} is not None"
        )

    def canonical(self, values: Mapping[str, Any], where: str) -> dict[str, Value]:
        """Canonical copies of ``values``; ``where`` names the scope in an error.  Raises ``UnstorableValue``."""
        canonical = self.program.codec.canonical
        result: dict[str, Value] = {}
        for name, value in values.items():
            if type(name) is not str or not name:
                raise UnstorableValue(f"{where}: a variable's name must be a text, not {name!r}", path=repr(name))
            try:
                result[name] = canonical(value, name)
            except UnstorableValue as error:
                raise UnstorableValue(f"{where}: {error}", path=error.path) from error
        return result

    def write_in(self, scope_id: int, node_id: str, values: Mapping[str, Value]) -> None:
        """Write canonical values where their names live, seen from a scope; all in one commit of data."""
        for name, value in values.items():
            write(self.state, scope_id, name, value)
        self.facts.append(("data-written", node_id, 0, {"names": tuple(values)}))

    # -------------------------------------------------------------- scopes

    def open_scope(self, program: ScopeProgram, host: Track | None) -> Scope:
        """A new scope instance with the names that it declares; its tokens are started by the caller."""
        state = self.state
        parent = state.scopes[host.scope] if host is not None else None
        scope = Scope(
            id=state.new_id(),
            node=program.id,
            parent=parent.id if parent is not None else None,
            host=host.id if host is not None else None,
        )
        state.scopes.put(scope)
        if host is not None:
            host.hosted[scope.id] = scope
            host.failing = None
        for name in program.declared:
            scope.data[name] = None
            state.touched_data[(scope.id, name)] = None
        return scope

    def close_scope(self, scope: Scope, *, last: Track | None = None) -> None:
        """The scope holds no token: it completes, and so does what hosts it.

        ``last``: the token that ended last.  It began with the steps of the host and waited if the scope did, so the
        host goes on with its count: a loop around a sub-process in which nothing waits is a livelock too.
        """
        if scope.host is None:
            self.finish(Status.COMPLETED, "")
            return
        host = self.state.tracks[scope.host]
        if last is not None:
            host.hops = last.hops
        self.discard_scope(scope)
        node = self.program.nodes[host.node]
        node.behaviour.scope_completed(self, host, node)

    def discard_scope(self, scope: Scope) -> None:
        """Take an empty scope out of the state, with its data and entry counts (its tombstone stands for them too)."""
        state = self.state
        for node_id in self.program.scopes[scope.node].nodes:
            state.entries.pop((scope.id, node_id), None)
        state.scopes.drop(scope.id)
        state.unsettled.pop(scope.id, None)
        if scope.host is not None:
            del state.tracks[scope.host].hosted[scope.id]

    def empty_scope(self, scope: Scope) -> None:
        """Cancel all that lives in a scope: its tokens, its child scopes, its incidents."""
        joins.clear(self, scope)
        for track in list(scope.tracks.values()):
            self.kill(track)

    def kill(self, track: Track) -> None:
        """Cancel one token, with the scope it hosts and what it runs; it overtakes an incident."""
        if track.state is TrackState.EXECUTING:
            self.effects.append(Stop(track.id))
        elif track.state is TrackState.HOSTING:
            for child in list(track.hosted.values()):
                self.empty_scope(child)
                self.discard_scope(child)
        elif track.state is TrackState.JOINING and track.node in self.state.scopes[track.scope].joins:
            joins.withdraw(self, track)  # one token alone; of a scope that is emptied the joins were cleared before
        self.fact("token-cancelled", track)
        self.forget(track)

    def finish(self, status: Status, reason: str) -> None:
        """The instance ends with this status; what still lives in it is cancelled."""
        root = next(iter(self.state.scopes.values()), None)
        if root is not None:
            self.empty_scope(root)
        self.state.touched_entries.update(dict.fromkeys(self.state.entries))
        self.state.entries.clear()
        self.state.agenda.clear()
        self.state.unsettled.clear()
        self.set_status(status, reason)
        self.effects.append(Ended(status))

    def set_status(self, status: Status, reason: str = "") -> None:
        """Change the status of the instance, and say so."""
        header = self.state.header
        header.status = status
        header.since = self.now
        header.reason = reason
        self.state.touched_header = True
        self.facts.append((f"instance-{status.value}", "", 0, {"reason": reason} if reason else _NOTHING))

    # -------------------------------------------------------------- incidents

    def incident(
        self,
        track: Track,
        kind: IncidentKind,
        resume: Resume,
        message: str,
        *,
        causes: tuple[str, ...] = (),
        code: str | None = None,
    ) -> Incident:
        """Pin the token at its node with a durable incident; siblings go on."""
        if track.state is not TrackState.INCIDENT:
            self.lift(track)
            self.disarm(track)
            self.rest(track, TrackState.INCIDENT)
        track.failing = track.failing or self.now
        self.state.tracks.touch(track)
        incident = Incident(
            id=self.state.new_id(),
            kind=kind,
            node=track.node,
            scope=track.scope,
            track=track.id,
            resume=resume,
            message=message,
            first=track.failing,
            last=self.now,
            causes=causes,
            attempts=track.attempt,
            code=code,
        )
        self.state.incidents.put(incident)
        track.incident = incident
        track.hops = 0
        self.fact("incident-opened", track, incident=incident.id, kind=kind.value)
        return incident

    def close_incident(self, track: Track) -> None:
        """The incident that pinned the token, if any, is over."""
        if track.incident is not None:
            self.state.incidents.drop(track.incident.id)
            track.incident = None

    def refuse(self, reason: str) -> None:
        """A caller's act cannot be done: say why; nothing was changed."""
        self.refusal = reason

    def __repr__(self) -> str:
        return f"<Turn of {self.state.identity.instance_id} at {self.now.isoformat()}>"


_NOTHING: Mapping[str, Any] = {}


def nothing_to_take(node: NodeProgram) -> str:
    """The message of a *no-outgoing-flow* incident."""
    conditions = ", ".join(f"{flow.id}: {flow.condition.text}" for flow in node.conditional if flow.condition)
    return (
        f"no outgoing sequence flow of {node.label} can be taken: none of its conditions is true ({conditions}) "
        f"and it has no default flow; give it a default flow, or resolve the incident along a flow"
    )
