"""Send and receive tasks (clauses 10.3.3, 13.3.3): the message events, as activities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.behaviours.catching import arm_token
from trioflow.machine.behaviours.tasks import HandlerTask, handler_name, implemented_by
from trioflow.machine.behaviours.throwing import MessageAction
from trioflow.machine.state import IncidentKind, Resume, Track, TrackState, Trigger
from trioflow.machine.triggers import EventPlan, MessageTrigger, came
from trioflow.model import Activity, FlowNode, Message, ReceiveTask, SendTask

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["COMPILERS", "Receive", "Send"]


@frozen
class Receive(Behaviour):
    """The token waits for the message, and completes with its payload."""

    plan: EventPlan

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        arm_token(turn, track, node, self.plan)
        if track.state is TrackState.WAITING:
            turn.fact("activity-started", track)

    def occurred(self, turn: Turn, node: NodeProgram, wait: Trigger, payload: Value) -> None:
        track = turn.state.tracks[wait.track]
        values = came(turn, self.plan, wait, payload)
        assert values is not None
        turn.disarm(track)
        if track.node != node.id:  # it is an arm of an event-based gateway, where the token waits
            turn.withdraw_all(track)
            turn.place(track, node.id, next(flow.id for flow in node.incoming if flow.source == track.node))
        turn.complete(track, node, values)


@frozen
class Send(Behaviour):
    """The token throws the message, and completes."""

    action: MessageAction

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.fact("activity-started", track)
        turn.throw(track)

    def throw(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        try:
            prepared = self.action.prepare(turn, track)
        except (ExpressionError, UnstorableValue) as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        self.action.perform(turn, track, node, prepared)
        turn.complete(track, node)


def _receive(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, ReceiveTask)
    if element.instantiate:
        return compilation.refuse(element, "an instantiating receive task", "start with a message start event")
    operation = compilation.operation(element.operation_ref)
    name = _message(compilation, element, element.message_ref or (operation.in_message_ref if operation else None))
    key = compilation.own_expression(element, "correlationKey")
    return Receive(EventPlan(triggers=(MessageTrigger(label="", name=name, key=key),)))


def _send(compilation: Compilation, element: FlowNode) -> Behaviour:
    """With an implementation that names a handler it calls that; else it throws its message (*choice*)."""
    assert isinstance(element, SendTask)
    operation = compilation.operation(element.operation_ref)
    ref = element.message_ref or (operation.in_message_ref if operation else None)
    implementation = implemented_by(element)
    if implementation is not None or ref is None:
        return HandlerTask(compilation.handler(implementation or handler_name(compilation, element) or element.id))
    message = _message(compilation, element, ref)
    return Send(MessageAction(message, compilation.own_expression(element, "correlationKey")))


def _message(compilation: Compilation, element: Activity, ref: str | None) -> str:
    message = compilation.graph.roots.get(ref or "")
    if not isinstance(message, Message) or not (message.name or message.id):
        compilation.fault(element, "message-missing", "it names no message.", "Give it a messageRef.")
        return ""
    return message.name or message.id


COMPILERS: Compilers = {ReceiveTask: _receive, SendTask: _send}
