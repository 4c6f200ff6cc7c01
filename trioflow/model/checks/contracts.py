"""Data contracts: what activities and events exchange with operations, messages and callees (clauses 10.3 to 10.5)."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.activities import (
    Activity,
    CallActivity,
    GlobalTask,
    MultiInstanceLoopCharacteristics,
    ReceiveTask,
    SendTask,
    ServiceTask,
)
from trioflow.model.base import BaseElement
from trioflow.model.checks.items import data_elements, differ, item_of, scalar_of_collection
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, nodes_of
from trioflow.model.common import Interface, Message, Operation
from trioflow.model.data import DataInput, DataOutput, InputOutputSpecification
from trioflow.model.events import (
    CatchEvent,
    ErrorEventDefinition,
    EscalationEventDefinition,
    EventDefinition,
    MessageEventDefinition,
    SignalEventDefinition,
    ThrowEvent,
)
from trioflow.model.findings import Level
from trioflow.model.graph import Graph
from trioflow.model.process import Process

__all__ = ["RULES"]

_NOTHING = InputOutputSpecification()


# ------------------------------------------------------------------ service, send and receive tasks


def operation_sets(graph: Graph) -> Iterator[Problem]:
    """A service task with an operation has one input set and at most one output set (10.3.3)."""
    for task in nodes_of(graph, ServiceTask):
        io = task.io_specification or _NOTHING
        if not task.operation_ref:
            continue
        if len(io.input_sets) != 1:
            yield Problem(
                task, f"It calls an operation and has {len(io.input_sets)} input sets.", "Give it exactly one."
            )
        if len(io.output_sets) > 1:
            yield Problem(
                task, f"It calls an operation and has {len(io.output_sets)} output sets.", "Keep one at most."
            )


def message_sets(graph: Graph) -> Iterator[Problem]:
    """A send or receive task with a message has one set of one piece of data at most (10.3.3)."""
    for task in _messaging(graph):
        io = task.io_specification or _NOTHING
        sends = isinstance(task, SendTask)
        for what, count in (
            ("set", len(io.input_sets if sends else io.output_sets)),
            ("data element", len(io.data_inputs if sends else io.data_outputs)),
        ):
            if count > 1:
                side = "input" if sends else "output"
                yield Problem(task, f"It has a message and {count} {side} {what}s.", "Keep one at most.")


def operation_items(graph: Graph) -> Iterator[Problem]:
    """What a service task sends and gets is what its operation says (10.3.3)."""
    operations = _operations(graph)
    for task in nodes_of(graph, ServiceTask):
        operation = operations.get(task.operation_ref or "")
        io = task.io_specification or _NOTHING
        if operation is not None:
            yield from _message_items(graph, task, io.data_inputs, operation.in_message_ref)
            yield from _message_items(graph, task, io.data_outputs, operation.out_message_ref)


def message_items(graph: Graph) -> Iterator[Problem]:
    """What a send or receive task moves is the item of its message (10.3.3)."""
    for task in _messaging(graph):
        io = task.io_specification or _NOTHING
        data: tuple[DataInput | DataOutput, ...] = io.data_inputs if isinstance(task, SendTask) else io.data_outputs
        yield from _message_items(graph, task, data, task.message_ref)


def _message_items(
    graph: Graph, task: Activity, data: tuple[DataInput | DataOutput, ...], message_ref: str | None
) -> Iterator[Problem]:
    message = graph.roots.get(message_ref or "")
    for element in data[:1]:
        if not isinstance(message, Message):
            continue
        unnamed = element.item_subject_ref is None and message.item_ref is not None
        if unnamed or differ(graph, element.item_subject_ref, message.item_ref):
            yield Problem(
                task,
                f"Its {element.tag} {element.id!r} is {element.item_subject_ref!r}, the message {message.id!r} "
                f"is {message.item_ref!r}.",
                "Use one item definition for both.",
            )


def _messaging(graph: Graph) -> Iterator[SendTask | ReceiveTask]:
    for node in graph.nodes.values():
        if isinstance(node, (SendTask, ReceiveTask)) and node.message_ref:
            yield node


def _operations(graph: Graph) -> dict[str, Operation]:
    interfaces = (element for element in graph.roots.values() if isinstance(element, Interface))
    return {operation.id: operation for interface in interfaces for operation in interface.operations}


# ------------------------------------------------------------------ multi-instance


def collection_unresolved(graph: Graph) -> Iterator[Problem]:
    """A multi-instance's collections are data of its own or, for a sub-process, visible to it (10.3.8)."""
    data = data_elements(graph)
    for activity, loop in _multi_instances(graph):
        for name, ref in (
            ("loopDataInputRef", loop.loop_data_input_ref),
            ("loopDataOutputRef", loop.loop_data_output_ref),
        ):
            if ref and ref not in data:
                yield Problem(
                    activity, f"Its {name} {ref!r} is no data element: it is read as a name.", "Declare the collection."
                )


def collection_items(graph: Graph) -> Iterator[Problem]:
    """The item of a collection has the collection's type, as a scalar (10.3.8)."""
    data = data_elements(graph)
    for activity, loop in _multi_instances(graph):
        for collection_ref, item in (
            (loop.loop_data_input_ref, loop.input_data_item),
            (loop.loop_data_output_ref, loop.output_data_item),
        ):
            collection = item_of(data, data.get(collection_ref or ""))
            if item is not None and not scalar_of_collection(graph, item.item_subject_ref, collection):
                yield Problem(
                    activity,
                    f"The item {item.id!r} is {item.item_subject_ref!r}, its collection {collection!r}.",
                    "Let the item be the scalar of the collection.",
                )


def _multi_instances(graph: Graph) -> Iterator[tuple[Activity, MultiInstanceLoopCharacteristics]]:
    for activity in nodes_of(graph, Activity):
        if isinstance(activity.loop_characteristics, MultiInstanceLoopCharacteristics):
            yield activity, activity.loop_characteristics


# ------------------------------------------------------------------ events


def event_data_count(graph: Graph) -> Iterator[Problem]:
    """An event with data has one data element for each of its definitions (10.5.1)."""
    for event, data in _event_data(graph):
        count = len(graph.event_definitions(event))
        if data and len(data) != count:
            yield Problem(
                event,
                f"It has {len(data)} data elements for {count} definitions.",
                "Give each definition its own.",
            )


def event_data_items(graph: Graph) -> Iterator[Problem]:
    """The data of an event has the item of what is caught or thrown (10.5.1)."""
    for event, data in _event_data(graph):
        for element, definition in zip(data, graph.event_definitions(event), strict=False):
            item = _payload_item(graph, definition)
            if differ(graph, element.item_subject_ref, item):
                yield Problem(
                    event,
                    f"Its data {element.id!r} is {element.item_subject_ref!r}, its {definition.kind} {item!r}.",
                    "Use one item definition for both.",
                )


def _event_data(graph: Graph) -> Iterator[tuple[CatchEvent | ThrowEvent, tuple[DataInput | DataOutput, ...]]]:
    for node in graph.nodes.values():
        if isinstance(node, CatchEvent):
            yield node, node.data_outputs
        elif isinstance(node, ThrowEvent):
            yield node, node.data_inputs


def _payload_item(graph: Graph, definition: EventDefinition) -> str | None:
    match definition:
        case MessageEventDefinition(message_ref=ref):
            attribute = "item_ref"
        case (
            SignalEventDefinition(signal_ref=ref)
            | ErrorEventDefinition(error_ref=ref)
            | EscalationEventDefinition(escalation_ref=ref)
        ):
            attribute = "structure_ref"
        case _:
            return None
    item: str | None = getattr(graph.roots.get(ref or ""), attribute, None)
    return item


# ------------------------------------------------------------------ calls


def call_data(graph: Graph) -> Iterator[Problem]:
    """A call activity with an ``ioSpecification`` matches what it calls (10.3.6)."""
    for call in nodes_of(graph, CallActivity):
        target = graph.roots.get(call.called_element or "")
        if not isinstance(target, (Process, GlobalTask)):
            continue
        own, wanted = call.io_specification or _NOTHING, target.io_specification or _NOTHING
        for what, mine, theirs in (
            ("data inputs", own.data_inputs, wanted.data_inputs),
            ("data outputs", own.data_outputs, wanted.data_outputs),
        ):
            if not _match(graph, mine, theirs):
                yield Problem(
                    call,
                    f"Its {what} are {_items(mine)}, those of {described(target)} are {_items(theirs)}.",
                    "Declare the same data on both sides.",
                )


def _match(graph: Graph, mine: tuple[BaseElement, ...], theirs: tuple[BaseElement, ...]) -> bool:
    if len(mine) != len(theirs):
        return False
    return not any(differ(graph, item_of({}, one), item_of({}, other)) for one, other in zip(mine, theirs, strict=True))


def _items(elements: tuple[BaseElement, ...]) -> str:
    return ", ".join(f"{element.id!r} ({item_of({}, element)})" for element in elements) or "none"


RULES: Table[Graph] = (
    Rule("operation-sets", Level.VIOLATION, "10.3.3", operation_sets),
    Rule("message-sets", Level.VIOLATION, "10.3.3", message_sets),
    Rule("operation-items", Level.VIOLATION, "10.3.3", operation_items),
    Rule("message-items", Level.VIOLATION, "10.3.3", message_items),
    Rule("multi-instance-collection-unresolved", Level.VIOLATION, "10.3.8", collection_unresolved),
    Rule("multi-instance-collection-items", Level.VIOLATION, "10.3.8", collection_items),
    Rule("event-data-count", Level.VIOLATION, "10.5.1", event_data_count),
    Rule("event-data-items", Level.VIOLATION, "10.5.1", event_data_items),
    Rule("call-data", Level.VIOLATION, "10.3.6", call_data),
)
"""Rules about data contracts."""
