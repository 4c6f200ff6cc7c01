"""What a kind of node does: one small, stateless object per node, bound when the definition is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trioflow.errors import EngineBug
from trioflow.machine.joins import QUANTITY, JoinRule
from trioflow.machine.state import FailedArming
from trioflow.machine.triggers import ConditionTrigger, EventPlan, TriggerPlan, report
from trioflow.model import FlowNode

if TYPE_CHECKING:
    from trioflow.errors import ExpressionError
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.events import ActivityFailed, ChildEnded, ErrorThrown
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.state import ConditionWait, Scope, Track, Trigger
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["Behaviour", "Compilers", "Refused"]

NOTHING_TO_WAIT_FOR = EventPlan()

Compilers = dict[type[FlowNode], Callable[["Compilation", FlowNode], "Behaviour"]]
"""For each kind of element: what makes its behaviour, and refuses what is not executed."""


class Behaviour:
    """The moments of a node.  A kind overrides those that can happen to it; the others are bugs of the engine."""

    __slots__ = ()
    join_rule: JoinRule = QUANTITY
    """What tokens that wait for others at this node wait for; before an activity, for enough of them to start it."""
    is_join = False
    """Whether tokens of several incoming flows wait for each other here."""
    handles = False
    """Whether its tokens are handlers of their scope: they do not keep it from completing (event sub-processes)."""
    is_transaction = False
    handler: str | None = None
    """The handler that its step calls, where it calls one."""
    plan = NOTHING_TO_WAIT_FOR
    """What the event waits for, where it catches something."""

    def enter(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """A token arrives."""
        raise _impossible("enter", track)

    def again(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """The step runs once more, under the same key: a retry, or a step found running after a crash."""
        raise _impossible("run again", track)

    def completed(self, turn: Turn, track: Track, node: NodeProgram, outputs: Mapping[str, Any]) -> None:
        """The step, or the person, delivered outputs."""
        raise _impossible("complete", track)

    def failed(self, turn: Turn, track: Track, node: NodeProgram, event: ActivityFailed) -> None:
        """The step failed for a technical reason."""
        raise _impossible("fail", track)

    def threw(self, turn: Turn, track: Track, node: NodeProgram, event: ErrorThrown) -> None:
        """The step threw a BPMN error."""
        raise _impossible("throw", track)

    def timer_due(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """The delay before the step runs again is over."""
        raise _impossible("be due", track)

    def occurred(self, turn: Turn, node: NodeProgram, wait: Trigger, payload: Value) -> None:
        """What the event waits for has happened: a timer, message or signal, or its condition became true."""
        raise EngineBug(f"nothing can occur to {node.id!r}, which {wait} is of")

    def failed_to_look(self, turn: Turn, node: NodeProgram, wait: ConditionWait, error: ExpressionError) -> None:
        """The condition that is waited for cannot be evaluated any more: the event is not armed, its host goes on."""
        turn.withdraw(wait)
        report(turn, FailedArming(turn.state.new_id(), wait.track, wait.scope, wait.node, wait.label), error)

    def fire(
        self,
        turn: Turn,
        node: NodeProgram,
        owner: Track | Scope,
        values: Mapping[str, Value],
        *,
        left: Track | None = None,
    ) -> None:
        """The event catches what was thrown, or what it waited for is complete: its token starts with these values.

        ``left``: the host of the outermost sub-process that an error has left, whose work is undone first.
        """
        raise EngineBug(f"{node.id!r} cannot catch anything")

    def throw(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """All tokens have come to rest, and this one throws."""
        raise _impossible("throw an event", track)

    def objection(self, node: NodeProgram, flows: tuple[str, ...]) -> str:
        """Why an incident here cannot be resolved along these flows (none: the node chooses); empty: it can."""
        return ""

    def resolved(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """An operator resolved the incident here without naming flows: the token goes on as after success."""
        if node.is_activity:
            turn.complete(track, node)
        else:
            turn.leave(track, node)

    def child_ended(self, turn: Turn, track: Track, node: NodeProgram, event: ChildEnded) -> None:
        """The instance that the token called has ended."""
        raise _impossible("have called", track)

    def token_ended(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> bool:
        """Of an ad-hoc sub-process: a token inside has ended; whether it is complete if that was the last."""
        raise _impossible("choose activities", host)

    def inner_completed(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope, done: Track) -> bool:
        """Of an ad-hoc sub-process: an activity inside has completed; False: its token is not to go on."""
        raise _impossible("choose activities", host)

    def leave(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """Choose the outgoing flows; once more, if that failed before."""
        turn.leave(track, node)

    def joined(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """The join fired when all tokens were at rest, and this is the survivor."""
        raise _impossible("have been joined", track)

    def swept(self, turn: Turn, track: Track, node: NodeProgram, label: str) -> None:
        """The compensation that the token waited for has ended; ``label`` is what the wait was given."""
        raise _impossible("have compensated", track)

    def trigger(self, label: str) -> TriggerPlan:
        """The definition of that label of the event."""
        return self.plan.trigger(label)

    def condition(self, label: str) -> Evaluable:
        """The condition of that label of the event."""
        trigger = self.plan.trigger(label)
        assert isinstance(trigger, ConditionTrigger)
        return trigger.condition

    def scope_completed(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """The scope that the token hosts has completed (or was terminated: then it goes on all the same)."""
        raise _impossible("complete a scope", track)


class Refused(Behaviour):
    """Stands in for a node that was refused, so that one pass can find the rest; never part of a program."""

    __slots__ = ()


def _impossible(moment: str, track: Track) -> EngineBug:
    return EngineBug(f"track {track.id} at {track.node!r} ({track.state.value}) cannot {moment}")
