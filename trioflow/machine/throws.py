"""Errors and escalations: who catches what a token throws, looked for from the inside out (clauses 10.5.1, 10.5.7).

First the boundary of the throwing activity; then, scope by scope, an event sub-process of that scope, and the boundary
of the activity that hosts it.  In one place an equal code wins over a catcher of any.  A handler never catches what is
thrown inside itself; a scope that is completing, or that a handler has taken over, catches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trioflow.machine.program import NO_CATCHERS, Catchers, NodeProgram
from trioflow.machine.state import IncidentKind, Resume, Scope, ScopeKind, Track
from trioflow.machine.transition import EscalationPost

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = [
    "ERROR",
    "ESCALATION",
    "Caught",
    "caught_around",
    "error_values",
    "escalate",
    "escalation_values",
    "find",
    "is_caught_by_callers",
    "uncaught_activity_error",
]

ERROR = "error"
ESCALATION = "escalation"


@frozen
class Caught:
    """The event that catches, and where it is armed: at an activity's token, or in a scope."""

    node: NodeProgram
    owner: Track | Scope
    left: Track | None = None
    """The host of the outermost sub-process that what was thrown has left on its way here."""

    def fire(self, turn: Turn, values: Mapping[str, Any], *, undo: bool = False) -> None:
        """Let it catch; an interrupting one cancels the thrower too.  ``undo``: presumed abort of what was left."""
        self.node.behaviour.fire(turn, self.node, self.owner, values, left=self.left if undo else None)


def find(turn: Turn, track: Track, kind: str, code: str | None) -> Caught | None:
    """Who catches what the token throws; None: nobody in this instance."""
    nodes = turn.program.nodes
    left: Track | None = None
    while True:
        scope = turn.state.scopes[track.scope]
        activity = nodes[track.node].activity
        if activity is not None and scope.kind is not ScopeKind.INSTANCE:
            catcher = activity.catchers.get(kind, _NOBODY).of(code)
            if catcher is not None:
                return Caught(nodes[catcher], track, left)
        catcher = _of_scope(turn, scope, kind, code, besides=track.node)
        if catcher is not None:
            return Caught(nodes[catcher], scope, left)
        if scope.host is None:
            return None
        track = turn.state.tracks[scope.host]
        if scope.kind is ScopeKind.BODY and track.node in turn.program.scopes and not scope.undoes:
            left = None if nodes[track.node].behaviour.handles else track
        elif scope.kind is ScopeKind.INSTANCE and left is not None:
            left = track


_NOBODY = Catchers()


def _of_scope(turn: Turn, scope: Scope, kind: str, code: str | None, *, besides: str) -> str | None:
    if scope.kind is not ScopeKind.BODY or scope.interrupted or len(scope.tracks) == scope.handlers:
        return None
    catchers = turn.program.scopes[scope.node].catchers
    if catchers is NO_CATCHERS or kind not in catchers:
        return None
    for catcher in catchers[kind].candidates(code):
        if turn.program.nodes[catcher].container != besides:
            return catcher
    return None


def caught_around(turn: Turn, track: Track) -> tuple[tuple[str, ...], bool]:
    """The error codes that would be caught if the token threw them, by this instance or its callers; whether any is."""
    identity = turn.state.identity
    codes = dict.fromkeys(identity.catches)
    any_code = identity.catches_any
    besides = ""
    while True:
        scope = turn.state.scopes[track.scope]
        activity = turn.program.nodes[track.node].activity
        places = [activity.catchers] if activity is not None and scope.kind is not ScopeKind.INSTANCE else []
        if scope.kind is ScopeKind.BODY and not scope.interrupted:
            places.append(turn.program.scopes[scope.node].catchers)
        besides = track.node
        for place in places:
            catchers = place.get(ERROR, _NOBODY)
            own = {code: node for code, node in catchers.exact.items() if turn.program.nodes[node].container != besides}
            codes.update(dict.fromkeys(own))
            any_code = any_code or (catchers.any is not None and turn.program.nodes[catchers.any].container != besides)
        if scope.host is None:
            return tuple(codes), any_code
        track = turn.state.tracks[scope.host]


def is_caught_by_callers(turn: Turn, code: str | None) -> bool:
    """Whether the callers of this instance catch that error: they said so when they called it."""
    identity = turn.state.identity
    return identity.parent_id is not None and (identity.catches_any or (code is not None and code in identity.catches))


def escalate(turn: Turn, track: Track, code: str | None, values: Mapping[str, Any]) -> None:
    """An escalation looks for its catcher, here and then in the caller; caught by nobody it is a fact, no failure."""
    caught = find(turn, track, ESCALATION, code)
    if caught is not None:
        caught.fire(turn, values)
    elif turn.state.identity.parent_id is not None:
        turn.posts.append(EscalationPost(code, dict(values)))
    else:
        turn.fact("escalation-uncaught", track, code=code)


def uncaught_activity_error(turn: Turn, track: Track, node: NodeProgram, code: str, message: str) -> None:
    """An error of an activity that nobody catches: an incident there, never the end of the instance."""
    text = (
        f"{node.label} threw the BPMN error {code!r} ({message}), and nothing in the model catches it; "
        f"retry it, or resolve the incident with the outputs to go on with"
    )
    turn.incident(track, IncidentKind.UNCAUGHT_ERROR, Resume.RUN, text, code=code)


def error_values(code: str | None, message: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """What is bound for the catcher of an error (*choice* of the names)."""
    return {"errorCode": code, "errorMessage": message, **variables}


def escalation_values(code: str | None, variables: Mapping[str, Any]) -> dict[str, Any]:
    """What is bound for the catcher of an escalation (*choice* of the name)."""
    return {"escalationCode": code, **variables}
