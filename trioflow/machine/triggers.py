"""What an event waits for, compiled: timers, messages, signals, conditions, and several of them (clause 10.5).

A *plan* belongs to one catching event: an intermediate or boundary event, a start event of a process or of an event
sub-process, a receive task.  Arming it makes the waits; what happens to one of them comes back to the event's behaviour
with the wait and the payload.  Errors, escalations, cancel and compensation are no waits: who throws them looks
for their catcher in the program (``machine.throws``).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.machine.associations import Association, carried
from trioflow.machine.data import ScopeView
from trioflow.machine.state import (
    ConditionWait,
    FailedArming,
    Gathering,
    IncidentKind,
    MessageWait,
    Resume,
    SignalWait,
    TimerWait,
    Trigger,
    Wait,
)
from trioflow.machine.timers import TimerPlan
from trioflow.machine.waits import owner
from trioflow.values import Firing, next_firing

if TYPE_CHECKING:
    from trioflow.machine.program import Evaluable
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = [
    "ConditionTrigger",
    "EventPlan",
    "MessageTrigger",
    "Place",
    "SignalTrigger",
    "TimerTrigger",
    "TriggerPlan",
    "arm_again",
    "arm_beside",
    "came",
    "is_skipped",
    "report",
    "start_over",
]


@frozen(kw_only=True)
class Place:
    """Who waits (a track or a scope), for the event of which node, and in which scope expressions are read."""

    reads: int
    track: int = 0
    scope: int = 0
    node: str = ""


class TriggerPlan(Protocol):
    """One definition of an event; ``label`` tells it from the event's others (empty: it is the only one)."""

    @property
    def label(self) -> str:
        """Which of the event's definitions it is."""
        ...

    def wait(self, turn: Turn, place: Place) -> Trigger:
        """The wait of an event that is armed now; an ``ExpressionError`` says why it cannot be."""
        ...

    def by_name(self, payload: Value) -> Mapping[str, Value]:
        """What the payload writes where no mapping says otherwise."""
        ...


@frozen(kw_only=True)
class TimerTrigger:
    """A date, a duration or a cycle."""

    label: str
    plan: TimerPlan

    def wait(self, turn: Turn, place: Place) -> Trigger:
        """The timer, with its absolute deadline."""
        armed = self.plan.arm(ScopeView(turn.state, place.reads), turn.now)
        return TimerWait(
            id=turn.state.new_id(),
            track=place.track,
            deadline=armed.deadline,
            left=armed.left,
            interval=armed.interval,
            anchor=armed.anchor,
            scope=place.scope,
            node=place.node,
            label=self.label,
        )

    def by_name(self, payload: Value) -> Mapping[str, Value]:  # noqa: ARG002  # the port's signature
        """A timer brings nothing."""
        return {}


@frozen(kw_only=True)
class MessageTrigger:
    """A message by name, and by key where it has one."""

    label: str
    name: str
    key: Evaluable | None

    def wait(self, turn: Turn, place: Place) -> Trigger:
        """The subscription, its key taken from the data of now."""
        key = self._key(turn, place) if self.key is not None else None
        wait_id = turn.state.new_id()
        return MessageWait(wait_id, place.track, self.name, key, place.scope, place.node, self.label)

    def _key(self, turn: Turn, place: Place) -> Value:
        assert self.key is not None
        value = self.key.evaluate(ScopeView(turn.state, place.reads), turn.now)
        try:
            value = turn.program.codec.canonical(value, "correlation key")
        except UnstorableValue as error:
            raise ExpressionError(str(error)) from error
        if value is None:
            raise ExpressionError(
                f"the correlation key {self.key.text!r} of the message {self.name!r} is null: no message can match it; "
                f"write the variable before the token gets here, then retry"
            )
        return value

    def by_name(self, payload: Value) -> Mapping[str, Value]:
        """A record by its names, any other value under the message's name (*choice*); null writes nothing."""
        return _by_name(self.name, payload)


@frozen(kw_only=True)
class SignalTrigger:
    """A signal by name."""

    label: str
    name: str

    def wait(self, turn: Turn, place: Place) -> Trigger:
        """The subscription."""
        return SignalWait(turn.state.new_id(), place.track, self.name, place.scope, place.node, self.label)

    def by_name(self, payload: Value) -> Mapping[str, Value]:
        """A record by its names, any other value under the signal's name (*choice*); null writes nothing."""
        return _by_name(self.name, payload)


@frozen(kw_only=True)
class ConditionTrigger:
    """A condition that is true when it is armed, or becomes true (clause 10.5.5)."""

    label: str
    condition: Evaluable

    def wait(self, turn: Turn, place: Place) -> Trigger:
        """The condition, with its value of now."""
        last = turn.decide(self.condition, place.reads)
        return ConditionWait(turn.state.new_id(), place.track, last, place.scope, place.node, self.label)

    def by_name(self, payload: Value) -> Mapping[str, Value]:  # noqa: ARG002  # the port's signature
        """A condition brings nothing."""
        return {}


def _by_name(name: str, payload: Value) -> Mapping[str, Value]:
    if isinstance(payload, dict):
        return payload
    return {} if payload is None else {name: payload}


@frozen(kw_only=True)
class EventPlan:
    """All that one catching event waits for: any one of its definitions, or with ``parallel`` all of them."""

    triggers: tuple[TriggerPlan, ...] = ()
    parallel: bool = False
    outputs: tuple[Association, ...] = ()
    """Where what it catches goes; none: it is written by name."""
    data_outputs: tuple[str, ...] = ()
    """The names under which associations see what came, one for each definition."""

    def trigger(self, label: str) -> TriggerPlan:
        """The definition of that label."""
        return next(each for each in self.triggers if each.label == label)

    def values(self, payloads: Mapping[str, Value]) -> dict[str, Value]:
        """What the payloads that came are by name, in the order of the definitions."""
        named: dict[str, Value] = {}
        for number, trigger in enumerate(self.triggers):
            if trigger.label not in payloads:
                continue
            named.update(trigger.by_name(payloads[trigger.label]))
            if self.outputs and number < len(self.data_outputs):
                named[self.data_outputs[number]] = payloads[trigger.label]
        return named

    def moved(self, turn: Turn, scope_id: int, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is written in that scope when the event has caught these values."""
        if not self.outputs:
            return values
        whole = {name: dict(values) for name in self.data_outputs if name not in values}
        outside = ScopeView(turn.state, scope_id)
        names = ChainMap(whole, dict(values), cast("dict[str, Any]", outside))
        return carried(turn, self.outputs, names, outside)


# ------------------------------------------------------------------ arming


def arm_beside(turn: Turn, plan: EventPlan, place: Place) -> list[ConditionWait]:
    """Arm an event beside a running activity or scope; the conditions that are true already, for the caller to fire.

    What cannot be armed is an incident of the arming: the host goes on without it, a retry arms it.
    """
    if plan.parallel:
        turn.arm(Gathering(turn.state.new_id(), place.track, scope=place.scope, node=place.node))
    waits = [_arm_or_report(turn, trigger, place) for trigger in plan.triggers]
    return [wait for wait in waits if isinstance(wait, ConditionWait) and wait.last]


def _arm_or_report(turn: Turn, trigger: TriggerPlan, place: Place) -> Wait:
    try:
        wait: Wait = trigger.wait(turn, place)
    except ExpressionError as error:
        failed = FailedArming(turn.state.new_id(), place.track, place.scope, place.node, trigger.label)
        return report(turn, failed, error)
    turn.arm(wait)
    return wait


def report(turn: Turn, wait: FailedArming, error: ExpressionError) -> FailedArming:
    """Put the wait in the place of what could not be armed, with its incident."""
    turn.arm(wait)
    wait.incident = turn.incident_aside(
        IncidentKind.ARMING, Resume.ARM, f"the event cannot be armed: {error}", node=wait.node, wait=wait
    )
    return wait


def arm_again(turn: Turn, wait: FailedArming) -> None:
    """Try once more to arm what failed; an operator asked for it."""
    place = Place(
        reads=turn.state.tracks[wait.track].scope if wait.track else wait.scope,
        track=wait.track,
        scope=wait.scope,
        node=wait.node,
    )
    behaviour = turn.program.nodes[wait.node].behaviour
    first = wait.incident.first if wait.incident is not None else turn.now
    turn.withdraw(wait)
    armed = _arm_or_report(turn, behaviour.trigger(wait.label), place)
    if isinstance(armed, FailedArming) and armed.incident is not None:
        armed.incident.first = first
    elif isinstance(armed, ConditionWait) and armed.last:
        turn.occurred(armed, None)


# ------------------------------------------------------------------ what happened


def is_skipped(turn: Turn, wait: TimerWait) -> bool:
    """Whether the firing is overdue by at least one point of its cycle, and the engine skips such; it goes on then."""
    if turn.program.options.overdue != "skip" or wait.interval is None:
        return False
    firing = Firing(deadline=wait.deadline, left=wait.left, interval=wait.interval, anchor=wait.anchor or wait.deadline)
    following = next_firing(firing, now=wait.deadline)
    if following is None or following.deadline > turn.now:
        return False
    _next_point(turn, wait)
    return True


def came(turn: Turn, plan: EventPlan, wait: Trigger, payload: Value) -> dict[str, Value] | None:
    """What the event writes now that this happened; None: it is a parallel multiple, and others must happen too."""
    if not plan.parallel:
        return plan.values({wait.label: payload})
    gathering = _gathering(turn, wait)
    gathering.came[wait.label] = payload
    turn.state.waits.touch(gathering)
    turn.withdraw(wait)
    if len(gathering.came) < len(plan.triggers):
        return None
    return plan.values(gathering.came)


def _gathering(turn: Turn, wait: Trigger) -> Gathering:
    place = owner(turn.state, wait)
    parked = getattr(place, "wait", None)
    own = (each for each in place.armed.values() if isinstance(each, Gathering) and each.node == wait.node)
    gathering = next(own, parked)
    assert isinstance(gathering, Gathering)
    return gathering


def start_over(turn: Turn, plan: EventPlan, wait: Trigger, place: Place) -> list[ConditionWait]:
    """A non-interrupting event has fired: it goes on waiting; the conditions that are true already (parallel only).

    A timer goes on to the next point of its cycle, if one is left; a condition needs a new edge.
    """
    if plan.parallel:
        turn.withdraw(_gathering(turn, wait))
        return arm_beside(turn, plan, place)
    if isinstance(wait, TimerWait):
        _next_point(turn, wait)
    return []


def _next_point(turn: Turn, wait: TimerWait) -> None:
    anchor = wait.anchor or wait.deadline
    firing = Firing(deadline=wait.deadline, left=wait.left, interval=wait.interval, anchor=anchor)
    served = wait.deadline if turn.program.options.overdue == "all" else turn.now
    following = next_firing(firing, now=served)
    if following is None:
        turn.withdraw(wait)
        return
    wait.deadline, wait.left = following.deadline, following.left
    turn.state.waits.touch(wait)
