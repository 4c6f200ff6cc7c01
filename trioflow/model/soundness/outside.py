"""What ends a scope as a whole, other than that its tokens come to an end one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from trioflow.model.activities import AdHocSubProcess, MultiInstanceLoopCharacteristics, SendTask, SubProcess
from trioflow.model.checks.view import ends, has_kind, is_event_sub_process, kinds, nodes_of
from trioflow.model.events import BoundaryEvent, CompensateEventDefinition, StartEvent, ThrowEvent
from trioflow.model.flow import FlowNode
from trioflow.model.graph import Graph
from trioflow.model.process import Process

__all__ = ["ENDING", "can_be_stopped", "interrupters", "scopes_around", "thrown_kinds"]

ENDING = frozenset({"terminate", "error", "cancel"})
"""The kinds of end events that end all tokens of their scope."""
_CAUGHT = frozenset({"escalation", "signal", "message"})


def scopes_around(graph: Graph, scope_id: str) -> list[str]:
    """The id of a scope and of those around it, innermost first; each once, though ids of a broken model may repeat."""
    found: dict[str, None] = {}
    while scope_id not in found:
        found[scope_id] = None
        scope_id = graph.parent.get(scope_id, scope_id)
    return list(found)


# ------------------------------------------------------------------ what its own tokens throw


def thrown_kinds(graph: Graph, element: FlowNode) -> frozenset[str]:
    """The kinds of events that a node throws, once a token comes to it."""
    if isinstance(element, ThrowEvent):
        return frozenset(kinds(graph, element))
    return frozenset({"message"}) if isinstance(element, SendTask) else frozenset()


def _throws_between(element: FlowNode) -> bool:
    """Whether a multi-instance throws while it runs (10.3.8)."""
    several = getattr(element, "loop_characteristics", None)
    return isinstance(several, MultiInstanceLoopCharacteristics) and bool(
        several.none_behavior_event_ref or several.one_behavior_event_ref or several.complex_behavior_definitions
    )


def interrupters(graph: Graph) -> frozenset[str]:
    """The ids of nodes that can end their scope by a throw, for a catcher of it or around it interrupts.

    A sub-process counts as such a node of the scope that it stands in, if something inside of it throws that far.
    """
    catching = _interrupted_scopes(graph)
    found: set[str] = set()
    for element in graph.nodes.values() if catching else ():
        thrown = _CAUGHT if _throws_between(element) else thrown_kinds(graph, element) & _CAUGHT
        found.update(_thrown_through(graph, element, thrown, catching) if thrown else ())
    return frozenset(found)


def _thrown_through(
    graph: Graph, element: FlowNode, thrown: AbstractSet[str], catching: Mapping[str, AbstractSet[str]]
) -> list[str]:
    """The node and the sub-processes around it, up to the outermost one whose scope a catcher ends."""
    scopes = scopes_around(graph, graph.parent[element.id])
    ended = [number for number, scope in enumerate(scopes) if not thrown.isdisjoint(catching.get(scope, ()))]
    return [element.id, *scopes][: ended[-1] + 1] if ended else []


def _interrupted_scopes(graph: Graph) -> dict[str, set[str]]:
    """A scope to the kinds of throws that end it: by an event sub-process in it, or a boundary event of its host."""
    found: dict[str, set[str]] = {}
    for start in nodes_of(graph, StartEvent):
        handler = graph.container(start.id)
        if start.is_interrupting and is_event_sub_process(handler):
            found.setdefault(graph.parent[handler.id], set()).update(kinds(graph, start))
    for boundary in nodes_of(graph, BoundaryEvent):
        if boundary.cancel_activity and isinstance(graph.nodes.get(boundary.attached_to_ref), SubProcess):
            found.setdefault(boundary.attached_to_ref, set()).update(kinds(graph, boundary))
    return {scope: caught & _CAUGHT for scope, caught in found.items() if caught & _CAUGHT}


# ------------------------------------------------------------------ what can come at any time


def can_be_stopped(graph: Graph, scope: Process | SubProcess) -> bool:
    """Whether something other than its own tokens can end the scope."""
    return any(
        _has_interrupting_handler(graph, around) or _is_interrupted(graph, around) or _ends_early(graph, around)
        for around in _containers_around(graph, scope)
    )


def _containers_around(graph: Graph, scope: Process | SubProcess) -> Iterator[Process | SubProcess]:
    for scope_id in scopes_around(graph, scope.id):
        node = graph.nodes.get(scope_id)
        yield node if isinstance(node, SubProcess) else graph.process


def _has_interrupting_handler(graph: Graph, scope: Process | SubProcess) -> bool:
    handlers = (child for child in graph.children.get(scope.id, ()) if is_event_sub_process(child))
    begin = (start for handler in handlers for start in graph.children.get(handler.id, ()))
    return any(isinstance(start, StartEvent) and start.is_interrupting for start in begin)


def _is_interrupted(graph: Graph, scope: Process | SubProcess) -> bool:
    if not isinstance(scope, SubProcess):
        return False
    several = scope.loop_characteristics
    if isinstance(several, MultiInstanceLoopCharacteristics) and several.completion_condition is not None:
        return True
    if isinstance(scope, AdHocSubProcess):
        return True
    return any(
        boundary.cancel_activity and not has_kind(graph, boundary, CompensateEventDefinition)
        for boundary in graph.boundary.get(scope.id, ())
    )


def _ends_early(graph: Graph, scope: Process | SubProcess) -> bool:
    return any(not ENDING.isdisjoint(kinds(graph, end)) for end in ends(graph, scope.id))
