"""What can happen to an instance: one frozen class each.

An event that is not wanted any more (its wait is gone, its step was cancelled) is ignored by the machine.
One that a caller asked for and that cannot be done is *refused*: the transition says why, nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from attrs import define, field, frozen

from trioflow.facts import Status
from trioflow.machine.state import IncidentKind
from trioflow.values import Value

__all__ = [
    "ActivityCompleted",
    "ActivityFailed",
    "AdHocActivated",
    "AdHocCompleted",
    "Cancel",
    "ChildEnded",
    "ChildEscalated",
    "ChildRefused",
    "DropIncident",
    "ErrorThrown",
    "Event",
    "Failure",
    "MessageArrived",
    "Reentered",
    "Report",
    "ResolveIncident",
    "RetryIncident",
    "SignalArrived",
    "Start",
    "TaskAssigned",
    "TaskClaimed",
    "TaskCompleted",
    "TaskUnclaimed",
    "TimerDue",
]


@frozen(kw_only=True)
class Start:
    """The instance begins.  ``node`` names the start event where the process has several."""

    variables: Mapping[str, Any] = field(factory=dict)
    node: str | None = None


@define(eq=False)
class ActivityCompleted:
    """A step reported its outputs.

    Not frozen: it is made once per step, and that costs three times as much.
    """

    track: int
    step: int
    outputs: Mapping[str, Any]


@frozen(kw_only=True)
class Failure:
    """What went wrong, as text that can be stored: ``causes`` is the cause chain, outermost first."""

    kind: IncidentKind
    message: str
    causes: tuple[str, ...] = ()


@frozen(kw_only=True)
class ActivityFailed:
    """A step failed for a technical reason; ``retry_in`` is what the retry policy grants, None: no more."""

    track: int
    step: int
    failure: Failure
    retry_in: timedelta | None = None


@frozen(kw_only=True)
class ErrorThrown:
    """A step threw a BPMN error into the model."""

    track: int
    step: int
    code: str
    message: str
    variables: Mapping[str, Any] = field(factory=dict)


@frozen
class TimerDue:
    """A deadline was reached.  Another deadline than the wait's own means: an old timer, ignored."""

    wait: int
    deadline: datetime


@frozen(kw_only=True)
class MessageArrived:
    """A message was assigned to a wait; ``delivery`` is the row that consuming it deletes."""

    wait: int
    delivery: int
    name: str
    payload: Value = None


@frozen(kw_only=True)
class SignalArrived:
    """A signal reaches a wait; ``delivery`` is the row that consuming it deletes."""

    wait: int
    delivery: int
    name: str
    payload: Value = None


@frozen(kw_only=True)
class TaskClaimed:
    """A person takes a user task; ``groups`` are those the person is in."""

    wait: int
    actor: str
    groups: frozenset[str] = frozenset()


@frozen(kw_only=True)
class TaskUnclaimed:
    """The owner gives a user task back; None: an operator does."""

    wait: int
    actor: str | None = None


@frozen(kw_only=True)
class TaskAssigned:
    """An operator gives a user task to somebody."""

    wait: int
    assignee: str


@frozen(kw_only=True)
class TaskCompleted:
    """A user task is done.  Without ``actor`` the program itself completes it: no eligibility is checked."""

    wait: int
    outputs: Mapping[str, Any] = field(factory=dict)
    actor: str | None = None
    groups: frozenset[str] = frozenset()


@frozen(kw_only=True)
class ChildEnded:
    """A called instance has ended.

    ``outputs``: its variables, or those of the error that it failed with.  ``is_expected``: the error's code was among
    those that are caught around the call.
    """

    wait: int
    delivery: int
    status: Status
    outputs: Mapping[str, Any] = field(factory=dict)
    code: str | None = None
    message: str = ""
    is_expected: bool = False


@frozen(kw_only=True)
class ChildEscalated:
    """A called instance threw an escalation that nobody in it catches; it goes on."""

    wait: int
    delivery: int
    code: str | None
    values: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class ChildRefused:
    """A called instance could not be started: there is no such process or version."""

    wait: int
    reason: str


@frozen(kw_only=True)
class AdHocActivated:
    """Somebody chooses an enabled activity of an ad-hoc sub-process."""

    wait: int
    activity: str


@frozen(kw_only=True)
class AdHocCompleted:
    """Somebody says that an ad-hoc sub-process is done."""

    wait: int


@frozen(kw_only=True)
class RetryIncident:
    """Try again: the same step under the same key; with ``variables``, as a new entry."""

    incident: int
    variables: Mapping[str, Any] | None = None


@frozen(kw_only=True)
class ResolveIncident:
    """Go on as if it had worked: with these outputs, along the given flows or those the node chooses."""

    incident: int
    outputs: Mapping[str, Any] = field(factory=dict)
    flows: tuple[str, ...] = ()


@frozen(kw_only=True)
class DropIncident:
    """Give the token up; the incident stays as a dead letter."""

    incident: int


@frozen(kw_only=True)
class Cancel:
    """End the instance as *terminated*."""

    reason: str = ""


@frozen
class Reentered:
    """The instance was taken over from an engine that ended without releasing it: running steps start again."""


Report = ActivityCompleted | ActivityFailed | ErrorThrown
"""What the task of a track reports of its step."""

Event = (
    Start
    | ActivityCompleted
    | ActivityFailed
    | ErrorThrown
    | TimerDue
    | MessageArrived
    | SignalArrived
    | TaskClaimed
    | TaskUnclaimed
    | TaskAssigned
    | TaskCompleted
    | ChildEnded
    | ChildEscalated
    | ChildRefused
    | AdHocActivated
    | AdHocCompleted
    | RetryIncident
    | ResolveIncident
    | DropIncident
    | Cancel
    | Reentered
)
