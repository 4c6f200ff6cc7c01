"""The parallel join: one token of each flow (clause 13.4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trioflow.machine.joins.queues import end_round, line_up, merge
from trioflow.machine.joins.reach import find_back
from trioflow.machine.joins.rules import JoinRule, Look, arrived, listed, missing

if TYPE_CHECKING:
    from trioflow.machine.program import FlowProgram, NodeProgram, Program
    from trioflow.machine.state import Join, Scope, Track
    from trioflow.machine.turn import Turn

__all__ = ["PARALLEL", "arrive"]


class Parallel(JoinRule):
    """It wants each flow that it misses.  The survivor is the last to arrive."""

    __slots__ = ()

    def wants(self, node: NodeProgram, join: Join) -> Iterable[str]:
        return missing(join, node)

    def find(self, look: Look, want: str) -> str | None:
        return find_back(look.program, look.node.id, (look.program.flows[want].source,), look.can_serve)

    def is_served(self, node: NodeProgram, join: Join) -> bool:
        return len(join.queues) + len(join.holders) == len(node.incoming)

    def force(self, turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> Track | None:
        track = _merge(turn, scope, node)
        if flows:
            turn.take(track, flows)
        else:
            node.behaviour.resolved(turn, track, node)
        return None

    def why_stuck(self, program: Program, node: NodeProgram, join: Join) -> str:
        lost = [flow for flow in missing(join, node) if flow not in join.holders]
        return (
            f"the join {node.label} can never fire: it holds a token from {arrived(join, node)}, and misses "
            f"{listed(lost)}, which no live token can reach any more; resolve the incident to go on with what is "
            f"there, or drop its tokens"
        )


PARALLEL = Parallel()


def arrive(turn: Turn, track: Track, node: NodeProgram) -> bool:
    """Queue the token.  True: the join fired, and ``track`` is the survivor; else it waits."""
    if len(node.incoming) < 2:
        return True
    scope = turn.state.scopes[track.scope]
    join = scope.joins.get(node.id)
    queues = join.queues if join is not None else {}
    if track.flow not in queues and len(queues) + 1 == len(node.incoming):
        _merge(turn, scope, node, keep=track)
        return True
    line_up(turn, track, node)
    track.hops = 0  # no loop is made of parallel joins alone
    return False


def _merge(turn: Turn, scope: Scope, node: NodeProgram, *, keep: Track | None = None) -> Track:
    survivor = merge(turn, scope, node, [flow.id for flow in node.incoming], keep=keep)
    assert survivor is not None
    end_round(turn, scope, node)
    return survivor
