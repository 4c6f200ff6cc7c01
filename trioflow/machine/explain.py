"""Where the tokens of an instance are, and why each of them waits: what ``tokens()`` and ``explain()`` show.

Both are projections of one state: they change nothing, and hold nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, assert_never

from attrs import frozen

from trioflow.machine import waits
from trioflow.machine.behaviours.ad_hoc import AdHoc
from trioflow.machine.join_reasons import AtGateway, AtJoin, ForTokens, HeldBack, JoinReason, MissingFlow, why_joining
from trioflow.machine.program import NodeProgram, Program
from trioflow.machine.state import (
    AdHocWait,
    CallWait,
    ConditionWait,
    DataWait,
    FailedArming,
    Gathering,
    MessageWait,
    RetryWait,
    Scope,
    SignalWait,
    State,
    SweepWait,
    TaskWait,
    TimerWait,
    Track,
    TrackState,
    Wait,
)
from trioflow.values import Value

__all__ = [
    "AtGateway",
    "AtIncident",
    "AtJoin",
    "Beside",
    "Explanation",
    "ForChild",
    "ForChoice",
    "ForCompensation",
    "ForCondition",
    "ForData",
    "ForEvents",
    "ForMessage",
    "ForRetry",
    "ForSignal",
    "ForTask",
    "ForTimer",
    "ForTokens",
    "HeldBack",
    "Hosting",
    "MissingFlow",
    "Ready",
    "Reason",
    "Running",
    "Throwing",
    "Token",
    "explain",
    "tokens",
]


@frozen(kw_only=True)
class Token:
    """One live token.

    ``scope``: the node ids of the scopes around it, outermost (the process) first.  ``state``: ``alive``,
    ``waiting`` or ``incident``.  ``flow``: the sequence flow that it came by (empty: it started here).  ``parent``:
    the token that it was forked from (0: none).
    """

    id: int
    node: str
    name: str
    flow: str
    scope: tuple[str, ...]
    state: str
    parent: int


# ------------------------------------------------------------------ reasons


@frozen
class Ready:
    """It has a step to make (the turn is pending)."""

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return "is about to enter it"


@frozen
class Running:
    """Its step is executed."""

    step: int
    attempt: int

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"runs it (attempt {self.attempt})"


@frozen
class ForTimer:
    """It waits for a deadline."""

    deadline: datetime

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits for the timer that is due at {self.deadline.isoformat()}"


@frozen
class ForMessage:
    """It waits for a message; without a key any of that name will do."""

    name: str
    key: Value

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        key = "without a key" if self.key is None else f"with the key {self.key!r}"
        return f"waits for the message {self.name!r} {key}"


@frozen
class ForSignal:
    """It waits for a signal."""

    name: str

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits for the signal {self.name!r}"


@frozen
class ForCondition:
    """It waits until a condition becomes true."""

    condition: str

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits until {self.condition!r} is true"


@frozen
class ForData:
    """It waits until one of its input sets is available; ``names``: what it looks at."""

    names: tuple[str, ...]

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits for its data ({', '.join(self.names)})"


@frozen
class ForChild:
    """It waits for the instance that it called."""

    child: str

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits for the called instance {self.child} to end"


@frozen
class ForChoice:
    """It waits for somebody to choose which of the ``enabled`` activities start; ``inside``: tokens in it."""

    choice: int
    enabled: tuple[str, ...]
    inside: int

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits for somebody to activate {', '.join(self.enabled)} or to complete it ({self.inside} inside)"


@frozen
class ForCompensation:
    """It waits until completed work is undone: ``running`` activities are, ``left`` more come after them."""

    running: int
    left: int

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits for a compensation ({self.running} being undone, {self.left} to come)"


@frozen
class ForEvents:
    """It waits for one of several events, or for ``all_of_them``; ``came``: how many of those happened already."""

    events: tuple[Reason, ...]
    all_of_them: bool
    came: int

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        word = " and " if self.all_of_them else " or "
        there = f" ({self.came} of them came already)" if self.came else ""
        return word.join(event.text for event in self.events) + there


@frozen(kw_only=True)
class ForTask:
    """It waits for a person."""

    task: int
    owner: str | None
    candidate_users: tuple[str, ...]
    candidate_groups: tuple[str, ...]

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        if self.owner is not None:
            return f"waits for {self.owner!r} to complete user task {self.task}"
        users = [f"user {name!r}" for name in self.candidate_users]
        groups = [f"group {name!r}" for name in self.candidate_groups]
        return f"waits for somebody to claim user task {self.task} (open to {', '.join(users + groups) or 'everybody'})"


@frozen
class ForRetry:
    """Its step failed and runs again."""

    deadline: datetime
    failure: str

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"runs again at {self.deadline.isoformat()}, because it failed: {self.failure}"


@frozen
class Hosting:
    """Its sub-process, or its instances, hold tokens of their own."""

    inside: int

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits until the {self.inside} token{'' if self.inside == 1 else 's'} inside it ended"


@frozen
class AtIncident:
    """An incident pins it."""

    incident: int
    kind: str
    message: str

    @property
    def text(self) -> str:
        """The reason as a person reads it, in one line."""
        return f"stands at incident {self.incident} ({self.kind}): {' '.join(self.message.split())}"


@frozen
class Throwing:
    """It throws its event when all other tokens have come to rest (the turn is pending)."""

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return "is about to throw its event"


Reason = (
    Ready
    | Running
    | Throwing
    | ForTimer
    | ForMessage
    | ForSignal
    | ForCondition
    | ForEvents
    | ForChild
    | ForChoice
    | ForCompensation
    | ForData
    | ForTask
    | ForRetry
    | Hosting
    | JoinReason
    | AtIncident
)


_Known = dict[tuple[int, str], JoinReason]


@frozen(kw_only=True)
class Explanation:
    """Why one token is where it is; ``label`` is its node as a person knows it.

    ``beside``: what its boundary events wait for, and the event sub-processes of its scope (told of the oldest token
    there), each with the label of the event.
    """

    token: Token
    label: str
    reason: Reason
    beside: tuple[Beside, ...] = ()

    @property
    def text(self) -> str:
        """One readable line."""
        line = f"token {self.token.id} at {self.label} {self.reason.text}"
        return "; ".join((line, *(each.text for each in self.beside)))


@frozen
class Beside:
    """An event that is armed beside a token: ``label`` is the event as a person knows it."""

    label: str
    reason: Reason

    @property
    def text(self) -> str:
        """What it waits for."""
        return f"beside it {self.label} {self.reason.text}"


# ------------------------------------------------------------------ projections


def tokens(program: Program, state: State) -> tuple[Token, ...]:
    """The live tokens, oldest first."""
    return tuple(_token(program, state, track) for track in state.tracks.values())


def explain(program: Program, state: State) -> tuple[Explanation, ...]:
    """Why each live token is where it is, oldest first."""
    joins: _Known = {}
    return tuple(
        Explanation(
            token=_token(program, state, track),
            label=program.nodes[track.node].label,
            reason=_reason(program, state, track, joins),
            beside=tuple(_beside(program, state, track)),
        )
        for track in state.tracks.values()
    )


def _beside(program: Program, state: State, track: Track) -> Iterator[Beside]:
    """What can happen while the token stands there."""
    activity = program.nodes[track.node].activity
    armed = [] if activity is None else [wait for wait in track.armed.values() if wait.node in activity.boundaries]
    scope = state.scopes[track.scope]
    if scope.armed and next(iter(scope.tracks.values())) is track:
        armed += scope.armed.values()
    for wait in armed:
        if not isinstance(wait, Gathering):
            yield Beside(program.nodes[wait.node].label, _awaited(program, state, wait))


_STATES = {TrackState.WAITING: "waiting", TrackState.INCIDENT: "incident"}


def _token(program: Program, state: State, track: Track) -> Token:
    path = [scope.node for scope in state.scope_chain(track.scope)]
    return Token(
        id=track.id,
        node=track.node,
        name=program.nodes[track.node].name,
        flow=track.flow,
        scope=tuple(reversed(path)),
        state=_STATES.get(track.state, "alive"),
        parent=track.parent,
    )


def _reason(program: Program, state: State, track: Track, joins: _Known) -> Reason:
    match track.state:
        case TrackState.READY | TrackState.ENDED:
            return Ready()
        case TrackState.EXECUTING:
            return Running(track.step, track.attempt)
        case TrackState.WAITING:
            assert track.wait is not None
            return _awaited(program, state, track.wait)
        case TrackState.THROWING:
            return Throwing()
        case TrackState.JOINING:
            return _at_join(program, state.scopes[track.scope], program.nodes[track.node], joins)
        case TrackState.HOSTING:
            return Hosting(sum(len(scope.tracks) for scope in track.hosted.values()))
        case TrackState.INCIDENT:
            assert track.incident is not None
            return AtIncident(track.incident.id, track.incident.kind.value, track.incident.message)
        case _:
            assert_never(track.state)


def _awaited(program: Program, state: State, wait: Wait) -> Reason:
    return _WAITS[type(wait)](program, state, wait)


def _for_task(_program: Program, _state: State, wait: TaskWait) -> ForTask:
    users, groups = wait.candidate_users, wait.candidate_groups
    return ForTask(task=wait.id, owner=wait.owner, candidate_users=users, candidate_groups=groups)


def _for_choice(program: Program, state: State, wait: AdHocWait) -> ForChoice:
    track = state.tracks[wait.track]
    behaviour = program.nodes[track.node].behaviour
    assert isinstance(behaviour, AdHoc)
    scope = behaviour.scope_of(track)
    assert scope is not None
    return ForChoice(wait.id, behaviour.enabled, len(scope.tracks))


def _for_compensation(_program: Program, state: State, wait: SweepWait) -> ForCompensation:
    sweep = state.sweeps[wait.sweep]
    return ForCompensation(sweep.running, len(sweep.queue))


def _not_armed(_program: Program, _state: State, wait: FailedArming) -> AtIncident:
    assert wait.incident is not None
    return AtIncident(wait.incident.id, wait.incident.kind.value, wait.incident.message)


def _several(program: Program, state: State, gathering: Gathering) -> ForEvents:
    """The definitions of one event, or at an event-based gateway those of all its arms."""
    track = state.tracks[gathering.track]
    own = [wait for wait in track.armed.values() if wait.node == (gathering.node or track.node)]
    waits_of = own or [wait for wait in track.armed.values() if _leads(track, wait)]
    events = tuple(_awaited(program, state, wait) for wait in waits_of if wait is not gathering)
    node = program.nodes[gathering.node or track.node]
    return ForEvents(events, node.behaviour.plan.parallel, len(gathering.came))


def _leads(track: Track, wait: Wait) -> bool:
    """Whether it stands for its arm: the gathering of several definitions does, they themselves do not."""
    gatherings = {each.node for each in track.armed.values() if isinstance(each, Gathering)}
    return isinstance(wait, Gathering) or wait.node not in gatherings


def _at_join(program: Program, scope: Scope, node: NodeProgram, known: _Known) -> JoinReason:
    """The reason of all that wait at this join, made once: there may be as many as it has flows."""
    key = (scope.id, node.id)
    if key not in known:
        known[key] = why_joining(program, scope, node)
    return known[key]


_WAITS: dict[type, Callable[[Program, State, Any], Reason]] = {
    TimerWait: lambda _program, _state, wait: ForTimer(wait.deadline),
    MessageWait: lambda _program, _state, wait: ForMessage(wait.name, wait.key),
    SignalWait: lambda _program, _state, wait: ForSignal(wait.name),
    ConditionWait: lambda program, state, wait: ForCondition(waits.condition_of(program, state, wait).text),
    TaskWait: _for_task,
    RetryWait: lambda _program, _state, wait: ForRetry(wait.deadline, wait.message),
    Gathering: _several,
    SweepWait: _for_compensation,
    AdHocWait: _for_choice,
    CallWait: lambda _program, _state, wait: ForChild(wait.child),
    DataWait: lambda program, state, wait: ForData(waits.data_of(program, state, wait).awaited),
    FailedArming: _not_armed,
}
