"""Gateways: exclusive and parallel (clauses 13.4.1, 13.4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trioflow.errors import ExpressionError
from trioflow.machine import joins
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.state import IncidentKind, Resume, Track
from trioflow.machine.turn import nothing_to_take
from trioflow.model import ExclusiveGateway, FlowNode, ParallelGateway

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import FlowProgram, NodeProgram
    from trioflow.machine.turn import Turn

__all__ = ["COMPILERS", "Exclusive", "Parallel"]


class Exclusive(Behaviour):
    """The first flow in document order whose condition is true, else the default; each token passes by itself."""

    __slots__ = ()

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if not node.outgoing:
            turn.end(track)
            return
        try:
            flow = self._choose(turn, track, node)
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        if flow is None:
            turn.incident(track, IncidentKind.NO_OUTGOING_FLOW, Resume.ENTER, nothing_to_take(node))
        else:
            turn.move(track, flow)

    def objection(self, node: NodeProgram, flows: tuple[str, ...]) -> str:
        """What could not be decided is decided by the operator: along exactly one flow."""
        if len(flows) == 1 or not node.outgoing:
            return ""
        return f"is an exclusive gateway and takes one flow: give one of {', '.join(flow.id for flow in node.outgoing)}"

    def _choose(self, turn: Turn, track: Track, node: NodeProgram) -> FlowProgram | None:
        for flow in node.outgoing:
            if flow is node.default:
                continue
            if flow.condition is None or turn.holds(track, flow):
                return flow
        return node.default


class Parallel(Behaviour):
    """Joins one token from each way in, then takes every way out, whatever conditions stand at them."""

    __slots__ = ()
    is_join = True

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if joins.arrive(turn, track, node):
            self.resolved(turn, track, node)

    def resolved(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if node.outgoing:
            turn.take(track, node.outgoing)
        else:
            turn.end(track)


def _exclusive(compilation: Compilation, element: FlowNode) -> Behaviour:
    return Exclusive()


def _parallel(compilation: Compilation, element: FlowNode) -> Behaviour:
    return Parallel()


COMPILERS: Compilers = {ExclusiveGateway: _exclusive, ParallelGateway: _parallel}
