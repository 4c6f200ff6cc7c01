"""How the model's events become behaviours: which definitions at which position (clause 10.5, Table 10.93)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.behaviours.catching import Boundary, Catch, HandlerStart, Start
from trioflow.machine.behaviours.data_flow import payload_plan, received
from trioflow.machine.behaviours.tasks import Pass
from trioflow.machine.behaviours.throwing import (
    Action,
    CancelAction,
    CompensateAction,
    ErrorAction,
    EscalationAction,
    Link,
    MessageAction,
    NoneEnd,
    SignalAction,
    TerminateAction,
    Throw,
)
from trioflow.machine.program import Catchers
from trioflow.machine.throws import ERROR, ESCALATION
from trioflow.machine.timers import TimerPlan
from trioflow.machine.triggers import (
    ConditionTrigger,
    EventPlan,
    MessageTrigger,
    SignalTrigger,
    TimerTrigger,
    TriggerPlan,
)
from trioflow.model import (
    BoundaryEvent,
    CancelEventDefinition,
    CatchEvent,
    CompensateEventDefinition,
    ConditionalEventDefinition,
    EndEvent,
    Error,
    ErrorEventDefinition,
    Escalation,
    EscalationEventDefinition,
    EventDefinition,
    FlowNode,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    LinkEventDefinition,
    Message,
    MessageEventDefinition,
    Signal,
    SignalEventDefinition,
    StartEvent,
    SubProcess,
    TerminateEventDefinition,
    TimerEventDefinition,
    Transaction,
)

if TYPE_CHECKING:
    from trioflow.machine.associations import PayloadPlan
    from trioflow.machine.compiler import Compilation

__all__ = ["COMPILERS", "action_of", "catchers_of", "event_plan"]


# ------------------------------------------------------------------ what is waited for


def event_plan(compilation: Compilation, event: CatchEvent) -> EventPlan:
    """What the event waits for; errors and escalations are no waits, what is not executed is refused."""
    definitions = compilation.graph.event_definitions(event)
    triggers: list[TriggerPlan] = []
    for label, definition in _labelled(definitions):
        trigger = _trigger(compilation, event, label, definition)
        if trigger is not None:
            triggers.append(trigger)
    parallel = event.parallel_multiple and len(definitions) > 1
    if parallel and len(triggers) < len(definitions):
        compilation.fault(
            event,
            "parallel-multiple",
            "it is parallel multiple, but has a definition that interrupts by itself.",
            "Catch errors, escalations, cancel and compensation each with an event of its own.",
        )
    outputs, names = received(compilation, event)
    return EventPlan(triggers=tuple(triggers), parallel=parallel, outputs=outputs, data_outputs=names)


def _labelled(definitions: tuple[EventDefinition, ...]) -> Iterator[tuple[str, EventDefinition]]:
    """Each definition with a label that tells it from the others whatever their order; a single one needs none."""
    if len(definitions) == 1:
        yield "", definitions[0]
        return
    given: dict[str, int] = {}
    for definition in definitions:
        label = f"{definition.kind}:{_refers_to(definition)}"
        given[label] = given.get(label, 0) + 1
        yield (label if given[label] == 1 else f"{label}#{given[label]}"), definition


def _refers_to(definition: EventDefinition) -> str:
    if isinstance(definition, MessageEventDefinition):
        return definition.message_ref or ""
    return (definition.signal_ref or "") if isinstance(definition, SignalEventDefinition) else ""


def _trigger(
    compilation: Compilation, event: CatchEvent, label: str, definition: EventDefinition
) -> TriggerPlan | None:
    match definition:
        case TimerEventDefinition():
            return TimerTrigger(label=label, plan=TimerPlan.compile(compilation, event, definition))
        case MessageEventDefinition():
            name = _message_name(compilation, event, definition)
            return MessageTrigger(label=label, name=name, key=compilation.own_expression(definition, "correlationKey"))
        case SignalEventDefinition():
            return SignalTrigger(label=label, name=_signal_name(compilation, event, definition))
        case ConditionalEventDefinition():
            return _condition(compilation, event, label, definition)
        case ErrorEventDefinition() | EscalationEventDefinition():
            return None
        case CompensateEventDefinition() | CancelEventDefinition():
            return None
        case _:
            compilation.refuse(event, f"a {definition.kind} event at this place", "Model it with the other events")
            return None


def _condition(
    compilation: Compilation, event: CatchEvent, label: str, definition: ConditionalEventDefinition
) -> TriggerPlan | None:
    if definition.condition is None or not definition.condition.text.strip():
        compilation.fault(event, "condition-missing", "its conditional definition has no condition.", "Give it one.")
        return None
    return ConditionTrigger(label=label, condition=compilation.expression(event, definition.condition))


def _message_name(compilation: Compilation, event: FlowNode, definition: MessageEventDefinition) -> str:
    message = compilation.graph.roots.get(definition.message_ref or "")
    if not isinstance(message, Message) or not (message.name or message.id):
        remedy = "Give it a messageRef."
        compilation.fault(event, "message-missing", "its message event definition names no message.", remedy)
        return ""
    return message.name or message.id


def _signal_name(compilation: Compilation, event: FlowNode, definition: SignalEventDefinition) -> str:
    signal = compilation.graph.roots.get(definition.signal_ref or "")
    if not isinstance(signal, Signal) or not (signal.name or signal.id):
        remedy = "Give it a signalRef."
        compilation.fault(event, "signal-missing", "its signal event definition names no signal.", remedy)
        return ""
    return signal.name or signal.id


# ------------------------------------------------------------------ errors and escalations


def catchers_of(compilation: Compilation, events: tuple[CatchEvent, ...]) -> Mapping[str, Catchers]:
    """Who of these events catches which errors and escalations; the first of equals wins, in document order."""
    exact: dict[str, dict[str, str]] = {}
    rest: dict[str, str] = {}
    for event in events:
        for definition in compilation.graph.event_definitions(event):
            if not isinstance(definition, ErrorEventDefinition | EscalationEventDefinition):
                continue
            code = _code(compilation, definition)
            if code is None:
                rest.setdefault(definition.kind, event.id)
            else:
                exact.setdefault(definition.kind, {}).setdefault(code, event.id)
    kinds = (kind for kind in (ERROR, ESCALATION) if kind in exact or kind in rest)
    return {kind: Catchers(exact.get(kind, {}), rest.get(kind)) for kind in kinds}


def _code(compilation: Compilation, definition: ErrorEventDefinition | EscalationEventDefinition) -> str | None:
    """The code that is thrown or caught; None: a catcher takes any, a thrown one has none."""
    if isinstance(definition, ErrorEventDefinition):
        error = compilation.graph.roots.get(definition.error_ref or "")
        return (error.error_code or None) if isinstance(error, Error) else None
    escalation = compilation.graph.roots.get(definition.escalation_ref or "")
    return (escalation.escalation_code or None) if isinstance(escalation, Escalation) else None


# ------------------------------------------------------------------ what is thrown


def _actions(compilation: Compilation, event: EndEvent | IntermediateThrowEvent) -> tuple[Action, ...]:
    definitions = enumerate(compilation.graph.event_definitions(event))
    actions = (
        action_of(compilation, event, each, payload_plan(compilation, event, number)) for number, each in definitions
    )
    return tuple(action for action in actions if action is not None)


def action_of(
    compilation: Compilation, event: FlowNode, definition: EventDefinition, payload: PayloadPlan | None = None
) -> Action | None:
    """What throwing the definition does; None: it was refused."""
    match definition:
        case TerminateEventDefinition():
            return TerminateAction()
        case ErrorEventDefinition():
            code = _code(compilation, definition)
            return ErrorAction(code, payload=payload, message=_error_name(compilation, definition))
        case EscalationEventDefinition():
            return EscalationAction(_code(compilation, definition), payload=payload)
        case CompensateEventDefinition():
            return CompensateAction(definition.activity_ref, definition.wait_for_completion)
        case CancelEventDefinition():
            return _cancel(compilation, event)
        case SignalEventDefinition():
            return SignalAction(_signal_name(compilation, event, definition), payload=payload)
        case MessageEventDefinition():
            name = _message_name(compilation, event, definition)
            return MessageAction(name, compilation.own_expression(definition, "correlationKey"), payload)
        case _:
            what = f"an event that throws {definition.kind}"
            compilation.refuse(event, what, "Model it with the events that are executed")
            return None


def _cancel(compilation: Compilation, event: FlowNode) -> Action:
    container: FlowNode | None = compilation.graph.nodes.get(compilation.graph.parent[event.id])
    while container is not None and not isinstance(container, Transaction):
        container = compilation.graph.nodes.get(compilation.graph.parent[container.id])
    if container is None:
        message = "it cancels a transaction, and is in none."
        compilation.fault(event, "cancel-outside-transaction", message, "Put it into a transaction.")
    return CancelAction()


def _error_name(compilation: Compilation, definition: ErrorEventDefinition) -> str:
    error = compilation.graph.roots.get(definition.error_ref or "")
    return (error.name or "") if isinstance(error, Error) else ""


# ------------------------------------------------------------------ compiling


def _start(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, StartEvent)
    if not compilation.graph.event_definitions(element) and not element.event_definition_refs:
        return Pass(activity=False)
    plan = event_plan(compilation, element)
    container = compilation.graph.container(element.id)
    if isinstance(container, SubProcess) and container.triggered_by_event:
        return HandlerStart(plan, element.is_interrupting or _catches_errors(compilation, element))
    return Start(plan)


def _catches_errors(compilation: Compilation, event: CatchEvent) -> bool:
    """Whether it catches an error: always interrupting (Table 10.93)."""
    return any(isinstance(each, ErrorEventDefinition) for each in compilation.graph.event_definitions(event))


def _end(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, EndEvent)
    actions = _actions(compilation, element)
    return Throw(actions) if actions else NoneEnd()


def _throw(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, IntermediateThrowEvent)
    definitions = compilation.graph.event_definitions(element)
    if not definitions:
        return Pass(activity=False)
    if len(definitions) == 1 and isinstance(definitions[0], LinkEventDefinition):
        return _link(compilation, element, definitions[0])
    return Throw(_actions(compilation, element))


def _link(compilation: Compilation, element: IntermediateThrowEvent, definition: LinkEventDefinition) -> Behaviour:
    targets = compilation.graph.link_targets(compilation.graph.parent[element.id])
    found = targets.get(definition.name or "", ())
    if len(found) != 1:
        message = f"its link {definition.name!r} has {len(found)} targets in its scope."
        return compilation.fault(element, "link-target", message, "Give exactly one catching link event that name.")
    return Link(found[0].id)


def _catch(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, IntermediateCatchEvent)
    definitions = compilation.graph.event_definitions(element)
    if len(definitions) == 1 and isinstance(definitions[0], LinkEventDefinition):
        return Pass(activity=False)
    plan = event_plan(compilation, element)
    if not plan.triggers:
        remedy = "Give it a message, timer, signal or conditional definition"
        return compilation.refuse(element, "a catch event that waits for nothing", remedy)
    return Catch(plan)


def _boundary(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, BoundaryEvent)
    plan = event_plan(compilation, element)
    return Boundary(plan, element.cancel_activity or _catches_errors(compilation, element))


COMPILERS: Compilers = {
    StartEvent: _start,
    EndEvent: _end,
    IntermediateThrowEvent: _throw,
    IntermediateCatchEvent: _catch,
    BoundaryEvent: _boundary,
}
