"""Events and their definitions (clause 10.5)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from trioflow.model.base import BaseElement, Expression
from trioflow.model.data import (
    DataInput,
    DataInputAssociation,
    DataOutput,
    DataOutputAssociation,
    InputSet,
    OutputSet,
    Property,
)
from trioflow.model.flow import FlowNode

__all__ = [
    "BoundaryEvent",
    "CancelEventDefinition",
    "CatchEvent",
    "CompensateEventDefinition",
    "ConditionalEventDefinition",
    "EndEvent",
    "ErrorEventDefinition",
    "EscalationEventDefinition",
    "Event",
    "EventDefinition",
    "ImplicitThrowEvent",
    "IntermediateCatchEvent",
    "IntermediateThrowEvent",
    "LinkEventDefinition",
    "MessageEventDefinition",
    "SignalEventDefinition",
    "StartEvent",
    "TerminateEventDefinition",
    "ThrowEvent",
    "TimerEventDefinition",
]


@frozen(kw_only=True)
class EventDefinition(BaseElement):
    """What an event waits for or throws.  ``kind`` is the word of ``docs/explanation/elements.md``."""

    kind: ClassVar[str] = ""


@frozen(kw_only=True)
class MessageEventDefinition(EventDefinition):
    """A message is received or sent."""

    tag: ClassVar[str] = "messageEventDefinition"
    kind: ClassVar[str] = "message"

    message_ref: str | None = None
    operation_ref: str | None = None


@frozen(kw_only=True)
class TimerEventDefinition(EventDefinition):
    """A date, a duration or a cycle; exactly one of the three."""

    tag: ClassVar[str] = "timerEventDefinition"
    kind: ClassVar[str] = "timer"

    time_date: Expression | None = None
    time_duration: Expression | None = None
    time_cycle: Expression | None = None


@frozen(kw_only=True)
class SignalEventDefinition(EventDefinition):
    """A signal is caught or thrown."""

    tag: ClassVar[str] = "signalEventDefinition"
    kind: ClassVar[str] = "signal"

    signal_ref: str | None = None


@frozen(kw_only=True)
class ConditionalEventDefinition(EventDefinition):
    """A condition becomes true."""

    tag: ClassVar[str] = "conditionalEventDefinition"
    kind: ClassVar[str] = "conditional"

    condition: Expression | None = None


@frozen(kw_only=True)
class ErrorEventDefinition(EventDefinition):
    """An error; without ``error_ref`` a catcher takes any."""

    tag: ClassVar[str] = "errorEventDefinition"
    kind: ClassVar[str] = "error"

    error_ref: str | None = None


@frozen(kw_only=True)
class EscalationEventDefinition(EventDefinition):
    """An escalation; without ``escalation_ref`` a catcher takes any."""

    tag: ClassVar[str] = "escalationEventDefinition"
    kind: ClassVar[str] = "escalation"

    escalation_ref: str | None = None


@frozen(kw_only=True)
class CompensateEventDefinition(EventDefinition):
    """Compensation of one activity or of a scope."""

    tag: ClassVar[str] = "compensateEventDefinition"
    kind: ClassVar[str] = "compensation"

    activity_ref: str | None = None
    wait_for_completion: bool = True


@frozen(kw_only=True)
class CancelEventDefinition(EventDefinition):
    """A transaction is cancelled."""

    tag: ClassVar[str] = "cancelEventDefinition"
    kind: ClassVar[str] = "cancel"


@frozen(kw_only=True)
class TerminateEventDefinition(EventDefinition):
    """All tokens of the scope end at once."""

    tag: ClassVar[str] = "terminateEventDefinition"
    kind: ClassVar[str] = "terminate"


@frozen(kw_only=True)
class LinkEventDefinition(EventDefinition):
    """A jump inside one scope, name against name."""

    tag: ClassVar[str] = "linkEventDefinition"
    kind: ClassVar[str] = "link"

    name: str | None = None
    sources: tuple[str, ...] = ()
    target: str | None = None


@frozen(kw_only=True)
class Event(FlowNode):
    """What every event has: definitions, inline and by reference."""

    properties: tuple[Property, ...] = ()
    event_definitions: tuple[EventDefinition, ...] = ()
    event_definition_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class CatchEvent(Event):
    """An event that waits; what it received goes out by its associations."""

    parallel_multiple: bool = False
    data_outputs: tuple[DataOutput, ...] = ()
    data_output_associations: tuple[DataOutputAssociation, ...] = ()
    output_set: OutputSet | None = None


@frozen(kw_only=True)
class ThrowEvent(Event):
    """An event that acts; what it sends comes in by its associations."""

    data_inputs: tuple[DataInput, ...] = ()
    data_input_associations: tuple[DataInputAssociation, ...] = ()
    input_set: InputSet | None = None


@frozen(kw_only=True)
class StartEvent(CatchEvent):
    """Where a process, a sub-process or an event sub-process begins."""

    tag: ClassVar[str] = "startEvent"

    is_interrupting: bool = True


@frozen(kw_only=True)
class IntermediateCatchEvent(CatchEvent):
    """A wait in the flow."""

    tag: ClassVar[str] = "intermediateCatchEvent"


@frozen(kw_only=True)
class BoundaryEvent(CatchEvent):
    """A wait beside an activity, armed as long as the activity lives."""

    tag: ClassVar[str] = "boundaryEvent"

    attached_to_ref: str
    cancel_activity: bool = True


@frozen(kw_only=True)
class IntermediateThrowEvent(ThrowEvent):
    """A throw in the flow; without definitions it only marks a milestone."""

    tag: ClassVar[str] = "intermediateThrowEvent"


@frozen(kw_only=True)
class ImplicitThrowEvent(ThrowEvent):
    """The event that a multi-instance activity throws."""

    tag: ClassVar[str] = "implicitThrowEvent"


@frozen(kw_only=True)
class EndEvent(ThrowEvent):
    """Where a token ends."""

    tag: ClassVar[str] = "endEvent"
