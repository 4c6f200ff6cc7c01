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
from trioflow.machine import activities, conditions, joins, ledger, repetition, sweeps, throws, waits
from trioflow.machine.data import ScopeView, write
from trioflow.machine.program import Evaluable, FlowProgram, NodeProgram, Program, ScopeProgram
from trioflow.machine.state import (
    CallWait,
    ConditionWait,
    Entry,
    Incident,
    IncidentKind,
    Resume,
    RetryWait,
    Scope,
    ScopeKind,
    State,
    SweepWait,
    Track,
    TrackState,
    Trigger,
    Wait,
)
from trioflow.machine.transition import ChildCancelPost, ChildEndPost, Effect, Ended, Post, Run, Stop, Transition
from trioflow.machine.triggers import EventPlan, Place, arm_beside
from trioflow.values import Value

__all__ = ["ConditionFailed", "Turn"]

_NOTHING: Mapping[str, Any] = {}


class ConditionFailed(ExpressionError):
    """An expression raised, or a condition gave neither true nor false."""


class Turn:
    """The verbs of one ``apply``; ``now`` is the same for all that happens in it."""

    __slots__ = ("consumed", "declined", "effects", "facts", "now", "posts", "program", "refusal", "state")

    def __init__(self, program: Program, state: State, now: datetime) -> None:
        self.program = program
        self.state = state
        self.now = now
        self.facts: list[RawFact] = []
        self.effects: list[Effect] = []
        self.consumed: list[int] = []
        self.declined: list[int] = []
        self.posts: list[Post] = []
        self.refusal = ""

    # -------------------------------------------------------------- the agenda

    def work(self, budget: int) -> Transition:
        """Make steps until none is left or the budget is spent.

        Tokens move to rest; then what they throw is carried out, one by one; then conditions are looked at; then joins.
        """
        state, nodes = self.state, self.program.nodes
        agenda = state.agenda
        while budget > 0:
            if agenda:
                budget -= 1
                track = agenda.popleft()
                if track.state is TrackState.READY:
                    self._enter(track, nodes[track.node])
                continue
            if not (state.throws or state.changed or state.unsettled or state.openings or state.sweeping):
                return self._transition(pending=False)
            budget -= self._go_on(budget)
        return self._transition(pending=True)

    def _go_on(self, budget: int) -> int:
        """All tokens are at rest: do what comes next; how much of the budget it took."""
        state = self.state
        if state.openings:
            return repetition.open_some(self, budget)
        if state.sweeping:
            return sweeps.proceed(self, budget)
        if state.throws:
            track = state.throws.popleft()
            if track.state is TrackState.THROWING:
                node = self.program.nodes[track.node]
                node.behaviour.throw(self, track, node)
        elif state.changed:
            conditions.look(self)
        else:
            joins.settle(self)
        return 0

    def _enter(self, track: Track, node: NodeProgram) -> None:
        track.hops += 1
        # A token that stops before a join could be missed by it; no loop is made of joins alone, so it stops behind.
        if track.hops > self.program.options.hop_limit and not (node.behaviour.is_join and len(node.incoming) > 1):
            self.livelock(track, Resume.ENTER)
            return
        if node.activity is not None:
            activities.enter(self, track, node, node.activity)
            return
        self.facts.append(("node-entered", node.id, track.id, _NOTHING))
        if node.is_activity:
            self.facts.append(("activity-ready", node.id, track.id, _NOTHING))
        node.behaviour.enter(self, track, node)

    def livelock(self, track: Track, resume: Resume) -> None:
        """The token goes round and round: it is stopped."""
        limit = self.program.options.hop_limit
        message = f"the token made {limit} steps without a wait or an executed activity: the model loops forever"
        self.incident(track, IncidentKind.STEP_LIMIT, resume, message)

    def _transition(self, *, pending: bool) -> Transition:
        self.state.is_pending = pending
        if not pending:
            self.state.rested = self.state.header.counter
        return Transition(self.facts, self.effects, self.consumed, self.declined, self.posts, self.refusal, pending)

    def fact(self, kind: str, track: Track, /, **details: Any) -> None:
        """Note what happened at the track's node."""
        self.facts.append((kind, track.node, track.id, details))

    # -------------------------------------------------------------- tokens

    def start_track(self, scope: Scope, node: str, *, flow: str = "", parent: Track | None = None) -> Track:
        """A new token at a node, ready to enter it."""
        track = self.new_track(scope, node, flow=flow, parent=parent)
        self.state.agenda.append(track)
        return track

    def new_track(self, scope: Scope, node: str, *, flow: str = "", parent: Track | None = None) -> Track:
        """A new token at a node, for the caller to bring to rest."""
        track = Track(id=self.state.new_id(), node=node, scope=scope.id, flow=flow)
        if parent is not None:
            track.parent = parent.id
            track.origin = parent.origin
            track.hops = parent.hops
        elif scope.host is not None:
            track.hops = self.state.tracks[scope.host].hops
        self.state.tracks.put(track)
        scope.tracks[track.id] = track
        return track

    def rest(self, track: Track, state: TrackState) -> None:
        """The token stands still at its node, in that state."""
        track.state = state
        if state is TrackState.HOSTING:
            track.failing = None
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
        self.place(track, flow.target, flow.id)
        self.state.agenda.append(track)

    def place(self, track: Track, node: str, flow: str = "") -> None:
        """The token stands before another node of its scope now, as one that came by that flow."""
        self.lift(track)
        track.node = node
        track.flow = flow
        track.state = TrackState.READY
        track.attempt = track.step = 0
        track.opened = 0
        track.failing = None
        self.state.tracks.touch(track)

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
            if len(outgoing) == 1 == node.copies:
                self.move(track, outgoing[0])
            elif outgoing:
                self.take(track, outgoing * node.copies)
            else:
                self.end(track)
            return
        try:
            flows = self._chosen(track, node)
        except ExpressionError as error:
            self.incident(track, IncidentKind.EXPRESSION, Resume.LEAVE, str(error))
            return
        if flows:
            self.take(track, flows * node.copies)
        else:
            self.incident(track, IncidentKind.NO_OUTGOING_FLOW, Resume.LEAVE, nothing_to_take(node))

    def _chosen(self, track: Track, node: NodeProgram) -> list[FlowProgram]:
        true = {flow.id for flow in node.conditional if self.holds(track, flow)}
        if not true and node.default is not None:
            true.add(node.default.id)
        plain = {flow.id for flow in node.plain}
        return [flow for flow in node.outgoing if flow.id in true or flow.id in plain]

    def end(self, track: Track) -> None:
        """The token is consumed; a scope whose last token it was completes.

        A scope whose own tokens are gone is *completing*: its event sub-processes catch nothing any more, those that
        run end first (13.5.4).
        """
        if track.hosted:
            self.drop_hosted(track)
        self.forget(track)
        scope = self.state.scopes[track.scope]
        if len(scope.tracks) > scope.handlers:
            if scope.node in self.program.ad_hoc:
                self._choose_more(scope)
        elif scope.node in self.program.ad_hoc and not self._choose_more(scope):
            return
        elif scope.tracks:
            self.withdraw_all(scope)
        else:
            self.close_scope(scope, last=track)

    def _choose_more(self, scope: Scope) -> bool:
        """A token of an ad-hoc sub-process has ended; whether it is complete when no other is left."""
        if scope.kind is not ScopeKind.BODY or scope.host is None or scope.undoes:
            return True
        host = self.state.tracks[scope.host]
        node = self.program.nodes[host.node]
        return node.behaviour.token_ended(self, host, node, scope)

    def inner_completed(self, track: Track) -> bool:
        """An activity of an ad-hoc sub-process has completed; False: that is over with it, or at an incident."""
        scope = self.state.scopes[track.scope]
        if scope.host is None or scope.undoes:
            return True
        host = self.state.tracks[scope.host]
        node = self.program.nodes[host.node]
        return node.behaviour.inner_completed(self, host, node, scope, track)

    def forget(self, track: Track) -> None:
        """Take the track out of the state, with what it waits for; its scope is not asked whether it completes."""
        self.lift(track)
        self.disarm(track)
        self.withdraw_all(track)
        self.close_incident(track)
        track.state = TrackState.ENDED
        self.state.tracks.drop(track.id)
        scope = self.state.scopes[track.scope]
        del scope.tracks[track.id]
        if scope.handlers and self.program.nodes[track.node].behaviour.handles:
            scope.handlers -= 1

    def throw(self, track: Track) -> None:
        """The token throws what its node throws, once all others have come to rest."""
        self.rest(track, TrackState.THROWING)
        self.state.throws.append(track)

    # -------------------------------------------------------------- activities and waits

    def open_entry(self, track: Track) -> None:
        """Count an entry of the node in this scope instance: the n of the idempotency key."""
        key = (self._counted_in(track) if self.state.sweeps else track.scope, track.node)
        entry = self.state.entries.get(key)
        if entry is None:
            entry = self.state.entries[key] = Entry(*key)
        entry.count += 1
        self.state.touched_entries[key] = None
        track.entry = entry.count
        track.attempt = 0

    def _counted_in(self, track: Track) -> int:
        """Each run of a compensation handler has a scope of its own: they are counted in the one around."""
        scope = self.state.scopes[track.scope]
        return scope.parent or 0 if scope.kind is ScopeKind.UNDO else scope.id

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
        self.arm(wait)
        track.hops = 0
        self.rest(track, TrackState.WAITING)

    def arm(self, wait: Wait) -> None:
        """Something can happen from now on."""
        self.state.waits.put(wait)
        waits.attach(self.program, self.state, wait)

    def withdraw(self, wait: Wait) -> None:
        """It cannot happen any more."""
        waits.detach(self.program, self.state, wait)
        self.state.waits.drop(wait.id)

    def disarm(self, track: Track) -> None:
        """What the token is parked on is not wanted any more."""
        if track.wait is not None:
            self.withdraw(track.wait)

    def withdraw_all(self, owner: Track | Scope) -> None:
        """Nothing that was armed beside a token, or for a scope, can happen any more."""
        if owner.armed:
            for wait in list(owner.armed.values()):
                self.withdraw(wait)

    def occurred(self, wait: Trigger, payload: Value) -> None:
        """What was waited for has happened; whose event it is decides what follows."""
        node = waits.node_of(self.program, self.state, wait)
        node.behaviour.occurred(self, node, wait, payload)

    def complete(self, track: Track, node: NodeProgram, outputs: Mapping[str, Any] = _NOTHING) -> None:
        """The activity has done its work: write what it brought, and go on along its flows (13.3.2)."""
        if node.activity is not None:
            activities.complete(self, track, node, node.activity, outputs)
            return
        self.facts.append(("activity-completing", node.id, track.id, _NOTHING))
        if outputs and not self.write_outputs(track, outputs):
            return
        track.failing = None  # should it fail to leave now, that is another failure
        self.fact("activity-completed", track)
        self.leave(track, node)

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
        return self.decide(flow.condition, track.scope, f" of sequence flow {flow.id!r}")

    def decide(self, condition: Evaluable, scope_id: int, whose: str = "") -> bool:
        """The value of a condition, which must be true or false; ``whose`` names it in the error."""
        return self.decide_in(condition, ScopeView(self.state, scope_id), whose)

    def decide_in(self, condition: Evaluable, view: ScopeView, whose: str = "") -> bool:
        """The value of a condition where these names can be read."""
        value = condition.evaluate(view, self.now)
        if value is True or value is False:
            return value
        raise ConditionFailed(
            f"the condition {condition.text!r}{whose} gave {value!r}, neither true nor "
            f"false: write a comparison, such as {condition.text} is not None"
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

    def bind(self, track: Track, plan: EventPlan, values: Mapping[str, Any]) -> bool:
        """Write what an event caught, as its associations say; False: it cannot be, and the token is at an incident."""
        if not values and not plan.outputs:
            return True
        try:
            moved = plan.moved(self, track.scope, values)
        except (ExpressionError, UnstorableValue) as error:
            self.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return False
        return self.write_outputs(track, moved, resume=Resume.ENTER)

    def write_outputs(self, track: Track, outputs: Mapping[str, Any], *, resume: Resume = Resume.RUN) -> bool:
        """Write what a node brought, all or none; False: a value cannot be stored, and the token is at an incident.

        ``resume`` is what a retry of that incident does.
        """
        try:
            canonical = self.canonical(outputs, f"outputs of {track.node!r}")
        except UnstorableValue as error:
            self.incident(track, IncidentKind.UNSTORABLE_VALUE, resume, str(error))
            return False
        if canonical:
            self.write_in(track.scope, track.node, canonical)
        return True

    # -------------------------------------------------------------- scopes

    def open_scope(self, program: ScopeProgram, host: Track | None) -> Scope:
        """A new scope instance with the names that it declares; its tokens are started by the caller."""
        scope = self.new_scope(program.id, host)
        self.declare(scope, dict.fromkeys(program.declared))
        return scope

    def new_scope(
        self,
        node: str,
        host: Track | None,
        *,
        kind: ScopeKind = ScopeKind.BODY,
        parent: int | None = None,
        index: int = 0,
        undoes: int = 0,
        inner: int = 0,
    ) -> Scope:
        """A new scope, hosted by a token; its parent is the scope that the host is in, where none is given."""
        state = self.state
        scope = Scope(id=state.new_id(), node=node, kind=kind, index=index, parent=parent, undoes=undoes, inner=inner)
        if host is not None:
            scope.host = host.id
            scope.parent = host.scope if parent is None else parent
            host.hosted[scope.id] = scope
            host.failing = None
        state.scopes.put(scope)
        return scope

    def declare(self, scope: Scope, values: Mapping[str, Value]) -> None:
        """Give a scope variables of its own."""
        scope.data.update(values)
        self.state.touched_data.update(((scope.id, name), None) for name in values)

    def begin(self, scope: Scope, starts: Iterable[str]) -> None:
        """The scope is open: arm its event sub-processes, then start its tokens.

        One that an interrupting condition takes over before it began starts none.
        """
        self.arm_handlers(scope)
        if not scope.interrupted:
            for start in starts:
                self.start_track(scope, start)
        if len(scope.tracks) > scope.handlers:
            return
        self.withdraw_all(scope)
        if not scope.tracks:
            self.close_scope(scope)

    def arm_handlers(self, scope: Scope) -> None:
        """Arm the event sub-processes of a scope; a condition that is true already fires at once."""
        starts = self.program.scopes[scope.node].handlers
        true: list[ConditionWait] = []
        for start in starts:
            place = Place(reads=scope.id, scope=scope.id, node=start)
            true += arm_beside(self, self.program.nodes[start].behaviour.plan, place)
        for wait in true:
            if wait.id in self.state.waits:
                self.occurred(wait, None)

    def close_scope(self, scope: Scope, *, last: Track | None = None, terminated: bool = False) -> None:
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
        node = self.program.nodes[host.node]
        if scope.undoes:
            sweeps.undone(self, scope)
            return
        if scope.kind is ScopeKind.INSTANCE:
            activities.instance_ended(self, host, node, scope)
            return
        if terminated or node.activity is None or not node.activity.looks_back:
            self.discard_scope(scope)
        node.behaviour.scope_completed(self, host, node)

    def discard_scope(self, scope: Scope) -> None:
        """Take an empty scope out of the state, with its data and entry counts (its tombstone stands for them too)."""
        state = self.state
        if scope.joins:
            joins.clear(self, scope)
        if scope.kind is ScopeKind.BODY:
            for node_id in self.program.scopes[scope.node].nodes:
                state.entries.pop((scope.id, node_id), None)
        else:
            state.entries.pop((scope.id, scope.node), None)
        self.withdraw_all(scope)
        if not scope.folded and state.ledgers:
            ledger.drop_all(self, ledger.ledger_of(scope))
        state.scopes.drop(scope.id)
        state.unsettled.pop(scope.id, None)
        if scope.host is not None:
            del state.tracks[scope.host].hosted[scope.id]

    def empty_scope(self, scope: Scope) -> None:
        """Cancel all that lives in a scope: its tokens, its child scopes, its incidents."""
        self.clear_scope(scope, but=None)

    def clear_scope(self, scope: Scope, *, but: Track | None) -> None:
        """Cancel all that lives in a scope, one token excepted; its event sub-processes catch nothing any more."""
        self.withdraw_all(scope)
        joins.clear(self, scope)
        for track in list(scope.tracks.values()):
            if track is not but:
                self.kill(track)

    def kill(self, track: Track) -> None:
        """Cancel one token, with the scopes it hosts and what it runs; it overtakes an incident."""
        is_activity = self.program.nodes[track.node].is_activity
        if is_activity:
            self.fact("activity-terminating", track)
        if track.state is TrackState.EXECUTING:
            self.effects.append(Stop(track.id))
        if track.hosted:
            self.drop_hosted(track)
        if track.state is TrackState.JOINING and track.node in self.state.scopes[track.scope].joins:
            joins.withdraw(self, track)  # one token alone; of a scope that is emptied the joins were cleared before
        if isinstance(track.wait, CallWait):
            self.posts.append(ChildCancelPost(track.wait.child))
        elif isinstance(track.wait, SweepWait):
            sweeps.abandon(self, track)
        if is_activity:
            self.fact("activity-terminated", track)
        self.fact("token-cancelled", track)
        self.forget(track)

    def drop_hosted(self, track: Track) -> None:
        """Cancel the scopes that a token hosts, the inner ones first."""
        for child in reversed(list(track.hosted.values())):
            self.empty_scope(child)
            self.discard_scope(child)

    def fail(self, code: str | None, message: str, variables: Mapping[str, Value]) -> None:
        """The instance fails with an error that nobody in it catches; its caller searches on, or fails with it."""
        if self.state.identity.parent_id is None:
            named = f"error {code!r}: {message}" if code is not None else message
            self.finish(Status.FAILED, named)
            return
        is_expected = throws.is_caught_by_callers(self, code)
        self.finish(
            Status.FAILED,
            message,
            told=ChildEndPost(
                status=Status.FAILED, outputs=dict(variables), code=code, message=message, is_expected=is_expected
            ),
        )

    def finish(self, status: Status, reason: str, *, told: ChildEndPost | None = None) -> None:
        """The instance ends with this status; what still lives in it is cancelled.

        ``told``: what its caller is told, if that is not just the status and its variables.
        """
        root = next(iter(self.state.scopes.values()), None)
        if root is not None:
            self.empty_scope(root)
            ledger.drop_all(self, root.id)
        self.state.touched_entries.update(dict.fromkeys(self.state.entries))
        self.state.entries.clear()
        self.state.agenda.clear()
        self.state.openings.clear()
        self.state.sweeping.clear()
        self.state.throws.clear()
        self.state.changed.clear()
        self.state.unsettled.clear()
        self.set_status(status, reason)
        self.effects.append(Ended(status))
        if self.state.identity.parent_id is not None:
            outputs = {} if root is None else dict(root.data)
            self.posts.append(told or ChildEndPost(status=status, outputs=outputs, message=reason))

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

    def incident_aside(self, kind: IncidentKind, resume: Resume, message: str, *, node: str, wait: Wait) -> Incident:
        """An incident that pins no token: the event of that node is not armed, its host goes on."""
        incident = Incident(
            id=self.state.new_id(),
            kind=kind,
            node=node,
            scope=waits.reads(self.state, wait),
            track=0,
            resume=resume,
            message=message,
            first=self.now,
            last=self.now,
            wait=wait.id,
        )
        self.state.incidents.put(incident)
        self.facts.append(("incident-opened", node, 0, {"incident": incident.id, "kind": kind.value}))
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


def nothing_to_take(node: NodeProgram) -> str:
    """The message of a *no-outgoing-flow* incident."""
    conditions = ", ".join(f"{flow.id}: {flow.condition.text}" for flow in node.conditional if flow.condition)
    return (
        f"no outgoing sequence flow of {node.label} can be taken: none of its conditions is true ({conditions}) "
        f"and it has no default flow; give it a default flow, or resolve the incident along a flow"
    )
