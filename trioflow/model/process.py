"""Processes, collaborations and the document that holds them (clauses 8.1, 9 and 10.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from attrs import field, frozen

from trioflow.model.base import BaseElement, RawElement
from trioflow.model.common import Auditing, CorrelationKey, CorrelationSubscription, Import, Monitoring, ResourceRole
from trioflow.model.data import InputOutputBinding, InputOutputSpecification, Property
from trioflow.model.flow import Artifact, FlowElement, LaneSet

__all__ = [
    "Collaboration",
    "Definitions",
    "MessageFlow",
    "MessageFlowAssociation",
    "Participant",
    "ParticipantAssociation",
    "Process",
]


@frozen(kw_only=True)
class Process(BaseElement):
    """A process: ``id`` is its key."""

    tag: ClassVar[str] = "process"

    name: str | None = None
    process_type: str = "None"
    is_closed: bool = False
    is_executable: bool | None = None
    definitional_collaboration_ref: str | None = None
    supported_interface_refs: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    auditing: Auditing | None = None
    monitoring: Monitoring | None = None
    io_specification: InputOutputSpecification | None = None
    io_bindings: tuple[InputOutputBinding, ...] = ()
    properties: tuple[Property, ...] = ()
    lane_sets: tuple[LaneSet, ...] = ()
    flow_elements: tuple[FlowElement | BaseElement, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    resources: tuple[ResourceRole, ...] = ()
    correlation_subscriptions: tuple[CorrelationSubscription, ...] = ()


@frozen(kw_only=True)
class Participant(BaseElement):
    """A pool."""

    tag: ClassVar[str] = "participant"

    name: str | None = None
    process_ref: str | None = None
    interface_refs: tuple[str, ...] = ()
    end_point_refs: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None


@frozen(kw_only=True)
class MessageFlow(BaseElement):
    """A message between participants; drawn, not executed."""

    tag: ClassVar[str] = "messageFlow"

    name: str | None = None
    source_ref: str
    target_ref: str
    message_ref: str | None = None


@frozen(kw_only=True)
class MessageFlowAssociation(BaseElement):
    """Maps message flows of two collaborations."""

    tag: ClassVar[str] = "messageFlowAssociation"

    inner_message_flow_ref: str
    outer_message_flow_ref: str


@frozen(kw_only=True)
class ParticipantAssociation(BaseElement):
    """Maps participants of two collaborations."""

    tag: ClassVar[str] = "participantAssociation"

    inner_participant_ref: str
    outer_participant_ref: str


@frozen(kw_only=True)
class Collaboration(BaseElement):
    """Participants and what flows between them.  ``carried`` holds conversations and choreography references."""

    tag: ClassVar[str] = "collaboration"

    name: str | None = None
    is_closed: bool = False
    participants: tuple[Participant, ...] = ()
    message_flows: tuple[MessageFlow, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    correlation_keys: tuple[CorrelationKey, ...] = ()
    message_flow_associations: tuple[MessageFlowAssociation, ...] = ()
    participant_associations: tuple[ParticipantAssociation, ...] = ()
    carried: tuple[RawElement, ...] = ()


@frozen(kw_only=True)
class Definitions(BaseElement):
    """One document (clause 8.2.1).

    ``root_elements`` in document order.  ``carried`` holds root elements outside the process vocabulary
    (choreographies, conversations, relationships), ``diagrams`` the BPMN DI, both as they were written.
    """

    tag: ClassVar[str] = "definitions"

    name: str | None = None
    target_namespace: str = ""
    expression_language: str | None = None
    type_language: str | None = None
    exporter: str | None = None
    exporter_version: str | None = None
    imports: tuple[Import, ...] = ()
    root_elements: tuple[BaseElement, ...] = ()
    diagrams: tuple[RawElement, ...] = ()
    carried: tuple[RawElement, ...] = ()
    namespaces: tuple[tuple[str, str], ...] = field(default=(), eq=False, repr=False)
    """Prefixes and their namespaces as the document declares them: an expression may use them; no meaning else."""

    @property
    def processes(self) -> Iterator[Process]:
        """The processes of the document, in order."""
        return (element for element in self.root_elements if isinstance(element, Process))
