"""Tasks: abstract and manual ones pass, service tasks call handlers, scripts run, people work (clause 10.3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.machine import throws
from trioflow.machine.behaviours.base import Behaviour, Compilers, Refused
from trioflow.machine.state import IncidentKind, Resume, RetryWait, TaskWait, Track
from trioflow.model import (
    BusinessRuleTask,
    FlowNode,
    ManualTask,
    ResourceRole,
    ScriptTask,
    SendTask,
    ServiceTask,
    Task,
    UserTask,
)

if TYPE_CHECKING:
    from trioflow.expressions import Script
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.events import ActivityFailed, ErrorThrown
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = [
    "COMPILERS",
    "HandlerTask",
    "Pass",
    "ScriptBehaviour",
    "Step",
    "UserTaskBehaviour",
    "handler_name",
    "implemented_by",
]


@frozen
class Pass(Behaviour):
    """Nothing to do: the token goes on."""

    activity: bool = True

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        if self.activity:
            turn.complete(track, node)
        else:
            turn.leave(track, node)


class Step(Behaviour):
    """What handler tasks and scripts share: a run that completes, fails, is retried, or throws."""

    __slots__ = ()
    outside = True

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.open_entry(track)
        turn.run(track, outside=self.outside)

    def again(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.run(track, outside=self.outside)

    def completed(self, turn: Turn, track: Track, node: NodeProgram, outputs: Mapping[str, Any]) -> None:
        turn.complete(track, node, outputs)

    def failed(self, turn: Turn, track: Track, node: NodeProgram, event: ActivityFailed) -> None:
        turn.fact("activity-failed", track, attempt=track.attempt, kind=event.failure.kind.value)
        if event.retry_in is not None:
            track.failing = track.failing or turn.now
            turn.lift(track)
            deadline = turn.now + event.retry_in
            turn.park(track, RetryWait(turn.state.new_id(), track.id, deadline, event.failure.message))
            return
        kind = event.failure.kind
        if kind is IncidentKind.HANDLER_FAILURE and track.attempt > 1:
            kind = IncidentKind.RETRIES_EXHAUSTED
        turn.incident(track, kind, Resume.RUN, event.failure.message, causes=event.failure.causes)

    def threw(self, turn: Turn, track: Track, node: NodeProgram, event: ErrorThrown) -> None:
        turn.fact("error-thrown", track, code=event.code)
        try:
            variables = turn.canonical(event.variables, f"variables of the error {event.code!r} of {node.id!r}")
        except UnstorableValue as error:
            turn.incident(track, IncidentKind.UNSTORABLE_VALUE, Resume.RUN, str(error))
            return
        caught = throws.find(turn, track, throws.ERROR, event.code)
        if caught is not None:
            turn.fact("activity-failing", track, code=event.code)
            turn.fact("activity-failed", track, attempt=track.attempt, kind="error")
            caught.fire(turn, throws.error_values(event.code, event.message, variables), undo=True)
        elif throws.is_caught_by_callers(turn, event.code):
            turn.fail(event.code, event.message, variables)
        else:
            throws.uncaught_activity_error(turn, track, node, event.code, event.message)

    def timer_due(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """The delay before a retry is over."""
        turn.lift(track)
        turn.disarm(track)
        turn.run(track, outside=self.outside)


@frozen
class HandlerTask(Step):
    """A service task: calls the handler of that name."""

    handler: str


@frozen
class ScriptBehaviour(Step):
    """A script task: runs inside the engine, so it waits for no commit."""

    script: Script
    outside = False


@frozen(kw_only=True)
class UserTaskBehaviour(Behaviour):
    """A user task: open for its candidates or given to its assignee, until somebody completes it.

    Who may work on it is evaluated when it is created and frozen in the wait.
    """

    assignee: Evaluable | None
    candidate_users: Evaluable | None
    candidate_groups: Evaluable | None
    priority: Evaluable | None
    due: Evaluable | None

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        try:
            wait = self._wait(turn, track)
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        turn.open_entry(track)
        turn.park(track, wait)
        turn.fact("task-created", track, task=wait.id)

    def _wait(self, turn: Turn, track: Track) -> TaskWait:
        def value(expression: Evaluable | None) -> Value:
            return None if expression is None else turn.evaluate(track, expression)

        assignee = _text(value(self.assignee), self.assignee)
        return TaskWait(
            id=turn.state.new_id(),
            track=track.id,
            created=turn.now,
            owner=assignee,
            assignee=assignee,
            candidate_users=_texts(value(self.candidate_users), self.candidate_users),
            candidate_groups=_texts(value(self.candidate_groups), self.candidate_groups),
            priority=_priority(value(self.priority), self.priority),
            due=_moment(value(self.due), self.due),
        )

    def completed(self, turn: Turn, track: Track, node: NodeProgram, outputs: Mapping[str, Any]) -> None:
        turn.disarm(track)
        turn.complete(track, node, outputs)


def _text(value: Value, expression: Evaluable | None) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    raise _wrong(expression, value, "a text")


def _texts(value: Value, expression: Evaluable | None) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        return tuple(part.strip() for part in parts if part.strip())
    raise _wrong(expression, value, "texts (a list, or one text with commas)")


def _priority(value: Value, expression: Evaluable | None) -> int:
    if value is None:
        return 50
    if type(value) is int:
        return value
    raise _wrong(expression, value, "an integer")


def _moment(value: Value, expression: Evaluable | None) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    raise _wrong(expression, value, "a date with time and zone")


def _wrong(expression: Evaluable | None, value: Value, wanted: str) -> ExpressionError:
    text = expression.text if expression is not None else ""
    return ExpressionError(f"the expression {text!r} gave {value!r}, but must give {wanted}")


# ------------------------------------------------------------------ compiling


def _pass(compilation: Compilation, element: FlowNode) -> Behaviour:
    return Pass()


def _service(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, ServiceTask)
    return HandlerTask(compilation.handler(handler_name(compilation, element) or element.id))


def handler_name(compilation: Compilation, element: ServiceTask | SendTask | BusinessRuleTask) -> str | None:
    """The name of its operation; else its implementation, if that names one; None: the element's id is all there is."""
    operation = None if isinstance(element, BusinessRuleTask) else compilation.operation(element.operation_ref)
    if operation is not None and operation.name:
        return operation.name
    return implemented_by(element)


def implemented_by(element: ServiceTask | SendTask | BusinessRuleTask) -> str | None:
    """What its implementation names, if that is none of the standard's words and no address."""
    implementation = element.implementation
    if implementation and not implementation.startswith("##") and "://" not in implementation:
        return implementation
    return None


def _script(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, ScriptTask)
    script = compilation.script(element, element.script or "", element.script_format)
    return Refused() if script is None else ScriptBehaviour(script)


def _user(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, UserTask)
    users, groups = _potential_owners(compilation, element)
    return UserTaskBehaviour(
        assignee=compilation.own_value(element, "assignee") or _performer(compilation, element),
        candidate_users=compilation.own_value(element, "candidateUsers") or users,
        candidate_groups=compilation.own_value(element, "candidateGroups") or groups,
        priority=compilation.own_number(element, "priority"),
        due=compilation.own_expression(element, "dueDate"),
    )


def _performer(compilation: Compilation, element: UserTask) -> Evaluable | None:
    roles = [role for role in element.resources if role.role in {"humanPerformer", "performer"}]
    return _assignment(compilation, roles)


def _potential_owners(compilation: Compilation, element: UserTask) -> tuple[Evaluable | None, Evaluable | None]:
    """The standard's ``potentialOwner``: an assignment expression gives candidate users (10.3.4)."""
    roles = [role for role in element.resources if role.role == "potentialOwner"]
    return _assignment(compilation, roles), None


def _assignment(compilation: Compilation, roles: list[ResourceRole]) -> Evaluable | None:
    for role in roles:
        if role.assignment_expression is not None:
            return compilation.expression(role, role.assignment_expression)
    return None


def _rule(compilation: Compilation, element: FlowNode) -> Behaviour:
    """What it decides by has a name: its implementation, else its id; a handler of that name asks the rule engine."""
    assert isinstance(element, BusinessRuleTask)
    return HandlerTask(compilation.handler(handler_name(compilation, element) or element.id))


COMPILERS: Compilers = {
    BusinessRuleTask: _rule,
    Task: _pass,
    ManualTask: _pass,
    ServiceTask: _service,
    ScriptTask: _script,
    UserTask: _user,
}
