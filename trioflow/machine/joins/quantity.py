"""The queue before an activity that starts when several tokens are there (``startQuantity``, clause 13.3.2).

By whatever flows they came, any number by one of them: so it wants only that a further token can come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trioflow.machine.joins.queues import end_round, line_up, merge
from trioflow.machine.joins.reach import find_back
from trioflow.machine.joins.rules import JoinRule, Look, arrived

if TYPE_CHECKING:
    from trioflow.machine.program import FlowProgram, NodeProgram, Program
    from trioflow.machine.state import Join, Scope, Track
    from trioflow.machine.turn import Turn

__all__ = ["ANY_TOKEN", "QUANTITY", "find_any", "gather"]

ANY_TOKEN = "*"  # noqa: S105  # a key, and no flow id can be this
"""The want of a further token, on whatever flow."""


class Quantity(JoinRule):
    """It wants a further token.  A token that works at the activity has passed the queue, and can come round to it."""

    __slots__ = ()

    def wants(self, node: NodeProgram, join: Join) -> Iterable[str]:
        return (ANY_TOKEN,)

    def find(self, look: Look, want: str) -> str | None:
        return find_any(look)

    def is_served(self, node: NodeProgram, join: Join) -> bool:
        return ANY_TOKEN in join.holders

    def force(self, turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> Track | None:
        track = _merge(turn, scope, node)
        if not flows:
            return track
        turn.take(track, flows)
        return None

    def why_stuck(self, program: Program, node: NodeProgram, join: Join) -> str:
        quantity = node.activity.start_quantity if node.activity is not None else 1
        return (
            f"the activity {node.label} can never start: it needs {quantity} tokens and holds {join.count}, from "
            f"{arrived(join, node)}, and no live token can reach it any more; resolve the incident to start it with "
            f"what is there, or drop its tokens"
        )


QUANTITY = Quantity()


def find_any(look: Look) -> str | None:
    """The node of tokens that can reach the join at all."""
    sources = (flow.source for flow in look.node.incoming)
    return find_back(look.program, look.node.id, sources, look.can_serve)


def gather(turn: Turn, track: Track, node: NodeProgram, quantity: int) -> bool:
    """Queue the token.  True: ``quantity`` tokens are here, and ``track`` is the survivor; else it waits."""
    scope = turn.state.scopes[track.scope]
    join = scope.joins.get(node.id)
    if join is not None and join.count + 1 >= quantity:
        _merge(turn, scope, node, keep=track)
        return True
    line_up(turn, track, node)
    track.hops = 0  # the activity is executed between any two rounds
    return False


def _merge(turn: Turn, scope: Scope, node: NodeProgram, *, keep: Track | None = None) -> Track:
    survivor = merge(turn, scope, node, list(scope.joins[node.id].queues), keep=keep, all_of=True)
    assert survivor is not None
    end_round(turn, scope, node)
    return survivor
