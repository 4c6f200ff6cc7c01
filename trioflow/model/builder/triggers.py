"""What events wait for or throw, as words of the builder: ``message("paid")``, ``timer(duration="PT1H")``.

A trigger is an event definition that may still lack the id of the message, signal, error or
escalation it speaks of: the document knows that id, and fills it in where the event is added.
"""

from __future__ import annotations

from attrs import field, frozen

from trioflow.errors import ModelError
from trioflow.model.base import BaseElement, Expression
from trioflow.model.builder.parts import expression, own_extensions
from trioflow.model.common import Error, Escalation, Message, Signal
from trioflow.model.events import (
    CancelEventDefinition,
    CompensateEventDefinition,
    ConditionalEventDefinition,
    ErrorEventDefinition,
    EscalationEventDefinition,
    EventDefinition,
    LinkEventDefinition,
    MessageEventDefinition,
    SignalEventDefinition,
    TerminateEventDefinition,
    TimerEventDefinition,
)

__all__ = [
    "Trigger",
    "cancel",
    "compensate",
    "condition",
    "error",
    "escalation",
    "link",
    "message",
    "signal",
    "terminate",
    "timer",
]


@frozen(kw_only=True)
class Trigger:
    """An event definition and the root element it refers to.

    ``root`` has no id yet; ``reference`` is the definition's field that takes it.
    """

    definition: EventDefinition
    root: BaseElement | None = None
    reference: str = field(default="")


def message(name: str, *, key: str | None = None, operation: str | None = None) -> Trigger:
    """A message by its name; ``key`` is the expression of its correlation key (``docs/howto/messages.md``)."""
    definition = MessageEventDefinition(operation_ref=operation, extensions=own_extensions(correlationKey=key))
    return Trigger(definition=definition, root=Message(name=name), reference="message_ref")


def signal(name: str) -> Trigger:
    """A signal by its name."""
    return Trigger(definition=SignalEventDefinition(), root=Signal(name=name), reference="signal_ref")


def error(code: str | None = None) -> Trigger:
    """An error by its code; a catcher without a code takes any."""
    root = None if code is None else Error(name=code, error_code=code)
    return Trigger(definition=ErrorEventDefinition(), root=root, reference="error_ref")


def escalation(code: str | None = None) -> Trigger:
    """An escalation by its code; a catcher without a code takes any."""
    root = None if code is None else Escalation(name=code, escalation_code=code)
    return Trigger(definition=EscalationEventDefinition(), root=root, reference="escalation_ref")


def timer(
    *,
    date: str | Expression | None = None,
    duration: str | Expression | None = None,
    cycle: str | Expression | None = None,
) -> Trigger:
    """A timer: exactly one of a date, a duration and a cycle, each a literal or an expression.

    Raises ModelError if none or several are given.
    """
    if sum(given is not None for given in (date, duration, cycle)) != 1:
        raise ModelError(
            f"A timer needs exactly one of date, duration and cycle, got date={date!r}, duration={duration!r}, "
            f"cycle={cycle!r}; use a second event for a second deadline."
        )
    definition = TimerEventDefinition(
        time_date=expression(date), time_duration=expression(duration), time_cycle=expression(cycle)
    )
    return Trigger(definition=definition)


def condition(text: str | Expression) -> Trigger:
    """A condition over the instance's data."""
    return Trigger(definition=ConditionalEventDefinition(condition=expression(text)))


def compensate(activity: str | None = None, *, wait: bool = True) -> Trigger:
    """Compensation of the activity with this id, or (throwing) of the whole scope."""
    return Trigger(definition=CompensateEventDefinition(activity_ref=activity, wait_for_completion=wait))


def cancel() -> Trigger:
    """Cancels the enclosing transaction, or catches that it was cancelled."""
    return Trigger(definition=CancelEventDefinition())


def terminate() -> Trigger:
    """Ends all tokens of the scope."""
    return Trigger(definition=TerminateEventDefinition())


def link(name: str) -> Trigger:
    """A jump inside one scope: from the throwing events of this name to the catching one."""
    return Trigger(definition=LinkEventDefinition(name=name))
