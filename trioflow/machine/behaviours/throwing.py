"""Events that throw: intermediate throw and end events (clauses 10.5.3, 10.5.4, 13.5.6).

What they throw is carried out when all tokens have come to rest.  An event with several definitions throws them in the
order of the document (*multiple*).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.facts import Status
from trioflow.machine import ledger, sweeps, throws
from trioflow.machine.behaviours.base import Behaviour
from trioflow.machine.state import IncidentKind, Resume, SweepWait, Track, TrackState
from trioflow.machine.transition import MessagePost, SignalPost

if TYPE_CHECKING:
    from trioflow.machine.associations import PayloadPlan
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = [
    "Action",
    "CancelAction",
    "CompensateAction",
    "ErrorAction",
    "EscalationAction",
    "Link",
    "MessageAction",
    "NoneEnd",
    "SignalAction",
    "TerminateAction",
    "Throw",
]


class Action(Protocol):
    """One definition of a throwing event."""

    def prepare(self, turn: Turn, track: Track) -> Value:
        """What it evaluates; nothing has happened yet.  An ``ExpressionError`` keeps the whole event from throwing."""
        ...

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """Throw; this can end the thrower, and the instance."""
        ...


class NoneEnd(Behaviour):
    """The token ends here."""

    __slots__ = ()

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.fact("token-consumed", track)
        turn.end(track)


@frozen
class Throw(Behaviour):
    """The token throws what the event's definitions say, then goes on, or ends at an end event."""

    actions: tuple[Action, ...]

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.throw(track)

    def throw(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        try:
            prepared = [action.prepare(turn, track) for action in self.actions]
        except (ExpressionError, UnstorableValue) as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        self._perform(turn, track, node, list(enumerate(zip(self.actions, prepared, strict=True))))

    def _perform(
        self, turn: Turn, track: Track, node: NodeProgram, actions: list[tuple[int, tuple[Action, Value]]]
    ) -> None:
        for number, (action, value) in actions:
            action.perform(turn, track, node, value)
            if isinstance(track.wait, SweepWait):
                track.wait.label = str(number)
            if track.state is not TrackState.THROWING:
                return
        if not node.outgoing:
            turn.fact("token-consumed", track)
        turn.leave(track, node)

    def swept(self, turn: Turn, track: Track, node: NodeProgram, label: str) -> None:
        """The compensation has ended: what else the event throws comes now.  A carrier that nobody waited for ends."""
        if not label:
            turn.end(track)
            return
        turn.rest(track, TrackState.THROWING)
        rest = list(enumerate(self.actions))[int(label) + 1 :]
        self._perform(turn, track, node, [(number, (each, each.prepare(turn, track))) for number, each in rest])


@frozen
class Link(Behaviour):
    """The token jumps to the catching link event of that name in the same scope."""

    target: str

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.place(track, self.target)
        turn.state.agenda.append(track)


class _Plain:
    __slots__ = ()

    def prepare(self, turn: Turn, track: Track) -> Value:
        """Nothing to evaluate."""
        return None


class TerminateAction(_Plain):
    """All of this scope instance ends; at the root the instance is terminated, else its host goes on (13.5.6)."""

    __slots__ = ()

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """No other end behaviour runs, and it is no completion."""
        scope = turn.state.scopes[track.scope]
        if scope.host is None:
            turn.finish(Status.TERMINATED, f"terminate end event {node.label}")
            return
        turn.empty_scope(scope)
        turn.close_scope(scope, last=track, terminated=True)


@frozen
class _Loaded:
    """What carries a payload."""

    payload: PayloadPlan | None = field(kw_only=True, default=None)

    def prepare(self, turn: Turn, track: Track) -> Value:
        """The payload."""
        return None if self.payload is None else self.payload.evaluate(turn, track.scope)


@frozen
class ErrorAction(_Loaded):
    """An error: critical, it ends what it leaves; caught by nobody, the instance fails with it."""

    code: str | None
    message: str = field(kw_only=True, default="")

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """The thrower ends with what the catcher interrupts."""
        turn.fact("error-thrown", track, code=self.code)
        caught = throws.find(turn, track, throws.ERROR, self.code)
        if caught is not None:
            caught.fire(turn, throws.error_values(self.code, self.message, _named(prepared)), undo=True)
            return
        named = f"the error {self.code!r}" if self.code is not None else "an error without a code"
        reason = self.message or f"{named}, thrown by {node.label}, is caught by nobody"
        turn.fail(self.code, reason, _named(prepared))


@frozen
class EscalationAction(_Loaded):
    """An escalation: the thrower goes on, unless an interrupting catcher ends it."""

    code: str | None

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """Uncaught it is a fact, no failure."""
        turn.fact("escalation-thrown", track, code=self.code)
        throws.escalate(turn, track, self.code, throws.escalation_values(self.code, _named(prepared)))


@frozen
class CompensateAction(_Plain):
    """Compensation of one activity, or of all that completed in the thrower's scope (clause 10.7)."""

    activity: str | None
    wait_for_completion: bool

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """The thrower waits until the last handler has ended, unless it must not; nothing to do is no failure."""
        turn.fact("compensation-thrown", track, activity=self.activity)
        scope = sweeps.target(turn, track)
        entries = sweeps.wanted(turn.state, scope, self.activity)
        if not entries:
            turn.fact("compensation-nothing", track, activity=self.activity)
        elif self.wait_for_completion:
            turn.lift(track)
            sweeps.start(turn, track, scope, entries)
        else:
            carrier = turn.new_track(turn.state.scopes[track.scope], node.id, parent=track)
            sweeps.start(turn, carrier, scope, entries)


class CancelAction(_Plain):
    """The transaction around the event is cancelled: its running work ends, its completed work is undone (13.3.4)."""

    __slots__ = ()

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """At any depth inside it; the nearest transaction is the one."""
        turn.fact("transaction-cancelled", track)
        scope = turn.state.scopes[track.scope]
        while not (scope.host and turn.program.nodes[turn.state.tracks[scope.host].node].behaviour.is_transaction):
            assert scope.parent is not None, "a cancel end event outside a transaction is refused at registration"
            scope = turn.state.scopes[scope.parent]
        host = turn.state.tracks[scope.host]
        ledger.keep_inside(turn, scope)
        turn.clear_scope(scope, but=None)
        turn.lift(host)
        if not sweeps.start(turn, host, scope, sweeps.wanted(turn.state, scope, None)):
            host_node = turn.program.nodes[host.node]
            host_node.behaviour.swept(turn, host, host_node, "")


@frozen
class SignalAction(_Loaded):
    """A signal to all that wait for it: the catchers of this instance here and now, the others by the store."""

    name: str

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """In the order of arming."""
        turn.fact("signal-thrown", track, name=self.name)
        turn.posts.append(SignalPost(self.name, prepared))
        for wait in list(turn.state.signals.get(self.name, {}).values()):
            if wait.id in turn.state.waits:
                turn.occurred(wait, prepared)


@frozen
class MessageAction:
    """A message to one receiver, wherever it is."""

    name: str
    key: Evaluable | None
    payload: PayloadPlan | None = None

    def prepare(self, turn: Turn, track: Track) -> Value:
        """Key and payload; a key that is null is refused, because such a message could reach anybody."""
        payload = None if self.payload is None else self.payload.evaluate(turn, track.scope)
        return [self._key(turn, track), payload]

    def _key(self, turn: Turn, track: Track) -> Value:
        if self.key is None:
            return None
        key = turn.program.codec.canonical(turn.evaluate(track, self.key), "correlation key")
        if key is None:
            raise ExpressionError(
                f"the correlation key {self.key.text!r} of the message {self.name!r} is null: it would match nobody; "
                f"write the variable before the token gets here, then retry"
            )
        return key

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None:
        """It is a row of the commit that holds this step."""
        turn.fact("message-thrown", track, name=self.name)
        assert isinstance(prepared, list)
        key, payload = prepared
        turn.posts.append(MessagePost(self.name, key, payload, turn.state.new_id()))


def _named(payload: Value) -> dict[str, Value]:
    """The variables of an error or escalation: a record by its names, any other value under ``payload`` (*choice*)."""
    if isinstance(payload, dict):
        return payload
    return {} if payload is None else {"payload": payload}
