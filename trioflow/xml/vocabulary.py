"""The table of the vocabulary: what the BPMN schema says and the model's classes cannot say.

The classes of `trioflow.model` give the attributes.  This table adds which children an element has, in the
order of the standard's XML schema; `facets` says what the schema knows about single fields.  `schema` derives from
all three what reader and writer use: neither knows an element by its name.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from attrs import Factory, frozen

import trioflow.model as bpmn

__all__ = [
    "ABSTRACT",
    "CHILDREN",
    "CLASSES",
    "DIAGRAM",
    "NOT_ATTRIBUTES",
    "OUT_OF_SCOPE_IN_FLOW",
    "Child",
    "Kind",
    "clark",
]


def clark(name: str) -> str:
    """The Clark name of an element of the BPMN namespace."""
    return f"{{{bpmn.BPMN_NAMESPACE}}}{name}"


class Kind(enum.Enum):
    """How a child is read and written."""

    ELEMENT = enum.auto()
    """An element with a class of its own."""
    EXPRESSION = enum.auto()
    """A ``tExpression``, formal where ``xsi:type`` says so."""
    FORMAL_EXPRESSION = enum.auto()
    """A ``tFormalExpression`` by the schema."""
    NAMED_EXPRESSION = enum.auto()
    """An ``expression`` or ``formalExpression``: the element's name says which."""
    WRAPPED_EXPRESSION = enum.auto()
    """An element that holds one `NAMED_EXPRESSION` and nothing else that is kept."""
    REFERENCE = enum.auto()
    """A reference as text."""
    TEXT = enum.auto()
    """Text, taken whole."""
    FOLDED = enum.auto()
    """An element whose attributes are fields of its parent."""
    RAW = enum.auto()
    """Carried as it was written."""
    OUT_OF_SCOPE = enum.auto()
    """Carried as it was written, and the reader says that it is not executed."""
    DIAGRAM = enum.auto()
    """Carried, without the lines."""
    DOCUMENTATION = enum.auto()
    EXTENSIONS = enum.auto()


@frozen(kw_only=True)
class Child:
    """A child of an element: the field that holds it, and the element names it comes under.

    ``names`` maps Clark names to classes (None where the kind needs none).  ``folded`` maps the attributes of a
    `Kind.FOLDED` child to the parent's fields and the schema's defaults; its ``field`` is no field of the model.
    """

    field: str
    kind: Kind
    names: Mapping[str, type[bpmn.BaseElement] | None]
    many: bool = False
    folded: Mapping[str, tuple[str, int]] = Factory(dict)


def _one(field_name: str, name: str, cls: type[bpmn.BaseElement]) -> Child:
    return Child(field=field_name, kind=Kind.ELEMENT, names={clark(name): cls})


def _each(field_name: str, *classes: type[bpmn.BaseElement]) -> Child:
    return Child(field=field_name, kind=Kind.ELEMENT, names={clark(cls.tag): cls for cls in classes}, many=True)


def _named(kind: Kind, field_name: str, *names: str, many: bool = False) -> Child:
    return Child(field=field_name, kind=kind, names={clark(name): None for name in names}, many=many)


def _reference(field_name: str, name: str) -> Child:
    return _named(Kind.REFERENCE, field_name, name)


def _references(field_name: str, name: str) -> Child:
    return _named(Kind.REFERENCE, field_name, name, many=True)


def _expression(field_name: str, name: str) -> Child:
    return _named(Kind.EXPRESSION, field_name, name)


def _formal(field_name: str, name: str) -> Child:
    return _named(Kind.FORMAL_EXPRESSION, field_name, name)


def _carried(*names: str) -> Child:
    return _named(Kind.OUT_OF_SCOPE, "carried", *names, many=True)


# ------------------------------------------------------------------ the families of the schema

EVENT_DEFINITIONS: Final = (
    bpmn.CancelEventDefinition,
    bpmn.CompensateEventDefinition,
    bpmn.ConditionalEventDefinition,
    bpmn.ErrorEventDefinition,
    bpmn.EscalationEventDefinition,
    bpmn.LinkEventDefinition,
    bpmn.MessageEventDefinition,
    bpmn.SignalEventDefinition,
    bpmn.TerminateEventDefinition,
    bpmn.TimerEventDefinition,
)

FLOW_ELEMENTS: Final = (
    *(bpmn.StartEvent, bpmn.IntermediateCatchEvent, bpmn.BoundaryEvent, bpmn.IntermediateThrowEvent, bpmn.EndEvent),
    *(
        bpmn.Task,
        bpmn.ManualTask,
        bpmn.ServiceTask,
        bpmn.SendTask,
        bpmn.ReceiveTask,
        bpmn.UserTask,
        bpmn.ScriptTask,
        bpmn.BusinessRuleTask,
    ),
    *(bpmn.CallActivity, bpmn.SubProcess, bpmn.Transaction, bpmn.AdHocSubProcess),
    *(bpmn.ExclusiveGateway, bpmn.InclusiveGateway, bpmn.ParallelGateway, bpmn.ComplexGateway, bpmn.EventBasedGateway),
    *(bpmn.SequenceFlow, bpmn.DataObject, bpmn.DataObjectReference, bpmn.DataStoreReference),
)

ROOT_ELEMENTS: Final = (
    *(
        bpmn.Process,
        bpmn.Collaboration,
        bpmn.GlobalTask,
        bpmn.GlobalManualTask,
        bpmn.GlobalUserTask,
        bpmn.GlobalScriptTask,
        bpmn.GlobalBusinessRuleTask,
    ),
    *(
        bpmn.Message,
        bpmn.Signal,
        bpmn.Error,
        bpmn.Escalation,
        bpmn.ItemDefinition,
        bpmn.DataStore,
        bpmn.Interface,
        bpmn.EndPoint,
        bpmn.Resource,
    ),
    *(bpmn.Category, bpmn.CorrelationProperty, bpmn.PartnerEntity, bpmn.PartnerRole, *EVENT_DEFINITIONS),
)

DIAGRAM: Final = "{http://www.omg.org/spec/BPMN/20100524/DI}BPMNDiagram"

OUT_OF_SCOPE_IN_FLOW: Final = frozenset({"choreographyTask", "callChoreography", "subChoreography"})
"""Flow elements of choreographies: the schema lets them stand in a process, where they have no meaning."""

ABSTRACT: Final = frozenset({"rootElement", "flowElement", "eventDefinition", "artifact", "loopCharacteristics"})
"""Heads of substitution groups: an instance of one says by ``xsi:type`` what it is."""

# ------------------------------------------------------------------ the children, in the schema's order

_AUDIT: Final = (_one("auditing", "auditing", bpmn.Auditing), _one("monitoring", "monitoring", bpmn.Monitoring))
_CATEGORIES: Final = _references("category_value_refs", "categoryValueRef")
_DATA_STATE: Final = _one("data_state", "dataState", bpmn.DataState)
_PROPERTIES: Final = _each("properties", bpmn.Property)
_IO_SPECIFICATION: Final = _one("io_specification", "ioSpecification", bpmn.InputOutputSpecification)
_CALLABLE: Final = (
    _references("supported_interface_refs", "supportedInterfaceRef"),
    _IO_SPECIFICATION,
    _each("io_bindings", bpmn.InputOutputBinding),
)
_ROLES: Final = Child(
    field="resources",
    kind=Kind.ELEMENT,
    names={clark(n): bpmn.ResourceRole for n in ("resourceRole", "performer", "humanPerformer", "potentialOwner")},
    many=True,
)
_EVENT_DEFINITIONS: Final = (
    _each("event_definitions", *EVENT_DEFINITIONS),
    _references("event_definition_refs", "eventDefinitionRef"),
)
_ARTIFACTS: Final = _each("artifacts", bpmn.Association, bpmn.Group, bpmn.TextAnnotation)
_SCOPE: Final = (_each("lane_sets", bpmn.LaneSet), _each("flow_elements", *FLOW_ELEMENTS), _ARTIFACTS)
_NAMED_EXPRESSION: Final = _named(Kind.NAMED_EXPRESSION, "expression", "formalExpression", "expression")

CHILDREN: Final[Mapping[type[bpmn.BaseElement], tuple[Child, ...]]] = {
    bpmn.BaseElement: (
        _named(Kind.DOCUMENTATION, "documentation", "documentation", many=True),
        _named(Kind.EXTENSIONS, "extensions", "extensionElements"),
    ),
    bpmn.Definitions: (
        _each("imports", bpmn.Import),
        _named(Kind.RAW, "carried", "extension", many=True),
        _each("root_elements", *ROOT_ELEMENTS),
        _carried("choreography", "globalChoreographyTask", "globalConversation"),
        Child(field="diagrams", kind=Kind.DIAGRAM, names={DIAGRAM: None}, many=True),
        _named(Kind.RAW, "carried", "relationship", many=True),
    ),
    # flow elements
    bpmn.FlowElement: (*_AUDIT, _CATEGORIES),
    bpmn.FlowNode: (_references("incoming", "incoming"), _references("outgoing", "outgoing")),
    bpmn.SequenceFlow: (_expression("condition_expression", "conditionExpression"),),
    bpmn.LaneSet: (_each("lanes", bpmn.Lane),),
    bpmn.Lane: (
        _named(Kind.RAW, "partition_element", "partitionElement"),
        _references("flow_node_refs", "flowNodeRef"),
        _one("child_lane_set", "childLaneSet", bpmn.LaneSet),
    ),
    bpmn.TextAnnotation: (_named(Kind.TEXT, "text", "text"),),
    # activities
    bpmn.Activity: (
        _IO_SPECIFICATION,
        _PROPERTIES,
        _each("data_input_associations", bpmn.DataInputAssociation),
        _each("data_output_associations", bpmn.DataOutputAssociation),
        _ROLES,
        Child(
            field="loop_characteristics",
            kind=Kind.ELEMENT,
            names={clark(c.tag): c for c in (bpmn.StandardLoopCharacteristics, bpmn.MultiInstanceLoopCharacteristics)},
        ),
    ),
    bpmn.UserTask: (_each("renderings", bpmn.Rendering),),
    bpmn.ScriptTask: (_named(Kind.TEXT, "script", "script"),),
    bpmn.SubProcess: _SCOPE,
    bpmn.AdHocSubProcess: (_expression("completion_condition", "completionCondition"),),
    bpmn.StandardLoopCharacteristics: (_expression("loop_condition", "loopCondition"),),
    bpmn.MultiInstanceLoopCharacteristics: (
        _expression("loop_cardinality", "loopCardinality"),
        _reference("loop_data_input_ref", "loopDataInputRef"),
        _reference("loop_data_output_ref", "loopDataOutputRef"),
        _one("input_data_item", "inputDataItem", bpmn.DataInput),
        _one("output_data_item", "outputDataItem", bpmn.DataOutput),
        _each("complex_behavior_definitions", bpmn.ComplexBehaviorDefinition),
        _expression("completion_condition", "completionCondition"),
    ),
    bpmn.ComplexBehaviorDefinition: (
        _formal("condition", "condition"),
        _one("event", "event", bpmn.ImplicitThrowEvent),
    ),
    bpmn.GlobalTask: (*_CALLABLE, _ROLES),
    bpmn.GlobalUserTask: (_each("renderings", bpmn.Rendering),),
    bpmn.GlobalScriptTask: (_named(Kind.TEXT, "script", "script"),),
    # gateways
    bpmn.ComplexGateway: (_expression("activation_condition", "activationCondition"),),
    # events
    bpmn.Event: (_PROPERTIES,),
    bpmn.CatchEvent: (
        _each("data_outputs", bpmn.DataOutput),
        _each("data_output_associations", bpmn.DataOutputAssociation),
        _one("output_set", "outputSet", bpmn.OutputSet),
        *_EVENT_DEFINITIONS,
    ),
    bpmn.ThrowEvent: (
        _each("data_inputs", bpmn.DataInput),
        _each("data_input_associations", bpmn.DataInputAssociation),
        _one("input_set", "inputSet", bpmn.InputSet),
        *_EVENT_DEFINITIONS,
    ),
    bpmn.MessageEventDefinition: (_reference("operation_ref", "operationRef"),),
    bpmn.TimerEventDefinition: (
        _expression("time_date", "timeDate"),
        _expression("time_duration", "timeDuration"),
        _expression("time_cycle", "timeCycle"),
    ),
    bpmn.ConditionalEventDefinition: (_expression("condition", "condition"),),
    bpmn.LinkEventDefinition: (_references("sources", "source"), _reference("target", "target")),
    # data
    bpmn.Property: (_DATA_STATE,),
    bpmn.DataObject: (*_AUDIT, _CATEGORIES, _DATA_STATE),
    bpmn.DataObjectReference: (*_AUDIT, _CATEGORIES, _DATA_STATE),
    bpmn.DataStore: (_DATA_STATE,),
    bpmn.DataStoreReference: (*_AUDIT, _CATEGORIES, _DATA_STATE),
    bpmn.DataInput: (_DATA_STATE,),
    bpmn.DataOutput: (_DATA_STATE,),
    bpmn.InputSet: (
        _references("data_input_refs", "dataInputRefs"),
        _references("optional_input_refs", "optionalInputRefs"),
        _references("while_executing_input_refs", "whileExecutingInputRefs"),
        _references("output_set_refs", "outputSetRefs"),
    ),
    bpmn.OutputSet: (
        _references("data_output_refs", "dataOutputRefs"),
        _references("optional_output_refs", "optionalOutputRefs"),
        _references("while_executing_output_refs", "whileExecutingOutputRefs"),
        _references("input_set_refs", "inputSetRefs"),
    ),
    bpmn.InputOutputSpecification: (
        _each("data_inputs", bpmn.DataInput),
        _each("data_outputs", bpmn.DataOutput),
        _each("input_sets", bpmn.InputSet),
        _each("output_sets", bpmn.OutputSet),
    ),
    bpmn.DataAssociation: (
        _references("source_refs", "sourceRef"),
        _reference("target_ref", "targetRef"),
        _formal("transformation", "transformation"),
        _each("assignments", bpmn.Assignment),
    ),
    bpmn.Assignment: (_expression("from_expression", "from"), _expression("to_expression", "to")),
    # what processes refer to
    bpmn.Interface: (_each("operations", bpmn.Operation),),
    bpmn.Operation: (
        _reference("in_message_ref", "inMessageRef"),
        _reference("out_message_ref", "outMessageRef"),
        _references("error_refs", "errorRef"),
    ),
    bpmn.Category: (_each("category_values", bpmn.CategoryValue),),
    bpmn.CorrelationProperty: (_each("retrieval_expressions", bpmn.CorrelationPropertyRetrievalExpression),),
    bpmn.CorrelationPropertyRetrievalExpression: (_formal("message_path", "messagePath"),),
    bpmn.CorrelationKey: (_references("correlation_property_refs", "correlationPropertyRef"),),
    bpmn.CorrelationPropertyBinding: (_formal("data_path", "dataPath"),),
    bpmn.CorrelationSubscription: (_each("bindings", bpmn.CorrelationPropertyBinding),),
    bpmn.Resource: (_each("parameters", bpmn.ResourceParameter),),
    bpmn.ResourceParameterBinding: (_NAMED_EXPRESSION,),
    bpmn.ResourceRole: (
        _reference("resource_ref", "resourceRef"),
        _each("parameter_bindings", bpmn.ResourceParameterBinding),
        _named(Kind.WRAPPED_EXPRESSION, "assignment_expression", "resourceAssignmentExpression"),
    ),
    bpmn.PartnerEntity: (_references("participant_refs", "participantRef"),),
    bpmn.PartnerRole: (_references("participant_refs", "participantRef"),),
    # processes and collaborations
    bpmn.Process: (
        *_CALLABLE,
        *_AUDIT,
        _PROPERTIES,
        *_SCOPE,
        _ROLES,
        _each("correlation_subscriptions", bpmn.CorrelationSubscription),
        _references("supports", "supports"),
    ),
    bpmn.Collaboration: (
        _each("participants", bpmn.Participant),
        _each("message_flows", bpmn.MessageFlow),
        _ARTIFACTS,
        _carried("conversation", "callConversation", "subConversation"),
        _carried("conversationAssociation"),
        _each("participant_associations", bpmn.ParticipantAssociation),
        _each("message_flow_associations", bpmn.MessageFlowAssociation),
        _each("correlation_keys", bpmn.CorrelationKey),
        _carried("choreographyRef"),
        _carried("conversationLink"),
    ),
    bpmn.Participant: (
        _references("interface_refs", "interfaceRef"),
        _references("end_point_refs", "endPointRef"),
        Child(
            field="participantMultiplicity",
            kind=Kind.FOLDED,
            names={clark("participantMultiplicity"): None},
            folded={"minimum": ("minimum", 0), "maximum": ("maximum", 1)},
        ),
    ),
    bpmn.ParticipantAssociation: (
        _reference("inner_participant_ref", "innerParticipantRef"),
        _reference("outer_participant_ref", "outerParticipantRef"),
    ),
}

NOT_ATTRIBUTES: Final[Mapping[type[bpmn.BaseElement], frozenset[str]]] = {
    bpmn.Expression: frozenset({"text", "formal"}),
    bpmn.ResourceRole: frozenset({"role"}),
}
"""Fields of simple types that are no attributes: the kinds of children above account for them."""

CLASSES: Final[tuple[type[bpmn.BaseElement], ...]] = tuple(
    dict.fromkeys(
        cls
        for cls in (
            bpmn.Definitions,
            bpmn.Expression,
            *(cls for children in CHILDREN.values() for child in children for cls in child.names.values()),
        )
        if cls is not None
    )
)
"""Every class that an element can have."""
