"""Compensation: handlers and what names them (clause 10.7, ``docs/explanation/elements.md``)."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.activities import Activity, SubProcess
from trioflow.model.base import BaseElement
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import (
    associations,
    compensation_handlers,
    described,
    has_kind,
    is_event_sub_process,
    nodes_of,
)
from trioflow.model.events import BoundaryEvent, CompensateEventDefinition, Event, StartEvent, ThrowEvent
from trioflow.model.findings import Level
from trioflow.model.graph import Graph

__all__ = ["RULES"]


def boundary_with_flow(graph: Graph) -> Iterator[Problem]:
    """A compensation boundary event has no outgoing flow: it gets no token (10.7.1)."""
    for boundary in _boundaries(graph):
        for flow in graph.outgoing.get(boundary.id, ()):
            yield Problem(
                boundary, f"It has the outgoing flow {flow.id!r}.", "Link it to its handler by an association instead."
            )


def boundary_without_handler(graph: Graph) -> Iterator[Problem]:
    """A compensation boundary event is linked to its handler (10.7.1)."""
    linked = {boundary.id for boundary, _ in compensation_handlers(graph)}
    for boundary in _boundaries(graph):
        if boundary.id not in linked:
            yield Problem(
                boundary, "No association links it to an activity.", "Draw one to the activity that undoes it."
            )


def boundary_with_several_handlers(graph: Graph) -> Iterator[Problem]:
    """A compensation boundary event has one handler (10.7.1)."""
    first: dict[str, Activity] = {}
    for boundary, handler in compensation_handlers(graph):
        if first.setdefault(boundary.id, handler) is not handler:
            yield Problem(
                boundary,
                f"It is linked to {first[boundary.id].id!r} and to {handler.id!r}.",
                "Use one handler; a sub-process can hold several steps.",
            )


def handler_unmarked(graph: Graph) -> Iterator[Problem]:
    """What a compensation boundary event is linked to is marked for compensation (10.7.1)."""
    for boundary, handler in compensation_handlers(graph):
        if not handler.is_for_compensation:
            yield Problem(
                handler,
                f"It undoes {boundary.attached_to_ref!r}, but is not marked.",
                "Set isForCompensation to 'true'.",
            )
    for association in associations(graph):
        source, target = graph.nodes.get(association.source_ref), graph.nodes.get(association.target_ref)
        for boundary_end, other in ((source, target), (target, source)):
            if other is not None and _compensates(graph, boundary_end) and not isinstance(other, Activity):
                yield Problem(other, f"{described(other)} cannot undo anything.", "Link a task or a sub-process.")


def handler_in_flow(graph: Graph) -> Iterator[Problem]:
    """A compensation handler stands outside the flow (10.7.1)."""
    for activity in nodes_of(graph, Activity):
        flows = (*graph.incoming.get(activity.id, ()), *graph.outgoing.get(activity.id, ()))
        if activity.is_for_compensation and flows:
            yield Problem(
                activity,
                f"It is marked for compensation and has the sequence flow {flows[0].id!r}.",
                "Remove the flow, or the mark.",
            )


def handler_unlinked(graph: Graph) -> Iterator[Problem]:
    """A compensation handler is linked to a boundary event, or it never runs."""
    linked = {handler.id for _, handler in compensation_handlers(graph)}
    for activity in nodes_of(graph, Activity):
        if activity.is_for_compensation and activity.id not in linked:
            yield Problem(
                activity,
                "It is marked for compensation, but no boundary event is linked to it.",
                "Link one, or unmark it.",
            )


def handler_doubled(graph: Graph) -> Iterator[Problem]:
    """A boundary handler and an event sub-process for compensation exclude each other (10.7.1)."""
    for boundary in _boundaries(graph):
        host = graph.nodes.get(boundary.attached_to_ref)
        inside = _own_handler(graph, host)
        if inside is not None:
            yield Problem(
                boundary,
                f"{boundary.attached_to_ref!r} is undone by this event and by its own event sub-process {inside.id!r}.",
                "Keep one of the two.",
            )


def target_invisible(graph: Graph) -> Iterator[Problem]:
    """A throw names an activity of its own scope, or in a handler of the enclosing one (10.5.5, 10.7.2)."""
    for event in nodes_of(graph, ThrowEvent):
        for definition in graph.event_definitions(event):
            if not isinstance(definition, CompensateEventDefinition) or not definition.activity_ref:
                continue
            activity = graph.nodes.get(definition.activity_ref)
            if not isinstance(activity, Activity):
                yield Problem(event, f"It compensates {definition.activity_ref!r}, which is no activity.", "Name one.")
            elif graph.parent[activity.id] not in _visible_scopes(graph, event):
                yield Problem(
                    event,
                    f"It compensates {activity.id!r} in {graph.parent[activity.id]!r}, which it cannot see from "
                    f"{graph.parent[event.id]!r}.",
                    "Throw it in the scope of the activity, or name the sub-process around it.",
                )


def _visible_scopes(graph: Graph, event: Event) -> set[str]:
    """The scope that a throw compensates: in an event sub-process the enclosing one counts too."""
    scope_id = graph.parent[event.id]
    scopes = {scope_id}
    while (node := graph.nodes.get(scope_id)) is not None and is_event_sub_process(node):
        scope_id = graph.parent[scope_id]
        scopes.add(scope_id)
    return scopes


def _own_handler(graph: Graph, host: BaseElement | None) -> SubProcess | None:
    if not isinstance(host, SubProcess):
        return None
    for child in graph.children.get(host.id, ()):
        if isinstance(child, SubProcess) and child.triggered_by_event and _starts_by_compensation(graph, child):
            return child
    return None


def _starts_by_compensation(graph: Graph, handler: SubProcess) -> bool:
    starts = (child for child in graph.children.get(handler.id, ()) if isinstance(child, StartEvent))
    return any(has_kind(graph, start, CompensateEventDefinition) for start in starts)


def _boundaries(graph: Graph) -> Iterator[BoundaryEvent]:
    return (event for event in nodes_of(graph, BoundaryEvent) if _compensates(graph, event))


def _compensates(graph: Graph, node: BaseElement | None) -> bool:
    return isinstance(node, BoundaryEvent) and has_kind(graph, node, CompensateEventDefinition)


RULES: Table[Graph] = (
    Rule("compensation-boundary-with-flow", Level.ERROR, "10.7.1", boundary_with_flow),
    Rule("compensation-boundary-without-handler", Level.VIOLATION, "10.7.1", boundary_without_handler),
    Rule("compensation-several-handlers", Level.ERROR, "10.7.1", boundary_with_several_handlers),
    Rule("compensation-handler-unmarked", Level.VIOLATION, "10.7.1", handler_unmarked),
    Rule("compensation-handler-in-flow", Level.ERROR, "10.7.1", handler_in_flow),
    Rule("compensation-handler-unlinked", Level.WARNING, "10.7.1", handler_unlinked),
    Rule("compensation-handler-doubled", Level.VIOLATION, "10.7.1", handler_doubled),
    Rule("compensation-target-invisible", Level.ERROR, "10.5.5, 10.7.2", target_invisible),
)
"""Rules about compensation."""
