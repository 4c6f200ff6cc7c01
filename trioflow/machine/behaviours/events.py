"""Events: none start and end, terminate end, and the intermediate timer and message catch (clause 13.5)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.facts import Status
from trioflow.machine.behaviours.base import Behaviour, Compilers, write_outputs
from trioflow.machine.behaviours.tasks import Pass
from trioflow.machine.state import IncidentKind, MessageWait, Resume, TimerWait, Track
from trioflow.machine.timers import TimerPlan
from trioflow.model import (
    CatchEvent,
    EndEvent,
    EventDefinition,
    FlowNode,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    Message,
    MessageEventDefinition,
    StartEvent,
    TerminateEventDefinition,
    TimerEventDefinition,
)

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.events import MessageArrived
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn

__all__ = ["COMPILERS", "MessageCatch", "TerminateEnd", "TimerCatch"]


class NoneEnd(Behaviour):
    """The token ends here."""

    __slots__ = ()

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.fact("token-consumed", track)
        turn.end(track)


class TerminateEnd(Behaviour):
    """All of this scope instance ends; at the root the instance is terminated, else its host goes on (13.5.6)."""

    __slots__ = ()

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        scope = turn.state.scopes[track.scope]
        if scope.host is None:
            turn.finish(Status.TERMINATED, f"terminate end event {node.label}")
            return
        turn.empty_scope(scope)
        turn.close_scope(scope, last=track)


@frozen
class TimerCatch(Behaviour):
    """The token waits for a deadline, computed when it arrives; of a cycle only the first firing counts."""

    plan: TimerPlan

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        try:
            armed = self.plan.arm(turn.view(track), turn.now)
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        wait = TimerWait(
            id=turn.state.new_id(),
            track=track.id,
            deadline=armed.deadline,
            left=armed.left,
            interval=armed.interval,
            anchor=armed.anchor,
        )
        turn.park(track, wait)

    def timer_due(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        assert isinstance(track.wait, TimerWait)
        late = turn.now - track.wait.deadline
        turn.fact("timer-fired", track, late_seconds=max(late, timedelta()).total_seconds())
        turn.disarm(track)
        turn.leave(track, node)


@frozen
class MessageCatch(Behaviour):
    """The token waits for a message by name and key.

    A payload that is a record is written by name, like returned outputs; any other under the message's name
    (*choice*); null writes nothing.  One that cannot be written is consumed all the same, or it would come back for
    ever: its incident is resolved with outputs given by hand, and its retry waits for the next message.
    """

    name: str
    key: Evaluable | None

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        try:
            key = None if self.key is None else turn.evaluate(track, self.key)
            key = turn.program.codec.canonical(key, "correlation key")
        except (ExpressionError, UnstorableValue) as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        if self.key is not None and key is None:
            message = (
                f"the correlation key {self.key.text!r} of {node.label} is null: no message can match it; "
                f"write the variable before the token gets here, then retry"
            )
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, message)
            return
        turn.park(track, MessageWait(turn.state.new_id(), track.id, self.name, key))

    def message_arrived(self, turn: Turn, track: Track, node: NodeProgram, event: MessageArrived) -> None:
        payload = event.payload
        outputs = payload if isinstance(payload, dict) else {} if payload is None else {self.name: payload}
        turn.disarm(track)
        turn.consumed.append(event.delivery)
        turn.fact("message-received", track, name=self.name)
        if write_outputs(turn, track, outputs, resume=Resume.ENTER):
            turn.leave(track, node)


# ------------------------------------------------------------------ compiling


def _start(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, StartEvent)
    definitions = compilation.graph.event_definitions(element)
    if definitions or element.event_definition_refs:
        return compilation.refuse(element, "a start event with a trigger", "start the instance at a none start event")
    return Pass(activity=False)


def _end(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, EndEvent)
    definitions = compilation.graph.event_definitions(element)
    if not definitions:
        return NoneEnd()
    if len(definitions) == 1 and isinstance(definitions[0], TerminateEventDefinition):
        return TerminateEnd()
    kinds = _kinds(definitions)
    return compilation.refuse(element, f"an end event that throws ({kinds})", "end with a none or terminate end event")


def _throw(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, IntermediateThrowEvent)
    definitions = compilation.graph.event_definitions(element)
    if not definitions:
        return Pass(activity=False)
    what = f"an intermediate event that throws ({_kinds(definitions)})"
    return compilation.refuse(element, what, "use a service task")


def _catch(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, CatchEvent)
    definitions = compilation.graph.event_definitions(element)
    if len(definitions) == 1 and isinstance(definitions[0], TimerEventDefinition):
        return TimerCatch(TimerPlan.compile(compilation, element, definitions[0]))
    if len(definitions) == 1 and isinstance(definitions[0], MessageEventDefinition):
        return _message_catch(compilation, element, definitions[0])
    what = f"an intermediate catch event of this kind ({_kinds(definitions)})"
    return compilation.refuse(element, what, "catch one timer or one message")


def _message_catch(compilation: Compilation, element: CatchEvent, definition: MessageEventDefinition) -> Behaviour:
    message = compilation.graph.roots.get(definition.message_ref or "")
    if not isinstance(message, Message) or not (message.name or message.id):
        return compilation.fault(
            element, "message-missing", "its message event definition names no message.", "Give it a messageRef."
        )
    key = compilation.own_expression(definition, "correlationKey")
    return MessageCatch(message.name or message.id, key)


def _kinds(definitions: tuple[EventDefinition, ...]) -> str:
    return ", ".join(definition.kind for definition in definitions) or "none"


COMPILERS: Compilers = {
    StartEvent: _start,
    EndEvent: _end,
    IntermediateThrowEvent: _throw,
    IntermediateCatchEvent: _catch,
}
