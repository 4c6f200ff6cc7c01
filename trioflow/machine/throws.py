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
from trioflow.machine.state import Scope, ScopeKind, Track

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = ["ERROR", "ESCALATION", "Caught", "error_values", "escalation_values", "find"]

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


def error_values(code: str | None, message: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """What is bound for the catcher of an error (*choice* of the names)."""
    return {"errorCode": code, "errorMessage": message, **variables}


def escalation_values(code: str | None, variables: Mapping[str, Any]) -> dict[str, Any]:
    """What is bound for the catcher of an escalation (*choice* of the name)."""
    return {"escalationCode": code, **variables}
