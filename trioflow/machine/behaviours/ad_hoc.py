"""The ad-hoc sub-process: its activities are chosen while it runs (clauses 10.3.5, 13.3.5).

Who chooses: with ``trioflow:router`` a handler of the program, asked at opening and after each inner completion; with
``trioflow:activities`` a list of ids, evaluated at opening; with a completion condition alone, people and programs by
the instance's ``adhoc`` interface.  With none of these every enabled activity runs once (*choice*).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from trioflow.errors import ExpressionError
from trioflow.machine import joins
from trioflow.machine.behaviours.base import Behaviour, Compilers
from trioflow.machine.behaviours.tasks import Step
from trioflow.machine.state import AdHocWait, IncidentKind, Resume, Scope, ScopeKind, Track, TrackState
from trioflow.model import Activity, AdHocSubProcess, FlowNode, SubProcess

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn

__all__ = ["COMPILERS", "AdHoc", "activate", "complete"]


@frozen(kw_only=True)
class AdHoc(Step):
    """A scope whose ``enabled`` activities start when they are chosen; their inner flows are followed."""

    enabled: tuple[str, ...]
    sequential: bool
    until: Evaluable | None
    cancel_remaining: bool
    chosen: Evaluable | None
    handler: str | None = field(default=None)

    @property
    def is_free(self) -> bool:
        """Whether people and programs choose."""
        return self.until is not None and self.chosen is None and self.handler is None

    # -------------------------------------------------------------- opening

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        scope = self.scope_of(track)
        if scope is None:
            turn.open_entry(track)
            turn.fact("activity-started", track)
            scope = turn.open_scope(turn.program.scopes[node.id], track)
            turn.arm_handlers(scope)
            if scope.interrupted:
                turn.rest(track, TrackState.HOSTING)
                return
        if self.handler is not None:
            turn.run(track, outside=True)
            return
        try:
            first = self.enabled if self.chosen is None else self._named(turn.evaluate(track, self.chosen), node)
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        if self.is_free:
            turn.park(track, AdHocWait(turn.state.new_id(), track.id))
            return
        turn.rest(track, TrackState.HOSTING)
        self._start(turn, scope, first)
        if not scope.tracks:
            turn.close_scope(scope)

    def scope_of(self, track: Track) -> Scope | None:
        """The scope of its work; None: it is not open yet."""
        return next((scope for scope in track.hosted.values() if scope.kind is ScopeKind.BODY), None)

    def _named(self, chosen: Any, node: NodeProgram) -> tuple[str, ...]:
        if not isinstance(chosen, list | tuple) or not all(name in self.enabled for name in chosen):
            enabled = ", ".join(self.enabled)
            raise ExpressionError(f"{node.label} is to activate {chosen!r}: give a list of what is enabled ({enabled})")
        return tuple(chosen)

    def _start(self, turn: Turn, scope: Scope, names: tuple[str, ...]) -> None:
        """Activate them; one at a time if they are to follow one another."""
        queue = (*scope.queue, *names)
        running = len(scope.tracks) - scope.handlers
        while queue and not (self.sequential and running):
            _start(turn, scope, queue[0])
            queue = queue[1:]
            running += 1
        if queue != scope.queue:
            scope.queue = queue
            turn.state.scopes.touch(scope)

    # -------------------------------------------------------------- the router

    def completed(self, turn: Turn, track: Track, node: NodeProgram, outputs: Mapping[str, Any]) -> None:
        """The router has chosen: ``{"activities": [...]}``; nothing chosen and nothing running: it is complete."""
        scope = self.scope_of(track)
        assert scope is not None
        try:
            names = self._named(outputs.get("activities", []), node)
        except ExpressionError as error:
            turn.incident(track, IncidentKind.EXPRESSION, Resume.RUN, str(error))
            return
        turn.lift(track)
        turn.rest(track, TrackState.HOSTING)
        track.failing = None
        self._start(turn, scope, names)
        if not scope.tracks:
            turn.close_scope(scope)
        elif scope.is_asked_again:
            scope.is_asked_again = False
            turn.state.scopes.touch(scope)
            self._ask(turn, track)

    def _ask(self, turn: Turn, track: Track) -> None:
        turn.lift(track)
        track.attempt = 0
        turn.run(track, outside=True)

    # -------------------------------------------------------------- what happens inside

    def inner_completed(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope, done: Track) -> bool:
        """An inner activity has completed; False: that was the end of the sub-process, and of the activity's token."""
        if self.until is None:
            return True
        try:
            is_over = turn.decide(self.until, scope.id, f" of {node.label}")
        except ExpressionError as error:
            turn.incident(done, IncidentKind.EXPRESSION, Resume.LEAVE, str(error))
            return False
        if not is_over:
            return True
        scope.queue = ()
        if self.cancel_remaining:
            turn.clear_scope(scope, but=None)
            self._close(turn, host, node, scope)
            return False
        turn.state.scopes.touch(scope)
        self.stop_choosing(turn, host)
        return True

    def stop_choosing(self, turn: Turn, host: Track) -> None:
        """The condition is true: nothing is activated any more, what runs may end."""
        if isinstance(host.wait, AdHocWait):
            turn.lift(host)
            turn.disarm(host)
            turn.rest(host, TrackState.HOSTING)

    def _close(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> None:
        self.stop_choosing(turn, host)
        turn.close_scope(scope)

    def token_ended(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> bool:
        """A token inside has ended; whether the sub-process is complete if it was the last."""
        is_last = len(scope.tracks) == scope.handlers
        if is_last and scope.queue:
            self._start(turn, scope, ())
            return False
        if isinstance(host.wait, AdHocWait):
            return False  # people choose until the condition is true
        if self.handler is None or scope.interrupted:
            return True
        if host.state is TrackState.HOSTING:
            self._ask(turn, host)
        elif not scope.is_asked_again:
            scope.is_asked_again = True
            turn.state.scopes.touch(scope)
        return False

    def scope_completed(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        turn.complete(track, node)


def _start(turn: Turn, scope: Scope, activity: str) -> None:
    """A token comes from nowhere, so a join that nobody could reach may be reached now."""
    turn.start_track(scope, activity)
    joins.doubt_all(turn.state, scope)


# ------------------------------------------------------------------ by people and programs


def activate(turn: Turn, wait: AdHocWait, activity: str) -> None:
    """Somebody chooses an enabled activity."""
    host = turn.state.tracks[wait.track]
    node = turn.program.nodes[host.node]
    behaviour = node.behaviour
    assert isinstance(behaviour, AdHoc)
    if activity not in behaviour.enabled:
        turn.refuse(f"{node.label} has no enabled activity {activity!r}: choose among {', '.join(behaviour.enabled)}")
        return
    scope = behaviour.scope_of(host)
    assert scope is not None
    if behaviour.sequential and len(scope.tracks) > scope.handlers:
        turn.refuse(f"{node.label} runs its activities one after the other, and one is running")
        return
    turn.facts.append(("activity-chosen", activity, host.id, {}))
    _start(turn, scope, activity)


def complete(turn: Turn, wait: AdHocWait) -> None:
    """Somebody says that it is done: what still runs is cancelled, or may end, as the model says."""
    host = turn.state.tracks[wait.track]
    node = turn.program.nodes[host.node]
    behaviour = node.behaviour
    assert isinstance(behaviour, AdHoc)
    scope = behaviour.scope_of(host)
    assert scope is not None
    if behaviour.cancel_remaining:
        turn.clear_scope(scope, but=None)
    behaviour.stop_choosing(turn, host)
    if not scope.tracks:
        turn.close_scope(scope)


# ------------------------------------------------------------------ compiling


def _ad_hoc(compilation: Compilation, element: FlowNode) -> Behaviour:
    assert isinstance(element, AdHocSubProcess)
    router = element.extensions.own("router")
    until = element.completion_condition
    return AdHoc(
        enabled=tuple(_enabled(compilation, element)),
        sequential=element.ordering == "Sequential",
        until=None if until is None else compilation.expression(element, until),
        cancel_remaining=element.cancel_remaining_instances,
        chosen=compilation.own_expression(element, "activities"),
        handler=None if router is None else compilation.handler(router),
    )


def _enabled(compilation: Compilation, element: AdHocSubProcess) -> list[str]:
    """Its activities without incoming flow: neither event sub-processes nor compensation handlers."""
    found = []
    for node in compilation.graph.children[element.id]:
        if not isinstance(node, Activity) or node.is_for_compensation or compilation.graph.incoming.get(node.id):
            continue
        if not (isinstance(node, SubProcess) and node.triggered_by_event):
            found.append(node.id)
    return found


COMPILERS: Compilers = {AdHocSubProcess: _ad_hoc}
