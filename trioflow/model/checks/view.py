"""What the rules ask about a model again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import attrs

from trioflow.model.activities import Activity, AdHocSubProcess, ReceiveTask, SubProcess
from trioflow.model.base import BaseElement
from trioflow.model.events import (
    BoundaryEvent,
    CompensateEventDefinition,
    EndEvent,
    Event,
    EventDefinition,
    LinkEventDefinition,
    StartEvent,
)
from trioflow.model.flow import Artifact, Association, FlowNode, SequenceFlow
from trioflow.model.gateways import EventBasedGateway
from trioflow.model.graph import Graph
from trioflow.model.process import Process

__all__ = [
    "associations",
    "chosen",
    "compensation_handlers",
    "containers",
    "defaults",
    "described",
    "each",
    "ends",
    "executable",
    "has_kind",
    "in_ad_hoc",
    "instantiates",
    "is_event_sub_process",
    "is_link",
    "kinds",
    "nodes_of",
    "starts",
    "walk",
]

Element = TypeVar("Element", bound=BaseElement)


def walk(root: BaseElement) -> Iterator[BaseElement]:
    """The element and every element inside it, at any depth, in document order."""
    yield root
    for attribute in attrs.fields(type(root)):
        value = getattr(root, attribute.name)
        if not value or isinstance(value, str):
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, BaseElement):
                yield from walk(part)


def each(graph: Graph, kind: type[Element]) -> Iterator[Element]:
    """Every element of this kind anywhere in the process."""
    return (element for element in walk(graph.process) if isinstance(element, kind))


def nodes_of(graph: Graph, kind: type[Element]) -> Iterator[Element]:
    """Every flow node of this kind in the process."""
    return (node for node in graph.nodes.values() if isinstance(node, kind))


def containers(graph: Graph) -> Iterator[Process | SubProcess]:
    """The process and all its sub-processes."""
    yield graph.process
    yield from nodes_of(graph, SubProcess)


def described(element: BaseElement) -> str:
    """An element as a message names it: ``serviceTask 'charge'``."""
    return f"{element.tag} {element.id!r}" if element.id else element.tag


def executable(graph: Graph) -> bool:
    """Whether rules for executable processes apply: everywhere but where the document says no."""
    return graph.process.is_executable is not False


# ------------------------------------------------------------------ kinds of nodes


def is_event_sub_process(element: BaseElement) -> bool:
    """Whether it is a sub-process that an event triggers."""
    return isinstance(element, SubProcess) and element.triggered_by_event


def instantiates(node: FlowNode) -> bool:
    """Whether the node starts its scope: a start event, or a receive task or event gateway that instantiates."""
    return isinstance(node, StartEvent) or (isinstance(node, (ReceiveTask, EventBasedGateway)) and node.instantiate)


def starts(graph: Graph, container_id: str) -> tuple[FlowNode, ...]:
    """The nodes that start a scope."""
    return tuple(node for node in graph.children.get(container_id, ()) if instantiates(node))


def ends(graph: Graph, container_id: str) -> tuple[EndEvent, ...]:
    """The end events of a scope."""
    return tuple(node for node in graph.children.get(container_id, ()) if isinstance(node, EndEvent))


def in_ad_hoc(graph: Graph, node: FlowNode) -> bool:
    """Whether the node lies directly in an ad-hoc sub-process, where flows are optional."""
    return isinstance(graph.container(node.id), AdHocSubProcess)


# ------------------------------------------------------------------ kinds of events


def kinds(graph: Graph, event: Event) -> tuple[str, ...]:
    """The kinds of the event's definitions, ``none`` where it has none at all."""
    found = tuple(definition.kind for definition in graph.event_definitions(event))
    return found or (() if event.event_definition_refs else ("none",))


def has_kind(graph: Graph, node: BaseElement, kind: type[EventDefinition]) -> bool:
    """Whether the node is an event with a definition of this kind."""
    return isinstance(node, Event) and any(isinstance(each, kind) for each in graph.event_definitions(node))


def is_link(graph: Graph, node: BaseElement) -> bool:
    """Whether the node is a link event."""
    return has_kind(graph, node, LinkEventDefinition)


# ------------------------------------------------------------------ flows and associations


def defaults(graph: Graph) -> Iterator[tuple[FlowNode, str]]:
    """Every node that names a default flow, with the flow's id."""
    for node in graph.nodes.values():
        flow_id = getattr(node, "default", None)
        if flow_id:
            yield node, flow_id


def chosen(graph: Graph, node: FlowNode) -> tuple[SequenceFlow, ...]:
    """The outgoing flows that are not the default flow."""
    default = getattr(node, "default", None)
    return tuple(flow for flow in graph.outgoing.get(node.id, ()) if flow.id != default)


def associations(graph: Graph) -> Iterator[Association]:
    """The associations of the process and its sub-processes."""
    for container in containers(graph):
        artifacts: tuple[Artifact, ...] = container.artifacts
        yield from (artifact for artifact in artifacts if isinstance(artifact, Association))


def compensation_handlers(graph: Graph) -> Iterator[tuple[BoundaryEvent, Activity]]:
    """Every compensation boundary event with each activity that an association links it to, either way."""
    for association in associations(graph):
        ends_of = graph.nodes.get(association.source_ref), graph.nodes.get(association.target_ref)
        for boundary, handler in (ends_of, ends_of[::-1]):
            if (
                isinstance(boundary, BoundaryEvent)
                and isinstance(handler, Activity)
                and has_kind(graph, boundary, CompensateEventDefinition)
            ):
                yield boundary, handler
