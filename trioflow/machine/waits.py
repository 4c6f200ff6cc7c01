"""Who waits for what: the derived indexes over the waits, kept in one place.

A wait belongs to a track or, for an event sub-process, to a scope.  What a track is *parked* on is ``track.wait``;
what else may happen while it stands there is in ``track.armed``: the boundary events of its activity, the arms of
its event-based gateway, the definitions of a multiple event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from trioflow.machine.state import ConditionWait, DataWait, FailedArming, Scope, SignalWait, State, Track, Wait

if TYPE_CHECKING:
    from trioflow.machine.associations import DataPlan
    from trioflow.machine.program import Evaluable, NodeProgram, Program

__all__ = ["attach", "condition_of", "data_of", "detach", "node_of", "owner", "reads"]

W = TypeVar("W")


def owner(state: State, wait: Wait) -> Track | Scope:
    """The track or the scope that the wait belongs to."""
    return state.tracks[wait.track] if wait.track else state.scopes[wait.scope]


def node_of(program: Program, state: State, wait: Wait) -> NodeProgram:
    """The node whose event it is."""
    return program.nodes[wait.node or state.tracks[wait.track].node]


def reads(state: State, wait: Wait) -> int:
    """The id of the scope in which the wait's expressions are evaluated: the one around its host."""
    return state.tracks[wait.track].scope if wait.track else wait.scope


def condition_of(program: Program, state: State, wait: ConditionWait) -> Evaluable:
    """The condition that a wait waits for."""
    return node_of(program, state, wait).behaviour.condition(wait.label)


def data_of(program: Program, state: State, wait: DataWait) -> DataPlan:
    """What the activity that waits for its data needs."""
    activity = node_of(program, state, wait).activity
    assert activity is not None
    assert activity.data is not None
    return activity.data


def _names(program: Program, state: State, wait: ConditionWait | DataWait) -> Iterable[str]:
    """The variables that it looks at."""
    if isinstance(wait, DataWait):
        return data_of(program, state, wait).awaited
    return condition_of(program, state, wait).names


def attach(program: Program, state: State, wait: Wait) -> None:
    """Enter a wait into the derived indexes."""
    place = owner(state, wait)
    if isinstance(place, Track) and not wait.node:
        place.wait = wait
    else:
        place.armed[wait.id] = wait
    if isinstance(wait, SignalWait):
        state.signals.setdefault(wait.name, {})[wait.id] = wait
    elif isinstance(wait, ConditionWait | DataWait):
        for name in sorted(_names(program, state, wait)):
            state.conditions.setdefault(name, {})[wait.id] = wait


def detach(program: Program, state: State, wait: Wait) -> None:
    """Take a wait out of the derived indexes."""
    place = owner(state, wait)
    if isinstance(place, Track) and not wait.node:
        place.wait = None
    else:
        del place.armed[wait.id]
    if isinstance(wait, SignalWait):
        _leave(state.signals, wait.name, wait.id)
    elif isinstance(wait, ConditionWait | DataWait):
        for name in _names(program, state, wait):
            _leave(state.conditions, name, wait.id)
    elif isinstance(wait, FailedArming) and wait.incident is not None:
        state.incidents.drop(wait.incident.id)


def _leave(index: dict[str, dict[int, W]], key: str, wait: int) -> None:
    waiting = index[key]
    del waiting[wait]
    if not waiting:
        del index[key]
