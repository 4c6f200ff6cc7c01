"""Root elements that processes refer to: messages, signals, errors, interfaces, resources (clause 8.4)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from trioflow.model.base import BaseElement, Expression

__all__ = [
    "Auditing",
    "Category",
    "CategoryValue",
    "CorrelationKey",
    "CorrelationProperty",
    "CorrelationPropertyBinding",
    "CorrelationPropertyRetrievalExpression",
    "CorrelationSubscription",
    "EndPoint",
    "Error",
    "Escalation",
    "Import",
    "Interface",
    "Message",
    "Monitoring",
    "Operation",
    "PartnerEntity",
    "PartnerRole",
    "Resource",
    "ResourceParameter",
    "ResourceParameterBinding",
    "ResourceRole",
    "Signal",
]


@frozen(kw_only=True)
class Import(BaseElement):
    """An import of an external document (clause 8.2.2)."""

    tag: ClassVar[str] = "import"

    import_type: str = ""
    location: str | None = None
    namespace: str = ""


@frozen(kw_only=True)
class Auditing(BaseElement):
    """Carried, not interpreted."""

    tag: ClassVar[str] = "auditing"


@frozen(kw_only=True)
class Monitoring(BaseElement):
    """Carried, not interpreted."""

    tag: ClassVar[str] = "monitoring"


@frozen(kw_only=True)
class Message(BaseElement):
    """A message: matched by ``name`` and correlation keys (clause 8.4.11)."""

    tag: ClassVar[str] = "message"

    name: str | None = None
    item_ref: str | None = None


@frozen(kw_only=True)
class Signal(BaseElement):
    """A signal: broadcast by ``name`` (clause 10.5.5)."""

    tag: ClassVar[str] = "signal"

    name: str | None = None
    structure_ref: str | None = None


@frozen(kw_only=True)
class Error(BaseElement):
    """An error with its code (clause 8.4.3)."""

    tag: ClassVar[str] = "error"

    name: str | None = None
    error_code: str | None = None
    structure_ref: str | None = None


@frozen(kw_only=True)
class Escalation(BaseElement):
    """An escalation with its code (clause 8.4.4)."""

    tag: ClassVar[str] = "escalation"

    name: str | None = None
    escalation_code: str | None = None
    structure_ref: str | None = None


@frozen(kw_only=True)
class Operation(BaseElement):
    """An operation of an interface: its messages and errors (clause 8.5.3)."""

    tag: ClassVar[str] = "operation"

    name: str | None = None
    implementation_ref: str | None = None
    in_message_ref: str | None = None
    out_message_ref: str | None = None
    error_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class Interface(BaseElement):
    """A set of operations."""

    tag: ClassVar[str] = "interface"

    name: str | None = None
    implementation_ref: str | None = None
    operations: tuple[Operation, ...] = ()


@frozen(kw_only=True)
class EndPoint(BaseElement):
    """A service's address; carried."""

    tag: ClassVar[str] = "endPoint"


@frozen(kw_only=True)
class CategoryValue(BaseElement):
    """One value of a category."""

    tag: ClassVar[str] = "categoryValue"

    value: str | None = None


@frozen(kw_only=True)
class Category(BaseElement):
    """A user-defined grouping; carried."""

    tag: ClassVar[str] = "category"

    name: str | None = None
    category_values: tuple[CategoryValue, ...] = ()


@frozen(kw_only=True)
class CorrelationPropertyRetrievalExpression(BaseElement):
    """How to read a correlation property out of one kind of message (clause 8.4.2)."""

    tag: ClassVar[str] = "correlationPropertyRetrievalExpression"

    message_ref: str | None = None
    message_path: Expression | None = None


@frozen(kw_only=True)
class CorrelationProperty(BaseElement):
    """One part of a correlation key."""

    tag: ClassVar[str] = "correlationProperty"

    name: str | None = None
    type: str | None = None
    retrieval_expressions: tuple[CorrelationPropertyRetrievalExpression, ...] = ()


@frozen(kw_only=True)
class CorrelationKey(BaseElement):
    """A key made of correlation properties, owned by a conversation."""

    tag: ClassVar[str] = "correlationKey"

    name: str | None = None
    correlation_property_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class CorrelationPropertyBinding(BaseElement):
    """Where the process keeps the value that a correlation property must equal."""

    tag: ClassVar[str] = "correlationPropertyBinding"

    correlation_property_ref: str | None = None
    data_path: Expression | None = None


@frozen(kw_only=True)
class CorrelationSubscription(BaseElement):
    """A process's context-based correlation: the key and its bindings."""

    tag: ClassVar[str] = "correlationSubscription"

    correlation_key_ref: str | None = None
    bindings: tuple[CorrelationPropertyBinding, ...] = ()


@frozen(kw_only=True)
class ResourceParameter(BaseElement):
    """A declared parameter of a resource."""

    tag: ClassVar[str] = "resourceParameter"

    name: str | None = None
    type: str | None = None
    is_required: bool | None = None


@frozen(kw_only=True)
class Resource(BaseElement):
    """Who or what performs work (clause 8.4.12)."""

    tag: ClassVar[str] = "resource"

    name: str | None = None
    parameters: tuple[ResourceParameter, ...] = ()


@frozen(kw_only=True)
class ResourceParameterBinding(BaseElement):
    """The value of a resource parameter at its use."""

    tag: ClassVar[str] = "resourceParameterBinding"

    parameter_ref: str | None = None
    expression: Expression | None = None


@frozen(kw_only=True)
class ResourceRole(BaseElement):
    """A resource's role at an activity or process (clause 10.3.1).

    ``role`` is the element's own name: ``resourceRole``, ``performer``, ``humanPerformer`` or ``potentialOwner``.
    """

    tag: ClassVar[str] = "resourceRole"

    role: str = "resourceRole"
    name: str | None = None
    resource_ref: str | None = None
    parameter_bindings: tuple[ResourceParameterBinding, ...] = ()
    assignment_expression: Expression | None = None


@frozen(kw_only=True)
class PartnerEntity(BaseElement):
    """A named partner (clause 9.2.1)."""

    tag: ClassVar[str] = "partnerEntity"

    name: str | None = None
    participant_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class PartnerRole(BaseElement):
    """A partner's role (clause 9.2.1)."""

    tag: ClassVar[str] = "partnerRole"

    name: str | None = None
    participant_refs: tuple[str, ...] = ()
