"""What of a model can be undone: compensation handlers, event sub-processes, and what is in a sub-process (10.7)."""

from __future__ import annotations

from collections.abc import Mapping

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

__all__ = ["handlers_of", "undo_of"]


def handlers_of(graph: Graph) -> dict[str, str]:
    """The id of each activity that has a compensation handler, and of the first one that it is linked to."""
    handlers: dict[str, str] = {}
    for boundary, handler in compensation_handlers(graph):
        handlers.setdefault(boundary.attached_to_ref, handler.id)
    return handlers


def undo_of(graph: Graph, activity: Activity, handlers: Mapping[str, str]) -> Undo | None:
    """How the activity is undone; None: nothing of it ever is, so nothing is noted when it completes."""
    handler = handlers.get(activity.id)
    inside = _own_event_sub_process(graph, activity)
    if handler is None and inside is None and not _has_contents(graph, activity, handlers):
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


def _has_contents(graph: Graph, activity: Activity, handlers: Mapping[str, str]) -> bool:
    """Whether anything inside, at any depth, can be undone."""
    if not isinstance(activity, SubProcess):
        return False
    children = graph.children.get(activity.id, ())
    return any(isinstance(child, Activity) and undo_of(graph, child, handlers) for child in children)
