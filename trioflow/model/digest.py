"""The shape digest: what a checkpoint must agree with, in twelve characters (``docs/explanation/how-it-works.md``).

Drift means *I can no longer read what I saved*, not *something changed*: names, documentation,
conditions, scripts, timer expressions, retry policies, forms, layout and the order of the XML are not in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import TypeAlias

from trioflow.model.activities import (
    Activity,
    AdHocSubProcess,
    CallActivity,
    LoopCharacteristics,
    MultiInstanceLoopCharacteristics,
    StandardLoopCharacteristics,
    SubProcess,
)
from trioflow.model.events import (
    BoundaryEvent,
    CatchEvent,
    CompensateEventDefinition,
    ErrorEventDefinition,
    EscalationEventDefinition,
    Event,
    EventDefinition,
    LinkEventDefinition,
    MessageEventDefinition,
    SignalEventDefinition,
    StartEvent,
)
from trioflow.model.flow import Association, FlowNode
from trioflow.model.gateways import EventBasedGateway
from trioflow.model.graph import Graph
from trioflow.model.process import Process

__all__ = ["DIGEST_ALGORITHM", "shape_digest"]

DIGEST_ALGORITHM = 1
"""Part of every record; raise it whenever the same model would get another digest."""

OPAQUE = "opaque"
"""Stands for what only the running program knows: a router, a computed call target."""

_LENGTH = 12
_QNAME = re.compile(r"[^\W\d][\w.\-]*(:[^\W\d][\w.\-]*)?")

Fact: TypeAlias = tuple[str | bool | tuple[tuple[str, str], ...], ...]


def shape_digest(graph: Graph) -> str:
    """Twelve hex characters of the SHA-256 over the sorted facts of a process's shape."""
    facts = sorted((*_node_facts(graph), *_flow_facts(graph), *_compensation_facts(graph)), key=_canonical)
    text = _canonical(("shape", str(DIGEST_ALGORITHM), graph.process.id)) + "\n" + "\n".join(map(_canonical, facts))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _canonical(fact: Fact) -> str:
    return json.dumps(fact, ensure_ascii=True, separators=(",", ":"))


# ------------------------------------------------------------------ nodes


def _node_facts(graph: Graph) -> Iterator[Fact]:
    for node in graph.nodes.values():
        yield "node", node.id, node.tag, graph.parent[node.id]
        yield from _default_facts(node)
        if isinstance(node, Event):
            yield from _event_facts(graph, node)
        elif isinstance(node, Activity):
            yield from _activity_facts(node)
        elif isinstance(node, EventBasedGateway):
            yield "event-gateway", node.id, node.event_gateway_type, node.instantiate


def _default_facts(node: FlowNode) -> Iterator[Fact]:
    default = getattr(node, "default", None)
    if default is not None:
        yield "default", node.id, default


def _event_facts(graph: Graph, event: Event) -> Iterator[Fact]:
    definitions = tuple(sorted((each.kind, _reference(each)) for each in graph.event_definitions(event)))
    if definitions:
        yield "event", event.id, definitions
    if isinstance(event, CatchEvent) and event.parallel_multiple:
        yield "parallel-multiple", event.id
    if isinstance(event, BoundaryEvent):
        yield "boundary", event.id, event.attached_to_ref, event.cancel_activity
    if isinstance(event, StartEvent) and _starts_handler(graph, event):
        yield "handler-start", event.id, event.is_interrupting


def _starts_handler(graph: Graph, event: StartEvent) -> bool:
    container = graph.container(event.id)
    return isinstance(container, SubProcess) and container.triggered_by_event


def _reference(definition: EventDefinition) -> str:
    """The id an event definition refers to; for a link its name, which is how links refer to each other."""
    match definition:
        case MessageEventDefinition():
            reference = definition.message_ref
        case SignalEventDefinition():
            reference = definition.signal_ref
        case ErrorEventDefinition():
            reference = definition.error_ref
        case EscalationEventDefinition():
            reference = definition.escalation_ref
        case CompensateEventDefinition():
            reference = definition.activity_ref
        case LinkEventDefinition():
            reference = definition.name
        case _:
            reference = None
    return reference or ""


def _activity_facts(activity: Activity) -> Iterator[Fact]:
    if activity.loop_characteristics is not None:
        yield "iteration", activity.id, _iteration_kind(activity.loop_characteristics)
    if isinstance(activity, CallActivity):
        target = activity.called_element or ""
        yield "call", activity.id, target if _QNAME.fullmatch(target) else OPAQUE
    if isinstance(activity, SubProcess) and activity.triggered_by_event:
        yield "event-sub-process", activity.id
    if isinstance(activity, AdHocSubProcess):
        yield "router", activity.id, OPAQUE


def _iteration_kind(loop: LoopCharacteristics) -> str:
    match loop:
        case StandardLoopCharacteristics():
            return "standard"
        case MultiInstanceLoopCharacteristics(is_sequential=True):
            return "sequential"
        case MultiInstanceLoopCharacteristics():
            return "parallel"
        case _:
            return loop.tag


# ------------------------------------------------------------------ connections


def _flow_facts(graph: Graph) -> Iterator[Fact]:
    for flow in graph.flows.values():
        yield "flow", flow.id, flow.source_ref, flow.target_ref


def _compensation_facts(graph: Graph) -> Iterator[Fact]:
    """The associations between compensation boundary events and their handlers, whichever way they are drawn."""
    for association in _associations(graph):
        for boundary, handler in (
            (association.source_ref, association.target_ref),
            (association.target_ref, association.source_ref),
        ):
            if _compensates(graph, boundary) and isinstance(graph.nodes.get(handler), Activity):
                yield "compensation", boundary, handler


def _compensates(graph: Graph, node_id: str) -> bool:
    node = graph.nodes.get(node_id)
    return isinstance(node, BoundaryEvent) and any(
        isinstance(each, CompensateEventDefinition) for each in graph.event_definitions(node)
    )


def _associations(graph: Graph) -> Iterator[Association]:
    containers: list[Process | SubProcess] = [graph.process]
    containers.extend(node for node in graph.nodes.values() if isinstance(node, SubProcess))
    for container in containers:
        yield from (each for each in container.artifacts if isinstance(each, Association))
