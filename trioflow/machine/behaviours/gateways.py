"""Gateways: exclusive, parallel, inclusive and complex (clauses 13.4.1 to 13.4.3, 13.4.5); how they join: ``joins``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trioflow.errors import ExpressionError
from trioflow.machine import joins
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.state import IncidentKind, Resume, Track
from trioflow.machine.turn import nothing_to_take
from trioflow.model import ComplexGateway, ExclusiveGateway, FlowNode, InclusiveGateway, ParallelGateway

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import FlowProgram, NodeProgram
    from trioflow.machine.turn import Turn

__all__ = ["COMPILERS", "Complex", "Exclusive", "Inclusive", "Parallel"]


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
    join_rule = joins.PARALLEL
    is_join = True

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if joins.arrive(turn, track, node):
            self.resolved(turn, track, node)

    def resolved(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if node.outgoing:
            turn.take(track, node.outgoing)
        else:
            turn.end(track)


class Split(Behaviour):
    """Takes every flow whose condition is true and every one without a condition, else the default, else none."""

    __slots__ = ()
    is_join = True

    def joined(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if track.hops > turn.program.options.hop_limit:  # a loop can be made of these joins alone
            turn.livelock(track, Resume.LEAVE)
        else:
            self.leave(turn, track, node)

    def resolved(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        self.leave(turn, track, node)

    def leave(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if not node.outgoing:
            turn.end(track)
            return
        try:
            flows = self._chosen(turn, track, node)
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.LEAVE, str(error))
            return
        if flows:
            turn.take(track, flows)
        else:
            turn.incident(track, IncidentKind.NO_OUTGOING_FLOW, Resume.LEAVE, nothing_to_take(node))

    def _chosen(self, turn: Turn, track: Track, node: NodeProgram) -> list[FlowProgram]:
        raise NotImplementedError


class Inclusive(Split):
    """Joins what can still come (13.4.3), then takes every way out that is open."""

    __slots__ = ()
    join_rule = joins.INCLUSIVE

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if len(node.incoming) < 2:
            self.leave(turn, track, node)
        else:
            joins.line_up(turn, track, node)

    def _chosen(self, turn: Turn, track: Track, node: NodeProgram) -> list[FlowProgram]:
        others = (flow for flow in node.outgoing if flow is not node.default)
        chosen = [flow for flow in others if flow.condition is None or turn.holds(track, flow)]
        if not chosen and node.default is not None:
            return [node.default]
        return chosen


class Complex(Split):
    """Joins by its activation condition, in two phases (13.4.5)."""

    __slots__ = ("join_rule",)
    join_rule: joins.Complex

    def __init__(self, rule: joins.Complex) -> None:
        self.join_rule = rule

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if self.join_rule.activation is None and len(node.incoming) < 2:
            self.leave(turn, track, node)
        else:
            self.join_rule.arrive(turn, track, node)

    def _chosen(self, turn: Turn, track: Track, node: NodeProgram) -> list[FlowProgram]:
        return joins.flows_on_activation(turn, turn.state.scopes[track.scope], node)


def _exclusive(compilation: Compilation, element: FlowNode) -> Behaviour:
    return Exclusive()


def _parallel(compilation: Compilation, element: FlowNode) -> Behaviour:
    return Parallel()


def _inclusive(compilation: Compilation, element: FlowNode) -> Behaviour:
    return Inclusive()


def _complex(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, ComplexGateway)
    condition = element.activation_condition
    return Complex(joins.Complex(None if condition is None else compilation.expression(element, condition)))


COMPILERS: Compilers = {
    ExclusiveGateway: _exclusive,
    ParallelGateway: _parallel,
    InclusiveGateway: _inclusive,
    ComplexGateway: _complex,
}
