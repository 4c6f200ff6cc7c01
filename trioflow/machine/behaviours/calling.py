"""The call activity: another process runs as an instance of its own, and its end is the activity's (10.3.6, 13.3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.facts import Status
from trioflow.machine import throws
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.data import visible
from trioflow.machine.state import CallWait, IncidentKind, Resume, Track
from trioflow.machine.transition import ChildPost
from trioflow.model import CallActivity, FlowNode

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.events import ChildEnded
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["COMPILERS", "MAX_DEPTH", "Call"]

MAX_DEPTH = 100
"""How deep calls may be nested (*choice*); one more is an incident."""


@frozen(kw_only=True)
class Call(Behaviour):
    """Starts a child instance and waits for its end.

    What it is called with: its data inputs, or without any all that can be seen there (*choice*).  What comes back: by
    its output associations, or without any all variables of the child (*choice*).  ``version``: a fixed one; ``tag``: a
    version tag; neither: the latest when the call starts (late binding).
    """

    called: Evaluable
    version: int | None
    tag: str | None
    business_key: Evaluable | None

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        identity = turn.state.identity
        if identity.depth >= MAX_DEPTH:
            message = (
                f"{node.label} is inside {MAX_DEPTH} calls already, the most allowed: do processes call in a ring?"
            )
            turn.incident(track, IncidentKind.STEP_LIMIT, Resume.ENTER, message)
            return
        try:
            called = _text(self.called, turn.evaluate(track, self.called))
            key = None if self.business_key is None else turn.evaluate(track, self.business_key)
            business_key = None if key is None or self.business_key is None else _text(self.business_key, key)
        except (ExpressionError, UnstorableValue) as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        turn.open_entry(track)
        wait_id = turn.state.new_id()
        child = f"{identity.instance_id}.{wait_id}"
        codes, any_code = throws.caught_around(turn, track)
        turn.park(track, CallWait(wait_id, track.id, child))
        turn.posts.append(
            ChildPost(
                child=child,
                wait=wait_id,
                node=node.id,
                process_key=called,
                version=self.version,
                tag=self.tag,
                variables=_given(turn, track, node),
                business_key=business_key,
                catches=codes,
                catches_any=any_code,
            )
        )
        turn.fact("activity-started", track)
        turn.fact("child-started", track, child=child)

    def child_ended(self, turn: Turn, track: Track, node: NodeProgram, event: ChildEnded) -> None:
        turn.disarm(track)
        turn.lift(track)
        turn.fact("child-ended", track, status=event.status.value)
        if event.status is not Status.FAILED:
            turn.complete(track, node, event.outputs)
            return
        caught = throws.find(turn, track, throws.ERROR, event.code)
        if caught is not None:
            caught.fire(turn, throws.error_values(event.code, event.message, event.outputs), undo=True)
        elif event.is_expected:
            throws.uncaught_activity_error(turn, track, node, event.code or "", event.message)
        else:
            turn.finish(Status.FAILED, event.message)


def _given(turn: Turn, track: Track, node: NodeProgram) -> dict[str, Value]:
    if not node.has_inputs:
        return visible(turn.state, track.scope)
    assert node.activity is not None
    assert node.activity.data is not None
    own = turn.state.scopes[track.scope].data
    return {association.target: own[association.target] for association in node.activity.data.inputs}


def _text(expression: Evaluable, value: Value) -> str:
    if isinstance(value, str) and value:
        return value
    raise ExpressionError(f"the expression {expression.text!r} gave {value!r}, but must give a text")


def _call(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, CallActivity)
    version = element.extensions.own("version")
    if version is not None and not (version.isdecimal() and int(version) > 0):
        message = f"its version is {version!r}, no number from 1."
        return compilation.fault(
            element, "bad-value", message, "Write a version's number, or leave it out: the latest."
        )
    called = element.called_element or ""
    if not called:
        return compilation.fault(element, "called-missing", "it calls nothing.", "Give it a calledElement.")
    return Call(
        called=compilation.value(element, called),
        version=None if version is None else int(version),
        tag=element.extensions.own("versionTag"),
        business_key=compilation.own_value(element, "businessKey"),
    )


COMPILERS: Compilers = {CallActivity: _call}
