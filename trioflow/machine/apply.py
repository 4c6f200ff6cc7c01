"""``apply(program, state, event, now)``: the one way in which an instance changes.

Pure, synchronous, deterministic: the same state, event and now give the same transition, byte for byte.
It runs to quiescence, or until its budget of steps is spent: then the transition is *pending*, and ``advance``
must finish it before any other event.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from trioflow.errors import EngineBug, UnstorableValue
from trioflow.facts import Status
from trioflow.machine import incidents, throws, triggers, waits
from trioflow.machine.behaviours import ad_hoc
from trioflow.machine.events import (
    ActivityCompleted,
    ActivityFailed,
    AdHocActivated,
    AdHocCompleted,
    Cancel,
    ChildEnded,
    ChildEscalated,
    ChildRefused,
    DropIncident,
    ErrorThrown,
    Event,
    MessageArrived,
    Reentered,
    ResolveIncident,
    RetryIncident,
    SignalArrived,
    Start,
    TaskAssigned,
    TaskClaimed,
    TaskCompleted,
    TaskUnclaimed,
    TimerDue,
)
from trioflow.machine.program import NodeProgram, Program, ScopeProgram
from trioflow.machine.state import (
    MAX_REENTRIES,
    AdHocWait,
    CallWait,
    Header,
    Identity,
    IncidentKind,
    MessageWait,
    Resume,
    RetryWait,
    SignalWait,
    State,
    TaskWait,
    TimerWait,
    Track,
    TrackState,
    Wait,
)
from trioflow.machine.transition import Run, Transition
from trioflow.machine.turn import Turn

__all__ = ["BUDGET", "advance", "apply", "new_state"]

BUDGET = 256
"""Steps of one ``apply`` before the shell gets a chance to let others run."""


def new_state(identity: Identity) -> State:
    """The state of an instance that has not started yet."""
    return State(identity, Header(now=identity.created, since=identity.created))


def apply(program: Program, state: State, event: Event, now: datetime, *, budget: int = BUDGET) -> Transition:
    """Let one event happen.  ``now``: aware; it never runs back for an instance, an earlier one counts as the last."""
    if state.is_pending:
        raise EngineBug(f"instance {state.identity.instance_id}: {type(event).__name__} came while a turn was pending")
    if state.is_terminal:
        return _after_the_end(state, event)
    turn = _turn(program, state, now)
    _HANDLERS[type(event)](turn, event)
    return turn.work(budget)


def advance(program: Program, state: State, now: datetime, *, budget: int = BUDGET) -> Transition:
    """Go on with a pending turn."""
    return _turn(program, state, now).work(budget)


def _turn(program: Program, state: State, now: datetime) -> Turn:
    header = state.header
    if now > header.now:
        header.now = now
        state.touched_header = True
    return Turn(program, state, header.now)


def _after_the_end(state: State, event: Event) -> Transition:
    """Terminal is terminal: a caller is refused, a message is given back, anything else is ignored."""
    transition = Transition()
    if isinstance(event, MessageArrived):
        transition.declined.append(event.delivery)
    elif isinstance(event, SignalArrived | ChildEnded | ChildEscalated):
        transition.consumed.append(event.delivery)
    elif isinstance(event, _CALLERS):
        transition.refusal = f"instance {state.identity.instance_id!r} has ended ({state.status.value})"
    return transition


# ------------------------------------------------------------------ the instance


def _start(turn: Turn, event: Start) -> None:
    if turn.state.status is not Status.CREATED:
        turn.refuse(f"instance {turn.state.identity.instance_id!r} was started already")
        return
    program = turn.program.scopes[turn.program.key]
    starts, refusal = _chosen_starts(program, wanted=event.node)
    if refusal:
        turn.refuse(f"process {turn.program.key!r} {refusal}")
        return
    try:
        variables = turn.canonical(event.variables, f"start of {turn.program.key!r}")
    except UnstorableValue as error:
        turn.refuse(str(error))
        return
    turn.set_status(Status.ACTIVE)
    scope = turn.open_scope(program, None)
    turn.declare(scope, variables)
    turn.begin(scope, starts)


def _chosen_starts(program: ScopeProgram, *, wanted: str | None) -> tuple[tuple[str, ...], str]:
    starts = program.starts
    names = ", ".join(starts) or "none"
    if wanted is not None:
        if program.implicit or wanted not in starts:
            return (), f"has no none start event {wanted!r}: choose among {'none' if program.implicit else names}"
        return (wanted,), ""
    if not starts and program.triggered:
        return (), f"has no none start event: it is started by the triggers of {', '.join(program.triggered)}"
    if not program.implicit and len(starts) > 1:
        return (), f"has several start events ({names}): say which one"
    return starts, ""


def _cancel(turn: Turn, event: Cancel) -> None:
    turn.finish(Status.TERMINATED, event.reason)


# ------------------------------------------------------------------ steps


def _running(turn: Turn, track_id: int, step: int) -> Track | None:
    """The track if it still runs that step; a report of a cancelled or earlier run is not wanted."""
    track = turn.state.tracks.get(track_id)
    if track is None or track.step != step or track.state is not TrackState.EXECUTING:
        return None
    return track


def _activity_completed(turn: Turn, event: ActivityCompleted) -> None:
    track = _running(turn, event.track, event.step)
    if track is not None:
        node = turn.program.nodes[track.node]
        node.behaviour.completed(turn, track, node, event.outputs)


def _activity_failed(turn: Turn, event: ActivityFailed) -> None:
    track = _running(turn, event.track, event.step)
    if track is not None:
        node = turn.program.nodes[track.node]
        node.behaviour.failed(turn, track, node, event)


def _error_thrown(turn: Turn, event: ErrorThrown) -> None:
    track = _running(turn, event.track, event.step)
    if track is not None:
        node = turn.program.nodes[track.node]
        node.behaviour.threw(turn, track, node, event)


def _reentered(turn: Turn, event: Reentered) -> None:  # noqa: ARG001  # every handler takes its event
    """A crash ended the engine while steps ran: count it, so that a handler that kills its process does not loop."""
    for track in list(turn.state.tracks.values()):
        if track.state is not TrackState.EXECUTING:
            continue
        track.reentries += 1
        turn.state.tracks.touch(track)
        if track.reentries <= MAX_REENTRIES:
            turn.fact("activity-reentered", track, times=track.reentries)
            turn.effects.append(Run(track.id, track.step, outside=True))
            continue
        message = (
            f"{turn.program.nodes[track.node].label} was running each time the engine ended {track.reentries} times "
            f"without releasing the instance: it may be what ends the process; retry it when that is mended"
        )
        turn.incident(track, IncidentKind.CRASHED, Resume.RUN, message)


# ------------------------------------------------------------------ waits


def _timer_due(turn: Turn, event: TimerDue) -> None:
    wait = turn.state.waits.get(event.wait)
    if not isinstance(wait, TimerWait | RetryWait) or wait.deadline != event.deadline or event.deadline > turn.now:
        return
    if isinstance(wait, RetryWait):
        track = turn.state.tracks[wait.track]
        node = turn.program.nodes[track.node]
        node.behaviour.timer_due(turn, track, node)
        return
    if triggers.is_skipped(turn, wait):
        return
    late = max(turn.now - wait.deadline, timedelta()).total_seconds()
    turn.facts.append(("timer-fired", _event_node(turn, wait), wait.track, {"late_seconds": late}))
    turn.occurred(wait, None)


def _event_node(turn: Turn, wait: Wait) -> str:
    return waits.node_of(turn.program, turn.state, wait).id


def _message_arrived(turn: Turn, event: MessageArrived) -> None:
    wait = turn.state.waits.get(event.wait)
    if not isinstance(wait, MessageWait) or wait.name != event.name:
        turn.declined.append(event.delivery)
        return
    turn.consumed.append(event.delivery)
    turn.facts.append(("message-received", _event_node(turn, wait), wait.track, {"name": wait.name}))
    turn.occurred(wait, event.payload)


def _signal_arrived(turn: Turn, event: SignalArrived) -> None:
    """A signal is never buffered: one whose wait is gone is used up all the same."""
    turn.consumed.append(event.delivery)
    wait = turn.state.waits.get(event.wait)
    if isinstance(wait, SignalWait) and wait.name == event.name:
        turn.facts.append(("signal-received", _event_node(turn, wait), wait.track, {"name": wait.name}))
        turn.occurred(wait, event.payload)


def _call(turn: Turn, wait_id: int) -> tuple[Track, NodeProgram] | None:
    """The token that waits for a called instance; None: it does not any more."""
    wait = turn.state.waits.get(wait_id)
    if not isinstance(wait, CallWait):
        return None
    track = turn.state.tracks[wait.track]
    return track, turn.program.nodes[track.node]


def _child_ended(turn: Turn, event: ChildEnded) -> None:
    turn.consumed.append(event.delivery)
    caller = _call(turn, event.wait)
    if caller is not None:
        track, node = caller
        node.behaviour.child_ended(turn, track, node, event)


def _child_escalated(turn: Turn, event: ChildEscalated) -> None:
    turn.consumed.append(event.delivery)
    caller = _call(turn, event.wait)
    if caller is not None:
        throws.escalate(turn, caller[0], event.code, event.values)


def _child_refused(turn: Turn, event: ChildRefused) -> None:
    caller = _call(turn, event.wait)
    if caller is not None:
        turn.incident(caller[0], IncidentKind.UNKNOWN_PROCESS, Resume.ENTER, event.reason)


def _task(turn: Turn, wait_id: int) -> TaskWait | None:
    wait = turn.state.waits.get(wait_id)
    if isinstance(wait, TaskWait):
        return wait
    instance_id = turn.state.identity.instance_id
    turn.refuse(f"instance {instance_id!r} has no open user task {wait_id}: it is done or was cancelled")
    return None


def _not_eligible(wait: TaskWait, actor: str, groups: frozenset[str]) -> str:
    """Why the actor may not work on the task; empty: may.  A task without any candidate is open to all."""
    if wait.owner is not None:
        return "" if wait.owner == actor else f"is held by {wait.owner!r}"
    if not wait.candidate_users and not wait.candidate_groups:
        return ""
    if actor in wait.candidate_users or groups.intersection(wait.candidate_groups):
        return ""
    users, names = ", ".join(wait.candidate_users) or "none", ", ".join(wait.candidate_groups) or "none"
    return f"is for the users {users} and the groups {names}, and {actor!r} is none of them"


def _task_claimed(turn: Turn, event: TaskClaimed) -> None:
    wait = _task(turn, event.wait)
    if wait is None:
        return
    reason = _not_eligible(wait, event.actor, event.groups)
    if reason:
        turn.refuse(f"user task {wait.id} {reason}")
        return
    wait.owner = event.actor
    _task_changed(turn, wait, "task-claimed")


def _task_unclaimed(turn: Turn, event: TaskUnclaimed) -> None:
    wait = _task(turn, event.wait)
    if wait is None:
        return
    if event.actor is not None and wait.owner != event.actor:
        turn.refuse(f"user task {wait.id} is not held by {event.actor!r} (held by: {wait.owner or 'nobody'})")
        return
    wait.owner = None
    _task_changed(turn, wait, "task-unclaimed")


def _task_assigned(turn: Turn, event: TaskAssigned) -> None:
    wait = _task(turn, event.wait)
    if wait is not None:
        wait.owner = wait.assignee = event.assignee
        _task_changed(turn, wait, "task-assigned")


def _task_changed(turn: Turn, wait: TaskWait, kind: str) -> None:
    turn.state.waits.put(wait)
    turn.fact(kind, turn.state.tracks[wait.track], task=wait.id)


def _task_completed(turn: Turn, event: TaskCompleted) -> None:
    wait = _task(turn, event.wait)
    if wait is None:
        return
    reason = "" if event.actor is None else _not_eligible(wait, event.actor, event.groups)
    if reason:
        turn.refuse(f"user task {wait.id} {reason}")
        return
    track = turn.state.tracks[wait.track]
    try:
        outputs = turn.canonical(event.outputs, f"outputs of {track.node!r}")
    except UnstorableValue as error:
        turn.refuse(str(error))
        return
    node = turn.program.nodes[track.node]
    node.behaviour.completed(turn, track, node, outputs)


def _ad_hoc(turn: Turn, wait_id: int) -> AdHocWait | None:
    wait = turn.state.waits.get(wait_id)
    if isinstance(wait, AdHocWait):
        return wait
    instance_id = turn.state.identity.instance_id
    turn.refuse(f"instance {instance_id!r} has no open ad-hoc sub-process {wait_id}: it is complete or was cancelled")
    return None


def _ad_hoc_activated(turn: Turn, event: AdHocActivated) -> None:
    wait = _ad_hoc(turn, event.wait)
    if wait is not None:
        ad_hoc.activate(turn, wait, event.activity)


def _ad_hoc_completed(turn: Turn, event: AdHocCompleted) -> None:
    wait = _ad_hoc(turn, event.wait)
    if wait is not None:
        ad_hoc.complete(turn, wait)


_HANDLERS: dict[type, Callable[[Turn, Any], None]] = {
    Start: _start,
    Cancel: _cancel,
    ActivityCompleted: _activity_completed,
    ActivityFailed: _activity_failed,
    ErrorThrown: _error_thrown,
    Reentered: _reentered,
    TimerDue: _timer_due,
    MessageArrived: _message_arrived,
    SignalArrived: _signal_arrived,
    ChildEnded: _child_ended,
    ChildEscalated: _child_escalated,
    ChildRefused: _child_refused,
    TaskClaimed: _task_claimed,
    TaskUnclaimed: _task_unclaimed,
    TaskAssigned: _task_assigned,
    TaskCompleted: _task_completed,
    AdHocActivated: _ad_hoc_activated,
    AdHocCompleted: _ad_hoc_completed,
    RetryIncident: incidents.retry,
    ResolveIncident: incidents.resolve,
    DropIncident: incidents.drop,
}

_CALLERS = (
    Start,
    Cancel,
    TaskClaimed,
    TaskUnclaimed,
    TaskAssigned,
    TaskCompleted,
    AdHocActivated,
    AdHocCompleted,
    RetryIncident,
    ResolveIncident,
    DropIncident,
)


def running_steps(state: State) -> list[Run]:
    """The steps to enter again after hydration: what was executing when the last piece was taken."""
    return [Run(t.id, t.step, outside=True) for t in state.tracks.values() if t.state is TrackState.EXECUTING]
