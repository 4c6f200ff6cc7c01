"""Gateways: their direction, their conditions, what follows an event-based one (clauses 8.4.9 and 10.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trioflow.model.activities import ReceiveTask
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import chosen, described, kinds, nodes_of
from trioflow.model.events import IntermediateCatchEvent
from trioflow.model.findings import Level
from trioflow.model.flow import FlowNode, SequenceFlow
from trioflow.model.gateways import (
    EventBasedGateway,
    ExclusiveGateway,
    Gateway,
    InclusiveGateway,
    ParallelGateway,
)
from trioflow.model.graph import Graph

__all__ = ["RULES"]

_ARMS = frozenset({"message", "timer", "signal", "conditional"})
_DIRECTIONS: Mapping[str, str] = {
    "Converging": "at most one flow out",
    "Diverging": "at most one flow in",
    "Mixed": "several flows in and several out",
}


def direction_contradicted(graph: Graph) -> Iterator[Problem]:
    """A gateway has no flows that its direction forbids (8.4.9)."""
    for gateway in nodes_of(graph, Gateway):
        incoming, outgoing = _counts(graph, gateway)
        wanted = _DIRECTIONS.get(gateway.gateway_direction)
        if wanted is not None and not _admits(gateway.gateway_direction, incoming, outgoing):
            yield Problem(
                gateway,
                f"It says {gateway.gateway_direction}, that is {wanted}, but has {incoming} in and {outgoing} out.",
                "Correct its gatewayDirection, or its flows.",
            )


def _admits(direction: str, incoming: int, outgoing: int) -> bool:
    match direction:
        case "Converging":
            return outgoing <= 1
        case "Diverging":
            return incoming <= 1
        case _:
            return incoming > 1 and outgoing > 1


def gateway_pointless(graph: Graph) -> Iterator[Problem]:
    """A gateway has several flows in or several out (10.6.1)."""
    for gateway in nodes_of(graph, Gateway):
        incoming, outgoing = _counts(graph, gateway)
        if incoming <= 1 and outgoing <= 1:
            yield Problem(gateway, f"It has {incoming} flow in and {outgoing} out.", "Remove it, or connect it.")


def condition_ignored(graph: Graph) -> Iterator[Problem]:
    """A parallel gateway takes all its flows: conditions mean nothing (10.6.4)."""
    for flow in _conditional(graph, ParallelGateway):
        yield Problem(
            flow,
            f"It has a condition, but leaves the parallel gateway {flow.source_ref!r}, which takes all flows.",
            "Remove the condition, or use an inclusive gateway.",
        )


def condition_after_event_gateway(graph: Graph) -> Iterator[Problem]:
    """The events choose behind an event-based gateway, not conditions (10.6.6)."""
    for flow in _conditional(graph, EventBasedGateway):
        yield Problem(
            flow,
            f"It has a condition, but leaves the event-based gateway {flow.source_ref!r}.",
            "Remove the condition.",
        )


def _conditional(graph: Graph, kind: type[Gateway]) -> Iterator[SequenceFlow]:
    for gateway in nodes_of(graph, kind):
        yield from (flow for flow in graph.outgoing.get(gateway.id, ()) if flow.condition_expression is not None)


def exclusive_without_condition(graph: Graph) -> Iterator[Problem]:
    """Where an exclusive gateway chooses, each flow but the default has a condition (10.6.2)."""
    for gateway in nodes_of(graph, ExclusiveGateway):
        if len(graph.outgoing.get(gateway.id, ())) < 2:
            continue
        for flow in chosen(graph, gateway):
            if flow.condition_expression is None:
                yield Problem(
                    flow,
                    f"It leaves the exclusive gateway {gateway.id!r} and has no condition.",
                    "Give it a condition, or make it the default flow.",
                )


def no_default_flow(graph: Graph) -> Iterator[Problem]:
    """Without a default flow a gateway at which nothing is true stops its token (10.6.2, 10.6.3)."""
    for gateway in nodes_of(graph, Gateway):
        if not isinstance(gateway, (ExclusiveGateway, InclusiveGateway)) or gateway.default:
            continue
        outgoing = graph.outgoing.get(gateway.id, ())
        if outgoing and all(flow.condition_expression is not None for flow in outgoing):
            yield Problem(gateway, "All its flows have conditions: if none is true, it stops.", "Add a default flow.")


# ------------------------------------------------------------------ event-based gateways


def event_gateway_too_few(graph: Graph) -> Iterator[Problem]:
    """An event-based gateway has two ways out or more (10.6.6)."""
    for gateway in nodes_of(graph, EventBasedGateway):
        count = len(graph.outgoing.get(gateway.id, ()))
        if count < 2:
            yield Problem(gateway, f"It has {count} outgoing flows.", "Give it two or more, or use a catch event.")


def event_gateway_target(graph: Graph) -> Iterator[Problem]:
    """Behind an event-based gateway stand catch events and receive tasks (10.6.6)."""
    for gateway, target in _arms(graph):
        catches = isinstance(target, IntermediateCatchEvent) and set(kinds(graph, target)) <= _ARMS
        if not catches and not isinstance(target, ReceiveTask):
            yield Problem(
                target,
                f"It follows the event-based gateway {gateway.id!r}, but is {described(target)}.",
                "Use a message, timer, signal or conditional catch event, or a receive task.",
            )


def event_gateway_mixed(graph: Graph) -> Iterator[Problem]:
    """Message events and receive tasks are not used together (10.6.6)."""
    for gateway in nodes_of(graph, EventBasedGateway):
        targets = [graph.nodes[flow.target_ref] for flow in graph.outgoing.get(gateway.id, ())]
        events = [
            node for node in targets if isinstance(node, IntermediateCatchEvent) and "message" in kinds(graph, node)
        ]
        tasks = [node for node in targets if isinstance(node, ReceiveTask)]
        if events and tasks:
            yield Problem(
                gateway,
                f"It leads to the message event {events[0].id!r} and to the receive task {tasks[0].id!r}.",
                "Use one of the two kinds.",
            )


def event_gateway_boundary(graph: Graph) -> Iterator[Problem]:
    """Receive tasks behind an event-based gateway have no boundary events (10.6.6)."""
    for gateway, target in _arms(graph):
        for boundary in graph.boundary.get(target.id, ()) if isinstance(target, ReceiveTask) else ():
            yield Problem(
                boundary, f"It is attached to {target.id!r}, an arm of {gateway.id!r}.", "Make it an arm of its own."
            )


def event_gateway_other_way_in(graph: Graph) -> Iterator[Problem]:
    """What an event-based gateway arms is reached from nowhere else (10.6.6)."""
    for gateway, target in _arms(graph):
        others = [flow for flow in graph.incoming.get(target.id, ()) if flow.source_ref != gateway.id]
        if others:
            yield Problem(
                target,
                f"It is an arm of {gateway.id!r} and has the other incoming flow {others[0].id!r}.",
                "Copy the event for the other way.",
            )


def event_gateway_start_with_incoming(graph: Graph) -> Iterator[Problem]:
    """A gateway that starts instances has no way in (10.6.6)."""
    for gateway in nodes_of(graph, EventBasedGateway):
        incoming = graph.incoming.get(gateway.id, ())
        if gateway.instantiate and incoming:
            yield Problem(gateway, f"It instantiates and has the incoming flow {incoming[0].id!r}.", "Remove one.")


def event_gateway_parallel(graph: Graph) -> Iterator[Problem]:
    """Only a gateway that starts instances is of the type Parallel (10.6.6)."""
    for gateway in nodes_of(graph, EventBasedGateway):
        if gateway.event_gateway_type == "Parallel" and not gateway.instantiate:
            yield Problem(
                gateway, "Its eventGatewayType is Parallel, but it does not instantiate.", "Use a parallel gateway."
            )


def _arms(graph: Graph) -> Iterator[tuple[EventBasedGateway, FlowNode]]:
    for gateway in nodes_of(graph, EventBasedGateway):
        for flow in graph.outgoing.get(gateway.id, ()):
            yield gateway, graph.nodes[flow.target_ref]


def _counts(graph: Graph, gateway: Gateway) -> tuple[int, int]:
    return len(graph.incoming.get(gateway.id, ())), len(graph.outgoing.get(gateway.id, ()))


RULES: Table[Graph] = (
    Rule("gateway-direction", Level.VIOLATION, "8.4.9", direction_contradicted),
    Rule("gateway-pointless", Level.VIOLATION, "10.6.1", gateway_pointless),
    Rule("condition-after-parallel-gateway", Level.VIOLATION, "10.6.4", condition_ignored),
    Rule("condition-after-event-gateway", Level.VIOLATION, "10.6.6", condition_after_event_gateway),
    Rule("exclusive-flow-without-condition", Level.ERROR, "10.6.2", exclusive_without_condition),
    Rule("no-default-flow", Level.WARNING, "10.6.2", no_default_flow),
    Rule("event-gateway-too-few", Level.VIOLATION, "10.6.6", event_gateway_too_few),
    Rule("event-gateway-target", Level.ERROR, "10.6.6", event_gateway_target),
    Rule("event-gateway-mixed", Level.VIOLATION, "10.6.6", event_gateway_mixed),
    Rule("event-gateway-boundary", Level.VIOLATION, "10.6.6", event_gateway_boundary),
    Rule("event-gateway-other-way-in", Level.VIOLATION, "10.6.6", event_gateway_other_way_in),
    Rule("event-gateway-start-with-incoming", Level.ERROR, "10.6.6", event_gateway_start_with_incoming),
    Rule("event-gateway-parallel", Level.ERROR, "10.6.6", event_gateway_parallel),
)
"""Rules about gateways."""
