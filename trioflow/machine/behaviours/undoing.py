"""What of a model can be undone: compensation handlers, event sub-processes, and what is in a sub-process (10.7)."""

from __future__ import annotations

from trioflow.machine.program import Undo
from trioflow.model import (
    Activity,
    CompensateEventDefinition,
    Graph,
    MultiInstanceLoopCharacteristics,
    StartEvent,
    SubProcess,
    Transaction,
)
from trioflow.model.checks.view import compensation_handlers

__all__ = ["undo_of"]


def undo_of(graph: Graph, activity: Activity) -> Undo | None:
    """How the activity is undone; None: nothing of it ever is, so nothing is noted when it completes."""
    handler = _handler(graph, activity)
    inside = _own_event_sub_process(graph, activity)
    if handler is None and inside is None and not _has_contents(graph, activity):
        return None
    loop = activity.loop_characteristics
    return Undo(
        handler=handler,
        event_sub_process=inside,
        is_scope=isinstance(activity, SubProcess),
        is_transaction=isinstance(activity, Transaction),
        repeats=loop is not None,
        together=isinstance(loop, MultiInstanceLoopCharacteristics) and not loop.is_sequential,
    )


def _handler(graph: Graph, activity: Activity) -> str | None:
    """The activity that the first compensation boundary event of this one is linked to."""
    pairs = compensation_handlers(graph)
    return next((handler.id for boundary, handler in pairs if boundary.attached_to_ref == activity.id), None)


def _own_event_sub_process(graph: Graph, activity: Activity) -> str | None:
    """The start event of its event sub-process for compensation."""
    if not isinstance(activity, SubProcess):
        return None
    for child in graph.children.get(activity.id, ()):
        if isinstance(child, SubProcess) and child.triggered_by_event:
            for start in graph.children.get(child.id, ()):
                if isinstance(start, StartEvent) and _compensates(graph, start):
                    return start.id
    return None


def _compensates(graph: Graph, start: StartEvent) -> bool:
    return any(isinstance(each, CompensateEventDefinition) for each in graph.event_definitions(start))


def _has_contents(graph: Graph, activity: Activity) -> bool:
    """Whether anything inside, at any depth, can be undone."""
    if not isinstance(activity, SubProcess):
        return False
    return any(isinstance(child, Activity) and undo_of(graph, child) for child in graph.children.get(activity.id, ()))
