"""The nodes of BPMN as methods, shared by scopes (a node on its own) and paths (a node after another).

Every method adds one node and returns the path that stands at it.  Ids come first and are the
element's id in the document; all else is by keyword.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from trioflow.model.activities import (
    AdHocSubProcess,
    BusinessRuleTask,
    CallActivity,
    ManualTask,
    ReceiveTask,
    ScriptTask,
    SendTask,
    ServiceTask,
    SubProcess,
    Task,
    Transaction,
    UserTask,
)
from trioflow.model.base import NO_EXTENSIONS, Expression, Extensions
from trioflow.model.builder.parts import (
    ActivityOptions,
    NodeOptions,
    activity_fields,
    expression,
    node_fields,
    own_extensions,
    with_extensions,
)
from trioflow.model.builder.triggers import Trigger
from trioflow.model.builder.triggers import message as message_trigger
from trioflow.model.events import EndEvent, EventDefinition, IntermediateCatchEvent, IntermediateThrowEvent, StartEvent
from trioflow.model.flow import FlowNode
from trioflow.model.gateways import (
    ComplexGateway,
    EventBasedGateway,
    ExclusiveGateway,
    InclusiveGateway,
    ParallelGateway,
)

if TYPE_CHECKING:
    from trioflow.model.builder.scope import Path, Scope, SubProcessPath

__all__ = ["On", "Vocabulary"]

On: TypeAlias = Trigger | EventDefinition | Iterable[Trigger | EventDefinition] | None
"""What an event waits for or throws: nothing, one trigger, or several (a *multiple* event)."""


class Vocabulary(ABC):
    """Adds nodes; where they are connected from is the business of the subclass."""

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """The process or sub-process that the nodes go into."""

    @abstractmethod
    def place(self, kind: type[FlowNode], fields: dict[str, Any], options: NodeOptions) -> Path:
        """Add the node and connect it."""

    @abstractmethod
    def place_subprocess(self, kind: type[SubProcess], fields: dict[str, Any], options: NodeOptions) -> SubProcessPath:
        """Add the sub-process and connect it."""

    # -------------------------------------------------------------- events

    def start(
        self,
        node_id: str,
        *,
        on: On = None,
        interrupting: bool = True,
        parallel: bool = False,
        **options: Unpack[NodeOptions],
    ) -> Path:
        """A start event; ``interrupting`` counts in event sub-processes, ``parallel`` wants all of several triggers."""
        fields = node_fields(node_id, options) | self._definitions(on)
        return self.place(
            StartEvent, fields | {"is_interrupting": interrupting, "parallel_multiple": parallel}, options
        )

    def catch(self, node_id: str, *, on: On, parallel: bool = False, **options: Unpack[NodeOptions]) -> Path:
        """An intermediate catch event; ``parallel`` wants all of several triggers."""
        fields = node_fields(node_id, options) | self._definitions(on)
        return self.place(IntermediateCatchEvent, fields | {"parallel_multiple": parallel}, options)

    def throw(self, node_id: str, *, on: On = None, **options: Unpack[NodeOptions]) -> Path:
        """An intermediate throw event; without a trigger it marks a milestone."""
        return self.place(IntermediateThrowEvent, node_fields(node_id, options) | self._definitions(on), options)

    def end(self, node_id: str, *, on: On = None, **options: Unpack[NodeOptions]) -> Path:
        """An end event."""
        return self.place(EndEvent, node_fields(node_id, options) | self._definitions(on), options)

    def _definitions(self, on: On) -> dict[str, Any]:
        if on is None:
            return {}
        triggers = (on,) if isinstance(on, (Trigger, EventDefinition)) else tuple(on)
        return {"event_definitions": tuple(self.scope.document.resolve(trigger) for trigger in triggers)}

    # -------------------------------------------------------------- tasks

    def task(self, node_id: str, **options: Unpack[ActivityOptions]) -> Path:
        """An abstract task."""
        return self.place(Task, activity_fields(node_id, options), options)

    def manual(self, node_id: str, **options: Unpack[ActivityOptions]) -> Path:
        """A manual task."""
        return self.place(ManualTask, activity_fields(node_id, options), options)

    def service(
        self,
        node_id: str,
        *,
        handler: str | None = None,
        operation: str | None = None,
        **options: Unpack[ActivityOptions],
    ) -> Path:
        """A service task; it calls ``handler``, or the handler with the operation's name, or with its own id."""
        fields = activity_fields(node_id, options) | {"operation_ref": operation} | _handler(handler)
        return self.place(ServiceTask, fields, options)

    def send(
        self,
        node_id: str,
        *,
        message: str | None = None,
        handler: str | None = None,
        operation: str | None = None,
        **options: Unpack[ActivityOptions],
    ) -> Path:
        """A send task: a message by name, or a handler that sends."""
        fields = activity_fields(node_id, options) | {"operation_ref": operation, "message_ref": self._message(message)}
        return self.place(SendTask, fields | _handler(handler), options)

    def receive(
        self,
        node_id: str,
        *,
        message: str,
        key: str | None = None,
        operation: str | None = None,
        instantiate: bool = False,
        **options: Unpack[ActivityOptions],
    ) -> Path:
        """A receive task: waits for the message of this name; ``key`` is its correlation key expression."""
        fields = activity_fields(node_id, options) | {"operation_ref": operation, "instantiate": instantiate}
        fields["message_ref"] = self._message(message)
        return self.place(ReceiveTask, _extended(fields, own_extensions(correlationKey=key)), options)

    def user(
        self,
        node_id: str,
        *,
        assignee: str | None = None,
        candidate_users: str | Iterable[str] | None = None,
        candidate_groups: str | Iterable[str] | None = None,
        priority: int | str | None = None,
        due_date: str | None = None,
        **options: Unpack[ActivityOptions],
    ) -> Path:
        """A user task; who may do it, how urgent it is, until when: texts or expressions, lists of names."""
        own = own_extensions(
            assignee=assignee,
            candidateUsers=candidate_users,
            candidateGroups=candidate_groups,
            priority=priority,
            dueDate=due_date,
        )
        return self.place(UserTask, _extended(activity_fields(node_id, options), own), options)

    def script(
        self, node_id: str, script: str, *, script_format: str | None = None, **options: Unpack[ActivityOptions]
    ) -> Path:
        """A script task; without ``script_format`` the engine's default language runs it."""
        fields = activity_fields(node_id, options) | {"script": script, "script_format": script_format}
        return self.place(ScriptTask, fields, options)

    def rule(self, node_id: str, *, handler: str | None = None, **options: Unpack[ActivityOptions]) -> Path:
        """A business rule task; it asks ``handler``, or the handler with its own id."""
        return self.place(BusinessRuleTask, activity_fields(node_id, options) | _handler(handler), options)

    def call(self, node_id: str, *, process: str, **options: Unpack[ActivityOptions]) -> Path:
        """A call activity: runs the process (or global task) with the id ``process``."""
        return self.place(CallActivity, activity_fields(node_id, options) | {"called_element": process}, options)

    def _message(self, name: str | None) -> str | None:
        if name is None:
            return None
        definition = self.scope.document.resolve(message_trigger(name))
        reference: str = definition.message_ref  # type: ignore[attr-defined]  # a message trigger makes a message definition
        return reference

    # -------------------------------------------------------------- sub-processes

    def subprocess(self, node_id: str, **options: Unpack[ActivityOptions]) -> SubProcessPath:
        """A sub-process; ``with`` gives the scope inside it."""
        return self.place_subprocess(SubProcess, activity_fields(node_id, options), options)

    def transaction(
        self,
        node_id: str,
        *,
        method: str = "##Compensate",
        protocol: str | None = None,
        **options: Unpack[ActivityOptions],
    ) -> SubProcessPath:
        """A transaction; ``with`` gives the scope inside it."""
        return self.place_subprocess(
            Transaction, activity_fields(node_id, options) | {"method": method, "protocol": protocol}, options
        )

    def ad_hoc(
        self,
        node_id: str,
        *,
        ordering: str = "Parallel",
        until: str | Expression | None = None,
        cancel_remaining: bool = True,
        activities: str | None = None,
        router: str | None = None,
        **options: Unpack[ActivityOptions],
    ) -> SubProcessPath:
        """An ad-hoc sub-process, complete when ``until`` holds; ``ordering`` is ``Parallel`` or ``Sequential``.

        ``activities`` is an expression that lists which of its activities start; ``router`` the handler that chooses.
        """
        own = {
            "ordering": ordering,
            "completion_condition": expression(until),
            "cancel_remaining_instances": cancel_remaining,
        }
        fields = activity_fields(node_id, options) | own
        fields = _extended(fields, own_extensions(activities=activities, router=router))
        return self.place_subprocess(AdHocSubProcess, fields, options)

    # -------------------------------------------------------------- gateways

    def exclusive(self, node_id: str, *, direction: str = "Unspecified", **options: Unpack[NodeOptions]) -> Path:
        """An exclusive gateway."""
        return self.place(ExclusiveGateway, node_fields(node_id, options) | {"gateway_direction": direction}, options)

    def inclusive(self, node_id: str, *, direction: str = "Unspecified", **options: Unpack[NodeOptions]) -> Path:
        """An inclusive gateway."""
        return self.place(InclusiveGateway, node_fields(node_id, options) | {"gateway_direction": direction}, options)

    def parallel(self, node_id: str, *, direction: str = "Unspecified", **options: Unpack[NodeOptions]) -> Path:
        """A parallel gateway."""
        return self.place(ParallelGateway, node_fields(node_id, options) | {"gateway_direction": direction}, options)

    def complex(
        self,
        node_id: str,
        *,
        activation: str | Expression | None = None,
        direction: str = "Unspecified",
        **options: Unpack[NodeOptions],
    ) -> Path:
        """A complex gateway that activates when ``activation`` holds, an expression over ``activationCount``."""
        own = {"gateway_direction": direction, "activation_condition": expression(activation)}
        return self.place(ComplexGateway, node_fields(node_id, options) | own, options)

    def event_gateway(
        self,
        node_id: str,
        *,
        instantiate: bool = False,
        event_gateway_type: str = "Exclusive",
        direction: str = "Unspecified",
        **options: Unpack[NodeOptions],
    ) -> Path:
        """An event-based gateway."""
        own = {"instantiate": instantiate, "event_gateway_type": event_gateway_type, "gateway_direction": direction}
        return self.place(EventBasedGateway, node_fields(node_id, options) | own, options)


def _handler(name: str | None) -> dict[str, str]:
    return {} if name is None else {"implementation": name}


def _extended(fields: dict[str, Any], own: Extensions) -> dict[str, Any]:
    given: Extensions = fields.get("extensions", NO_EXTENSIONS)
    return fields | {"extensions": with_extensions(given, own)}
