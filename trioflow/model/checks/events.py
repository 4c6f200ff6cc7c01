"""Events: which kind is legal where, and what each definition needs.

Clauses 8.4.3, 8.4.4 and 10.5, ``docs/explanation/elements.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeVar

from trioflow.model.activities import ReceiveTask, SubProcess, Transaction
from trioflow.model.base import BaseElement
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, executable, has_kind, is_event_sub_process, kinds, nodes_of, walk
from trioflow.model.common import CorrelationKey, Error, Escalation
from trioflow.model.events import (
    BoundaryEvent,
    CancelEventDefinition,
    CatchEvent,
    CompensateEventDefinition,
    ConditionalEventDefinition,
    EndEvent,
    ErrorEventDefinition,
    EscalationEventDefinition,
    Event,
    EventDefinition,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    MessageEventDefinition,
    SignalEventDefinition,
    StartEvent,
    ThrowEvent,
    TimerEventDefinition,
)
from trioflow.model.findings import Level
from trioflow.model.flow import FlowNode
from trioflow.model.gateways import EventBasedGateway
from trioflow.model.graph import Graph

__all__ = ["ALLOWED", "RULES", "place"]

SomeEvent = TypeVar("SomeEvent", bound=Event)
SomeDefinition = TypeVar("SomeDefinition", bound=EventDefinition)

_WAITS = frozenset({"message", "timer", "signal", "conditional"})

ALLOWED: Mapping[str, frozenset[str]] = {
    "start event": _WAITS | {"none"},
    "start event of a sub-process": frozenset({"none"}),
    "interrupting start event of an event sub-process": _WAITS | {"error", "escalation", "compensation"},
    "non-interrupting start event of an event sub-process": _WAITS | {"escalation"},
    "intermediate catch event": _WAITS | {"link"},
    "intermediate throw event": frozenset({"none", "message", "signal", "escalation", "compensation", "link"}),
    "interrupting boundary event": _WAITS | {"error", "escalation", "compensation", "cancel"},
    "non-interrupting boundary event": _WAITS | {"escalation", "compensation"},
    "end event": frozenset({"none", "message", "signal", "error", "escalation", "compensation", "cancel", "terminate"}),
}
"""The table of ``docs/explanation/elements.md``: place of an event to the kinds it may have."""


def place(graph: Graph, event: Event) -> str:
    """Where an event stands, in the words of ``ALLOWED``."""
    match event:
        case StartEvent():
            return _start_place(graph, event)
        case BoundaryEvent():
            return f"{'interrupting' if event.cancel_activity else 'non-interrupting'} boundary event"
        case IntermediateCatchEvent():
            return "intermediate catch event"
        case IntermediateThrowEvent():
            return "intermediate throw event"
        case _:
            return "end event"


def _start_place(graph: Graph, event: StartEvent) -> str:
    container = graph.container(event.id)
    if not isinstance(container, SubProcess):
        return "start event"
    if not container.triggered_by_event:
        return "start event of a sub-process"
    return f"{'interrupting' if event.is_interrupting else 'non-interrupting'} start event of an event sub-process"


def kind_misplaced(graph: Graph) -> Iterator[Problem]:
    """Each kind of event stands only where the table allows it."""
    for event in nodes_of(graph, Event):
        where = place(graph, event)
        for kind in sorted(set(kinds(graph, event)) - ALLOWED[where]):
            what = "has no event definition" if kind == "none" else f"has the kind {kind!r}"
            yield Problem(event, f"The {where} {what}.", f"Give it one of: {', '.join(sorted(ALLOWED[where]))}.")


def compensation_boundary_non_interrupting(graph: Graph) -> Iterator[Problem]:
    """A compensation boundary event does not say ``cancelActivity='false'``: its activity has ended (10.5.4)."""
    for event in nodes_of(graph, BoundaryEvent):
        if not event.cancel_activity and has_kind(graph, event, CompensateEventDefinition):
            yield Problem(event, "It has cancelActivity='false'.", "Remove the attribute.")


# ------------------------------------------------------------------ references and what definitions need


def definition_unresolved(graph: Graph) -> Iterator[Problem]:
    """``eventDefinitionRef`` names an event definition of the document."""
    for event in nodes_of(graph, Event):
        for ref in event.event_definition_refs:
            if not isinstance(graph.roots.get(ref), EventDefinition):
                yield Problem(
                    event,
                    f"It refers to the event definition {ref!r}, which is no root element of the document.",
                    "Add the definition, or write it inside the event.",
                )


def definition_shared(graph: Graph) -> Iterator[Problem]:
    """What a throw event defines is not used elsewhere (10.5.1)."""
    owners: dict[str, Event] = {}
    for thrower in nodes_of(graph, ThrowEvent):
        owners |= {definition.id: thrower for definition in thrower.event_definitions if definition.id}
    for event in nodes_of(graph, Event):
        for ref in event.event_definition_refs:
            if ref in owners:
                yield Problem(
                    event,
                    f"It refers to {ref!r}, which is defined inside {described(owners[ref])}.",
                    "Make the definition a root element.",
                )


def catch_without_message(graph: Graph) -> Iterator[Problem]:
    """A catching message event says which message."""
    for event, definition in _definitions(graph, CatchEvent, MessageEventDefinition):
        if not definition.message_ref and not definition.operation_ref:
            yield Problem(
                event, "It waits for a message, but no messageRef says which.", "Add a message and refer to it."
            )


def throw_without_message(graph: Graph) -> Iterator[Problem]:
    """A throwing message event says which message, unless an extension says how it is carried out."""
    for event, definition in _definitions(graph, ThrowEvent, MessageEventDefinition):
        if not definition.message_ref and not definition.operation_ref and not _extended(event, definition):
            yield Problem(event, "It sends a message, but no messageRef says which.", "Add a message and refer to it.")


def message_ref_missing(graph: Graph) -> Iterator[Problem]:
    """In an executable process a message event names its message, also where something else says it (10.5.5)."""
    for event, definition in _definitions(graph, Event, MessageEventDefinition):
        says = definition.operation_ref or (isinstance(event, ThrowEvent) and _extended(event, definition))
        if executable(graph) and not definition.message_ref and says:
            yield Problem(event, "Its message event definition has no messageRef.", "Add a message and refer to it.")


def _extended(event: Event, definition: EventDefinition) -> bool:
    return bool(event.extensions or definition.extensions)


def operation_ref_missing(graph: Graph) -> Iterator[Problem]:
    """In an executable process every message event names its operation (10.5.5)."""
    for event, definition in _definitions(graph, Event, MessageEventDefinition):
        if executable(graph) and not definition.operation_ref:
            yield Problem(
                event, "Its message event definition has no operationRef.", "Add an interface with an operation."
            )


def signal_ref_missing(graph: Graph) -> Iterator[Problem]:
    """A signal event says which signal."""
    for event, definition in _definitions(graph, Event, SignalEventDefinition):
        if not definition.signal_ref:
            yield Problem(event, "No signalRef says which signal.", "Add a signal and refer to it.")


def error_code_missing(graph: Graph) -> Iterator[Problem]:
    """A thrown error has a code, or nothing but a catch-all can catch it (8.4.3)."""
    for event, definition in _definitions(graph, ThrowEvent, ErrorEventDefinition):
        error = graph.roots.get(definition.error_ref or "")
        if not isinstance(error, Error) or not error.error_code:
            yield Problem(event, "It throws an error without errorCode.", "Refer to an error with an errorCode.")


def escalation_code_missing(graph: Graph) -> Iterator[Problem]:
    """A thrown escalation has a code (8.4.4)."""
    for event, definition in _definitions(graph, ThrowEvent, EscalationEventDefinition):
        escalation = graph.roots.get(definition.escalation_ref or "")
        if not isinstance(escalation, Escalation) or not escalation.escalation_code:
            yield Problem(
                event,
                "It throws an escalation without escalationCode.",
                "Refer to an escalation with an escalationCode.",
            )


def timer_not_one(graph: Graph) -> Iterator[Problem]:
    """A timer has exactly one of date, duration and cycle (10.5.5)."""
    for event, definition in _definitions(graph, Event, TimerEventDefinition):
        given = [
            name
            for name, value in (
                ("timeDate", definition.time_date),
                ("timeDuration", definition.time_duration),
                ("timeCycle", definition.time_cycle),
            )
            if value is not None
        ]
        if len(given) != 1:
            yield Problem(
                event,
                f"Its timer has {' and '.join(given) or 'none of timeDate, timeDuration and timeCycle'}.",
                "Give it exactly one of the three.",
            )


def condition_missing(graph: Graph) -> Iterator[Problem]:
    """A conditional event has a condition (10.5.5)."""
    for event, definition in _definitions(graph, Event, ConditionalEventDefinition):
        if definition.condition is None or not definition.condition.text.strip():
            yield Problem(event, "It waits for a condition, but has none.", "Write its condition.")


def parallel_multiple_alone(graph: Graph) -> Iterator[Problem]:
    """``parallelMultiple`` needs several definitions to mean anything (10.5.1)."""
    for event in nodes_of(graph, CatchEvent):
        if event.parallel_multiple and len(graph.event_definitions(event)) < 2:
            yield Problem(
                event, "It is parallelMultiple with fewer than two event definitions.", "Add one, or remove the mark."
            )


def parallel_start_without_keys(graph: Graph) -> Iterator[Problem]:
    """Messages that start one instance together need keys that bring them together (``docs/howto/messages.md``)."""
    if any(isinstance(element, CorrelationKey) for element in walk(graph.definitions)):
        return
    for node in graph.nodes.values():
        keyless = sum(not carrier.extensions.own("correlationKey") for carrier in _awaited_together(graph, node))
        if keyless > 1:
            yield Problem(
                node,
                f"It awaits {keyless} messages without keys for one instance.",
                "Give each message a correlation key.",
            )


def _awaited_together(graph: Graph, node: FlowNode) -> Iterator[BaseElement]:
    """What carries the key of each message that starts an instance together with others."""
    if isinstance(node, StartEvent) and node.parallel_multiple and place(graph, node) == "start event":
        yield from _messages(graph, node)
    elif isinstance(node, EventBasedGateway) and node.instantiate and node.event_gateway_type == "Parallel":
        for flow in graph.outgoing.get(node.id, ()):
            yield from _messages(graph, graph.nodes[flow.target_ref])


def _messages(graph: Graph, node: FlowNode) -> Iterator[BaseElement]:
    if isinstance(node, ReceiveTask):
        yield node
    elif isinstance(node, Event):
        found = graph.event_definitions(node)
        yield from (definition for definition in found if isinstance(definition, MessageEventDefinition))


# ------------------------------------------------------------------ transactions


def cancel_outside_transaction(graph: Graph) -> Iterator[Problem]:
    """A cancel end event lies in a transaction, a cancel boundary event at one (10.5.5)."""
    for event in nodes_of(graph, EndEvent):
        if has_kind(graph, event, CancelEventDefinition) and _transaction(graph, event) is None:
            yield Problem(event, "It cancels, but lies in no transaction.", "Use a terminate or error end event.")
    for boundary in nodes_of(graph, BoundaryEvent):
        host = graph.nodes.get(boundary.attached_to_ref)
        cancels = has_kind(graph, boundary, CancelEventDefinition)
        if cancels and host is not None and not isinstance(host, Transaction):
            yield Problem(
                boundary,
                f"It catches a cancel at {described(host)}, which is no transaction.",
                "Attach it to a transaction, or catch an error.",
            )


def cancel_uncaught(graph: Graph) -> Iterator[Problem]:
    """A cancelled transaction goes on at its cancel boundary event; without one its token ends."""
    for event in nodes_of(graph, EndEvent):
        transaction = _transaction(graph, event) if has_kind(graph, event, CancelEventDefinition) else None
        if transaction is None:
            continue
        boundaries = graph.boundary.get(transaction.id, ())
        if not any(has_kind(graph, boundary, CancelEventDefinition) for boundary in boundaries):
            yield Problem(
                event,
                f"It cancels {transaction.id!r}, which has no cancel boundary event: its token will end there.",
                "Add a cancel boundary event.",
            )


def _transaction(graph: Graph, event: Event) -> Transaction | None:
    node: BaseElement = graph.container(event.id)
    while isinstance(node, SubProcess):
        if isinstance(node, Transaction):
            return node
        node = graph.container(node.id)
    return None


# ------------------------------------------------------------------ event sub-processes


def event_sub_process_starts(graph: Graph) -> Iterator[Problem]:
    """An event sub-process has exactly one start event (10.3.5)."""
    for node in nodes_of(graph, SubProcess):
        found = [child for child in graph.children.get(node.id, ()) if isinstance(child, StartEvent)]
        if is_event_sub_process(node) and len(found) != 1:
            yield Problem(node, f"It has {len(found)} start events.", "Give it exactly one start event.")


def _definitions(
    graph: Graph, event_kind: type[SomeEvent], kind: type[SomeDefinition]
) -> Iterator[tuple[SomeEvent, SomeDefinition]]:
    """Every event of a kind with each of its definitions of a kind."""
    pairs = ((event, graph.event_definitions(event)) for event in nodes_of(graph, event_kind))
    return chain.from_iterable(
        ((event, definition) for definition in definitions if isinstance(definition, kind))
        for event, definitions in pairs
    )


RULES: Table[Graph] = (
    Rule("event-kind-misplaced", Level.ERROR, "10.5, ``docs/explanation/elements.md``", kind_misplaced),
    Rule("compensation-boundary-non-interrupting", Level.VIOLATION, "10.5.4", compensation_boundary_non_interrupting),
    Rule("event-definition-unresolved", Level.ERROR, "10.5.1", definition_unresolved),
    Rule("event-definition-shared", Level.VIOLATION, "10.5.1", definition_shared),
    Rule("catch-without-message", Level.ERROR, "choice", catch_without_message),
    Rule("throw-without-message", Level.ERROR, "choice", throw_without_message),
    Rule("message-ref-missing", Level.VIOLATION, "10.5.5", message_ref_missing),
    Rule("operation-ref-missing", Level.VIOLATION, "10.5.5", operation_ref_missing),
    Rule("signal-ref-missing", Level.ERROR, "10.5.5", signal_ref_missing),
    Rule("error-code-missing", Level.VIOLATION, "8.4.3", error_code_missing),
    Rule("escalation-code-missing", Level.VIOLATION, "8.4.4", escalation_code_missing),
    Rule("timer-not-one", Level.ERROR, "10.5.5", timer_not_one),
    Rule("condition-missing", Level.ERROR, "10.5.5", condition_missing),
    Rule("parallel-multiple-alone", Level.WARNING, "10.5.1", parallel_multiple_alone),
    Rule("parallel-start-without-keys", Level.ERROR, "choice", parallel_start_without_keys),
    Rule("cancel-outside-transaction", Level.ERROR, "10.5.5", cancel_outside_transaction),
    Rule("cancel-uncaught", Level.WARNING, "choice", cancel_uncaught),
    Rule("event-sub-process-starts", Level.ERROR, "10.3.5", event_sub_process_starts),
)
"""Rules about events."""
