"""References: every id that an element names exists in the document and is of the right kind (clause 15.3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from trioflow.model.activities import (
    GlobalTask,
    MultiInstanceLoopCharacteristics,
    ReceiveTask,
    SendTask,
    ServiceTask,
)
from trioflow.model.base import BaseElement
from trioflow.model.checks.items import ITEM_AWARE
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, walk
from trioflow.model.common import (
    CategoryValue,
    CorrelationKey,
    CorrelationProperty,
    CorrelationPropertyBinding,
    CorrelationPropertyRetrievalExpression,
    CorrelationSubscription,
    EndPoint,
    Error,
    Escalation,
    Interface,
    Message,
    Operation,
    PartnerEntity,
    PartnerRole,
    Resource,
    ResourceRole,
    Signal,
)
from trioflow.model.data import (
    DataAssociation,
    DataInput,
    DataObject,
    DataObjectReference,
    DataOutput,
    DataStore,
    DataStoreReference,
    InputOutputBinding,
    ItemDefinition,
    Property,
)
from trioflow.model.events import (
    ErrorEventDefinition,
    EscalationEventDefinition,
    EventDefinition,
    MessageEventDefinition,
    SignalEventDefinition,
)
from trioflow.model.findings import Level
from trioflow.model.flow import Association, FlowElement, FlowNode, Group, Lane
from trioflow.model.process import Collaboration, Definitions, MessageFlow, Participant, Process

__all__ = ["CARRIED", "EXECUTED", "RULES", "Reference"]

Kinds = tuple[type[BaseElement], ...]


@frozen
class Reference:
    """One row: elements of ``kind`` name elements of ``targets`` in their field ``field``."""

    kind: type[BaseElement]
    field: str
    targets: Kinds


EXECUTED = (
    Reference(MessageEventDefinition, "message_ref", (Message,)),
    Reference(MessageEventDefinition, "operation_ref", (Operation,)),
    Reference(SignalEventDefinition, "signal_ref", (Signal,)),
    Reference(ErrorEventDefinition, "error_ref", (Error,)),
    Reference(EscalationEventDefinition, "escalation_ref", (Escalation,)),
    Reference(ServiceTask, "operation_ref", (Operation,)),
    Reference(SendTask, "operation_ref", (Operation,)),
    Reference(SendTask, "message_ref", (Message,)),
    Reference(ReceiveTask, "operation_ref", (Operation,)),
    Reference(ReceiveTask, "message_ref", (Message,)),
    Reference(MultiInstanceLoopCharacteristics, "one_behavior_event_ref", (EventDefinition,)),
    Reference(MultiInstanceLoopCharacteristics, "none_behavior_event_ref", (EventDefinition,)),
    Reference(DataObjectReference, "data_object_ref", (DataObject,)),
    Reference(DataStoreReference, "data_store_ref", (DataStore,)),
    Reference(DataAssociation, "source_refs", ITEM_AWARE),
    Reference(DataAssociation, "target_ref", ITEM_AWARE),
    Reference(ResourceRole, "resource_ref", (Resource,)),
    Reference(CorrelationSubscription, "correlation_key_ref", (CorrelationKey,)),
    Reference(CorrelationPropertyBinding, "correlation_property_ref", (CorrelationProperty,)),
    Reference(CorrelationPropertyRetrievalExpression, "message_ref", (Message,)),
    Reference(CorrelationKey, "correlation_property_refs", (CorrelationProperty,)),
    Reference(Operation, "in_message_ref", (Message,)),
    Reference(Operation, "out_message_ref", (Message,)),
)
"""What execution depends on."""

CARRIED = (
    Reference(Operation, "error_refs", (Error,)),
    Reference(Message, "item_ref", (ItemDefinition,)),
    Reference(Signal, "structure_ref", (ItemDefinition,)),
    Reference(Error, "structure_ref", (ItemDefinition,)),
    Reference(Escalation, "structure_ref", (ItemDefinition,)),
    *(
        Reference(kind, "item_subject_ref", (ItemDefinition,))
        for kind in (DataInput, DataObject, DataObjectReference, DataOutput, DataStore, DataStoreReference, Property)
    ),
    Reference(FlowElement, "category_value_refs", (CategoryValue,)),
    Reference(Group, "category_value_ref", (CategoryValue,)),
    Reference(Lane, "flow_node_refs", (FlowNode,)),
    Reference(Association, "source_ref", (BaseElement,)),
    Reference(Association, "target_ref", (BaseElement,)),
    Reference(Process, "definitional_collaboration_ref", (Collaboration,)),
    Reference(Process, "supported_interface_refs", (Interface,)),
    Reference(GlobalTask, "supported_interface_refs", (Interface,)),
    Reference(InputOutputBinding, "operation_ref", (Operation,)),
    Reference(InputOutputBinding, "input_data_ref", (DataInput,)),
    Reference(InputOutputBinding, "output_data_ref", (DataOutput,)),
    Reference(Participant, "process_ref", (Process,)),
    Reference(Participant, "interface_refs", (Interface,)),
    Reference(Participant, "end_point_refs", (EndPoint,)),
    Reference(MessageFlow, "message_ref", (Message,)),
    Reference(PartnerEntity, "participant_refs", (Participant,)),
    Reference(PartnerRole, "participant_refs", (Participant,)),
)
"""What is carried, or only describes."""


def executed_unresolved(definitions: Definitions) -> Iterator[Problem]:
    """What execution depends on is there."""
    return _unresolved(definitions, EXECUTED)


def carried_unresolved(definitions: Definitions) -> Iterator[Problem]:
    """What is carried is consistent."""
    return _unresolved(definitions, CARRIED)


def _unresolved(definitions: Definitions, table: tuple[Reference, ...]) -> Iterator[Problem]:
    elements = tuple(walk(definitions))
    by_id = {element.id: element for element in elements if element.id}
    # A prefixed name may belong to an imported document, which is not here.
    foreign = bool(definitions.imports)
    for element in elements:
        for reference in table:
            if isinstance(element, reference.kind):
                yield from _broken(element, reference, by_id, foreign=foreign)


def _broken(
    element: BaseElement, reference: Reference, by_id: Mapping[str, BaseElement], *, foreign: bool
) -> Iterator[Problem]:
    value: str | tuple[str, ...] | None = getattr(element, reference.field)
    wanted = " or ".join(sorted({target.tag for target in reference.targets}))
    for ref in (value,) if isinstance(value, str) else value or ():
        target = by_id.get(ref)
        if target is None and not (foreign and ":" in ref):
            yield Problem(
                element,
                f"Its {reference.field} {ref!r} does not exist in the document.",
                f"Add the {wanted}, or correct it.",
            )
        elif target is not None and not isinstance(target, reference.targets):
            yield Problem(
                element, f"Its {reference.field} {ref!r} is {described(target)}.", f"Refer to an element {wanted}."
            )


def interface_binding_missing(definitions: Definitions) -> Iterator[Problem]:
    """What supports an interface binds its data to the operations (10.3.6)."""
    for element in definitions.root_elements:
        if not isinstance(element, (Process, GlobalTask)):
            continue
        if element.supported_interface_refs and not element.io_bindings:
            yield Problem(element, "It supports an interface, but has no ioBinding.", "Bind its data to an operation.")


def binding_items(definitions: Definitions) -> Iterator[Problem]:
    """A binding joins data and messages of one item definition (10.3.6)."""
    by_id = {element.id: element for element in walk(definitions) if element.id}
    for owner in definitions.root_elements:
        if not isinstance(owner, (Process, GlobalTask)):
            continue
        for binding in owner.io_bindings:
            operation = by_id.get(binding.operation_ref or "")
            if isinstance(operation, Operation):
                yield from _binding_sides(owner, binding, operation, by_id)


def _binding_sides(
    owner: BaseElement, binding: InputOutputBinding, operation: Operation, by_id: Mapping[str, BaseElement]
) -> Iterator[Problem]:
    for data_ref, message_ref in (
        (binding.input_data_ref, operation.in_message_ref),
        (binding.output_data_ref, operation.out_message_ref),
    ):
        data, message = by_id.get(data_ref or ""), by_id.get(message_ref or "")
        if not isinstance(data, (DataInput, DataOutput)) or not isinstance(message, Message):
            continue
        if _structure(by_id, data.item_subject_ref) != _structure(by_id, message.item_ref):
            yield Problem(
                binding,
                f"In {owner.id!r} it binds {data.id!r} ({data.item_subject_ref}) to the message {message.id!r} "
                f"({message.item_ref}).",
                "Bind data of the message's item definition.",
            )


def _structure(by_id: Mapping[str, BaseElement], item_ref: str | None) -> str | None:
    item = by_id.get(item_ref or "")
    return (item.structure_ref or item.id) if isinstance(item, ItemDefinition) else None


RULES: Table[Definitions] = (
    Rule("reference-unresolved", Level.ERROR, "15.3.2", executed_unresolved),
    Rule("carried-reference-unresolved", Level.VIOLATION, "15.3.2", carried_unresolved),
    Rule("interface-binding-missing", Level.VIOLATION, "10.3.6", interface_binding_missing),
    Rule("interface-binding-items", Level.VIOLATION, "10.3.6", binding_items),
)
"""Rules about references, over the whole document."""
