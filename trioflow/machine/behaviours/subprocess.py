"""The embedded sub-process: a scope of its own, hosted by the token that entered it (clause 13.3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.state import Track, TrackState
from trioflow.model import FlowNode, SubProcess

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
        for start in program.starts:
            turn.start_track(scope, start)
        if not program.starts:
            turn.close_scope(scope)

    def scope_completed(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.fact("activity-completed", track)
        turn.leave(track, node)


def _sub_process(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, SubProcess)
    if element.triggered_by_event:
        return compilation.refuse(element, "an event sub-process", "model the reaction in the flow")
    starts = compilation.start_events(element.id)
    if len(starts) > 1:
        return compilation.fault(
            element,
            "several-starts",
            f"it has {len(starts)} none start events ({', '.join(each.id for each in starts)}).",
            "An embedded sub-process has one start: keep one of them.",
        )
    return EmbeddedSubProcess()


COMPILERS: Compilers = {SubProcess: _sub_process}
