"""What the schema says about single fields: which are required, which are words of a list, which are references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

import trioflow.model as bpmn
from trioflow.model import Level

__all__ = ["REQUIRED", "WORDS", "Reference", "Words", "reference_of"]

# ------------------------------------------------------------------ what the schema requires

REQUIRED: Final[Mapping[type[bpmn.BaseElement], frozenset[str]]] = {
    bpmn.Definitions: frozenset({"target_namespace"}),
    bpmn.Import: frozenset({"import_type", "location", "namespace"}),
    bpmn.Interface: frozenset({"name"}),
    bpmn.Operation: frozenset({"name", "in_message_ref"}),
    bpmn.Resource: frozenset({"name"}),
    bpmn.ResourceParameterBinding: frozenset({"parameter_ref", "expression"}),
    bpmn.LinkEventDefinition: frozenset({"name"}),
    bpmn.ConditionalEventDefinition: frozenset({"condition"}),
    bpmn.CorrelationPropertyBinding: frozenset({"correlation_property_ref", "data_path"}),
    bpmn.CorrelationPropertyRetrievalExpression: frozenset({"message_ref", "message_path"}),
    bpmn.CorrelationSubscription: frozenset({"correlation_key_ref"}),
    bpmn.InputOutputBinding: frozenset({"operation_ref", "input_data_ref", "output_data_ref"}),
    bpmn.DataAssociation: frozenset({"target_ref"}),
}
"""Fields that the schema requires although the model can be without (a violation); the model's own are errors."""

# ------------------------------------------------------------------ closed lists of words


@frozen(kw_only=True)
class Words:
    """The values that an attribute may have, and how bad another one is."""

    values: tuple[str, ...]
    level: Level = Level.VIOLATION


WORDS: Final[Mapping[tuple[type[bpmn.BaseElement], str], Words]] = {
    (bpmn.Process, "process_type"): Words(values=("None", "Public", "Private")),
    (bpmn.Gateway, "gateway_direction"): Words(values=("Unspecified", "Converging", "Diverging", "Mixed")),
    (bpmn.Association, "association_direction"): Words(values=("None", "One", "Both")),
    (bpmn.ItemDefinition, "item_kind"): Words(values=("Information", "Physical")),
    (bpmn.EventBasedGateway, "event_gateway_type"): Words(values=("Exclusive", "Parallel"), level=Level.ERROR),
    (bpmn.AdHocSubProcess, "ordering"): Words(values=("Parallel", "Sequential"), level=Level.ERROR),
    (bpmn.MultiInstanceLoopCharacteristics, "behavior"): Words(
        values=("None", "One", "All", "Complex"), level=Level.ERROR
    ),
}

# ------------------------------------------------------------------ references


@frozen(kw_only=True)
class Reference:
    """What is known about a reference: how bad it is if it leads nowhere, and how it is written.

    ``level`` is None where its end is not looked for in the document: a type, or a process that may be elsewhere.
    ``by_id`` marks an ``xsd:IDREF``, which knows no namespaces; the others are QNames.
    """

    level: Level | None
    by_id: bool = False


_NEEDED: Final = frozenset(
    {
        *("default", "attached_to_ref", "message_ref", "signal_ref", "error_ref", "escalation_ref", "activity_ref"),
        *("event_definition_refs", "data_object_ref", "loop_data_input_ref", "loop_data_output_ref"),
        *("one_behavior_event_ref", "none_behavior_event_ref", "correlation_property_ref", "correlation_key_ref"),
        *("correlation_property_refs",),
    }
)
_ELSEWHERE: Final = frozenset(
    {"called_element", "structure_ref", "evaluates_to_type_ref", "type", "implementation_ref", "partition_element_ref"}
)
_OTHER_NAMES: Final = frozenset({"default", "incoming", "outgoing", "sources", "target", "supports"})
_BY_ID: Final = frozenset(
    {
        *("default", "data_object_ref", "flow_node_refs", "input_data_ref", "output_data_ref"),
        *("data_input_refs", "optional_input_refs", "while_executing_input_refs", "output_set_refs"),
        *("data_output_refs", "optional_output_refs", "while_executing_output_refs", "input_set_refs"),
    }
)
_ENDS: Final = frozenset({"source_ref", "target_ref", "source_refs"})


def reference_of(cls: type[bpmn.BaseElement], field_name: str) -> Reference | None:
    """What is known about a field as a reference; None if it is not one."""
    if field_name in _ELSEWHERE:
        return Reference(level=None)
    if not (field_name.endswith(("_ref", "_refs")) or field_name in _OTHER_NAMES):
        return None
    executed_ends = field_name in _ENDS and issubclass(cls, bpmn.SequenceFlow | bpmn.DataAssociation)
    drawn = cls in {bpmn.MessageFlow, bpmn.Association}
    needed = executed_ends or (field_name in _NEEDED and not drawn)
    return Reference(
        level=Level.ERROR if needed else Level.VIOLATION,
        by_id=executed_ends or field_name in _BY_ID,
    )
