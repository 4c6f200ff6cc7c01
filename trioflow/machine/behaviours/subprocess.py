"""The embedded sub-process: a scope of its own, hosted by the token that entered it (clause 13.3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.machine import activities
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.behaviours.catching import EventSubProcess
from trioflow.machine.state import ScopeKind, Track, TrackState
from trioflow.model import FlowNode, StartEvent, SubProcess, Transaction

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import NodeProgram
    from trioflow.machine.turn import Turn

__all__ = ["COMPILERS", "EmbeddedSubProcess"]


@frozen
class EmbeddedSubProcess(Behaviour):
    """Each token that arrives opens its own scope instance, and goes on when that holds no token any more."""

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.open_entry(track)
        turn.fact("activity-started", track)
        program = turn.program.scopes[node.id]
        turn.rest(track, TrackState.HOSTING)
        scope = turn.open_scope(program, track)
        around = turn.state.scopes[track.scope]
        if around.kind is ScopeKind.INSTANCE:  # its properties are filled by its input associations
            turn.declare(scope, {name: around.data[name] for name in program.declared if name in around.data})
        turn.begin(scope, program.starts)

    def scope_completed(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.complete(track, node)


@frozen
class TransactionBehaviour(EmbeddedSubProcess):
    """A sub-process that a cancel end event inside it aborts (10.3.5.3, 13.3.4)."""

    is_transaction = True

    def swept(self, turn: Turn, track: Track, node: NodeProgram, label: str) -> None:
        """All is undone: one token leaves by the cancel boundary event; without one it ends here (*choice*)."""
        host = track
        if activities.is_body(turn, track):
            host = next(turn.state.tracks[scope.host] for scope in [turn.state.scopes[track.scope]] if scope.host)
        event = None if node.activity is None else node.activity.cancelled
        if event is None:
            turn.end(host)
            return
        boundary = turn.program.nodes[event]
        boundary.behaviour.fire(turn, boundary, host, {})


def _sub_process(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, SubProcess)
    if element.triggered_by_event:
        return _event_sub_process(compilation, element)
    starts = compilation.start_events(element.id)
    if len(starts) > 1:
        return compilation.fault(
            element,
            "several-starts",
            f"it has {len(starts)} none start events ({', '.join(each.id for each in starts)}).",
            "An embedded sub-process has one start: keep one of them.",
        )
    return TransactionBehaviour() if isinstance(element, Transaction) else EmbeddedSubProcess()


def _event_sub_process(compilation: Compilation, element: SubProcess) -> Behaviour:
    starts = [node for node in compilation.graph.children[element.id] if isinstance(node, StartEvent)]
    if len(starts) != 1 or not compilation.graph.event_definitions(starts[0]):
        return compilation.fault(
            element,
            "event-sub-process",
            f"it has {len(starts)} start events, and is started by an event.",
            "Give it exactly one start event, with the event that starts it.",
        )
    return EventSubProcess()


COMPILERS: Compilers = {SubProcess: _sub_process, Transaction: _sub_process}
