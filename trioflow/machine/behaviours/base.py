"""What a kind of node does: one small, stateless object per node, bound when the definition is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trioflow.errors import EngineBug, UnstorableValue
from trioflow.machine.state import IncidentKind, Resume
from trioflow.model import FlowNode

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.events import ActivityFailed, ErrorThrown, MessageArrived
    from trioflow.machine.program import NodeProgram
    from trioflow.machine.state import Track
    from trioflow.machine.turn import Turn

__all__ = ["Behaviour", "Compilers", "Refused", "write_outputs"]

Compilers = dict[type[FlowNode], Callable[["Compilation", FlowNode], "Behaviour"]]
"""For each kind of element: what makes its behaviour, and refuses what is not executed."""


class Behaviour:
    """The moments of a node.  A kind overrides those that can happen to it; the others are bugs of the engine."""

    __slots__ = ()
    is_join = False
    """Whether tokens of several incoming flows wait for each other here."""

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
        """The deadline of the token's timer was reached."""
        raise _impossible("be due", track)

    def message_arrived(self, turn: Turn, track: Track, node: NodeProgram, event: MessageArrived) -> None:
        """The message that the token waits for is there."""
        raise _impossible("receive", track)

    def objection(self, node: NodeProgram, flows: tuple[str, ...]) -> str:
        """Why an incident here cannot be resolved along these flows (none: the node chooses); empty: it can."""
        return ""

    def resolved(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """An operator resolved the incident here without naming flows: the token goes on as after success."""
        turn.leave(track, node)

    def scope_completed(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """The scope that the token hosts has completed (or was terminated: then it goes on all the same)."""
        raise _impossible("complete a scope", track)


class Refused(Behaviour):
    """Stands in for a node that was refused, so that one pass can find the rest; never part of a program."""

    __slots__ = ()


def write_outputs(turn: Turn, track: Track, outputs: Mapping[str, Any], *, resume: Resume = Resume.RUN) -> bool:
    """Write what a node brought, all or none; False: a value cannot be stored, and the token is at an incident.

    ``resume`` is what a retry of that incident does.
    """
    if not outputs:
        return True
    try:
        canonical = turn.canonical(outputs, f"outputs of {track.node!r}")
    except UnstorableValue as error:
        turn.incident(track, IncidentKind.UNSTORABLE_VALUE, resume, str(error))
        return False
    turn.write_in(track.scope, track.node, canonical)
    return True


def _impossible(moment: str, track: Track) -> EngineBug:
    return EngineBug(f"track {track.id} at {track.node!r} ({track.state.value}) cannot {moment}")
