"""The event-based gateway in the flow: the first event wins (clauses 10.6.6, 13.4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import ExpressionError
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.state import ConditionWait, Gathering, IncidentKind, Resume, Track, Wait
from trioflow.machine.triggers import Place
from trioflow.model import EventBasedGateway, FlowNode, IntermediateCatchEvent, ReceiveTask

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import NodeProgram
    from trioflow.machine.turn import Turn

__all__ = ["COMPILERS", "EventGateway"]


@frozen
class EventGateway(Behaviour):
    """The token rests here with all arms armed; the event that happens first takes it along, the others are withdrawn.

    ``arms``: the catch events and receive tasks behind it, in document order.
    """

    arms: tuple[str, ...]

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        gathering = Gathering(turn.state.new_id(), track.id)
        try:
            waits = [wait for arm in self.arms for wait in _arm(turn, track, arm)]
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        turn.park(track, gathering)
        for wait in waits:
            turn.arm(wait)
        for wait in waits:
            if isinstance(wait, ConditionWait) and wait.last and wait.id in turn.state.waits:
                turn.occurred(wait, None)

    def objection(self, node: NodeProgram, flows: tuple[str, ...]) -> str:
        """What could not be armed is decided by the operator: along exactly one flow."""
        if len(flows) == 1:
            return ""
        return f"is an event-based gateway and takes one flow: give one of {', '.join(f.id for f in node.outgoing)}"


def _arm(turn: Turn, track: Track, arm: str) -> list[Wait]:
    """The waits of one arm, not armed yet: one that cannot be keeps the whole gateway from waiting."""
    plan = turn.program.nodes[arm].behaviour.plan
    place = Place(reads=track.scope, track=track.id, node=arm)
    together: list[Wait] = [Gathering(turn.state.new_id(), track.id, node=arm)] if plan.parallel else []
    return together + [trigger.wait(turn, place) for trigger in plan.triggers]


def _event_gateway(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, EventBasedGateway)
    if element.instantiate:
        return compilation.refuse(element, "an instantiating event-based gateway", "start with start events")
    arms = {flow.target_ref for flow in compilation.graph.outgoing.get(element.id, ())}
    for arm in sorted(arms):
        if not isinstance(compilation.graph.nodes[arm], IntermediateCatchEvent | ReceiveTask):
            return compilation.fault(
                element,
                "event-gateway-arm",
                f"its flow leads to {arm!r}, which waits for no event.",
                "Let each of its flows lead to a catch event or a receive task.",
            )
    return EventGateway(tuple(node_id for node_id in compilation.graph.nodes if node_id in arms))


COMPILERS: Compilers = {EventBasedGateway: _event_gateway}
